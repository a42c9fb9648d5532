/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "base/macs.h"

static struct bed {
	struct vb_macs *t;
	vb_time now;
	unsigned prepared, released;
	/* true: on_prepare() fails, as it does when no address handle can be
	 * made */
	bool unfit;
} b;

static bool on_prepare(void *arg, struct vb_mac *m)
{
	b.prepared += !b.unfit;
	m->handle = b.unfit ? NULL : &b;
	return !b.unfit;
}

static void on_release(void *arg, struct vb_mac *m)
{
	assert_ptr_equal(m->handle, &b);
	b.released++;
}

static const struct vb_mac_ops ops = { on_prepare, on_release };

static int make_bed(void **state)
{
	memset(&b, 0, sizeof(b));
	b.now = 1000 * VB_SEC;
	b.t = vb_macs_create(&ops, NULL, 0x1234);
	return b.t ? 0 : -1;
}

static int end_bed(void **state)
{
	vb_macs_destroy(b.t);
	return b.prepared == b.released ? 0 : -1;
}

static void make_mac(uint8_t mac[6], unsigned i)
{
	vb_store_be(mac, 0x020000000000 | i, 6);
}

static void learn(unsigned i, unsigned at)
{
	uint8_t mac[6];

	make_mac(mac, i);
	vb_macs_learn(b.t, mac, at, b.now);
}

/* Returns the place that the table has for address number @i; 0: none. */
static uint64_t place_of(unsigned i)
{
	const struct vb_mac *m;
	uint8_t mac[6];

	make_mac(mac, i);
	m = vb_macs_find(b.t, mac, b.now);
	return m ? m->at : 0;
}

static void mac__is_learned_and_moves(void **state)
{
	assert_int_equal(place_of(1), 0);
	learn(1, 0x48);
	learn(2, 0x49);
	learn(1, 0x48);
	assert_int_equal(place_of(1), 0x48);
	assert_int_equal(place_of(2), 0x49);
	assert_int_equal(b.prepared, 2);
	learn(1, 0x50);
	assert_int_equal(place_of(1), 0x50);
	assert_int_equal(b.released, 1);
}

static void mac__is_forgotten_with_time(void **state)
{
	learn(1, 0x48);
	b.now += VB_MAC_AGE - VB_SEC;
	assert_int_equal(place_of(1), 0x48);
	learn(1, 0x48);
	b.now += VB_MAC_AGE - VB_SEC;
	assert_int_equal(place_of(1), 0x48);
	b.now += VB_SEC;
	assert_int_equal(place_of(1), 0);
	learn(1, 0x48);
	assert_int_equal(place_of(1), 0x48);
	assert_int_equal(b.prepared, 1);
	vb_macs_forget(b.t);
	assert_int_equal(place_of(1), 0);
}

static void mac__of_a_group_is_not_learned(void **state)
{
	static const uint8_t all[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	vb_macs_learn(b.t, all, 1, b.now);
	assert_null(vb_macs_find(b.t, all, b.now));
}

static void mac__that_gives_no_handle_is_unknown(void **state)
{
	b.unfit = true;
	learn(1, 0x48);
	assert_int_equal(place_of(1), 0);
	b.unfit = false;
	learn(1, 0x48);
	assert_int_equal(place_of(1), 0x48);
	b.unfit = true;
	learn(1, 0x49);
	assert_int_equal(place_of(1), 0);
}

static void table__is_bounded(void **state)
{
	unsigned known = 0;

	for (unsigned i = 0; i < 20 * VB_MACS; i++) {
		b.now++;
		learn(i, i + 1);
	}
	for (unsigned i = 0; i < 20 * VB_MACS; i++)
		known += place_of(i) != 0;
	assert_in_range(known, VB_MACS / 2, VB_MACS);
	assert_int_equal(b.prepared - b.released, known);
	/* the address that was learned last is in the table */
	assert_int_equal(place_of(20 * VB_MACS - 1), 20 * VB_MACS);
}

static void count_mac(void *arg, const struct vb_mac *m)
{
	unsigned *count = arg;

	*count += 1;
}

static void macs__of_one_place_are_forgotten(void **state)
{
	unsigned known = 0;

	learn(1, 7);
	learn(2, 7);
	learn(3, 8);
	vb_macs_each(b.t, b.now, count_mac, &known);
	assert_int_equal(known, 3);
	vb_macs_forget_at(b.t, 7);
	assert_int_equal(place_of(1), 0);
	assert_int_equal(place_of(2), 0);
	assert_int_equal(place_of(3), 8);
	known = 0;
	vb_macs_each(b.t, b.now, count_mac, &known);
	assert_int_equal(known, 1);
	known = 0;
	vb_macs_each(b.t, b.now + VB_MAC_AGE, count_mac, &known);
	assert_int_equal(known, 0);
}

/* A table of addresses that need no handle, as in a bridge. */
static void macs__need_no_handle(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };
	struct vb_macs *t = vb_macs_create(NULL, NULL, 1);

	assert_non_null(t);
	vb_macs_learn(t, mac, 3, b.now);
	assert_int_equal(vb_macs_find(t, mac, b.now)->at, 3);
	vb_macs_learn(t, mac, 4, b.now);
	assert_int_equal(vb_macs_find(t, mac, b.now)->at, 4);
	vb_macs_destroy(t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_bed, end_bed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(mac__is_learned_and_moves),
		TEST(mac__is_forgotten_with_time),
		TEST(mac__of_a_group_is_not_learned),
		TEST(mac__that_gives_no_handle_is_unknown),
		TEST(table__is_bounded),
		TEST(macs__of_one_place_are_forgotten),
		TEST(macs__need_no_handle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

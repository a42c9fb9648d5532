/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ib/out_of_order.h"

static struct vb_adapter *a;
static struct vb_ooo e;

static bool keep(uint32_t psn, uint32_t len)
{
	static uint8_t bytes[4096];
	struct vb_ib_pkt pkt = { .bth.psn = psn & VB_PSN_MASK,
				 .payload = bytes,
				 .payload_bytes = len };

	memset(bytes, (int)psn & 0xff, sizeof(bytes));
	return vb_ooo_keep(a, &e, &pkt);
}

static int set_up(void **state)
{
	a = calloc(1, sizeof(*a));
	memset(&e, 0, sizeof(e));
	return a ? 0 : -1;
}

static int tear_down(void **state)
{
	vb_ooo_clear(a, &e);
	assert_int_equal(atomic_load(&a->ooo_bytes), 0);
	vb_stash_fini(&a->ooo_stash);
	free(a);
	return 0;
}

static void early__gives_back_what_it_was_given(void **state)
{
	struct vb_ooo_pkt *p;

	assert_null(vb_ooo_take(&e, 5));
	assert_true(keep(5, 100));
	assert_true(keep(5, 100)); /* a duplicate is not stored a second time */
	assert_int_equal(e.count, 1);
	assert_null(vb_ooo_take(&e, 4));
	assert_null(vb_ooo_take(&e, 5 + VB_OOO_PSNS));
	p = vb_ooo_take(&e, 5);
	assert_non_null(p);
	assert_int_equal(p->pkt.payload_bytes, 100);
	assert_true(p->pkt.payload == p->payload);
	assert_int_equal(p->payload[99], 5);
	vb_ooo_free(a, p);
	assert_int_equal(e.count, 0);
}

static void early__a_later_turn_displaces(void **state)
{
	assert_true(keep(5, 8));
	assert_true(keep(5 + VB_OOO_PSNS, 8));
	assert_int_equal(e.count, 1);
	assert_null(vb_ooo_take(&e, 5));
}

static void early__maps_across_the_wrap(void **state)
{
	uint8_t bits[VB_OOO_BYTES];

	assert_int_equal(vb_ooo_gap(&e, 0xfffffe), 0);
	assert_int_equal(vb_ooo_map(&e, 0xfffffe, bits), 0);
	assert_true(keep(0xffffff, 0));
	assert_true(keep(1, 0));
	assert_true(keep(9, 0));
	assert_int_equal(vb_ooo_gap(&e, 0xfffffe), 1);
	assert_int_equal(vb_ooo_gap(&e, 0), 1);
	assert_int_equal(vb_ooo_gap(&e, 10), 0);
	assert_int_equal(vb_ooo_map(&e, 0xfffffe, bits), 2);
	assert_int_equal(bits[0], 0xa0);
	assert_int_equal(bits[1], 0x20);
}

static void early__stays_within_its_budget(void **state)
{
	atomic_store(&a->ooo_bytes, (64u << 20) - 5000);
	assert_true(keep(1, 4096));
	assert_false(keep(2, 4096));
	atomic_fetch_sub(&a->ooo_bytes, (64u << 20) - 5000);
	assert_true(keep(2, 4096));
}

/* A small packet costs the whole buffer in which it is stored. */
static void early__charges_what_memory_it_takes(void **state)
{
	size_t small = vb_stash_room(sizeof(struct vb_ooo_pkt) + 1);

	assert_true(keep(1, 1));
	assert_int_equal(atomic_load(&a->ooo_bytes), small);
	assert_true(keep(2, 2));
	assert_int_equal(atomic_load(&a->ooo_bytes), 2 * small);
	vb_ooo_free(a, vb_ooo_take(&e, 1));
	assert_int_equal(atomic_load(&a->ooo_bytes), small);
}

/* Repeated losses reuse the memory instead of asking the kernel each time. */
static void early__keeps_its_memory_for_the_next(void **state)
{
	struct vb_ooo_pkt **slots, *p;

	assert_true(keep(1, 4096));
	slots = e.slots;
	p = vb_ooo_take(&e, 1);
	vb_ooo_clear(a, &e);
	vb_ooo_free(a, p);
	assert_true(keep(7, 4096));
	assert_ptr_equal(vb_ooo_take(&e, 7), slots);
	assert_ptr_equal(e.slots, p);
	vb_ooo_free(a, (struct vb_ooo_pkt *)slots);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(early__gives_back_what_it_was_given),
		CASE(early__a_later_turn_displaces),
		CASE(early__maps_across_the_wrap),
		CASE(early__stays_within_its_budget),
		CASE(early__charges_what_memory_it_takes),
		CASE(early__keeps_its_memory_for_the_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

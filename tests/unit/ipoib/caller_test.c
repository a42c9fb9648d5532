/* SPDX-License-Identifier: BSD-2-Clause */
/* Which neighbours' connections are kept when there are too many. The test sets
 * the time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "ipoib/caller.h"

static struct bed {
	struct vb_callers *t;
	vb_time now;
	unsigned ended;
	const void *last; /* handle of the connection that ended last */
	char handles[4 * VB_CALLERS];
} b;

static void on_end(void *arg, void *handle)
{
	b.ended++;
	b.last = handle;
}

static int make_bed(void **state)
{
	memset(&b, 0, sizeof(b));
	b.now = 100 * VB_SEC;
	b.t = vb_callers_create(on_end, NULL);
	return b.t ? 0 : -1;
}

static int end_bed(void **state)
{
	vb_callers_destroy(b.t);
	return 0;
}

/* The neighbour's queue pair @qpn at port @port asks for a connection, which
 * the interface knows as @handle. */
static int enter(unsigned port, uint32_t qpn, unsigned handle)
{
	const struct vb_ipoib_hw hw = {
		.qpn = qpn,
		.gid = { { 0xfe, 0x80, [14] = (uint8_t)(port >> 8),
			   [15] = (uint8_t)port } },
	};

	return vb_callers_enter(b.t, &hw, &b.handles[handle], b.now);
}

static void queue_pair__has_one_connection(void **state)
{
	int place = enter(1, 5, 0);

	assert_true(place >= 0);
	assert_int_equal(enter(1, 5, 1), place);
	assert_ptr_equal(b.last, &b.handles[0]);
	assert_int_equal(vb_callers_count(b.t), 1);
	vb_callers_remove(b.t, place);
	assert_ptr_equal(b.last, &b.handles[1]);
	vb_callers_remove(b.t, place);
	assert_int_equal(b.ended, 2);
	assert_int_equal(vb_callers_count(b.t), 0);
}

/* Further queue pairs of a port end older connections of that port, and of no
 * other. */
static void port__has_a_few(void **state)
{
	int other = enter(2, 5, 100), first = enter(1, 0, 0);

	b.now += VB_SEC;
	for (uint32_t i = 1; i < VB_CALLERS_OF_PORT; i++)
		assert_true(enter(1, i, i) >= 0);
	assert_int_equal(b.ended, 0);
	b.now += VB_SEC;
	vb_callers_heard(b.t, first, b.now);
	assert_true(enter(1, 99, 99) >= 0);
	assert_int_equal(b.ended, 1);
	assert_ptr_equal(b.last, &b.handles[1]);
	for (uint32_t i = 100; i < 300; i++)
		assert_true(enter(1, i, 1) >= 0);
	assert_int_equal(vb_callers_count(b.t), VB_CALLERS_OF_PORT + 1);
	vb_callers_remove(b.t, other);
	assert_ptr_equal(b.last, &b.handles[100]);
}

static void table__is_full(void **state)
{
	for (unsigned i = 0; i < VB_CALLERS; i++) {
		assert_int_equal(enter(i, 1, i), i);
		b.now += VB_MSEC;
	}
	assert_int_equal(enter(500, 1, 500), -1);
	/* connections that carry frames stay, even if a crowd of others asks */
	for (unsigned round = 0; round < 20; round++) {
		b.now += VB_SEC;
		for (int i = 0; i < VB_CALLERS - 1; i++)
			vb_callers_heard(b.t, i, b.now);
		for (unsigned i = 0; i < 10; i++)
			(void)enter(600 + 10 * round + i, 1, 300 + i);
	}
	for (int i = 0; i < VB_CALLERS - 1; i++) {
		vb_callers_remove(b.t, i);
		assert_ptr_equal(b.last, &b.handles[i]);
	}
	assert_int_equal(vb_callers_count(b.t), 1);
}

static void idle__ones_end(void **state)
{
	int place = enter(1, 1, 1);

	(void)enter(2, 1, 2);
	assert_true(vb_callers_next(b.t) == b.now + VB_CALLER_IDLE);
	b.now += VB_CALLER_IDLE / 2;
	vb_callers_heard(b.t, place, b.now);
	b.now += VB_CALLER_IDLE / 2;
	vb_callers_tick(b.t, b.now);
	assert_int_equal(b.ended, 1);
	assert_ptr_equal(b.last, &b.handles[2]);
	b.now = vb_callers_next(b.t);
	vb_callers_tick(b.t, b.now);
	assert_int_equal(b.ended, 2);
	assert_true(vb_callers_next(b.t) == VB_NEVER);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_bed, end_bed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(queue_pair__has_one_connection),
		TEST(port__has_a_few),
		TEST(table__is_full),
		TEST(idle__ones_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

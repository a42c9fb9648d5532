/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/cc.h"

#define FRAME 1000

static struct vb_fab_cc set;
static struct vb_cc cc;

/* SL 2: steps of 3, a timer of 10.24 us, entries of i frames; entry 6 halves.
 */
static int begin(void **state)
{
	memset(&set, 0, sizeof(set));
	memset(&cc, 0, sizeof(cc));
	set.control_map = 1u << 2;
	set.limit = 8;
	set.sl[2] = (struct vb_fab_cc_sl){ .increase = 3, .timer = 10 };
	for (unsigned i = 0; i < VB_FAB_CCT; i++)
		set.cct[i] = (uint16_t)i;
	set.cct[6] = 1u << 14 | 3;
	return 0;
}

static vb_time gap(vb_time now)
{
	return vb_cc_gap(&cc, &set, 2, FRAME, now);
}

static void gap__grows_with_each_notification(void **state)
{
	assert_int_equal(gap(0), 0);
	vb_cc_notify(&cc, &set, 2, 1);
	assert_int_equal(gap(1), 3 * FRAME);
	vb_cc_notify(&cc, &set, 2, 2);
	/* table entry: multiplier 3, shift 1 */
	assert_int_equal(gap(2), 3 * FRAME / 2);
	vb_cc_notify(&cc, &set, 2, 3);
	/* index 3 is the limit of the congestion control table */
	assert_int_equal(gap(3), 8 * FRAME);
	vb_cc_notify(&cc, &set, 2, 4);
	assert_int_equal(gap(4), 8 * FRAME);
}

static void gap__shrinks_with_time(void **state)
{
	vb_cc_notify(&cc, &set, 2, 1000);
	assert_int_equal(gap(1000 + 10239), 3 * FRAME);
	assert_int_equal(gap(1000 + 10240), 2 * FRAME);
	assert_int_equal(gap(1000 + 2 * 10240), 1 * FRAME);
	assert_int_equal(gap(1000 + 3 * 10240), 0);
	/* The recovery timer begins with the next notification, not before. */
	vb_cc_notify(&cc, &set, 2, VB_SEC);
	assert_int_equal(gap(VB_SEC + 10239), 3 * FRAME);
	assert_int_equal(gap(2 * VB_SEC), 0);
}

static void gap__has_a_least_index(void **state)
{
	set.sl[2].min = 2;
	assert_int_equal(gap(0), 2 * FRAME);
	vb_cc_notify(&cc, &set, 2, 0);
	assert_int_equal(gap(0), 5 * FRAME);
	assert_int_equal(gap(VB_SEC), 2 * FRAME);
}

static void sl__that_is_not_controlled(void **state)
{
	vb_cc_notify(&cc, &set, 3, 0);
	assert_int_equal(cc.index, 0);
	vb_cc_notify(&cc, &set, 2, 0);
	assert_int_equal(vb_cc_gap(&cc, &set, 3, FRAME, 0), 0);
}

/* Settings that a manager may write: a limit beyond the table, a timer of 0. */
static void settings__out_of_range(void **state)
{
	set.limit = 65535;
	set.sl[2].increase = 255;
	set.sl[2].timer = 0;
	for (unsigned i = 0; i < 300; i++)
		vb_cc_notify(&cc, &set, 2, i);
	assert_int_equal(gap(VB_SEC), (VB_FAB_CCT - 1) * FRAME);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, begin)
	static const struct CMUnitTest tests[] = {
		T(gap__grows_with_each_notification),
		T(gap__shrinks_with_time),
		T(gap__has_a_least_index),
		T(sl__that_is_not_controlled),
		T(settings__out_of_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

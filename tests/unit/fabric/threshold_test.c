/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the thresholds beyond which damaged packets and overruns are
 * reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fabric/threshold.h"

static bool frame(struct vb_fab_errors *c, bool damaged)
{
	return vb_fab_errors_packet(c, FAB_FRAME, damaged, 3);
}

static void damaged__packets_in_a_row_exceed_the_threshold(void **state)
{
	struct vb_fab_errors c = { 0 };

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 3; i++)
			assert_false(frame(&c, true));
		assert_true(frame(&c, true));
	}
}

/* Any good packet makes up for a damaged one, but not in advance. */
static void damaged__packets_that_good_ones_outnumber_do_not(void **state)
{
	struct vb_fab_errors c = { 0 };

	for (unsigned i = 0; i < 100; i++)
		assert_false(frame(&c, false));
	for (unsigned i = 0; i < 1000; i++)
		assert_false(frame(&c, i % 2 == 0));
	for (unsigned i = 0; i < 3; i++)
		assert_false(frame(&c, true));
	assert_true(frame(&c, true));
}

/* Of three packets two are damaged: the threshold is exceeded now and then. */
static void damaged__packets_in_the_majority_do(void **state)
{
	struct vb_fab_errors c = { 0 };
	unsigned errors = 0;

	for (unsigned i = 0; i < 300; i++)
		errors += frame(&c, i % 3 != 0);
	assert_in_range(errors, 20, 34);
}

static void damaged__threshold_of_zero_takes_none(void **state)
{
	struct vb_fab_errors c = { 0 };

	assert_true(vb_fab_errors_packet(&c, FAB_FRAME, true, 0));
	assert_true(vb_fab_errors_packet(&c, FAB_LINK_PACKET, true, 0));
}

static void damaged__link_packets_have_their_own_count(void **state)
{
	struct vb_fab_errors c = { 0 };

	for (unsigned i = 0; i < 3; i++) {
		assert_false(frame(&c, true));
		assert_false(
			vb_fab_errors_packet(&c, FAB_LINK_PACKET, false, 3));
	}
	assert_true(frame(&c, true));
}

static void overrun__in_one_period_counts_once(void **state)
{
	struct vb_fab_errors c = { 0 };

	for (unsigned i = 0; i < 50; i++)
		assert_false(vb_fab_errors_overrun(&c, 7, 2));
	assert_true(vb_fab_errors_overrun(&c, 8, 2));
	/* The count begins anew. */
	assert_false(vb_fab_errors_overrun(&c, 8, 2));
	assert_false(vb_fab_errors_overrun(&c, 9, 2));
	assert_true(vb_fab_errors_overrun(&c, 10, 2));
}

static void overrun__periods_must_follow_each_other(void **state)
{
	struct vb_fab_errors c = { 0 };

	for (vb_time period = 0; period < 100; period += 2)
		assert_false(vb_fab_errors_overrun(&c, period, 2));
}

static void overrun__threshold_of_zero_is_one(void **state)
{
	struct vb_fab_errors c = { 0 };

	assert_true(vb_fab_errors_overrun(&c, 0, 0));
	assert_false(vb_fab_errors_overrun(&c, 0, 0));
	assert_true(vb_fab_errors_overrun(&c, 1, 1));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			damaged__packets_in_a_row_exceed_the_threshold),
		cmocka_unit_test(
			damaged__packets_that_good_ones_outnumber_do_not),
		cmocka_unit_test(damaged__packets_in_the_majority_do),
		cmocka_unit_test(damaged__threshold_of_zero_takes_none),
		cmocka_unit_test(damaged__link_packets_have_their_own_count),
		cmocka_unit_test(overrun__in_one_period_counts_once),
		cmocka_unit_test(overrun__periods_must_follow_each_other),
		cmocka_unit_test(overrun__threshold_of_zero_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

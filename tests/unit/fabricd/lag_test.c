/* SPDX-License-Identifier: BSD-2-Clause */
/* How the network's time follows the clock: in a time that the test chooses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fabricd/lag.h"

#define START (7 * VB_SEC)

static void lag__there_is_none_while_the_process_runs(void **state)
{
	vb_time at = START;

	for (unsigned i = 1; i < 100; i++) {
		at = vb_lag_follow(at, START + i * VB_LAG_STEP);
		assert_int_equal(at, START + i * VB_LAG_STEP);
	}
	assert_int_equal(vb_lag_follow(at, at), at);
	assert_int_equal(vb_lag_follow(at, at + 1), at + 1);
}

/* The process did not run for ten steps. The clock goes on meanwhile, too. */
static void lag__it_catches_up_in_steps(void **state)
{
	vb_time at = START, now = START + 10 * VB_LAG_STEP;

	for (unsigned i = 1; i < 10; i++) {
		at = vb_lag_follow(at, now);
		assert_int_equal(at, START + i * VB_LAG_STEP);
	}
	for (unsigned i = 0; at < now; i++) {
		assert_true(i < 10);
		now += VB_LAG_STEP / 2;
		at = vb_lag_follow(at, now);
	}
	assert_int_equal(at, now);
}

static void lag__it_is_limited(void **state)
{
	vb_time now = START + 60 * VB_SEC;

	assert_int_equal(vb_lag_follow(START, now), now - VB_LAG_MOST);
	assert_int_equal(vb_lag_follow(0, VB_LAG_MOST / 2), VB_LAG_STEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lag__there_is_none_while_the_process_runs),
		cmocka_unit_test(lag__it_catches_up_in_steps),
		cmocka_unit_test(lag__it_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

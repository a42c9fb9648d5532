/* SPDX-License-Identifier: BSD-2-Clause */
/* base/age: measures how long something has lasted, also when the measuring
 * thread is stopped meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/age.h"

static void age__begins_at_the_first_look(void **state)
{
	struct vb_age a = { 0 };

	assert_int_equal(vb_age_look(&a, 50 * VB_SEC), 0);
	assert_int_equal(vb_age_look(&a, 50 * VB_SEC + 7), 7);
	assert_int_equal(vb_age_look(&a, 50 * VB_SEC + 7), 7);
	assert_int_equal(vb_age_look(&a, 50 * VB_SEC + 10), 10);
}

static void age__counts_a_long_pause_as_a_short_one(void **state)
{
	struct vb_age a = { 0 };

	(void)vb_age_look(&a, VB_SEC);
	assert_int_equal(vb_age_look(&a, VB_SEC + VB_AGE_STEP), VB_AGE_STEP);
	assert_int_equal(vb_age_look(&a, 3600 * VB_SEC), 2 * VB_AGE_STEP);
	assert_int_equal(vb_age_look(&a, 3600 * VB_SEC + 1),
			 2 * VB_AGE_STEP + 1);
}

/* A thread may read the clock, but use that time only after another thread has
 * used a later one. The age must not go back. */
static void age__never_goes_back(void **state)
{
	struct vb_age a = { 0 };

	(void)vb_age_look(&a, 100);
	assert_int_equal(vb_age_look(&a, 150), 50);
	assert_int_equal(vb_age_look(&a, 120), 50);
	assert_int_equal(vb_age_look(&a, 160), 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(age__begins_at_the_first_look),
		cmocka_unit_test(age__counts_a_long_pause_as_a_short_one),
		cmocka_unit_test(age__never_goes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

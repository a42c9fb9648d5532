/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/clock.h"

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <time.h>

#define READS 200000
#define AHEAD (1700000000 * (int64_t)VB_SEC)

static vb_time wall_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (vb_time)t.tv_sec * VB_SEC + (vb_time)t.tv_nsec;
}

static void wall__is_the_wall_clock(void **state)
{
	vb_time before = wall_now(), at = vb_clock_wall(vb_clock_read());
	vb_time behind = wall_now();

	assert_true(at + 20 * VB_USEC >= before);
	assert_true(at <= behind + 20 * VB_USEC);
}

static void *read_many(void *arg)
{
	int64_t *ahead = arg, first = (int64_t)vb_clock_wall(0);

	*ahead = first;
	for (vb_time t = 1; t < READS; t++)
		if ((int64_t)(vb_clock_wall(t) - t) != first)
			*ahead = 0;
	return NULL;
}

/* Two threads read the clocks at the same time, so that one of them loses its
 * processor between two readings now and then. */
static void wall__distances_stay(void **state)
{
	int64_t ahead[2];
	pthread_t other;

	assert_int_equal(pthread_create(&other, NULL, read_many, &ahead[1]), 0);
	read_many(&ahead[0]);
	pthread_join(other, NULL);
	assert_int_not_equal(ahead[0], 0);
	assert_int_equal(ahead[0], ahead[1]);
}

static void ahead__follows_a_clock_that_is_set(void **state)
{
	const vb_time now = 5 * VB_SEC;
	struct vb_clock_sample s = { now, now + (vb_time)AHEAD + 40, now + 80 };
	const int64_t first = vb_clock_ahead(0, &s);

	assert_int_equal(first, AHEAD);
	/* A sample that took long is inexact, so the offset to the wall clock
	 * stays. */
	s.behind = now + VB_SEC;
	assert_int_equal(vb_clock_ahead(first, &s), first);
	s.before = now - VB_SEC;
	assert_int_equal(vb_clock_ahead(first, &s), first);
	/* In these samples the wall clock is set forward, and set back. */
	s = (struct vb_clock_sample){ now, now + (vb_time)AHEAD + VB_MSEC,
				      now + 80 };
	assert_int_equal(vb_clock_ahead(first, &s),
			 AHEAD + (int64_t)VB_MSEC - 40);
	s.wall = now + (vb_time)AHEAD - 3600 * VB_SEC;
	assert_int_equal(vb_clock_ahead(first, &s),
			 AHEAD - 3600 * (int64_t)VB_SEC - 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wall__is_the_wall_clock),
		cmocka_unit_test(wall__distances_stay),
		cmocka_unit_test(ahead__follows_a_clock_that_is_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

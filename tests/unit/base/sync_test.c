/* SPDX-License-Identifier: BSD-2-Clause */
/* base/sync: only one thread at a time has the mutex, and a thread that waits
 * for long gets it in the end. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "base/sync.h"

#define THREADS 4
#define TURNS	100000
#define NAPS	20

static struct vb_mutex lock = VB_MUTEX_INITIALIZER(VB_RANK_LEAF);
static unsigned long count; /* the mutex under test guards this counter */

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

static void *add_one_by_one(void *unused)
{
	for (unsigned i = 0; i < TURNS; i++) {
		vb_mutex_lock(&lock);
		count++;
		vb_mutex_unlock(&lock);
	}
	return unused;
}

static void *add_and_nap(void *unused)
{
	for (unsigned i = 0; i < NAPS; i++) {
		unsigned long before;

		vb_mutex_lock(&lock);
		before = count;
		nap();
		count = before + 1;
		vb_mutex_unlock(&lock);
	}
	return unused;
}

static void run(void *(*f)(void *), unsigned long each)
{
	pthread_t threads[THREADS];

	count = 0;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, f, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(count, THREADS * each);
}

static void mutex__one_at_a_time(void **state)
{
	run(add_one_by_one, TURNS);
}

static void mutex__who_sleeps_is_woken(void **state)
{
	run(add_and_nap, NAPS);
}

static void VB_UNCHECKED mutex__tried_is_not_waited_for(void **state)
{
	assert_true(vb_mutex_trylock(&lock));
	assert_false(vb_mutex_trylock(&lock));
	vb_mutex_unlock(&lock);
	assert_true(vb_mutex_trylock(&lock));
	vb_mutex_unlock(&lock);
}

/* A thread that calls vb_mutex_lock_briefly() again and again, and counts in
 * *@times how often it got the mutex. */
static void *VB_UNCHECKED wait_briefly(void *times)
{
	for (unsigned naps = 0; naps <= 5; naps += 5)
		if (vb_mutex_lock_briefly(&lock, naps)) {
			++*(unsigned *)times;
			vb_mutex_unlock(&lock);
		}
	return NULL;
}

/* vb_mutex_lock_briefly() gives up after a while, or gets the mutex when it
 * becomes free. */
static void VB_UNCHECKED mutex__is_waited_for_briefly(void **state)
{
	pthread_t napper, waiter;
	unsigned times = 0;

	assert_true(vb_mutex_trylock(&lock));
	assert_int_equal(pthread_create(&waiter, NULL, wait_briefly, &times),
			 0);
	pthread_join(waiter, NULL);
	assert_int_equal(times, 0);
	vb_mutex_unlock(&lock);
	assert_true(vb_mutex_lock_briefly(&lock, 0));
	vb_mutex_unlock(&lock);
	assert_int_equal(pthread_create(&napper, NULL, add_and_nap, NULL), 0);
	assert_true(vb_mutex_lock_briefly(&lock, 1000000));
	vb_mutex_unlock(&lock);
	pthread_join(napper, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mutex__one_at_a_time),
		cmocka_unit_test(mutex__who_sleeps_is_woken),
		cmocka_unit_test(mutex__tried_is_not_waited_for),
		cmocka_unit_test(mutex__is_waited_for_briefly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

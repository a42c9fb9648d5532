/* SPDX-License-Identifier: BSD-2-Clause */
/* base/bell: the sleeper is woken, interrupted and cancelled like a thread in
 * read(2). */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bell.h"
#include "base/sync.h"

/* the bell under test, in memory that a forked child shares */
static struct vb_bell *bell;

static int make(void **state)
{
	bell = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return bell == MAP_FAILED;
}

static int drop(void **state)
{
	return munmap(bell, 4096);
}

static void rung_before_the_sleep__none(void **state)
{
	assert_false(vb_bell_ring(bell));
	vb_bell_set(bell);
	assert_true(vb_bell_ring(bell));
	/* false: one ring is enough to wake the thread that waits */
	assert_false(vb_bell_ring(bell));
	assert_int_equal(vb_bell_wait(bell), 0);
	vb_bell_set(bell);
	vb_bell_clear(bell);
	assert_false(vb_bell_ring(bell));
}

/* One of two processes that ring each other's bell in turn: no ring may be
 * lost. */
static void pass_on(struct vb_bell *from, struct vb_bell *to, _Atomic int *turn,
		    int mine)
{
	while (atomic_load(turn) < 20000) {
		vb_bell_set(from);
		if (atomic_load(turn) % 2 == mine) {
			vb_bell_clear(from);
			atomic_fetch_add(turn, 1);
			vb_bell_ring(to);
		} else if (atomic_load(turn) < 20000) {
			(void)!vb_bell_wait(from);
		}
	}
	vb_bell_ring(to);
}

static void another_process__rings(void **state)
{
	_Atomic int *turn = (_Atomic int *)(bell + 2);
	pid_t child = fork();

	if (child == 0) {
		pass_on(&bell[1], &bell[0], turn, 1);
		_exit(0);
	}
	pass_on(&bell[0], &bell[1], turn, 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static _Atomic bool is_set;

static void *sleep_there(void *arg)
{
	vb_bell_set(bell);
	atomic_store(&is_set, true);
	return (void *)(intptr_t)vb_bell_wait(bell);
}

/* Start a thread that sleeps, or is about to sleep, on the bell. */
static pthread_t sleeper_that(void *(*sleeps)(void *))
{
	pthread_t t;

	atomic_store(&is_set, false);
	assert_int_equal(pthread_create(&t, NULL, sleeps, NULL), 0);
	while (!atomic_load(&is_set))
		usleep(1000);
	usleep(20000);
	return t;
}

static pthread_t sleeper(void)
{
	return sleeper_that(sleep_there);
}

static void *ended(pthread_t t)
{
	void *result;

	pthread_join(t, &result);
	return result;
}

/* Send signals until the thread ends. One signal may not be enough, because it
 * may come before the thread sleeps. */
static void *ended_by_signals(pthread_t t)
{
	void *result;

	while (pthread_tryjoin_np(t, &result)) {
		pthread_kill(t, SIGUSR1);
		usleep(1000);
	}
	return result;
}

static void wake__whatever_the_word_says(void **state)
{
	pthread_t t = sleeper();

	/* Reset the shared word, into which a hostile peer may have written. */
	vb_bell_clear(bell);
	assert_false(vb_bell_ring(bell));
	vb_bell_wake(bell);
	assert_ptr_equal(ended(t), NULL);
}

static void *sleep_by_two(void *arg)
{
	struct vb_bell_waiter list[2];

	for (unsigned i = 0; i < 2; i++) {
		vb_bell_set(&bell[i]);
		vb_bell_list(&list[i], &bell[i]);
	}
	atomic_store(&is_set, true);
	return (void *)(intptr_t)vb_bell_wait_any(list, 2);
}

/* A hostile process writes to one bell so that it cannot wake anybody. The
 * other bell still wakes the thread. */
static void wait_any__each_bell_wakes_alone(void **state)
{
	pthread_t t;

	if (!vb_bell_can_wait_any())
		skip();
	for (unsigned i = 0; i < 2; i++) {
		t = sleeper_that(sleep_by_two);
		vb_bell_clear(&bell[!i]);
		assert_true(vb_bell_ring(&bell[i]));
		assert_ptr_equal(ended(t), NULL);
	}
}

static void wait_any__rung_before_the_sleep(void **state)
{
	struct vb_bell_waiter list[2];

	if (!vb_bell_can_wait_any())
		skip();
	for (unsigned i = 0; i < 2; i++) {
		vb_bell_list(&list[i], &bell[i]);
		vb_bell_set(&bell[i]);
	}
	assert_true(vb_bell_ring(&bell[1]));
	assert_int_equal(vb_bell_wait_any(list, 2), 0);
}

static void on_signal(int sig)
{
}

static void interrupted__unless_restarted(void **state)
{
	struct sigaction a = { .sa_handler = on_signal };
	pthread_t t;

	sigaction(SIGUSR1, &a, NULL);
	assert_int_equal((intptr_t)ended_by_signals(sleeper()), -EINTR);
	if (vb_bell_can_wait_any())
		assert_int_equal(
			(intptr_t)ended_by_signals(sleeper_that(sleep_by_two)),
			-EINTR);
	a.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &a, NULL);
	t = sleeper();
	pthread_kill(t, SIGUSR1);
	usleep(20000);
	assert_true(vb_bell_ring(bell));
	assert_ptr_equal(ended(t), NULL);
	if (!vb_bell_can_wait_any())
		return;
	t = sleeper_that(sleep_by_two);
	pthread_kill(t, SIGUSR1);
	usleep(20000);
	assert_true(vb_bell_ring(&bell[1]));
	assert_ptr_equal(ended(t), NULL);
}

static void cancelled(void **state)
{
	pthread_t t = sleeper();

	pthread_cancel(t);
	assert_ptr_equal(ended(t), PTHREAD_CANCELED);
	if (!vb_bell_can_wait_any())
		return;
	t = sleeper_that(sleep_by_two);
	pthread_cancel(t);
	assert_ptr_equal(ended(t), PTHREAD_CANCELED);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What a verb calls after its sleep: with cancellation disabled and a lock
 * held, it makes calls that are cancellation points. */
static void *sleep_and_lock(void *arg)
{
	const int *fd = arg;

	for (;;) {
		int cancel;

		vb_bell_set(bell);
		atomic_store(&is_set, true);
		(void)!vb_bell_wait(bell);
		cancel = vb_cancel_off();
		pthread_mutex_lock(&lock);
		for (int i = 0; i < 20; i++)
			(void)!write(*fd, "", 1);
		pthread_mutex_unlock(&lock);
		vb_cancel_back(cancel);
	}
	return NULL;
}

static void spin(unsigned turns)
{
	for (volatile unsigned i = 0; i < turns; i++)
		;
}

/* A bell wakes the thread while another thread cancels it: on two processors
 * this happens now and then between the beginning of pthread_cancel() and its
 * signal. */
static void cancelled_while_it_is_rung__no_lock_is_left(void **state)
{
	int fd = open("/dev/null", O_WRONLY);

	for (unsigned i = 0; i < 3000; i++) {
		pthread_t t;

		atomic_store(&is_set, false);
		assert_int_equal(pthread_create(&t, NULL, sleep_and_lock, &fd),
				 0);
		while (!atomic_load(&is_set))
			sched_yield();
		spin(20000);
		vb_bell_ring(bell);
		spin(i % 100 * 200);
		pthread_cancel(t);
		assert_ptr_equal(ended(t), PTHREAD_CANCELED);
		assert_int_equal(pthread_mutex_trylock(&lock), 0);
		pthread_mutex_unlock(&lock);
	}
	close(fd);
}

#define BELL_TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BELL_TEST(rung_before_the_sleep__none),
		BELL_TEST(another_process__rings),
		BELL_TEST(wake__whatever_the_word_says),
		BELL_TEST(wait_any__each_bell_wakes_alone),
		BELL_TEST(wait_any__rung_before_the_sleep),
		BELL_TEST(interrupted__unless_restarted),
		BELL_TEST(cancelled),
		BELL_TEST(cancelled_while_it_is_rung__no_lock_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* core/event: what the descriptors report, order, waiting, dropping events. */
#include "fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* Completion queues without an adapter; events need nothing else of them. */
static struct vb_cq cqs[3];
static struct vb_channel ch;
static struct vb_async async;

static int fresh(void **state)
{
	memset(cqs, 0, sizeof(cqs));
	assert_int_equal(vb_channel_init(&ch), 0);
	assert_int_equal(vb_async_init(&async), 0);
	return 0;
}

static int gone(void **state)
{
	vb_channel_fini(&ch);
	vb_async_fini(&async);
	return 0;
}

static int take(void)
{
	struct vb_cq *cq = NULL;

	assert_int_equal(vb_channel_take(&ch, &cq), 0);
	return (int)(cq - cqs);
}

static void set_nonblocking(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK),
			 0);
}

static void fds__close_on_exec_and_blocking(void **state)
{
	assert_true(fcntl(ch.fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(async.fd, F_GETFD) & FD_CLOEXEC);
	assert_false(fcntl(ch.fd, F_GETFL) & O_NONBLOCK);
	assert_false(fcntl(async.fd, F_GETFL) & O_NONBLOCK);
}

static void channel__one_count_for_each_event(void **state)
{
	assert_false(is_readable(ch.fd));
	vb_channel_signal(&ch, &cqs[0]);
	vb_channel_signal(&ch, &cqs[0]);
	assert_true(is_readable(ch.fd));
	assert_int_equal(take(), 0);
	assert_true(is_readable(ch.fd));
	assert_int_equal(take(), 0);
	assert_false(is_readable(ch.fd));
	assert_int_equal(cqs[0].events_taken, 2);
	assert_int_equal(cqs[0].events_queued, 0);
}

static void channel__turns_between_queues(void **state)
{
	static const int signals[] = { 0, 0, 0, 1, 2, 1 };
	static const int expect[] = { 0, 1, 2, 0, 1, 0 };

	for (size_t i = 0; i < VB_COUNT(signals); i++)
		vb_channel_signal(&ch, &cqs[signals[i]]);
	for (size_t i = 0; i < VB_COUNT(expect); i++)
		assert_int_equal(take(), expect[i]);
	assert_false(is_readable(ch.fd));
	assert_null(ch.first);
}

static void channel__nonblocking_says_again(void **state)
{
	struct vb_cq *cq = &cqs[2];

	set_nonblocking(ch.fd);
	assert_int_equal(vb_channel_take(&ch, &cq), -EAGAIN);
	/* if there is no event, the call leaves @cq unchanged */
	assert_ptr_equal(cq, &cqs[2]);
	vb_channel_signal(&ch, &cqs[1]);
	assert_int_equal(take(), 1);
	assert_int_equal(ch.tokens.readers, 0);
}

/* Do what the kernel does for a nudge: add a count (base/nudge.h). */
static void nudge(void)
{
	uint64_t one = 1;

	assert_int_equal(write(ch.fd, &one, sizeof(one)), sizeof(one));
}

static void channel__a_nudge_is_no_event(void **state)
{
	struct vb_cq *cq = &cqs[2];

	/* the thread reads the nudge's count before vb_channel_nudged() is
	 * called */
	nudge();
	assert_int_equal(vb_channel_next(&ch, &cq), 0);
	assert_null(cq);
	vb_channel_nudged(&ch);
	assert_int_equal(ch.tokens.surplus, 0);
	assert_false(is_readable(ch.fd));
	/* vb_channel_nudged() is called before any thread has read the nudge's
	 * count */
	nudge();
	vb_channel_nudged(&ch);
	assert_int_equal(ch.tokens.surplus, 0);
	assert_false(is_readable(ch.fd));
	/* vb_channel_nudged() waits for a count that never comes */
	vb_channel_nudged(&ch);
	assert_int_equal(ch.tokens.surplus, 0);
	/* an event is queued while the nudge's count has not been read */
	nudge();
	vb_channel_signal(&ch, &cqs[1]);
	assert_int_equal(vb_channel_next(&ch, &cq), 0);
	assert_ptr_equal(cq, &cqs[1]);
	vb_channel_nudged(&ch);
	assert_false(is_readable(ch.fd));
	set_nonblocking(ch.fd);
	assert_int_equal(vb_channel_next(&ch, &cq), -EAGAIN);
}

static void channel__knows_what_raised_an_event(void **state)
{
	vb_channel_raises(RAISED_BY_ENGINE);
	vb_channel_signal(&ch, &cqs[1]);
	assert_int_equal(atomic_load(&ch.raised), RAISED_BY_ENGINE);
	vb_channel_raises(RAISED_OTHERWISE);
	vb_channel_signal(&ch, &cqs[1]);
	assert_int_equal(atomic_load(&ch.raised), RAISED_OTHERWISE);
}

static void channel__forgotten_events_leave_the_fd(void **state)
{
	vb_channel_signal(&ch, &cqs[0]);
	vb_channel_signal(&ch, &cqs[1]);
	vb_channel_signal(&ch, &cqs[1]);
	vb_channel_signal(&ch, &cqs[2]);
	vb_channel_forget(&ch, &cqs[1]);
	/* no effect: this queue has no event left */
	vb_channel_forget(&ch, &cqs[1]);
	assert_int_equal(take(), 0);
	/* Drop the events of the queue that is last in the channel's list. */
	vb_channel_forget(&ch, &cqs[2]);
	assert_false(is_readable(ch.fd));
	vb_channel_signal(&ch, &cqs[1]);
	vb_channel_signal(&ch, &cqs[0]);
	assert_int_equal(take(), 1);
	assert_int_equal(take(), 0);
	assert_false(is_readable(ch.fd));
}

static void channel__what_a_waiter_queues_is_in_its_hand(void **state)
{
	vb_channel_begin(&ch);
	vb_channel_signal(&ch, &cqs[1]);
	assert_false(is_readable(ch.fd));
	/* The waiting thread gets the first event; the descriptor ch.fd is
	 * readable for the second. */
	vb_channel_signal(&ch, &cqs[2]);
	assert_true(is_readable(ch.fd));
	assert_ptr_equal(vb_channel_end(&ch), &cqs[1]);
	assert_int_equal(take(), 2);
	assert_false(is_readable(ch.fd));
	vb_channel_begin(&ch);
	assert_null(vb_channel_end(&ch));
	assert_int_equal(ch.tokens.readers, 0);
}

static void channel__forgotten_in_the_hand(void **state)
{
	vb_channel_begin(&ch);
	vb_channel_signal(&ch, &cqs[0]);
	vb_channel_forget(&ch, &cqs[0]);
	assert_null(vb_channel_end(&ch));
	assert_int_equal(ch.tokens.surplus, 0);
	vb_channel_signal(&ch, &cqs[1]);
	assert_true(is_readable(ch.fd));
	assert_int_equal(take(), 1);
	assert_false(is_readable(ch.fd));
}

static void channel__rings_who_watches(void **state)
{
	struct vb_bell bell;

	vb_bell_set(&bell);
	vb_channel_watch(&ch, &bell);
	vb_channel_begin(&ch);
	vb_channel_signal(&ch, &cqs[0]);
	/* The bell rings also for an event that the waiting thread gets. */
	assert_int_equal(bell.sleeps, 1);
	assert_ptr_equal(vb_channel_end(&ch), &cqs[0]);
	assert_false(vb_channel_has_events(&ch));
	vb_channel_signal(&ch, &cqs[0]);
	assert_int_equal(bell.sleeps, 0);
	assert_true(vb_channel_has_events(&ch));
	vb_bell_set(&bell);
	vb_channel_watch(&ch, NULL);
	vb_channel_signal(&ch, &cqs[0]);
	assert_int_equal(bell.sleeps, 1);
}

static void *take_one(void *arg)
{
	struct vb_cq *cq = NULL;

	(void)!vb_channel_take(&ch, &cq);
	return cq;
}

static void wait_for_readers(struct vb_tokens *t, struct vb_mutex *lock,
			     uint32_t n)
{
	uint32_t readers;

	do {
		usleep(1000);
		vb_mutex_lock(lock);
		readers = t->readers;
		vb_mutex_unlock(lock);
	} while (readers != n);
	/* wait until the thread is most likely blocked in read(2) */
	usleep(2000);
}

static void channel__waits(void **state)
{
	pthread_t thread;
	void *cq;

	assert_int_equal(pthread_create(&thread, NULL, take_one, NULL), 0);
	wait_for_readers(&ch.tokens, &ch.lock, 1);
	vb_channel_signal(&ch, &cqs[1]);
	pthread_join(thread, &cq);
	assert_ptr_equal(cq, &cqs[1]);
}

/* A thread has read the eventfd's count for an event that is dropped at the
 * same time. It continues to wait, and neither an event nor a count is lost. */
static void channel__forgotten_under_a_reader(void **state)
{
	for (int i = 0; i < 200; i++) {
		pthread_t thread;
		void *cq;

		assert_int_equal(pthread_create(&thread, NULL, take_one, NULL),
				 0);
		vb_mutex_lock(&ch.lock);
		while (ch.tokens.readers != 1) {
			vb_mutex_unlock(&ch.lock);
			sched_yield();
			vb_mutex_lock(&ch.lock);
		}
		vb_mutex_unlock(&ch.lock);
		vb_channel_signal(&ch, &cqs[0]);
		vb_channel_forget(&ch, &cqs[0]);
		vb_channel_signal(&ch, &cqs[1]);
		pthread_join(thread, &cq);
		/* The thread read the first event before that was dropped, or
		 * otherwise the second. */
		if (cq == &cqs[0])
			assert_int_equal(take(), 1);
		else
			assert_ptr_equal(cq, &cqs[1]);
		assert_false(is_readable(ch.fd));
		assert_int_equal(ch.tokens.surplus, 0);
	}
}

static void channel__cancelled_reader_is_none(void **state)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, take_one, NULL), 0);
	wait_for_readers(&ch.tokens, &ch.lock, 1);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(ch.tokens.readers, 0);
	vb_channel_signal(&ch, &cqs[0]);
	vb_channel_forget(&ch, &cqs[0]);
	assert_false(is_readable(ch.fd));
}

static void do_nothing(int sig)
{
}

static void *take_interrupted(void *arg)
{
	struct vb_cq *cq;

	return (void *)(intptr_t)vb_channel_take(&ch, &cq);
}

static void channel__interrupted_as_read_is(void **state)
{
	struct sigaction sa = { .sa_handler = do_nothing }, old;
	pthread_t thread;
	void *rc;

	sigaction(SIGUSR1, &sa, &old);
	assert_int_equal(pthread_create(&thread, NULL, take_interrupted, NULL),
			 0);
	wait_for_readers(&ch.tokens, &ch.lock, 1);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, &rc);
	assert_int_equal((intptr_t)rc, -EINTR);
	sa.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &sa, NULL);
	assert_int_equal(pthread_create(&thread, NULL, take_interrupted, NULL),
			 0);
	wait_for_readers(&ch.tokens, &ch.lock, 1);
	pthread_kill(thread, SIGUSR1);
	usleep(2000);
	vb_channel_signal(&ch, &cqs[0]);
	pthread_join(thread, &rc);
	assert_int_equal((intptr_t)rc, 0);
	sigaction(SIGUSR1, &old, NULL);
}

static void *take_many(void *arg)
{
	for (int i = 0; i < 1000; i++)
		take();
	return NULL;
}

static void channel__many_threads_lose_nothing(void **state)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, take_many, NULL), 0);
	for (int i = 0; i < 3000; i++)
		vb_channel_signal(&ch, &cqs[i % 3]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cqs[i].events_taken, 1000);
	assert_false(is_readable(ch.fd));
}

static void async__in_order(void **state)
{
	struct vb_event e;

	vb_async_post(&async, EVENT_GID_CHANGE, NULL);
	vb_async_post(&async, EVENT_COMM_EST, &cqs[1]);
	assert_int_equal(vb_async_take(&async, &e), 0);
	assert_int_equal(e.type, EVENT_GID_CHANGE);
	assert_null(e.object);
	assert_int_equal(vb_async_take(&async, &e), 0);
	assert_int_equal(e.type, EVENT_COMM_EST);
	assert_ptr_equal(e.object, &cqs[1]);
	assert_false(is_readable(async.fd));
	set_nonblocking(async.fd);
	assert_int_equal(vb_async_take(&async, &e), -EAGAIN);
}

static void async__forget_first_middle_last(void **state)
{
	static const int order[] = { 0, 1, 0, 2, 0 };
	struct vb_event e;

	for (size_t i = 0; i < VB_COUNT(order); i++)
		vb_async_post(&async, EVENT_QP_FATAL, &cqs[order[i]]);
	vb_async_forget(&async, &cqs[0]);
	vb_async_post(&async, EVENT_COMM_EST, &cqs[0]);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(vb_async_take(&async, &e), 0);
		assert_ptr_equal(e.object, &cqs[i % 3]);
	}
	assert_int_equal(e.type, EVENT_COMM_EST);
	assert_false(is_readable(async.fd));
	vb_async_forget(&async, &cqs[0]);
	vb_async_post(&async, EVENT_QP_FATAL, &cqs[1]);
	vb_async_forget(&async, &cqs[1]);
	assert_null(async.first);
	assert_null(async.last);
	assert_false(is_readable(async.fd));
	/* vb_async_fini() must free this event, which nobody takes. */
	vb_async_post(&async, EVENT_QP_FATAL, &cqs[2]);
}

#define EVENT_TEST(name) cmocka_unit_test_setup_teardown(name, fresh, gone)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EVENT_TEST(fds__close_on_exec_and_blocking),
		EVENT_TEST(channel__one_count_for_each_event),
		EVENT_TEST(channel__turns_between_queues),
		EVENT_TEST(channel__nonblocking_says_again),
		EVENT_TEST(channel__a_nudge_is_no_event),
		EVENT_TEST(channel__knows_what_raised_an_event),
		EVENT_TEST(channel__forgotten_events_leave_the_fd),
		EVENT_TEST(channel__what_a_waiter_queues_is_in_its_hand),
		EVENT_TEST(channel__forgotten_in_the_hand),
		EVENT_TEST(channel__rings_who_watches),
		EVENT_TEST(channel__waits),
		EVENT_TEST(channel__forgotten_under_a_reader),
		EVENT_TEST(channel__cancelled_reader_is_none),
		EVENT_TEST(channel__interrupted_as_read_is),
		EVENT_TEST(channel__many_threads_lose_nothing),
		EVENT_TEST(async__in_order),
		EVENT_TEST(async__forget_first_middle_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

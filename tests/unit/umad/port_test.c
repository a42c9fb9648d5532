/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibumad's descriptor of a port, without a fabric: the test is the other end
 * of the socket. If a step hangs, SIGALRM ends the test.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

/* Waiting times of the library are shorter by this factor. */
#define HURRY 40
static vb_time clock_in_hurry(void);
static int poll_in_hurry(struct pollfd *fds, nfds_t count, int timeout_ms);
#define vb_clock_read clock_in_hurry
#define poll	      poll_in_hurry
#include "engine/fabric_ask.c"
#undef vb_clock_read
#undef poll

/* A fake recv(), with which the library looks at the first message while it
 * holds its lock. */
static ssize_t recv_after_step(int fd, void *bytes, size_t room, int flags);
#define recv recv_after_step
#include "front/umad/mad.c"
#undef recv

static vb_time clock_in_hurry(void)
{
	return vb_clock_read() * HURRY;
}

static int poll_in_hurry(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	return poll(fds, count, timeout_ms / HURRY);
}

#define AGENT	 7
#define PATIENCE 10 /* seconds after which a step counts as hanging */

/* An action that happens once, while a thread is in recv(). */
static void (*step)(void);

static ssize_t recv_after_step(int fd, void *bytes, size_t room, int flags)
{
	void (*now)(void) = step;

	step = NULL;
	if (now)
		now();
	return recv(fd, bytes, room, flags);
}

static int port, fabric;

static int begin(void **state)
{
	int pair[2];

	(void)state;
	alarm(PATIENCE);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	port = pair[0];
	fabric = pair[1];
	return 0;
}

static int end(void **state)
{
	(void)state;
	alarm(0);
	close(port);
	close(fabric);
	return 0;
}

/* The fabric delivers a MAD of @len bytes, which are 1, 2, 3 and so on, never
 * 0. */
static void deliver(size_t len)
{
	static uint8_t data[VB_UMAD_INLINE + 1];
	struct vb_umad_mad m = {
		.head = { .magic = VB_UMAD_MAGIC,
			  .kind = UMAD_MAD,
			  .length = (uint32_t)len },
	};
	const struct ib_user_mad header = { .agent_id = AGENT };

	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i % 255 + 1);
	memcpy(m.header, &header, sizeof(m.header));
	if (len > VB_UMAD_INLINE)
		assert_int_equal(send_long(fabric, &m, data, len), 0);
	else
		assert_int_equal(send_short(fabric, &m, data, len), 0);
}

static int take_mad(int timeout_ms)
{
	uint8_t umad[sizeof(struct ib_user_mad) + 256];
	int len = 256;

	return umad_recv(port, umad, &len, timeout_ms);
}

/* --- threads that end, processes that fork --- */

static void cancel_this_thread(void)
{
	pthread_cancel(pthread_self());
	pthread_testcancel();
}

static void *take_in_thread(void *timeout_ms)
{
	return (void *)(intptr_t)take_mad((int)(intptr_t)timeout_ms);
}

static void *be_cancelled_first(void *timeout_ms)
{
	pthread_cancel(pthread_self());
	return take_in_thread(timeout_ms);
}

static void *run(void *(*function)(void *), int timeout_ms)
{
	void *result;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, function,
					(void *)(intptr_t)timeout_ms),
			 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	return result;
}

static void cancelling_while_it_takes_loses_nothing(void **state)
{
	(void)state;
	deliver(256);
	step = cancel_this_thread;
	assert_int_equal((intptr_t)run(take_in_thread, 1000), AGENT);
	deliver(256);
	assert_int_equal(take_mad(1000), AGENT);
}

static void who_waits_or_looks_can_be_cancelled(void **state)
{
	(void)state;
	assert_ptr_equal(run(be_cancelled_first, -1), PTHREAD_CANCELED);
	deliver(256);
	assert_ptr_equal(run(be_cancelled_first, 0), PTHREAD_CANCELED);
	assert_int_equal(take_mad(0), AGENT);
}

static void fork_and_receive_in_child(void)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		alarm(PATIENCE / 2);
		/* Run in another thread, because this one holds the lock. */
		_exit((intptr_t)run(take_in_thread, 0) != AGENT);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void a_child_of_fork_receives(void **state)
{
	(void)state;
	deliver(256);
	step = fork_and_receive_in_child;
	/* the child received the MAD first */
	assert_int_equal(take_mad(1000), -EAGAIN);
}

/* --- signals --- */

static void nothing(int signal)
{
	(void)signal;
}

/* Send SIGUSR1 to @thread 20 times within 100 ms, then answer a call. */
static void *interrupt_then_answer(void *thread)
{
	const struct vb_umad_head answer = { .magic = VB_UMAD_MAGIC,
					     .result = AGENT };
	struct vb_umad_head question;
	unsigned count = 1;
	int to;

	for (int i = 0; i < 20; i++) {
		usleep(5000);
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
	}
	if (vb_fdmail_recv(fabric, &question, sizeof(question), &to, &count,
			   0) < 0 ||
	    count != 1)
		return NULL;
	(void)!vb_fdmail_send(to, &answer, sizeof(answer), NULL, 0, 0);
	close(to);
	return NULL;
}

static void signals_do_not_end_a_call(void **state)
{
	const struct sigaction act = { .sa_handler = nothing,
				       .sa_flags = SA_RESTART };
	const struct vb_umad_head question = { .magic = VB_UMAD_MAGIC };
	pthread_t self = pthread_self(), thread;

	(void)state;
	sigaction(SIGUSR1, &act, NULL);
	pthread_create(&thread, NULL, interrupt_then_answer, &self);
	assert_int_equal(vb_fabric_call(port, &question, sizeof(question)), AGENT);
	pthread_join(thread, NULL);
}

/* --- a fabric that does not read --- */

/* Send a MAD of @len bytes. */
static int send_mad(int len)
{
	static uint8_t umad[sizeof(struct ib_user_mad) + VB_UMAD_INLINE + 1];

	return umad_send(port, AGENT, umad, len, 0, 0);
}

static int send_until_full(int len)
{
	int rc = 0;

	for (int i = 0; i < 100000 && !rc; i++)
		rc = send_mad(len);
	return rc;
}

static void sending_to_who_does_not_read_is_a_timeout(void **state)
{
	const struct vb_umad_head question = { .magic = VB_UMAD_MAGIC };

	(void)state;
	assert_int_equal(send_until_full(256), -ETIMEDOUT);
	assert_int_equal(errno, ETIMEDOUT);
	assert_int_equal(send_mad(VB_UMAD_INLINE + 1), -ETIMEDOUT);
	assert_int_equal(vb_fabric_call(port, &question, sizeof(question)),
			 -ETIMEDOUT);
}

static void *read_all(void *unused)
{
	static uint8_t bytes[1024];

	usleep(50000);
	while (recv(fabric, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	return unused;
}

static void sending_goes_on_when_the_fabric_reads(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(send_until_full(256), -ETIMEDOUT);
	pthread_create(&thread, NULL, read_all, NULL);
	assert_int_equal(send_mad(256), 0);
	pthread_join(thread, NULL);
}

/* --- buffers that are too short --- */

static union {
	struct ib_user_mad mad;
	uint8_t bytes[sizeof(struct ib_user_mad) + VB_UMAD_INLINE + 1];
} got;

/* Receive with room for @room bytes. Returns how many bytes of the MAD came. */
static int take_into(int room, int *rc, int *length)
{
	int count = 0;

	memset(&got, 0, sizeof(got));
	*length = room;
	*rc = umad_recv(port, &got, length, 0);
	while (count <= VB_UMAD_INLINE && got.mad.data[count] &&
	       got.mad.data[count] == (uint8_t)(count % 255 + 1))
		count++;
	return count;
}

static void expect(int room, int rc, int length, int count)
{
	int got_rc, got_length, got_count;

	got_count = take_into(room, &got_rc, &got_length);
	assert_int_equal(got_rc, rc);
	assert_int_equal(got_length, length);
	assert_int_equal(got_count, count);
	if (rc < 0)
		assert_int_equal(errno, -rc);
	assert_int_equal(got.mad.agent_id,
			 rc == -EINVAL || rc == -EAGAIN ? 0 : AGENT);
}

/* As with the kernel, the receive buffer must have room for a first segment of
 * 256 bytes, or for the whole message if it is shorter. */
static void no_room(void **state)
{
	static const int lengths[] = { 2000, VB_UMAD_INLINE + 1 };

	(void)state;
	for (unsigned i = 0; i < VB_COUNT(lengths); i++) {
		deliver((size_t)lengths[i]);
		expect(255, -EINVAL, lengths[i], 0);
		expect(-1, -EINVAL, lengths[i], 0);
		expect(256, -ENOSPC, lengths[i], 256);
		expect(lengths[i] - 1, -ENOSPC, lengths[i], 256);
		expect(lengths[i], AGENT, lengths[i], lengths[i]);
		expect(256, -EAGAIN, 256, 0);
	}
}

static void no_room_for_a_short_message(void **state)
{
	(void)state;
	deliver(24);
	expect(23, -EINVAL, 24, 0);
	expect(24, AGENT, 24, 24);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(cancelling_while_it_takes_loses_nothing),
		CASE(who_waits_or_looks_can_be_cancelled),
		CASE(a_child_of_fork_receives),
		CASE(signals_do_not_end_a_call),
		CASE(sending_to_who_does_not_read_is_a_timeout),
		CASE(sending_goes_on_when_the_fabric_reads),
		CASE(no_room),
		CASE(no_room_for_a_short_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

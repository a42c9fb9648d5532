/* SPDX-License-Identifier: BSD-2-Clause */
/* A broker that has no more sessions or descriptors to give. */
#include "tests/unit/broker/broker_bed.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static void broker_run__too_many_sessions(void **state)
{
	int fds[800], last;
	struct answer a;

	start_broker(60 * VB_SEC);
	for (int i = 0; i < 800; i++) {
		fds[i] = connect_to_broker();
		assert_true(fds[i] >= 0);
	}
	assert_true(hear(fds[799], &a));
	assert_int_equal(a.m.kind, IPC_REFUSE);
	for (int i = 0; i < 800; i++)
		close(fds[i]);
	last = claim_slot(&a, 1);
	close(last);
	close_answer(&a);
	kill_broker();
}

/* Starts a broker that has no capabilities and may open @descriptors files. */
static void start_poor_broker(rlim_t descriptors)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	const struct __user_cap_data_struct none[2] = { { 0 } };
	const struct rlimit limit = { descriptors, descriptors };
	int listener = vb_broker_listen();

	assert_true(listener >= 0);
	broker = fork();
	if (broker == 0) {
		setrlimit(RLIMIT_NOFILE, &limit);
		if (syscall(SYS_capset, &head, none))
			_exit(1);
		_exit(vb_broker_run(listener, 60 * VB_SEC) ? 1 : 0);
	}
	close(listener);
}

#define POOR_LIMIT	 8192
#define MESSAGES_IN_PAIR 64
#define PAIRS_FOR_LIMIT	 (1 + POOR_LIMIT / (MESSAGES_IN_PAIR * VB_FDMAIL_FDS))

/* Puts more than POOR_LIMIT descriptors in flight, by messages that nobody
 * reads; they are in flight until @unread is closed. */
static void put_in_flight(int unread[PAIRS_FOR_LIMIT])
{
	int pair[2], fds[VB_FDMAIL_FDS];

	for (unsigned i = 0; i < VB_FDMAIL_FDS; i++)
		fds[i] = STDERR_FILENO;
	for (unsigned p = 0; p < PAIRS_FOR_LIMIT; p++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair),
				 0);
		for (unsigned m = 0; m < MESSAGES_IN_PAIR; m++)
			assert_int_equal(vb_fdmail_send(pair[0], "", 1, fds,
							VB_FDMAIL_FDS, 0),
					 0);
		close(pair[0]);
		unread[p] = pair[1];
	}
}

/* The kernel limits the descriptors that a user has in flight. If it therefore
 * refuses to pass a slot's descriptors, the broker tells the program the
 * reason. */
static void broker_run__too_many_in_flight(void **state)
{
	int first, second, unread[PAIRS_FOR_LIMIT];
	struct rlimit limit;
	struct answer a;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max <= POOR_LIMIT)
		/* skip: this process could not put enough descriptors in
		 * flight */
		skip();
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	start_poor_broker(POOR_LIMIT);
	first = claim_slot(&a, 1);
	close_answer(&a);
	put_in_flight(unread);
	second = connect_to_broker();
	say(second, IPC_CLAIM, 0, -1);
	assert_true(hear(second, &a));
	assert_int_equal(a.m.kind, IPC_REFUSE);
	assert_int_equal(a.m.error, ETOOMANYREFS);
	close(second);
	vb_fdmail_close(unread, PAIRS_FOR_LIMIT);
	second = claim_slot(&a, 1);
	close_answer(&a);
	close(second);
	close(first);
	kill_broker();
}

/* The broker closes a silent session without a slot, but not one with a slot.
 */
static void broker_run__silent_sessions(void **state)
{
	const struct timeval limit = { 8, 0 };
	struct answer a;
	int silent, holder;
	char byte;

	start_broker(60 * VB_SEC);
	holder = claim_slot(&a, 1);
	silent = connect_to_broker();
	setsockopt(silent, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	expect_end(silent);
	assert_int_equal(recv(holder, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	close(silent);
	close(holder);
	close_answer(&a);
	kill_broker();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(broker_run__too_many_sessions),
		cmocka_unit_test(broker_run__too_many_in_flight),
		cmocka_unit_test(broker_run__silent_sessions),
	};

	if (!netns_enter())
		return NETNS_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

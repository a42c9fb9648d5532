/* SPDX-License-Identifier: BSD-2-Clause */
/* A broker in a child process. The test plays the programs that ask the
 * broker. */
#ifndef TESTS_UNIT_BROKER_BROKER_BED_H
#define TESTS_UNIT_BROKER_BROKER_BED_H

#include "broker/broker.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "link/udp.h"
#include "tests/unit/netns.h"
#include "wire/ipc.h"

#define PATIENCE_MS 5000

static pid_t broker;

struct answer {
	struct vb_ipc m;
	unsigned count;
	int fds[3];
};

static inline void start_broker(vb_time linger)
{
	int listener = vb_broker_listen();

	assert_true(listener >= 0);
	broker = fork();
	if (broker == 0)
		_exit(vb_broker_run(listener, linger) ? 1 : 0);
	close(listener);
}

static inline void kill_broker(void)
{
	kill(broker, SIGKILL);
	assert_int_equal(waitpid(broker, NULL, 0), broker);
}

static inline int connect_to_broker(void)
{
	const struct timeval limit = { PATIENCE_MS / 1000, 0 };
	struct sockaddr_un a;
	socklen_t len = vb_ipc_address(&a, VB_IPC_BROKER);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (void *)&a, len) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Check that the broker has closed the session, and that the receive did not
 * time out. */
static inline void expect_end(int fd)
{
	char byte;

	assert_int_equal(recv(fd, &byte, 1, 0), 0);
}

static inline void say_with(int fd, enum vb_ipc_kind kind, unsigned slot,
			    const int *fds, unsigned count)
{
	struct vb_ipc m = { .kind = (uint8_t)kind,
			    .version = VB_IPC_VERSION,
			    .slot = (uint16_t)slot };
	uint8_t bytes[VB_IPC_BYTES];

	vb_ipc_put(bytes, &m);
	assert_int_equal(
		vb_fdmail_send(fd, bytes, sizeof(bytes), fds, count, 0), 0);
}

static inline void say(int fd, enum vb_ipc_kind kind, unsigned slot,
		       int enclosed)
{
	say_with(fd, kind, slot, &enclosed, enclosed >= 0);
}

static inline bool hear(int fd, struct answer *a)
{
	union {
		char bytes[CMSG_SPACE(3 * sizeof(int))];
		struct cmsghdr c;
	} u;
	uint8_t bytes[VB_IPC_BYTES];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &u,
			    .msg_controllen = sizeof(u) };
	ssize_t n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);

	a->count = 0;
	if (n <= 0)
		return false;
	assert_true(vb_ipc_get(bytes, (size_t)n, &a->m));
	if (c) {
		a->count =
			(unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(a->fds, CMSG_DATA(c), a->count * sizeof(int));
	}
	return true;
}

static inline void close_answer(struct answer *a)
{
	while (a->count > 0)
		close(a->fds[--a->count]);
}

/* Opens a session that claims a slot, and returns its socket. */
static inline int claim(struct answer *a)
{
	int fd = connect_to_broker();

	assert_true(fd >= 0);
	say(fd, IPC_CLAIM, 0, -1);
	assert_true(hear(fd, a));
	return fd;
}

static inline int claim_slot(struct answer *a, unsigned slot)
{
	int fd = claim(a);

	assert_int_equal(a->m.kind, IPC_GRANT);
	assert_int_equal(a->m.slot, slot);
	assert_int_equal(a->count, 3);
	assert_true(vb_udp_is_roce(a->fds[0]));
	return fd;
}

static inline void nap_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

#endif

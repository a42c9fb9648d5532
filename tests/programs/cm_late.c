/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Late answers of the broker: the library has given a question up, and its
 * answer comes after the next question. The library must not take it for the
 * answer to that question. And the library's time limits must not depend on the
 * wall clock, which is wrong here. This program replaces functions of the C
 * library, and so gives librdmacm a late answer before each right one. Usage:
 * cm_late ADDRESS
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wire/ipc_cm.h"

#define PORT   7478
#define BEHIND 3600 /* seconds by which the wall clock is set back */
/* Nanoseconds between the late answer to the previous question and the right
 * answer. */
#define BETWEEN 20000000

enum late { NOTHING, OF_ANOTHER_ID, OF_THE_SAME_ID };

static enum late late;
/* true: recvmsg() has just given the library the late answer */
static bool shown;
static bool clock_is_wrong;
static int failures;

static void say(const char *what, bool well)
{
	printf("%s cm late: %s\n", well ? "ok" : "not ok", what);
	failures += !well;
}

static bool make_late(uint8_t *bytes, size_t len)
{
	struct vb_ipc_cm m;

	if (!vb_ipc_cm_get(bytes, len, &m) || m.kind != IPC_CM_DONE)
		return false;
	m.status = ECONNREFUSED;
	if (late == OF_ANOTHER_ID)
		m.id++;
	m.tid--;
	vb_ipc_cm_put(bytes, &m);
	return true;
}

__attribute__((visibility("default"))) ssize_t recvmsg(int fd, struct msghdr *h,
						       int flags)
{
	struct msghdr kept = *h;
	ssize_t n;

	if (late != NOTHING && !shown) {
		n = syscall(SYS_recvmsg, fd, h, flags | MSG_PEEK);
		shown = n == VB_IPC_CM_BYTES &&
			make_late(h->msg_iov->iov_base, (size_t)n);
		if (shown)
			return n;
		*h = kept;
	}
	/* delay the right answer, so that the waiting thread reads the late one
	 * first */
	if (shown)
		nanosleep(&(struct timespec){ 0, BETWEEN }, NULL);
	shown = false;
	return syscall(SYS_recvmsg, fd, h, flags);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id,
							 struct timespec *t)
{
	int rc = (int)syscall(SYS_clock_gettime, id, t);

	if (id == CLOCK_REALTIME && clock_is_wrong)
		t->tv_sec -= BEHIND;
	return rc;
}

/* Bind an id to @address and listen there. Returns whether both succeeded. */
static bool listens(struct rdma_event_channel *channel, const char *address)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(PORT) };
	struct rdma_cm_id *id;
	bool well;

	if (inet_pton(AF_INET, address, &a.sin_addr) != 1 ||
	    rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		return false;
	well = rdma_bind_addr(id, (struct sockaddr *)&a) == 0;
	if (!well)
		printf("    rdma_bind_addr: %s\n", strerror(errno));
	if (well && rdma_listen(id, 4)) {
		printf("    rdma_listen: %s\n", strerror(errno));
		well = false;
	}
	rdma_destroy_id(id);
	return well;
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2 || !channel)
		return 2;
	say("nothing is wrong", listens(channel, argv[1]));
	late = OF_ANOTHER_ID;
	say("another id's answer is skipped", listens(channel, argv[1]));
	late = OF_THE_SAME_ID;
	say("an earlier question's answer is skipped",
	    listens(channel, argv[1]));
	late = NOTHING;
	clock_is_wrong = true;
	say("a wall clock an hour behind", listens(channel, argv[1]));
	rdma_destroy_event_channel(channel);
	return failures != 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs with sessions; one process plays them all. */
#ifndef TESTS_UNIT_NEAR_SESSION_BED_H
#define TESTS_UNIT_NEAR_SESSION_BED_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "near/near_priv.h"
#include "tests/unit/netns.h"
#include "wire/ipc.h"

struct program {
	struct vb_near *near;
	int name_fd, also_fd, wake_fd;
};

static inline int name_of(unsigned slot)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un a;
	char name[32];
	socklen_t len;
	int rc;

	snprintf(name, sizeof(name), "verbena/slot/%u", slot);
	len = vb_ipc_address(&a, name);
	/* A thread of the program that had the slot before may have a duplicate
	 * of its socket for another moment, which it closes when accept4()
	 * returns. */
	for (unsigned i = 0; i < 1000; i++) {
		rc = bind(fd, (void *)&a, len);
		if (rc == 0 || errno != EADDRINUSE)
			break;
		usleep(1000);
	}
	assert_int_equal(rc, 0);
	return fd;
}

static inline void begin(struct program *p, unsigned slot)
{
	struct vb_near_config c = { .slot = 0 };

	p->name_fd = name_of(slot);
	p->also_fd = -1;
	p->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	c.slot = slot;
	c.name_fd = p->name_fd;
	c.wake_fd = p->wake_fd;
	assert_int_equal(vb_near_create(&c, &p->near), 0);
	vb_near_begin(p->near);
}

static inline void end(struct program *p)
{
	vb_near_end(p->near);
	vb_near_destroy(p->near);
	close(p->name_fd);
	if (p->also_fd >= 0)
		close(p->also_fd);
	close(p->wake_fd);
}

static inline void begin_also(struct program *p, unsigned slot)
{
	p->also_fd = name_of(slot);
	assert_int_equal(vb_near_also(p->near, slot, p->also_fd), 0);
}

/* Has the program something to do now, or will it soon have, because a thread
 * of it accepts a caller or checks the proof of one? */
static inline bool is_busy(const struct program *p)
{
	struct pollfd ready = { vb_near_fd(p->near), POLLIN, 0 };

	return poll(&ready, 1, vb_errands_under_way(p->near->errands) > 0) ==
		       1 ||
	       vb_errands_under_way(p->near->errands) > 0;
}

/* Let the program process all that has arrived. */
static inline void go(struct program *p)
{
	do
		vb_near_meet(p->near, 0);
	while (is_busy(p));
}

static inline void meet(struct program *a, struct program *b)
{
	for (int i = 0; i < 6; i++) {
		go(a);
		go(b);
	}
}

#endif

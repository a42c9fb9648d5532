/* SPDX-License-Identifier: BSD-2-Clause */
/* Start a broker from within a program that must not notice. */
#ifndef ENGINE_SPAWN_H
#define ENGINE_SPAWN_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/defs.h"

/*
 * On 0 a broker listens, or another was faster. No SIGCHLD is raised, no
 * wait() of the program sees the child, and nothing of the program's is
 * inherited. -errno: -ENOENT when there is no verbena program to run;
 * -ETIMEDOUT: it came to no end and was killed.
 */
VB_MUST_CHECK int vb_spawn_broker(void);

/* The same for who must not wait: all zero at first. */
struct vb_spawn {
	bool busy;
	pthread_t thread;
	_Atomic int result; /* 1: not yet */
};

/* Begin, or look: -EAGAIN while it is under way; else as above, and the next
 * call begins another. */
VB_MUST_CHECK int vb_spawn_step(struct vb_spawn *s);
/* Wait for what is under way. */
void vb_spawn_finish(struct vb_spawn *s);

#endif

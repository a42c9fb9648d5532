/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts a broker from within a program, which does not notice the new
 * processes. */
#ifndef ENGINE_SPAWN_H
#define ENGINE_SPAWN_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/defs.h"

/*
 * Start a broker and wait until it listens, for 3 s at most. 0: a broker
 * listens, perhaps one that another program started. The program gets no
 * SIGCHLD, none of its wait() calls sees the child, and the broker inherits
 * nothing of the program. -ENOENT: there is no verbena program to run;
 * -ECANCELED: that program failed; -ETIMEDOUT: it did not end, and this
 * function killed it; else -errno.
 */
VB_MUST_CHECK int vb_spawn_broker(void);

/* The state of starting a broker for a caller that must not wait. The caller
 * first sets all fields to zero. */
struct vb_spawn {
	bool busy;
	pthread_t thread;
	_Atomic int result; /* the result; 1: the start is still under way */
};

/* Begin to start a broker, or look for the result. -EAGAIN: the start is still
 * under way; otherwise a result of vb_spawn_broker(), and the next call begins
 * anew. */
VB_MUST_CHECK int vb_spawn_step(struct vb_spawn *s);
/* Wait until no start of a broker is under way. */
void vb_spawn_finish(struct vb_spawn *s);

#endif

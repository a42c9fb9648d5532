/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts a broker from within a program that must not notice. */
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
 * -ECANCELED: it failed; -ETIMEDOUT: it did not end and was killed; else
 * -errno.
 */
VB_MUST_CHECK int vb_spawn_broker(void);

/* The same for a caller that must not wait. All fields are zero at first. */
struct vb_spawn {
	bool busy;
	pthread_t thread;
	_Atomic int result; /* 1: still under way */
};

/* Begin, or look for the result. -EAGAIN: it is under way; otherwise as above,
 * and the next call begins another. */
VB_MUST_CHECK int vb_spawn_step(struct vb_spawn *s);
/* Wait until nothing is under way. */
void vb_spawn_finish(struct vb_spawn *s);

#endif

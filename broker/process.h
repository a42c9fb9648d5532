/* SPDX-License-Identifier: BSD-2-Clause */
/* The process at the other end of a session. */
#ifndef BROKER_PROCESS_H
#define BROKER_PROCESS_H

#include <sys/types.h>

#include "base/defs.h"

/* As it connected: it may be another user's since. */
struct vb_process {
	pid_t pid; /* 0: of another namespace of processes */
	uid_t uid;
	uint64_t born;	/* in the kernel's ticks; 0: that is not to be known */
	uint64_t order; /* the broker's: a later session has a higher one */
};

/* Of a connected local socket that was just accepted. */
void vb_process_of(int fd, struct vb_process *p);
/* Is it @p that listens at the local socket @fd? False is certain: another
 * process does. Nobody may, or one that the kernel does not tell us of. */
bool vb_process_may_listen(const struct vb_process *p, int fd);
/*
 * May the session @speaker speak for the queue pairs of the session @owner?
 * They must be one process, and not two that had one number after each other. A
 * process that has become another user since it opened its devices still may;
 * a user's session, which any program may hold, must not gain what its process
 * opened later as another user, by executing a set-user-ID program.
 */
bool vb_process_speaks_for(const struct vb_process *speaker,
			   const struct vb_process *owner);

#endif

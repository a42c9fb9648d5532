/* SPDX-License-Identifier: BSD-2-Clause */
/* The process at the other end of a session. */
#ifndef BROKER_PROCESS_H
#define BROKER_PROCESS_H

#include <sys/types.h>

#include "base/defs.h"

/* The process as it was when it connected; it may have become another user
 * since. */
struct vb_process {
	/* process number; 0: the process is in another PID namespace */
	pid_t pid;
	uid_t uid;
	uint64_t born;	/* start time in clock ticks, proc(5); 0: not known */
	uint64_t order; /* a session accepted later has a higher number */
};

/* Fills in @p from @fd, a local socket that the caller has just accepted. */
void vb_process_of(int fd, struct vb_process *p);
/* Returns false if a process other than @p listens at the local socket @fd;
 * true if @p does, or no process does, or one of another PID namespace. */
bool vb_process_may_listen(const struct vb_process *p, int fd);
/*
 * Returns whether the session of @speaker may connect the queue pairs of the
 * session of @owner. Both must belong to one process, not to two that had one
 * process number in turn. A process that has changed its user since it opened
 * its devices keeps that right. But an earlier session must not gain the queue
 * pairs that its process opened later as another user, by executing a
 * set-user-ID program, because any program of the first user may have that
 * session.
 */
bool vb_process_speaks_for(const struct vb_process *speaker,
			   const struct vb_process *owner);

#endif

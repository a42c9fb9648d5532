/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is at the other end of a session. */
#ifndef BROKER_PROCESS_H
#define BROKER_PROCESS_H

#include <sys/types.h>

#include "base/defs.h"

/* As it connected: it may be another user's since. */
struct vb_process {
	pid_t pid; /* 0: of another namespace of processes */
	uid_t uid;
	uint64_t born; /* in the kernel's ticks; 0: that is not to be known */
};

/* Of a connected local socket that was just accepted. */
void vb_process_of(int fd, struct vb_process *p);
/* One process, and not two that had one number after each other. */
bool vb_process_is(const struct vb_process *a, const struct vb_process *b);

#endif

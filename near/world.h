/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All that near/ asks of the kernel once two programs have met: the clock,
 * copies between the programs, where a peer's threads are, and waking a peer.
 * The lanes and registries themselves are memory. near/host.c has the functions
 * of a real host; tests/support/near_sim_world.c has others, with which two
 * programs run in one process and in virtual time.
 */
#ifndef NEAR_WORLD_H
#define NEAR_WORLD_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/defs.h"
#include "near/permit.h"

struct vb_peer;

/* Is a thread inside a copy, as far as the kernel tells? The value of a process
 * is the greatest of its threads' values. */
enum vb_whereabouts {
	IS_ELSEWHERE, /* the thread is in no copy of this program's memory */
	/* the thread may be in a copy but stopped there, or /proc cannot be
	 * read */
	IS_UNSEEN,
	MAY_COPY, /* the thread runs, or waits for a page inside a copy */
};

/* The functions of the kernel. Any thread calls them, most of them with locks
 * held, so only pause() waits. @arg is vb_near_world.arg. */
struct vb_near_world {
	/* Returns the time in nanoseconds, which never decreases. */
	vb_time (*now)(void *arg);
	/* Let other threads run for about @ns; 0: only those that are ready.
	 * The caller holds no lock that a peer or a packet may need. */
	void (*pause)(void *arg, vb_time ns);
	uint32_t (*random)(void *arg);
	/* Makes the copy that vb_permit_copy() describes. */
	ssize_t (*copy)(void *arg, const struct vb_permit *permit, pid_t pid,
			bool put, const struct iovec *local, unsigned count,
			const struct iovec *remote, unsigned remote_count);
	/* Returns where the threads of process @pid are. */
	enum vb_whereabouts (*find)(void *arg, pid_t pid);
	/* Has the last thread of @p ended, or has it executed another program?
	 */
	bool (*has_hung_up)(void *arg, const struct vb_peer *p);
	/* Ends the session with @p: both engine threads see that soon. */
	void (*hang_up)(void *arg, const struct vb_peer *p);
	/* Wakes the engine thread of @p, which has set "asleep". */
	void (*wake)(void *arg, const struct vb_peer *p);
	void *arg;
};

/* The functions of near/host.c, for the kernel of this host. */
extern const struct vb_near_world vb_near_host;

#endif

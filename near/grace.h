/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * After a key was revoked, or a queue pair left its state, the owner waits
 * until no peer accesses the memory any more. A running peer needs microseconds
 * for that. The owner does not wait for a stopped peer (debugger, job control,
 * freezer): none of its threads begins a copy after its permit has lapsed
 * (near/permit.h), and /proc says whether a thread has begun one and is still
 * in the kernel.
 */
#ifndef NEAR_GRACE_H
#define NEAR_GRACE_H

#include "base/age.h"
#include "near/peer.h"

/*
 * The longest time that the owner waits for a peer. VB_GRACE_UNSEEN: the kernel
 * cannot tell that the peer is outside of a copy, because a debugger holds it
 * at the entrance of the system call, or /proc is not readable. VB_GRACE_RUNS:
 * the peer runs all the time, or waits for a page. No copy lasts that long, so
 * the owner expels the peer: it ends the session, and the peer counts no copy
 * as done that ends after that (vb_peer_expels()).
 */
#define VB_GRACE_UNSEEN (1 * VB_SEC)
#define VB_GRACE_RUNS	(10 * VB_SEC)
/* A thread that polls asks the kernel at most once in this time whether a peer
 * still copies, because the thread then reads a file of /proc for every thread
 * of the peer. */
#define VB_GRACE_ASK_EVERY (1 * VB_MSEC)

/*
 * Has peer @p ended its accesses to this program's memory by @key (0: any)
 * through this program's queue pair @qpn (0: any), which was revoked @age ago?
 * Never blocks, so the caller may hold any lock. Also true when @age has
 * reached one of the limits above; such a peer loses its session.
 */
bool vb_grace_is_over(struct vb_peer *p, uint32_t key, uint32_t qpn,
		      vb_time age);

/* Does the peer show an access by @key (0: any) through queue pair @qpn (0:
 * any), for which this program still waits? */
bool vb_grace_shows(const struct vb_peer *p, uint32_t key, uint32_t qpn);
/* The session with @p has ended: can no thread of @p access this program's
 * memory through queue pair @qpn (0: any) any more? Never blocks. The answer
 * may come 1 ms late, since the kernel is asked no more often. */
bool vb_grace_has_left(struct vb_peer *p, uint32_t qpn);

/* Wait until vb_grace_is_over() is true. @age begins at the first look after
 * the revocation; a caller that waits for several peers has one age for all.
 * The caller holds no lock that a packet, a peer or another thread's verb may
 * need. */
void vb_grace_await(struct vb_peer *p, uint32_t key, uint32_t qpn,
		    struct vb_age *age);

#endif

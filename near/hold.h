/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * After a key was revoked, or a queue pair left its state, the owner waits
 * until no peer accesses the memory any more. A running peer needs microseconds
 * for that. A stopped peer (debugger, job control, freezer) is not waited for:
 * none of its threads begins a copy after its permit has lapsed
 * (near/permit.h), and /proc says whether a thread has begun one and is still
 * in the kernel.
 */
#ifndef NEAR_HOLD_H
#define NEAR_HOLD_H

#include "near/peer.h"

/*
 * How long a peer is waited for at most. VB_HOLD_UNSEEN: the kernel cannot say
 * that it is outside of a copy, because a debugger holds it at the entrance of
 * the system call, a freezer inside it, or /proc is not readable. VB_HOLD_RUNS:
 * it runs all the time; no copy takes that long, so its session is ended.
 */
#define VB_HOLD_UNSEEN (1 * VB_SEC)
#define VB_HOLD_RUNS   (10 * VB_SEC)

/*
 * Has @p stopped accessing our memory by @key (0: any), through our queue pair
 * @qpn (0: any), which was revoked @age ago? Never blocks, so any lock may be
 * held. True also when the peer has been waited for long enough; a peer that
 * runs for VB_HOLD_RUNS loses its session.
 */
bool vb_hold_is_over(struct vb_peer *p, uint32_t key, uint32_t qpn,
		     vb_time age);

/* Wait until vb_hold_is_over(). The caller holds no lock that a packet, a peer
 * or another thread's verb may need. */
void vb_hold_await(struct vb_peer *p, uint32_t key, uint32_t qpn);

#endif

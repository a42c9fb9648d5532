/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who took a key away, or moved a queue pair, waits until no peer is at the
 * memory any more that it opened. A peer that runs is through in a moment. One
 * that is stopped (a debugger, job control, a freezer) is not waited for: none
 * of its threads begins a copy without its permit (near/permit.h), and whether
 * one has begun and is still at it, the kernel says (/proc).
 */
#ifndef NEAR_HOLD_H
#define NEAR_HOLD_H

#include "near/peer.h"

/*
 * At the longest a peer is waited for that the kernel shows outside of a copy
 * as far as can be seen: a debugger may hold it at the entrance of the call, a
 * freezer in it, or /proc may be closed to us. And one that runs all the
 * time: then it is expelled, since no copy takes that long.
 */
#define VB_HOLD_UNSEEN (1 * VB_SEC)
#define VB_HOLD_RUNS   (10 * VB_SEC)

/*
 * Is @p no longer at our memory by @key (0: any), by way of our queue pair
 * @qpn (0: any), which was taken away @age ago? Any lock may be held: this does
 * not wait.
 */
bool vb_hold_is_over(struct vb_peer *p, uint32_t key, uint32_t qpn,
		     vb_time age);

/* Wait for it. No lock is held that a packet, a peer or another thread's
 * verb may need. */
void vb_hold_await(struct vb_peer *p, uint32_t key, uint32_t qpn);

#endif

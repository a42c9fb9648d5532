/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to engine/: how a program's thread waits, and which channel has the
 * link and the lanes meanwhile. */
#ifndef ENGINE_WAIT_PRIV_H
#define ENGINE_WAIT_PRIV_H

#include "engine/engine_priv.h"

/* Functions of engine/poll_wait.c. */
/* Can a poll wait here and now? */
bool vb_poll_can_wait(struct vb_engine *e);
/* Sleep until something arrives, for at most VB_POLL_WAIT. False: this thread
 * cannot sleep so. */
VB_MUST_CHECK bool vb_poll_wait(struct vb_engine *e) VB_EXCLUDES(e->rx);
/* The program is about to sleep: the engine thread watches the link again. */
void vb_poll_waits_no_more(struct vb_engine *e);

/* Functions of engine/wait.c. */
/* Make or close what a wait needs. The caller has set the descriptors to -1
 * before. Without memory or descriptors, programs are woken by the engine
 * thread. */
void vb_wait_open(struct vb_engine *e);
void vb_wait_close(struct vb_engine *e);
/* Let the engine thread call vb_near_wake_peers() in 2 ms, unless this is
 * called again before. */
void vb_wait_soon(struct vb_engine *e);
/* The engine thread calls these when the timers of @soon and @back have
 * expired. */
void vb_wait_over(struct vb_engine *e);
void vb_wait_is_late(struct vb_engine *e);
/* Does a program that is lent the link, or that waits in polls, have the lanes,
 * too, so that the engine thread does not watch them now? */
static inline bool vb_wait_has_lanes(struct vb_engine *e)
{
	return atomic_load(&e->back.is_set) &&
	       (atomic_load(&e->lend.has_lanes) || atomic_load(&e->polls_wait));
}
/* Does a program's thread serve the lanes, or will it be back within 2 ms? */
static inline bool vb_wait_attends(struct vb_engine *e)
{
	enum vb_watch watched = atomic_load(&e->watched);

	return watched == WATCHES_LANES || vb_wait_has_lanes(e) ||
	       (watched == WATCHES_NOTHING && atomic_load(&e->soon.is_set));
}
/* Does a program's thread watch the link, or will it be back before @back's
 * timer expires? The waiter sets the timer before it clears @watched. */
static inline bool vb_wait_has_link(struct vb_engine *e)
{
	return atomic_load(&e->watched) == WATCHES_LINK ||
	       atomic_load(&e->back.is_set);
}
/* Does the kernel of this host let packets nudge a channel (base/nudge.h)? The
 * first call tries it. The caller has set e->watched, so no other thread uses
 * e->nudge. */
bool vb_wait_can_nudge(struct vb_engine *e);
/* Ask the kernel to nudge @ch when the next packet arrives. False: the kernel
 * refuses. The caller has no such request under way. */
VB_MUST_CHECK bool vb_wait_asks(struct vb_engine *e, struct vb_channel *ch);
/* The nudge of @ch is not wanted any more: its descriptor does not become
 * readable by it later. */
void vb_nudge_end(struct vb_nudge *n, struct vb_channel *ch);
/* From @now on the engine thread leaves the link alone for the time @lasts,
 * because a thread of the program most often comes back to it before. If none
 * does, the engine thread then watches the link again. */
void vb_wait_leaves_link(struct vb_engine *e, vb_time lasts, vb_time now);

/* Functions of engine/lend.c. */
void vb_lend_init(struct vb_engine *e);
/* The program has armed a queue of @ch: lend the link to @ch if that is likely
 * to save a wake-up. True: packets nudge @ch. */
bool vb_lend_begin(struct vb_engine *e, struct vb_channel *ch)
	VB_EXCLUDES(e->lend.lock);
bool vb_lend_is_lent(struct vb_engine *e, const struct vb_channel *ch)
	VB_EXCLUDES(e->lend.lock);
/* What a nudge of a channel tells; the values are bits. */
enum vb_nudged { NUDGED_BY_LINK = 1, NUDGED_BY_LANES = 2 };
/* A thread has read a count of @ch for which there was no event: was it a
 * nudge? Then the caller takes the packets, or calls vb_lend_attend(). Returns
 * bits of enum vb_nudged. */
unsigned vb_lend_is_nudged(struct vb_engine *e, struct vb_channel *ch)
	VB_EXCLUDES(e->lend.lock);
/* A peer of this host has nudged the channel that has the lanes: process them.
 * True: a lane had something. */
bool vb_lend_attend(struct vb_engine *e) VB_EXCLUDES(e->lend.lock);
/* Messages that vb_lend_attend() has found on the lanes have raised an event of
 * the program's channel. */
void vb_lend_has_event(struct vb_engine *e) VB_EXCLUDES(e->lend.lock);
/* A poll looks at the lanes, which a channel may have. The first poll after the
 * program has armed a queue wakes no peer for what the program has received:
 * the program may still answer. */
bool vb_lend_poll(struct vb_engine *e, vb_time now) VB_EXCLUDES(e->lend.lock);
/* @ch has no event, and the program is about to sleep in poll(2): wake a peer
 * of this host for what the program has received, unless it most often answers
 * after this. */
void vb_lend_settle(struct vb_engine *e, const struct vb_channel *ch)
	VB_EXCLUDES(e->lend.lock);
/* A packet has woken the engine thread: does it leave the packet to the
 * program? */
bool vb_lend_leaves(struct vb_engine *e, vb_time now) VB_EXCLUDES(e->lend.lock);

/* End every wait in vb_engine_wait(), because the engine thread has ended. */
void vb_wait_stop(struct vb_engine *e);

#endif

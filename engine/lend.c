/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that sleeps in poll(2) or epoll by the descriptor of a completion
 * channel, which it has made non-blocking: the link is lent to that channel.
 * The kernel nudges the channel's descriptor when a packet arrives
 * (base/nudge.h), the program calls ibv_get_cq_event(), and that call takes the
 * packet, makes the completion, and returns its event; or EAGAIN, if the packet
 * completed nothing that the program waits for. So the packet wakes the program
 * and not first the engine thread.
 *
 * The lanes of peers of this host are lent with the link. Their rings arrive at
 * the sockets of the sessions, and a second nudge stands for all of these. The
 * thread that was nudged takes the rings; other messages of a session are for
 * the engine thread, which it wakes.
 *
 * The engine never lends the link to a channel that blocks: the program expects
 * an event there and would block. It lends the link to a non-blocking channel
 * only after ibv_get_cq_event() has returned EAGAIN on it. A program that never
 * saw EAGAIN may take one event each time the channel is readable, and fail if
 * there is none (gloo does). A program that takes events until EAGAIN sees it
 * at once.
 *
 * Nobody knows whether the program really sleeps there. The engine thread
 * therefore leaves the link alone only while the program was active lately, and
 * leaves each packet to the program for a short time at most. A program that
 * lets a packet wait does not get the link again for a while
 * (vb_lend_neglected() in engine/policy_program.c).
 */
#include "core/lock_order.h"
#include "engine/engine_priv.h"
#include "engine/wait_priv.h"

#include <fcntl.h>

/* The most times that a thread processes the lanes, each time 1 MiB of a lane,
 * before it leaves the rest to the engine thread. */
#define MOST_PASSES 4

void vb_lend_init(struct vb_engine *e)
{
	vb_mutex_init(&e->lend.lock, RANK_LEND);
}

/* Take the link back. The channel's descriptor is then readable only while the
 * channel has events. */
static void lend_end(struct vb_engine *e) VB_REQUIRES(e->lend.lock)
{
	struct vb_channel *ch = e->lend.channel;

	vb_nudge_end(&e->nudge, ch);
	vb_nudge_end(&e->lend.lanes, ch);
	atomic_store(&ch->by_link, 0);
	e->lend.channel = NULL;
	if (atomic_exchange(&e->lend.has_lanes, false) &&
	    !vb_near_sleep(e->near))
		vb_engine_wake(e);
	atomic_store(&e->watched, WATCHES_NOTHING);
}

/* Does the program poll @ch? A read from it that did not block says so without
 * a system call. */
static bool is_polled(struct vb_engine *e, struct vb_channel *ch)
	VB_REQUIRES(e->lend.lock)
{
	int flags = e->lend.was_empty ? O_NONBLOCK : fcntl(ch->fd, F_GETFL);
	bool polls = flags >= 0 && (flags & O_NONBLOCK);

	e->lend.was_empty = false;
	atomic_store(&ch->elsewhere, polls);
	return polls;
}

/* Claim the right to watch the link for the program. */
static bool claim(struct vb_engine *e, struct vb_channel *ch)
	VB_REQUIRES(e->lend.lock)
{
	enum vb_watch none = WATCHES_NOTHING;

	if (e->lend.channel == ch)
		return true;
	if (!atomic_compare_exchange_strong(&e->watched, &none, WATCHES_LENT))
		return false;
	if (!vb_wait_can_nudge(e)) {
		atomic_store(&e->watched, WATCHES_NOTHING);
		return false;
	}
	e->lend.channel = ch;
	return true;
}

static bool can_nudge_by_lanes(struct vb_engine *e) VB_REQUIRES(e->lend.lock)
{
	if (!e->near || e->lend.no_lanes)
		return false;
	if (!e->lend.lanes.context)
		e->lend.no_lanes = vb_nudge_open(&e->lend.lanes) != 0;
	return !e->lend.no_lanes;
}

/* Let the next ring of a peer nudge @ch, which has the link. */
static void lend_lanes(struct vb_engine *e, struct vb_channel *ch)
	VB_REQUIRES(e->lend.lock)
{
	bool can = can_nudge_by_lanes(e) &&
		   (e->lend.lanes.awaited ||
		    vb_nudge_ask(&e->lend.lanes, vb_near_fd(e->near), ch->fd) ==
			    0);

	atomic_store(&e->lend.has_lanes, can);
}

/* Let the next packet, and the next ring, nudge @ch, which has the link. False:
 * packets do not. */
static bool keep_lent(struct vb_engine *e, struct vb_channel *ch, vb_time now)
	VB_REQUIRES(e->lend.lock)
{
	if (!e->nudge.awaited || !e->lend.lanes.awaited) {
		if (!is_polled(e, ch) ||
		    (!e->nudge.awaited && !vb_wait_asks(e, ch)))
			return false;
		lend_lanes(e, ch);
	}
	vb_lend_comes(&e->lend.policy);
	vb_wait_leaves_link(e, VB_OWED_LASTS, now);
	return true;
}

/* Process the lanes in place of the engine thread. @unhurried: the program may
 * still answer what has come, which wakes the peer. */
static bool lend_serve(struct vb_engine *e, bool unhurried, vb_time now)
{
	bool found;

	vb_channel_raises(RAISED_BY_PROGRAM);
	found = unhurried ? vb_near_attend(e->near, now, true)
			  : vb_near_poll(e->near, now);
	vb_channel_raises(RAISED_OTHERWISE);
	return found;
}

/* Process what peers have put on the lanes while they need not ring. What is
 * left after some passes goes to the engine thread, and the loan ends, because
 * nobody rings for it. Returns whether the loan lasts. */
static bool empty_lanes(struct vb_engine *e, struct vb_channel *ch, vb_time now)
	VB_EXCLUDES(e->lend.lock)
{
	for (unsigned i = 0; i < MOST_PASSES; i++) {
		if (vb_near_sleep(e->near))
			return true;
		(void)lend_serve(e, true, now);
	}
	if (vb_near_sleep(e->near))
		return true;
	vb_mutex_lock(&e->lend.lock);
	if (e->lend.channel == ch)
		lend_end(e);
	vb_mutex_unlock(&e->lend.lock);
	return false;
}

bool vb_lend_begin(struct vb_engine *e, struct vb_channel *ch)
{
	bool lent = false, wanted;
	vb_time now;

	wanted = vb_wait_by_link(atomic_load_explicit(&ch->by_link,
						      memory_order_relaxed)) &&
		 atomic_load_explicit(&ch->elsewhere, memory_order_relaxed) &&
		 atomic_load_explicit(&ch->met_empty, memory_order_relaxed);
	if (!wanted && atomic_load(&e->watched) != WATCHES_LENT)
		return false;
	now = vb_now();
	vb_mutex_lock(&e->lend.lock);
	if (wanted && vb_lend_may(&e->lend.policy, now) && claim(e, ch))
		lent = keep_lent(e, ch, now);
	if (!lent && e->lend.channel == ch)
		lend_end(e);
	vb_mutex_unlock(&e->lend.lock);
	if (lent && atomic_load(&e->lend.has_lanes))
		lent = empty_lanes(e, ch, now);
	return lent;
}

bool vb_lend_is_lent(struct vb_engine *e, const struct vb_channel *ch)
{
	bool lent;

	if (atomic_load(&e->watched) != WATCHES_LENT)
		return false;
	vb_mutex_lock(&e->lend.lock);
	lent = e->lend.channel == ch;
	vb_mutex_unlock(&e->lend.lock);
	return lent;
}

/* The program has read a nudge from the channel @ch, so it is awake: note this,
 * and let peers no longer ring. */
static void is_awake(struct vb_engine *e, struct vb_channel *ch)
	VB_REQUIRES(e->lend.lock)
{
	vb_channel_nudged(ch);
	vb_lend_comes(&e->lend.policy);
	/* While the program is awake its polls serve the lanes. Peers ring
	 * again after vb_lend_begin(), or when the program is late and the
	 * engine thread takes the lanes back. */
	if (!atomic_load(&e->lend.has_lanes))
		return;
	vb_wait_leaves_link(e, VB_OWED_LASTS, vb_now());
	if (atomic_load(&e->back.is_set))
		vb_near_awake(e->near);
}

unsigned vb_lend_is_nudged(struct vb_engine *e, struct vb_channel *ch)
{
	unsigned by = 0;

	vb_mutex_lock(&e->lend.lock);
	if (e->lend.channel == ch && vb_nudge_came(&e->nudge))
		by |= NUDGED_BY_LINK;
	if (e->lend.channel == ch && vb_nudge_came(&e->lend.lanes))
		by |= NUDGED_BY_LANES;
	if (by & NUDGED_BY_LINK)
		is_awake(e, ch);
	if (by & NUDGED_BY_LANES)
		is_awake(e, ch);
	vb_mutex_unlock(&e->lend.lock);
	return by;
}

bool vb_lend_attend(struct vb_engine *e)
{
	if (!vb_near_hear_rings(e->near))
		vb_engine_wake(e);
	return lend_serve(e, true, vb_now());
}

void vb_lend_has_event(struct vb_engine *e)
{
	uint32_t sent = vb_near_requests(e->near);

	vb_mutex_lock(&e->lend.lock);
	vb_lend_took(&e->lend.policy, sent);
	vb_mutex_unlock(&e->lend.lock);
}

bool vb_lend_poll(struct vb_engine *e, vb_time now)
{
	enum vb_program does = vb_program_does(vb_engine_program(e));

	return lend_serve(e, does == PROGRAM_AWAY, now);
}

void vb_lend_settle(struct vb_engine *e, const struct vb_channel *ch)
{
	bool answers;

	vb_mutex_lock(&e->lend.lock);
	e->lend.was_empty = e->lend.channel == ch;
	answers = vb_lend_answers(&e->lend.policy);
	vb_mutex_unlock(&e->lend.lock);
	if (e->near && !answers)
		vb_near_wake_peers(e->near);
}

bool vb_lend_leaves(struct vb_engine *e, vb_time now)
{
	bool leaves;

	if (atomic_load(&e->watched) != WATCHES_LENT)
		return false;
	vb_mutex_lock(&e->lend.lock);
	leaves = e->lend.channel && !vb_lend_neglected(&e->lend.policy, now);
	if (leaves)
		vb_wait_leaves_link(e, VB_BACK_SOON, now);
	else if (e->lend.channel)
		lend_end(e);
	vb_mutex_unlock(&e->lend.lock);
	return leaves;
}

void vb_engine_forget_channel(struct vb_channel *ch)
{
	struct vb_engine *e = vb_engine_running();
	int cancel;

	if (!e)
		return;
	cancel = vb_cancel_off();
	vb_mutex_lock(&e->lend.lock);
	if (e->lend.channel == ch)
		lend_end(e);
	vb_mutex_unlock(&e->lend.lock);
	vb_cancel_back(cancel);
}

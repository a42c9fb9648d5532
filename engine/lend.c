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

#include <fcntl.h>

void vb_lend_init(struct vb_engine *e)
{
	vb_mutex_init(&e->lend.lock, RANK_LEND);
}

/* Take the link back. The channel's descriptor is then readable only while the
 * channel has events. */
static void lend_end(struct vb_engine *e) VB_REQUIRES(e->lend.lock)
{
	struct vb_channel *ch = e->lend.channel;

	vb_nudge_end(e, ch);
	atomic_store(&ch->by_link, 0);
	e->lend.channel = NULL;
	atomic_store(&e->watched, WATCHES_NOTHING);
}

static bool is_non_blocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_NONBLOCK);
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

/* Let the next packet nudge @ch, which has the link. False: it does not. */
static bool keep_lent(struct vb_engine *e, struct vb_channel *ch, vb_time now)
	VB_REQUIRES(e->lend.lock)
{
	if (!e->nudge.awaited) {
		bool polls = is_non_blocking(ch->fd);

		atomic_store(&ch->elsewhere, polls);
		if (!polls || !vb_wait_asks(e, ch))
			return false;
	}
	vb_lend_comes(&e->lend.policy);
	vb_wait_leaves_link(e, VB_OWED_LASTS, now);
	return true;
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

bool vb_lend_is_nudged(struct vb_engine *e, struct vb_channel *ch)
{
	bool nudged;

	vb_mutex_lock(&e->lend.lock);
	nudged = e->lend.channel == ch && vb_nudge_came(&e->nudge);
	if (nudged) {
		vb_channel_nudged(ch);
		vb_lend_comes(&e->lend.policy);
	}
	vb_mutex_unlock(&e->lend.lock);
	return nudged;
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

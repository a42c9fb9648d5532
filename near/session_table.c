/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sessions by slot: which programs this one has met, is meeting, or wants
 * to meet. near->lock guards the table; only the engine thread adds and removes
 * peers, so that thread reads the table without the lock.
 */
#include "near/session_priv.h"

#include <unistd.h>

#include "base/log.h"
#include "near/grace.h"

void vb_session_set_state(struct vb_near *n, struct vb_peer *p,
			  enum vb_peer_state state)
{
	vb_mutex_lock(&n->lock);
	/* Release: pairs with the acquire in vb_peer_is_up(). */
	atomic_store_explicit(&p->state, state, memory_order_release);
	vb_mutex_unlock(&n->lock);
}

void vb_session_enter(struct vb_near *n, struct vb_peer *p)
{
	vb_mutex_lock(&n->lock);
	n->peers[p->slot] = p;
	n->known[p->slot / 64] |= UINT64_C(1) << p->slot % 64;
	vb_mutex_unlock(&n->lock);
}

/* Does @p go to near->leaving? A peer that was never let into
 * this program's memory does not. */
static bool is_slow_to_leave(struct vb_peer *p, enum vb_peer_state was)
{
	return (was == PEER_UP || was == PEER_MET) && !p->is_self &&
	       !vb_grace_has_left(p, 0);
}

/* Remove @p from the table, for both of its slots, if it is there. The caller
 * gets the table's reference. @stays: @p goes to near->leaving, with a
 * reference of its own, so that vb_near_await() finds it all the time.
 */
static void leave_table(struct vb_near *n, struct vb_peer *p, bool stays)
	VB_EXCLUDES(n->lock)
{
	unsigned also;

	vb_mutex_lock(&n->lock);
	also = atomic_load(&p->also);
	if (also && n->peers[also] == p)
		n->peers[also] = NULL;
	if (n->peers[p->slot] == p) {
		n->peers[p->slot] = NULL;
		n->known[p->slot / 64] &= ~(UINT64_C(1) << p->slot % 64);
	}
	if (stays && !n->leaving[p->slot]) {
		n->leaving[p->slot] = vb_peer_get(p);
		n->leaving_count++;
	}
	vb_mutex_unlock(&n->lock);
}

void vb_session_end(struct vb_near *n, struct vb_peer *p, vb_time now)
{
	enum vb_peer_state was = atomic_load(&p->state);

	vb_session_see_off(n, false);
	/* From here on the peer begins no copy; some may be under way. */
	vb_peer_disown(p);
	vb_near_remove(n, p, now);
	vb_session_set_state(n, p, PEER_GONE);
	leave_table(n, p, is_slow_to_leave(p, was));
}

void vb_session_see_off(struct vb_near *n, bool all)
{
	for (unsigned i = 0; n->leaving_count && i < VB_SLOTS; i++) {
		struct vb_peer *p = n->leaving[i];

		if (!p || (!all && !vb_grace_has_left(p, 0)))
			continue;
		vb_mutex_lock(&n->lock);
		n->leaving[i] = NULL;
		n->leaving_count--;
		vb_mutex_unlock(&n->lock);
		vb_peer_put(p);
	}
}

void vb_session_note_also(struct vb_near *n, struct vb_peer *p, unsigned also)
{
	if (also == 0 || also >= VB_SLOTS || vb_near_is_own(n, also) ||
	    atomic_load(&p->also) || !vb_session_has_slot(p, also))
		return;
	vb_mutex_lock(&n->lock);
	if (!n->peers[also] && n->peers[p->slot] == p) {
		atomic_store(&p->also, also);
		n->peers[also] = p;
	}
	vb_mutex_unlock(&n->lock);
}

void vb_session_note_refusal(struct vb_near *n, unsigned slot)
{
	unsigned first;

	vb_mutex_lock(&n->lock);
	first = n->calls[slot].sent_from;
	n->calls[slot].sent_from = 0;
	n->calls[slot].refusals++;
	if (first)
		n->calls[first].refusals++;
	vb_mutex_unlock(&n->lock);
}

bool vb_session_next_wanted(struct vb_near *n, unsigned *slot)
{
	bool found = false;

	vb_mutex_lock(&n->lock);
	for (unsigned i = 0; n->any_wanted && i < VB_SLOTS && !found; i++) {
		found = n->calls[i].wanted && !n->peers[i];
		n->calls[i].wanted = false;
		*slot = i;
	}
	n->any_wanted = found;
	vb_mutex_unlock(&n->lock);
	return found;
}

uint32_t vb_session_want(struct vb_near *n, unsigned slot)
{
	const uint64_t one = 1;
	uint32_t refusals;
	bool wake = false;

	vb_mutex_lock(&n->lock);
	refusals = n->calls[slot].refusals;
	if (!vb_near_is_own(n, slot) && !n->peers[slot] &&
	    !n->calls[slot].wanted) {
		n->calls[slot].wanted = true;
		wake = !n->any_wanted;
		n->any_wanted = true;
	}
	vb_mutex_unlock(&n->lock);
	if (wake && write(n->c.wake_fd, &one, sizeof(one)) < 0)
		vb_log(LOG_DEBUG, "near: cannot wake the engine thread");
	return refusals;
}

static enum vb_session standing(const struct vb_near *n, unsigned slot,
				uint32_t since, struct vb_peer **p)
{
	struct vb_peer *there =
		vb_near_is_own(n, slot) ? n->self : n->peers[slot];

	if (!there)
		return n->calls[slot].refusals == since ? SESSION_PENDING
							: SESSION_NO;
	switch (atomic_load(&there->state)) {
	case PEER_UP:
		*p = vb_peer_get(there);
		return SESSION_UP;
	case PEER_DENIED:
		return SESSION_NO;
	default:
		return SESSION_PENDING;
	}
}

enum vb_session vb_session_find(struct vb_near *n, unsigned slot,
				uint32_t since, struct vb_peer **p)
{
	enum vb_session found;

	vb_mutex_lock(&n->lock);
	found = standing(n, slot, since, p);
	vb_mutex_unlock(&n->lock);
	return found;
}

struct vb_peer *vb_session_peer(struct vb_near *n, unsigned slot)
{
	struct vb_peer *p;

	vb_mutex_lock(&n->lock);
	p = vb_near_is_own(n, slot) ? n->self : n->peers[slot];
	if (p)
		vb_peer_get(p);
	vb_mutex_unlock(&n->lock);
	return p;
}

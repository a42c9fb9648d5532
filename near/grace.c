/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds out whether a peer still accesses this program's memory. */
#include "core/lock_order.h"
#include "near/grace.h"

#include <stdio.h>

/* after this time of waiting this program asks whether the peer still runs;
 * earlier, the peer most often just finishes its copy */
#define ASK_AFTER (2 * VB_MSEC)
#define YIELDS	  100
#define MOMENT	  (20 * VB_USEC)
#define LONGER	  (1 * VB_MSEC)

/* --- expelling a peer that stays at a hazard for too long --- */

/* The peer looks at "expels" after its copy (vb_peer_disown()). So either the
 * copy has ended before this thread goes on, or the peer does not count the
 * copy as done. */
static void near_grace_expel(struct vb_peer *p, const char *why, vb_time age)
{
	char cause[120];

	atomic_store(&p->given_up, true);
	snprintf(cause, sizeof(cause),
		 "%s memory whose key was revoked %llu ms ago", why,
		 (unsigned long long)(age / VB_MSEC));
	vb_peer_expel(p, cause);
}

static bool is_too_long(struct vb_peer *p, enum vb_whereabouts where,
			vb_time age)
{
	if (where == IS_ELSEWHERE && p->registry->is_exact)
		return true;
	if (where == IS_UNSEEN && p->registry->is_exact &&
	    age >= VB_GRACE_UNSEEN) {
		near_grace_expel(p, "may be stopped inside a copy of", age);
		return true;
	}
	if (age < VB_GRACE_RUNS)
		return false;
	near_grace_expel(p, "still accesses", age);
	return true;
}

bool vb_grace_shows(const struct vb_peer *p, uint32_t key, uint32_t qpn)
{
	/* A peer that was called, and has not answered, has the lane already,
	 * but no right to this program's memory. */
	return p->peer_hazards && atomic_load(&p->state) != PEER_CALLED &&
	       p->registry && !atomic_load(&p->given_up) &&
	       vb_hazards_name(p->peer_hazards, key, qpn);
}

/* Has the engine thread of @p ended, and the session? */
static bool is_silent(const struct vb_peer *p)
{
	return !vb_registry_is_alive(p->registry) &&
	       p->world->has_hung_up(p->world->arg, p);
}

/* The kernel ends a session when the last thread of the peer has ended, so such
 * a peer copies nothing. But either program may have ended the session before
 * that, while a thread of the peer copies; then /proc is asked. */
static bool was_ended_by_kernel(const struct vb_peer *p)
{
	return !vb_peer_expels(p) && !atomic_load(&p->expelled);
}

static bool peer_has_ended(const struct vb_peer *p, enum vb_whereabouts where)
{
	return (where != MAY_COPY || was_ended_by_kernel(p)) && is_silent(p);
}

/* Did this function last return true for @p at least VB_GRACE_ASK_EVERY ago? */
static bool is_time_to_ask(struct vb_peer *p)
{
	vb_time now = p->world->now(p->world->arg);
	vb_time last = atomic_load_explicit(&p->asked_at, memory_order_relaxed);

	if (last && now < last + VB_GRACE_ASK_EVERY)
		return false;
	atomic_store_explicit(&p->asked_at, now, memory_order_relaxed);
	return true;
}

bool vb_grace_has_left(struct vb_peer *p, uint32_t qpn)
{
	if (p->is_self || !vb_grace_shows(p, 0, qpn))
		return true;
	if (!is_silent(p))
		return false;
	return was_ended_by_kernel(p) ||
	       (is_time_to_ask(p) &&
		p->world->find(p->world->arg, p->pid) != MAY_COPY);
}

bool vb_grace_is_over(struct vb_peer *p, uint32_t key, uint32_t qpn,
		      vb_time age)
{
	enum vb_whereabouts where;

	if (VB_LIKELY(!vb_grace_shows(p, key, qpn)))
		return true;
	/* An access by a thread of this process ends within microseconds, so
	 * wait for it without a limit and without asking the kernel. */
	if (p->is_self || age < ASK_AFTER)
		return false;
	where = p->world->find(p->world->arg, p->pid);
	return peer_has_ended(p, where) || is_too_long(p, where, age);
}

void vb_grace_await(struct vb_peer *p, uint32_t key, uint32_t qpn,
		    struct vb_age *age)
{
	const struct vb_near_world *w = p->world;

	vb_may_wait();
	for (unsigned turn = 0;; turn++) {
		vb_time sum = vb_age_look(age, w->now(w->arg));

		if (vb_grace_is_over(p, key, qpn, sum))
			return;
		if (turn < YIELDS)
			w->pause(w->arg, 0);
		else
			w->pause(w->arg, sum < ASK_AFTER ? MOMENT : LONGER);
	}
}

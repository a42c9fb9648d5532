/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which thread processes which lane. A thread claims one lane at a time, and no
 * thread waits for a claim: a page of the peer's memory may be late for as long
 * as the peer likes (userfaultfd, a file system of its own, a peer that is
 * stopped), and then the thread that copies to or from that page stays in the
 * kernel, with its claim. Other threads process the other lanes meanwhile.
 */
#include "core/lock_order.h"
#include "near/near_priv.h"

/* A lane that has not moved for so long waits for memory of its peer
 * (vb_near_is_past()). */
#define LANE_IS_LATE VB_SEC
/* The longest wait for a claim, and the pause between two tries. */
#define PARTS_WAIT (100 * VB_MSEC)
#define PARTS_NAP  (500 * VB_USEC)

/* Claim the lane of @p. False: another thread has claimed it, and will look
 * after it once more. (Unchecked: a claim is no lock.) */
static bool claim_lane(struct vb_near *n, struct vb_peer *p) VB_UNCHECKED
	VB_REQUIRES(n->lanes_lock) VB_TRY_ACQUIRE(true, p->claim)
{
	if (p->claim.taken) {
		p->claim.missed = true;
		return false;
	}
	vb_rank_take(&p->claim, RANK_LANE, true);
	p->claim.taken = true;
	return true;
}

/* Is there nothing to do on the lane of @p? */
static bool lane_is_idle(const struct vb_near *n, const struct vb_peer *p)
	VB_REQUIRES(n->lanes_lock, p->claim)
{
	return !p->leaves && !p->split.waits &&
	       !vb_offer_is_there(p->offered) && !vb_serve_has_something(p) &&
	       vb_ring_reads_well(&p->reader);
}

/* Give the claim back. True: another thread has looked for messages meanwhile,
 * did not see those of this lane, and may sleep; so the caller rings this
 * program's bell, after it has released the lock. (Unchecked: a claim is no
 * lock.) */
VB_MUST_CHECK static bool give_lane_back(struct vb_near *n,
					 struct vb_peer *p) VB_UNCHECKED
	VB_REQUIRES(n->lanes_lock) VB_RELEASE(p->claim)
{
	bool rings = p->claim.missed && !lane_is_idle(n, p);

	p->claim.taken = p->claim.missed = false;
	vb_rank_give(&p->claim);
	return rings;
}

/* Remove @p from the lanes that are processed. Returns a reference to @p. */
static struct vb_peer *take_lane_out(struct vb_near *n, struct vb_peer *p)
	VB_REQUIRES(n->lanes_lock)
{
	unsigned i = 0;

	while (n->active[i] != p)
		i++;
	n->active[i] = n->active[--n->active_count];
	return p;
}

/* What one pass over the lanes has found. */
struct pass {
	vb_time now;
	uint64_t number;
	bool unhurried;
	bool found;
	bool rings; /* see give_lane_back() */
	/* a lane must be looked at again, though its peer will not ring */
	bool leaves;
};

static void begin_lap(struct vb_near *n, struct vb_peer *p,
		      const struct pass *s) VB_REQUIRES(n->lanes_lock, p->claim)
{
	if (p->progress.lap)
		return;
	p->progress.lap = s->number;
	p->progress.lap_head = p->reader.head;
}

static void note_clear(struct vb_near *n, struct vb_peer *p, uint64_t pass)
	VB_REQUIRES(n->lanes_lock)
{
	/* Another thread, whose pass began later, may have found the lane empty
	 * before this one did: @clear never goes back. */
	p->progress.clear = VB_MAX(p->progress.clear, pass);
	p->progress.lap = 0;
}

/* This thread has processed the lane in its pass @s. */
static void note_progress(struct vb_near *n, struct vb_peer *p, bool found,
			  const struct pass *s)
	VB_REQUIRES(n->lanes_lock, p->claim)
{
	p->progress.moves += found;
	if (!vb_ring_has_request(&p->reader) && !vb_ring_has_answer(&p->reader))
		note_clear(n, p, s->number);
	else if (p->reader.head - p->progress.lap_head >= VB_RING_SLOTS)
		note_clear(n, p, p->progress.lap);
}

/* The claimed lane of @p has something to do. This function releases the lock
 * meanwhile. */
static void serve_claimed(struct vb_near *n, struct vb_peer *p, struct pass *s)
	VB_REQUIRES(n->lanes_lock) VB_RELEASE(p->claim)
{
	struct vb_peer *over = NULL;
	enum vb_lane_state state;
	bool leaves = p->leaves, found = false;

	begin_lap(n, p, s);
	p->unhurried = s->unhurried;
	vb_mutex_unlock(&n->lanes_lock);
	state = leaves ? vb_serve_last(n, p, s->now)
		       : vb_serve_lane(n, p, s->now, &found);
	vb_mutex_lock(&n->lanes_lock);
	s->found |= found;
	s->leaves |= state == LANE_LEAVES;
	note_progress(n, p, found, s);
	p->leaves |= state != LANE_GOES_ON;
	if (VB_UNLIKELY(state == LANE_IS_OVER))
		over = take_lane_out(n, p);
	s->rings |= give_lane_back(n, p) && !over;
	if (VB_LIKELY(!over))
		return;
	vb_mutex_unlock(&n->lanes_lock);
	/* The thread that watches the lanes gives up its reference. */
	(void)vb_bell_ring(vb_near_bell(n));
	vb_peer_put(over);
	vb_mutex_lock(&n->lanes_lock);
}

static void serve_nth(struct vb_near *n, unsigned nth, struct pass *s)
	VB_REQUIRES(n->lanes_lock)
{
	struct vb_peer *p = n->active[nth];

	if (VB_UNLIKELY(!claim_lane(n, p)))
		return;
	if (!lane_is_idle(n, p)) {
		serve_claimed(n, p, s);
		return;
	}
	note_clear(n, p, s->number);
	s->rings |= give_lane_back(n, p);
}

static void serve_pass(struct vb_near *n, struct pass *s)
{
	vb_may_copy();
	vb_mutex_lock(&n->lanes_lock);
	s->number = ++n->passes;
	for (unsigned i = n->active_count; i-- > 0;)
		/* Lanes may be removed while this thread serves one; the last
		 * lane takes the place of the removed one. */
		if (VB_LIKELY(i < n->active_count))
			serve_nth(n, i, s);
	vb_mutex_unlock(&n->lanes_lock);
	if (VB_UNLIKELY(s->rings))
		vb_peer_ring(n->self);
	if (VB_UNLIKELY(s->leaves))
		n->c.soon(n->c.arg);
}

bool vb_lanes_serve(struct vb_near *n, vb_time now, bool unhurried)
{
	struct pass s = { .now = now, .unhurried = unhurried };

	serve_pass(n, &s);
	return s.found;
}

bool vb_near_poll(struct vb_near *n, vb_time now)
{
	bool found = vb_near_flush(n, now);

	vb_near_wake_peers(n);
	return vb_lanes_serve(n, now, false) || found;
}

bool vb_near_attend(struct vb_near *n, vb_time now, bool unhurried)
{
	(void)vb_near_flush(n, now);
	return vb_lanes_serve(n, now, unhurried);
}

void vb_near_mark(struct vb_near *n, unsigned slot, struct vb_near_mark *m)
{
	*m = (struct vb_near_mark){ .slot = slot };
	vb_mutex_lock(&n->lanes_lock);
	m->pass = n->passes;
	vb_mutex_unlock(&n->lanes_lock);
}

/* Has the program at @slot been let in, so that it may already write to its
 * lane, which this program does not process yet? */
static bool is_coming_up(struct vb_near *n, unsigned slot)
{
	const struct vb_peer *p;
	bool yes;

	vb_mutex_lock(&n->lock);
	p = n->peers[slot];
	yes = p && atomic_load(&p->state) == PEER_MET;
	vb_mutex_unlock(&n->lock);
	return yes;
}

bool vb_near_is_past(struct vb_near *n, struct vb_near_mark *m, vb_time now)
{
	/* Look at the peer's state first, and at the lanes after it: a lane is
	 * added to them before its peer becomes PEER_UP, so one of the two
	 * looks finds it. */
	bool past = !is_coming_up(n, m->slot);
	uint64_t moves = 0;

	vb_mutex_lock(&n->lanes_lock);
	for (unsigned i = 0; i < n->active_count; i++) {
		if (!vb_peer_has(n->active[i], m->slot))
			continue;
		past &= n->active[i]->progress.clear > m->pass;
		moves += n->active[i]->progress.moves;
	}
	vb_mutex_unlock(&n->lanes_lock);
	if (moves != m->moves) {
		m->moves = moves;
		m->waited = (struct vb_age){ 0 };
	}
	return past || vb_age_look(&m->waited, now) >= LANE_IS_LATE;
}

bool vb_near_has_something(struct vb_near *n)
{
	bool found = false;

	vb_mutex_lock(&n->lanes_lock);
	for (unsigned i = 0; i < n->active_count && !found; i++) {
		struct vb_peer *p = n->active[i];

		if (!claim_lane(n, p))
			continue;
		found = !p->leaves && vb_serve_has_something(p);
		(void)!give_lane_back(n, p);
	}
	vb_mutex_unlock(&n->lanes_lock);
	return found;
}

bool vb_near_is_wanted(struct vb_near *n)
{
	bool called = false;

	vb_mutex_lock(&n->lanes_lock);
	for (unsigned i = 0; i < n->active_count; i++)
		if (atomic_load_explicit(n->active[i]->their_calls,
					 memory_order_relaxed))
			called |= atomic_exchange(n->active[i]->their_calls, 0);
	vb_mutex_unlock(&n->lanes_lock);
	return called;
}

void vb_near_add(struct vb_near *n, struct vb_peer *p)
{
	vb_mutex_lock(&n->lanes_lock);
	if (n->active_count < VB_COUNT(n->active))
		n->active[n->active_count++] = vb_peer_get(p);
	vb_mutex_unlock(&n->lanes_lock);
}

void vb_near_remove(struct vb_near *n, struct vb_peer *p, vb_time now)
{
	struct pass s = { .now = now };
	unsigned i = 0;

	vb_mutex_lock(&n->lanes_lock);
	s.number = ++n->passes;
	while (i < n->active_count && n->active[i] != p)
		i++;
	if (i < n->active_count) {
		p->leaves = true;
		serve_nth(n, i, &s);
	}
	vb_mutex_unlock(&n->lanes_lock);
	if (s.rings)
		vb_peer_ring(n->self);
	if (s.leaves)
		n->c.soon(n->c.arg);
}

/* (Unchecked: no other thread processes a lane, so no claim is needed.) */
void vb_near_remove_all(struct vb_near *n) VB_UNCHECKED
{
	while (n->active_count) {
		struct vb_peer *p = n->active[--n->active_count];

		(void)!vb_serve_abandon(n, p);
		vb_peer_put(p);
	}
}

/* Returns a reference to a peer that copies its part of a message for queue
 * pair @number. NULL: there is none. */
static struct vb_peer *find_borrower(struct vb_near *n, uint32_t number)
	VB_REQUIRES(n->lanes_lock)
{
	for (unsigned i = 0; i < n->active_count; i++)
		if (atomic_load(&n->active[i]->lent_by) == number)
			return vb_peer_get(n->active[i]);
	return NULL;
}

/* Take back the receive that queue pair @number has lent to @p. False: another
 * thread processes the lane, or has locked the queue pair. */
static bool take_receive_back(struct vb_near *n, struct vb_peer *p,
			      uint32_t number)
{
	bool is_back, rings;

	vb_mutex_lock(&n->lanes_lock);
	if (!claim_lane(n, p)) {
		vb_mutex_unlock(&n->lanes_lock);
		return false;
	}
	vb_mutex_unlock(&n->lanes_lock);
	is_back = atomic_load(&p->lent_by) != number || vb_serve_abandon(n, p);
	vb_mutex_lock(&n->lanes_lock);
	rings = give_lane_back(n, p);
	vb_mutex_unlock(&n->lanes_lock);
	if (rings)
		vb_peer_ring(n->self);
	return is_back;
}

void vb_lanes_take_parts_back(struct vb_near *n, uint32_t number)
{
	const struct vb_near_world *w = n->world;
	struct vb_peer *p;
	bool is_back;

	for (vb_time waited = 0; waited < PARTS_WAIT;) {
		vb_mutex_lock(&n->lanes_lock);
		p = find_borrower(n, number);
		vb_mutex_unlock(&n->lanes_lock);
		if (VB_LIKELY(!p))
			return;
		is_back = take_receive_back(n, p, number);
		vb_peer_put(p);
		if (is_back)
			continue;
		w->pause(w->arg, PARTS_NAP);
		waited += PARTS_NAP;
	}
}

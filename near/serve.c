/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes the lanes: requests of peers, and answers to this program's
 * requests. */
#include <errno.h>

#include "near/grace.h"
#include "near/near_priv.h"

/* requests of one peer that are processed before the other lanes have a turn */
#define TURN_REQUESTS 64
/* The most bytes of long SENDs that one turn of a peer fetches. */
#define TURN_BYTES (1u << 20)
/* How long vb_near_lock_briefly() waits, in naps of 200 us. */
#define DRIVE_NAPS 10
/* The most requests that one answer covers. */
#define MOST_ANSWERED 32

struct vb_qp *vb_near_find_qp(struct vb_near *n, uint32_t qpn)
{
	if (!vb_near_is_own(n, qpn >> VB_QPN_BITS))
		return NULL;
	return vb_idtab_get(n->c.qps, qpn & ((1u << VB_QPN_BITS) - 1));
}

static void put_answer(struct vb_peer *p, const struct vb_answer_note *a)
{
	vb_mutex_lock(&p->tx);
	vb_ring_answer(&p->writer, a);
	vb_mutex_unlock(&p->tx);
}

/*
 * Do not wake the peer only for an answer: a program that receives a message
 * most often replies to it, and its reply wakes the peer, so one wake-up is
 * saved. If no reply follows soon, vb_near_wake_peers() wakes the peer.
 */
static void owe(struct vb_near *n, struct vb_peer *p)
{
	struct vb_peer *before;

	atomic_store(&p->owed, true);
	n->c.soon(n->c.arg);
	before = atomic_load(&n->creditor);
	if (before == p)
		return;
	before = atomic_exchange(&n->creditor, vb_peer_get(p));
	if (before && atomic_exchange(&before->owed, false))
		vb_peer_ring(before);
	vb_peer_put(before);
}

void vb_near_wake_peers(struct vb_near *n)
{
	struct vb_peer *p;

	if (VB_LIKELY(
		    !atomic_load_explicit(&n->creditor, memory_order_relaxed)))
		return;
	p = atomic_exchange(&n->creditor, NULL);
	if (p && atomic_exchange(&p->owed, false))
		vb_peer_ring(p);
	vb_peer_put(p);
}

/* Merge the answer @next into @a if both have equal contents. False: they
 * differ. */
static bool join_answers(struct vb_answer_note *a,
			 const struct vb_answer_note *next)
{
	if (a->kind != ANSWER_DONE || next->kind != ANSWER_DONE ||
	    a->qpn != next->qpn || a->life != next->life ||
	    a->count >= MOST_ANSWERED)
		return false;
	a->seq = next->seq;
	a->count++;
	return true;
}

static void near_carry_out(struct vb_near *n, struct vb_peer *p,
			   struct vb_qp *qp, const struct vb_request *r,
			   const uint8_t *data, struct vb_answer_note *a)
	VB_REQUIRES(p->claim, qp->drive)
{
	*a = (struct vb_answer_note){ .qpn = r->sqpn,
				      .life = r->src_life,
				      .seq = r->seq,
				      .count = 1,
				      .kind = ANSWER_NOBODY };
	if (qp && vb_near_is_called(qp, r->dqpn))
		vb_near_request(n, p, qp, r, data, a);
	/* Unless the message stays on the lane to be fetched further, forget
	 * how far it was fetched: it has ended, and the copy of the next message
	 * begins at byte 0. */
	if (VB_LIKELY(a->kind != ANSWER_LATER))
		p->split.at = 0;
}

/* A request or answer was processed for @qp: let the engine do what is due for
 * @qp now, if anything is. */
static void step_if_due(struct vb_near *n, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	enum vb_qp_state s = vb_near_state(qp);
	bool is_well = s == QPS_RTS || s == QPS_RTR;

	if (is_well && !qp->adapter->rnic && qp->sq.done == vb_sq_end(&qp->sq))
		return;
	/* This thread processes a lane, so it makes a short step; a later step
	 * does the rest. */
	vb_near_limit(qp, NEAR_LIGHT);
	vb_near_step(n, qp, now);
	vb_near_limit(qp, NEAR_STEP);
}

/* Send the last answer for a run of requests, and wake the peer. */
static void near_tell(struct vb_near *n, struct vb_peer *p,
		      const struct vb_answer_note *a)
{
	put_answer(p, a);
	if (p->unhurried)
		owe(n, p);
	else
		vb_peer_ring(p);
}

bool vb_near_lock_briefly(struct vb_qp *qp)
{
	/* The pointer is valid without drive: near/ keeps its private part of a
	 * queue pair even when the queue pair is destroyed. */
	struct vb_near_qp *nq = vb_nq(qp);
	bool taken;

	if (VB_LIKELY(vb_mutex_trylock(&qp->drive)))
		return true;
	if (nq)
		atomic_fetch_add(&nq->awaited, 1);
	taken = vb_mutex_lock_briefly(&qp->drive, DRIVE_NAPS);
	if (nq)
		atomic_fetch_sub(&nq->awaited, 1);
	return taken;
}

/* Lock drive of @qp for a thread that processes the lane of @p. False: the
 * thread that holds drive waits for the peer's memory; then the lane waits, and
 * this thread does not. */
static bool take_drive(struct vb_near *n, struct vb_peer *p, struct vb_qp *qp)
	VB_REQUIRES(p->claim) VB_TRY_ACQUIRE(true, qp->drive)
{
	if (VB_LIKELY(vb_near_lock_briefly(qp)))
		return true;
	p->is_stuck = true;
	return false;
}

bool vb_near_copies(const struct vb_qp *qp)
{
	const struct vb_near_qp *nq = vb_nq(qp);

	return nq && atomic_load_explicit(&nq->copies, memory_order_relaxed);
}

bool vb_near_is_awaited(const struct vb_qp *qp)
{
	return atomic_load(&vb_nq(qp)->awaited);
}

/* (Unchecked: there may be no queue pair to lock.) */
bool vb_serve_abandon(struct vb_near *n, struct vb_peer *p) VB_UNCHECKED
{
	struct vb_qp *qp;

	if (!p->split.waits)
		return true;
	qp = vb_near_find_qp(n, p->split.qpn);
	if (qp && !take_drive(n, p, qp))
		return false;
	vb_pull_abandon(p, qp);
	if (qp)
		vb_near_release(n, qp);
	return true;
}

/* Process several requests in a row for one queue pair under one lock and with
 * one step. *@left: how many more requests this turn may process. (Unchecked:
 * there may be no queue pair to lock.) */
static int serve_run(struct vb_near *n, struct vb_peer *p, unsigned *left,
		     vb_time now) VB_UNCHECKED
{
	struct vb_answer_note a, next;
	struct vb_request r;
	const uint8_t *data;
	int rc = vb_ring_look(&p->reader, &r, &data);
	struct vb_qp *qp;
	uint32_t dqpn;
	bool fetched = false;

	if (rc <= 0)
		return rc;
	vb_ring_expect_answer(&p->writer);
	dqpn = r.dqpn;
	qp = vb_near_find_qp(n, dqpn);
	if (qp && !take_drive(n, p, qp))
		return 0;
	if (qp)
		now = vb_qp_advance(qp, now);
	a.count = 0;
	do {
		near_carry_out(n, p, qp, &r, data, &next);
		if (VB_UNLIKELY(next.kind == ANSWER_LATER)) {
			*left = 0; /* end the turn of this peer */
			fetched = !p->split.waits;
			break;
		}
		vb_ring_done(&p->reader);
		if (a.count == 0) {
			a = next;
		} else if (!join_answers(&a, &next)) {
			put_answer(p, &a);
			a = next;
		}
		rc = vb_ring_look(&p->reader, &r, &data);
	} while (--*left && rc > 0 && r.dqpn == dqpn &&
		 !vb_ring_has_answer(&p->reader));
	if (VB_LIKELY(a.count))
		near_tell(n, p, &a);
	if (qp) {
		/* The queue pair may have been destroyed before it was locked.
		 */
		if (vb_near_is_called(qp, dqpn))
			step_if_due(n, qp, now);
		vb_near_release(n, qp);
	}
	return rc < 0 ? rc : a.count > 0 || fetched;
}

/*
 * The sender of the first message on the lane was copying a part of that
 * message. 1: the sender has ended its copy, and the receive is back in its
 * queue pair; 0: the sender still copies; -EPROTO: the sender has changed the
 * request meanwhile. The sender can write to the request, so the queue pair
 * that lent the receive is the one that p->split names, and not the one that
 * the request names now. (Unchecked: there may be no queue pair to lock.)
 */
static int take_part_back(struct vb_near *n, struct vb_peer *p) VB_UNCHECKED
{
	const uint32_t number = p->split.qpn;
	struct vb_qp *qp = vb_near_find_qp(n, number);
	struct vb_request r;
	const uint8_t *data;
	bool is_back;

	if (qp && !take_drive(n, p, qp))
		return 0;
	is_back = vb_pull_resume(p, qp);
	if (qp)
		vb_near_release(n, qp);
	if (!is_back)
		return 0;
	return vb_ring_look(&p->reader, &r, &data) > 0 && r.dqpn == number
		       ? 1
		       : -EPROTO;
}

/* (Unchecked: there may be no queue pair to lock.) */
static int hear_answer(struct vb_near *n, struct vb_peer *p,
		       vb_time now) VB_UNCHECKED
{
	struct vb_answer_note a;
	struct vb_qp *qp;
	int rc = vb_ring_hear(&p->reader, &a);

	if (rc <= 0)
		return rc;
	qp = vb_near_find_qp(n, a.qpn);
	if (qp && !take_drive(n, p, qp)) {
		vb_ring_unhear(&p->reader);
		return 0;
	}
	/* The peer's answer covers no request, or more requests than are
	 * unanswered. */
	if (a.count == 0 || !vb_ring_discount(&p->writer, a.count))
		rc = -EPROTO;
	if (!qp)
		return rc;
	now = vb_qp_advance(qp, now);
	if (rc > 0 && vb_near_is_called(qp, a.qpn) && vb_nq(qp)->peer == p) {
		vb_near_answered(n, qp, &a, now);
		step_if_due(n, qp, now);
	}
	vb_near_release(n, qp);
	return rc;
}

static int hear_answers(struct vb_near *n, struct vb_peer *p, vb_time now)
	VB_REQUIRES(p->claim)
{
	int rc, found = 0;

	while ((rc = hear_answer(n, p, now)) > 0)
		found = 1;
	return rc < 0 ? rc : found;
}

/* As serve_run(), for a lane whose first message may be half copied. */
static int serve_next(struct vb_near *n, struct vb_peer *p, unsigned *left,
		      vb_time now) VB_REQUIRES(p->claim)
{
	int rc = VB_UNLIKELY(p->split.waits) ? take_part_back(n, p) : 1;

	return rc > 0 ? serve_run(n, p, left, now) : rc;
}

/*
 * Process a peer's lane once. 1: a request or an answer was processed; 0: there
 * was none; -EPROTO: the peer wrote invalid data. A peer answers before it
 * sends further requests. So answers are read after a request was seen and
 * before it is carried out: a program that receives its peer's reply finds its
 * own request complete.
 */
static int serve_peer(struct vb_near *n, struct vb_peer *p, vb_time now)
	VB_REQUIRES(p->claim)
{
	unsigned left = TURN_REQUESTS;
	int found = 0, rc = 1;

	p->pull_left = TURN_BYTES;
	p->is_stuck = false;
	while (left && rc > 0 && !p->is_stuck) {
		bool asked = vb_ring_has_request(&p->reader);

		rc = hear_answers(n, p, now);
		found |= rc > 0;
		if (rc >= 0 && asked && !p->is_stuck)
			rc = serve_next(n, p, &left, now);
		found |= rc > 0;
	}
	return rc < 0 ? rc : found;
}

/* Process the requests and answers that the peer put on the lane before its
 * session ended, as packets of a dead host are still received. */
static void serve_rest(struct vb_near *n, struct vb_peer *p, vb_time now)
	VB_REQUIRES(p->claim)
{
	unsigned turns = 2 * VB_RING_SLOTS / TURN_REQUESTS;

	while (turns-- && serve_peer(n, p, now) > 0)
		;
}

/* Does the sender of the first message on the lane still copy its part? When
 * that copy ends, the sender wakes this program. */
static bool is_held_up(const struct vb_peer *p)
{
	return p->split.waits && vb_split_copy_look(&p->split) == SPLIT_SLOW;
}

bool vb_serve_has_something(const struct vb_peer *p)
{
	return vb_ring_has_answer(&p->reader) ||
	       (vb_ring_has_request(&p->reader) && !is_held_up(p));
}

/* Has the queue pair that peers call by @number failed? Then this function also
 * makes sure that no access through the queue pair begins from now on.
 * (Unchecked: the lock is only tried.) */
static bool is_closed(struct vb_near *n, uint32_t number) VB_UNCHECKED
{
	struct vb_qp *qp = vb_near_find_qp(n, number);
	bool closed;

	if (!qp || atomic_load(&qp->state) != QPS_ERR ||
	    !vb_mutex_trylock(&qp->drive))
		return false;
	closed = vb_near_is_called(qp, number) && vb_near_state(qp) == QPS_ERR;
	if (closed)
		vb_near_hide(n, qp);
	vb_near_release(n, qp);
	return closed;
}

/* If the queue pair has failed and no access through it is under way, the
 * sender can no longer begin to copy its part: take back the receive, which
 * flushes it. */
static void look_after_part(struct vb_near *n, struct vb_peer *p, vb_time now)
	VB_REQUIRES(p->claim)
{
	struct vb_split_copy *split = &p->split;

	if (vb_grace_shows(p, 0, split->qpn)) {
		if (now - split->asked_at < VB_GRACE_ASK_EVERY)
			return;
		split->asked_at = now;
	}
	if (is_closed(n, split->qpn) &&
	    vb_grace_is_over(p, 0, split->qpn,
			     vb_age_look(&split->failed, now)))
		(void)!vb_serve_abandon(n, p);
}

/* As long as a thread of the peer may write to a receive that this program has
 * lent to it, keep the peer, and with it the receive. */
enum vb_lane_state vb_serve_last(struct vb_near *n, struct vb_peer *p,
				 vb_time now)
{
	p->is_stuck = false;
	if (p->split.waits)
		look_after_part(n, p, now);
	if (p->split.waits && !vb_grace_has_left(p, p->split.qpn))
		return LANE_LEAVES;
	/* A message of which the peer was copying a part cannot be completed.
	 * The messages behind it can be completed. */
	if (!vb_serve_abandon(n, p))
		return LANE_LEAVES;
	if (!p->lies)
		serve_rest(n, p, now);
	/* What is left is for a queue pair that another thread drives. */
	if (p->is_stuck)
		return LANE_LEAVES;
	return vb_serve_abandon(n, p) ? LANE_IS_OVER : LANE_LEAVES;
}

/* Returns why a peer that is honest cannot have written what this thread has
 * found; NULL: the peer can. */
static const char *what_is_wrong(const struct vb_peer *p, int helped, int rc,
				 bool offered) VB_REQUIRES(p->claim)
{
	if (VB_UNLIKELY(helped < 0))
		return "offered too large a part of a message";
	if (VB_UNLIKELY(rc < 0))
		return "wrote an invalid message to the lane";
	if (VB_UNLIKELY(!vb_ring_reads_well(&p->reader)))
		return "wrote an impossible stamp to the lane";
	if (VB_UNLIKELY(offered && !vb_offer_is_possible(p->offered)))
		return "made an impossible offer";
	return NULL;
}

enum vb_lane_state vb_serve_lane(struct vb_near *n, struct vb_peer *p,
				 vb_time now, bool *found)
{
	bool offered = vb_offer_is_there(p->offered);
	int helped = offered ? vb_near_help(n, p) : 0, rc = 0;
	const char *wrong;

	p->is_stuck = false;
	if (VB_UNLIKELY(p->split.waits))
		look_after_part(n, p, now);
	if (VB_LIKELY(helped >= 0) && vb_serve_has_something(p))
		rc = serve_peer(n, p, now);
	/* A lane that is stuck has something, so the caller must not sleep. */
	*found = helped != 0 || rc != 0 || p->is_stuck;
	wrong = what_is_wrong(p, helped, rc, offered);
	if (VB_LIKELY(!wrong))
		return LANE_GOES_ON;
	/* End the session: the engine thread sees the shutdown. */
	p->lies = true;
	vb_peer_expel(p, wrong);
	return vb_serve_last(n, p, now);
}

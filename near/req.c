/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester carries out work requests in order. It either copies to or from
 * the peer's memory itself, or puts a request on the lane, which the peer
 * answers. It copies only after all earlier requests were answered, so that the
 * peer sees the order of posting (IBA 9.5). A queue pair of the peer that is
 * missing or not ready counts as silence, as on a wire: the requester retries
 * until its time is over.
 */
#include "base/log.h"
#include "core/lock_order.h"
#include "core/mw.h"
#include "core/sge.h"
#include "core/why_qp.h"
#include "near/req_priv.h"

// clang-format off
#define ROW(wr, op, traits, need) [WR_##wr] = { true, NEAR_##op, traits, need }
const struct vb_near_rule vb_near_rules[] = {
/*  work request | op       | traits            | right needed */
ROW(WRITE,        WRITE,     WRITES,             ACCESS_REMOTE_WRITE),
ROW(WRITE_IMM,    WRITE,     WRITES | HAS_IMM,   ACCESS_REMOTE_WRITE),
ROW(SEND,         SEND,      0,                  0),
ROW(SEND_IMM,     SEND,      HAS_IMM,            0),
ROW(SEND_INV,     SEND,      HAS_INV,            0),
ROW(READ,         OPS,       ASKS | FETCHES,     ACCESS_REMOTE_READ),
ROW(CMP_SWAP,     CMP_SWAP,  ASKS | FETCHES | ATOMIC, ACCESS_REMOTE_ATOMIC),
ROW(FETCH_ADD,    FETCH_ADD, ASKS | FETCHES | ATOMIC, ACCESS_REMOTE_ATOMIC),
ROW(ATOMIC_WRITE, STORE,     ASKS | ATOMIC,      ACCESS_REMOTE_WRITE),
ROW(BIND_MW,      OPS,       LOCAL,              0),
ROW(LOCAL_INV,    OPS,       LOCAL,              0),
};
#undef ROW
// clang-format on
const unsigned vb_near_rule_count = VB_COUNT(vb_near_rules);

#define ATOMIC_BYTES 8
/* The slack of time-outs, as for packets (ib/req_timer.c). */
#define TIMEOUT_SLACK (250 * VB_MSEC)
#define RETRY_FIRST   (20 * VB_USEC)
/* The pause between retries doubles at most this many times: up to 10 ms. */
#define RETRY_DOUBLES 9
/* A retry that comes late adds to the time of silence its interval and at most
 * this time, because a program that had no processor must not take its own delay
 * for the peer's silence. */
#define LATE_MOST (20 * VB_MSEC)
/* the most bytes that one step copies, before other queue pairs have a turn */
#define STEP_BYTES (1u << 20)
/* the most bytes that one step copies while the caller processes a lane */
#define LIGHT_BYTES (64u << 10)
/* Small WRITEs gather only while at least this many work requests are
 * incomplete; at most GATHER_MOST of them gather, for GATHER_FOR. */
#define GATHER_BEHIND 16
#define GATHER_MOST   64
#define GATHER_FOR    (100 * VB_USEC)
/* the most WRITEs that gather when a thread of the peer stands by to serve
 * them */
#define GATHER_BESIDE 32
#define BURST_LASTS   (2 * VB_MSEC)

/*
 * Timers.
 */

/* Returns how long a peer may be silent before its requester gives up:
 * (retry_cnt + 1) times the local ACK timeout, as with packets (IBA 9.7.6.1.3).
 * VB_NEVER with iWARP, where the stream tells when the peer ends. */
static vb_time near_patience(const struct vb_qp *qp)
{
	vb_time t = vb_ack_timeout_ns(qp->attr.timeout);

	if (t == VB_NEVER || qp->adapter->rnic)
		return VB_NEVER;
	return (qp->attr.retry_cnt + 1u) * VB_MIN(4 * t, t + TIMEOUT_SLACK);
}

void vb_near_start_clock(struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);
	vb_time t = near_patience(qp);

	if (nq->look_at == VB_NEVER && t != VB_NEVER)
		nq->look_at = now + t;
}

void vb_near_progress(struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);

	nq->silences = nq->rnr_retries = 0;
	nq->silent_for = 0;
}

void vb_near_go_back(struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);

	nq->sent = qp->sq.done;
	nq->atomics = 0;
}

void vb_near_fail_oldest(struct vb_qp *qp, enum vb_wc_status status)
{
	vb_count(qp->adapter, CNT_SEND_ERR, 1);
	vb_qp_send_done(qp, status);
	vb_qp_fail(qp, -1);
}

/* Tell what the peer's program shows of the queue pair that does not answer. */
static void tell_absence(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	const struct vb_near_qp *nq = vb_nq(qp);
	struct vb_registry_view v;
	char peer[VB_WHY_PEER];

	vb_why_peer(qp, peer);
	if (!vb_peer_is_up(nq->peer))
		vb_qp_why(qp, vb_why_silence(qp),
			  "%s is gone: its program, on this host, has ended",
			  peer);
	else if (!vb_registry_view(nq->peer->registry, nq->remote_number, &v))
		vb_qp_why(qp, vb_why_silence(qp),
			  "the program of %s, on this host, has no such queue "
			  "pair, or not in RTR or RTS",
			  peer);
	else if (v.dest_qpn != nq->number)
		vb_qp_why(qp, vb_why_silence(qp),
			  "%s, on this host, is connected to qp 0x%x, not to "
			  "this queue pair",
			  peer, v.dest_qpn);
	else if (nq->peer_life == 0 && v.rq_psn != qp->attr.sq_psn)
		vb_qp_why(qp, WHY_PSN,
			  "%s has rq_psn 0x%x, but this end sq_psn 0x%x", peer,
			  v.rq_psn, qp->attr.sq_psn);
	else
		vb_qp_why(qp, vb_why_silence(qp),
			  "%s, on this host, did not answer for %.1f s", peer,
			  (double)near_patience(qp) / (double)VB_SEC);
}

static void near_give_up(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	tell_absence(qp);
	vb_count(qp->adapter, CNT_RETRY_EXCEEDED, 1);
	vb_near_fail_oldest(qp, WC_RETRY_EXC_ERR);
}

static vb_time backoff(const struct vb_near_qp *nq)
{
	return RETRY_FIRST << nq->silences;
}

void vb_near_back_off(struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);

	nq->silent_at = now;
	nq->retry_at = now + backoff(nq);
	nq->silences += nq->silences < RETRY_DOUBLES;
}

/*
 * The requester has tried without success. Only the time between tries counts
 * as silence, and of each interval not much more than planned: a program that
 * was stopped, or had no processor, did not try meanwhile.
 */
void vb_near_be_silent(struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);
	vb_time t = near_patience(qp);

	if (nq->silences)
		nq->silent_for +=
			VB_MIN(now - nq->silent_at, backoff(nq) + LATE_MOST);
	if (t != VB_NEVER && nq->silent_for >= t) {
		near_give_up(qp);
		return;
	}
	vb_near_back_off(qp, now);
}

static void look_after_peer(struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);

	nq->look_at = VB_NEVER;
	if (!vb_near_outstanding(qp))
		return;
	if (vb_peer_is_up(nq->peer) && vb_peer_is_honest(nq->peer))
		vb_near_start_clock(qp, now);
	else
		near_give_up(qp);
}

static void near_check_time(struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);

	if (nq->clock_owed && vb_near_outstanding(qp))
		vb_near_start_clock(qp, now);
	nq->clock_owed = false;
	if (now >= nq->rnr_at)
		nq->rnr_at = VB_NEVER;
	if (now >= nq->retry_at)
		nq->retry_at = VB_NEVER;
	if (now >= nq->look_at)
		look_after_peer(qp, now);
}

/* Errors of this side. */

static bool near_keys_allow(const struct vb_qp *qp,
			    const struct vb_send_wqe *wqe)
{
	uint32_t need =
		vb_near_rule(wqe)->traits & FETCHES ? ACCESS_LOCAL_WRITE : 0;

	return vb_sge_is_allowed(qp->pd, wqe->sge, wqe->num_sge, need);
}

static enum vb_wc_status near_req_judge(const struct vb_qp *qp,
					const struct vb_send_wqe *wqe)
{
	const struct vb_near_rule *rule;

	if (wqe->op >= vb_near_rule_count || !vb_near_rule(wqe)->valid)
		return WC_LOC_QP_OP_ERR;
	rule = vb_near_rule(wqe);
	if (rule->traits & ASKS && qp->attr.max_rd_atomic == 0)
		return WC_LOC_QP_OP_ERR;
	if (wqe->length > VB_MAX_MSG)
		return WC_LOC_LEN_ERR;
	if (wqe->op == WR_ATOMIC_WRITE && wqe->length != ATOMIC_BYTES)
		return WC_LOC_LEN_ERR;
	if (rule->traits & ATOMIC && rule->traits & FETCHES &&
	    vb_sge_total(wqe->sge, wqe->num_sge) < ATOMIC_BYTES)
		return WC_LOC_LEN_ERR;
	if (wqe->flags & SEND_INLINE || rule->traits & LOCAL)
		return WC_SUCCESS;
	return near_keys_allow(qp, wqe) ? WC_SUCCESS : WC_LOC_PROT_ERR;
}

enum vb_next vb_near_fail_here(struct vb_qp *qp, enum vb_wc_status status)
{
	if (!vb_near_outstanding(qp))
		vb_near_fail_oldest(qp, status);
	return NEXT_WAITS;
}

/* Finding and checking the connected queue pair. */

static bool same_gid(const uint64_t halves[2], const struct vb_gid *gid)
{
	return memcmp(halves, gid->raw, sizeof(gid->raw)) == 0;
}

/* Is @v the queue pair that is connected to @qp, and still the one of the first
 * request? With iWARP there are no GIDs to compare, because a stream's
 * addresses are those of TCP. */
static bool is_our_peer(const struct vb_qp *qp,
			const struct vb_registry_view *v) VB_REQUIRES(qp->drive)
{
	const struct vb_near_qp *nq = vb_nq(qp);
	const struct vb_port *p = vb_qp_port(qp);

	if (v->dest_qpn != nq->number || v->place != p->place)
		return false;
	if (!qp->adapter->rnic &&
	    (v->v1 != qp->route.v1 || !same_gid(v->sgid, &qp->route.dgid) ||
	     !same_gid(v->dgid, &qp->route.sgid) ||
	     !vb_pkeys_match(vb_port_pkey(p, qp->attr.pkey_index),
			     (uint16_t)v->pkey)))
		return false;
	return nq->peer_life ? v->life == nq->peer_life
			     : v->rq_psn == qp->attr.sq_psn;
}

bool vb_near_is_there(struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);
	uint32_t qpn = nq->remote_number;

	if (VB_UNLIKELY(!vb_peer_is_up(nq->peer)))
		return false;
	if (VB_LIKELY(nq->fits && vb_registry_is_current(nq->peer->registry,
							 qpn, &nq->view)))
		return true;
	nq->fits = !nq->away &&
		   vb_registry_view(nq->peer->registry, qpn, &nq->view) &&
		   is_our_peer(qp, &nq->view);
	if (nq->fits && nq->view.adapter >= VB_REGISTRY_NO_ADAPTER) {
		/* The peer's queue pair accepts packets only. No request has
		 * been sent near, so all requests of @qp can go by packets. */
		qp->way = WAY_PACKETS;
		nq->fits = false;
	}
	if (nq->fits)
		nq->peer_life = nq->view.life;
	return nq->fits;
}

/* Carrying out work requests in order. */

enum vb_next vb_near_finish_here(struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);

	nq->placed = 0;
	if (nq->sent == nq->begun) {
		const struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, nq->sent);

		nq->begun++;
		if (!(vb_near_rule(wqe)->traits & LOCAL))
			vb_near_note(nq, wqe);
	}
	nq->sent++;
	vb_qp_send_done(qp, WC_SUCCESS);
	return NEXT_GOES;
}

/* Bind a memory window or invalidate a key, after all earlier requests (IBA
 * 10.8.3.3). */
static enum vb_next do_local(struct vb_qp *qp, const struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive)
{
	if (vb_near_outstanding(qp))
		return NEXT_WAITS;
	switch (vb_mw_run(qp, wqe)) {
	case MW_DONE:
		return vb_near_finish_here(qp);
	case MW_REFUSED:
		return vb_near_fail_here(qp, WC_MW_BIND_ERR);
	case MW_BUSY:
		break;
	}
	return NEXT_WAITS;
}

static enum vb_next do_one_sided(struct vb_qp *qp, struct vb_send_wqe *wqe,
				 vb_time now) VB_REQUIRES(qp->drive)
{
	enum vb_next next = vb_here_do(qp, wqe, now);

	if (next != NEXT_GOES)
		return next;
	vb_near_progress(qp);
	return vb_near_finish_here(qp);
}

/* Carry out a WRITE. If earlier requests are not answered yet, a small WRITE
 * goes on the lane, which keeps the order; a large one waits for them and is
 * then copied. */
static enum vb_next do_write(struct vb_qp *qp, struct vb_send_wqe *wqe,
			     vb_time now) VB_REQUIRES(qp->drive)
{
	bool imm = vb_near_rule(wqe)->traits & HAS_IMM;
	enum vb_next next;

	if (vb_near_is_small(wqe) && vb_lane_put_many(qp, now))
		return NEXT_GOES;
	if (wqe->length <= VB_REQUEST_MAX && (imm || vb_near_outstanding(qp)))
		return vb_lane_put(qp, wqe, NEAR_WRITE, FAULT_NONE, now);
	if (vb_near_outstanding(qp))
		return NEXT_WAITS;
	if (!imm)
		return vb_near_is_small(wqe) && vb_here_do_many(qp, now)
			       ? NEXT_GOES
			       : do_one_sided(qp, wqe, now);
	next = vb_here_do(qp, wqe, now);
	return next == NEXT_GOES
		       ? vb_lane_put(qp, wqe, NEAR_PLACED, FAULT_NONE, now)
		       : next;
}

static enum vb_next do_next(struct vb_qp *qp, struct vb_send_wqe *wqe,
			    vb_time now) VB_REQUIRES(qp->drive)
{
	const struct vb_near_rule *rule = vb_near_rule(wqe);
	uint32_t limit = VB_MIN(qp->attr.max_rd_atomic, VB_MAX_RD_ATOM);

	if (rule->traits & WRITES)
		return do_write(qp, wqe, now);
	if (wqe->op == WR_READ)
		return vb_near_outstanding(qp) ? NEXT_WAITS
					       : do_one_sided(qp, wqe, now);
	if (rule->traits & ATOMIC)
		return vb_nq(qp)->atomics >= limit
			       ? NEXT_WAITS
			       : vb_lane_put(qp, wqe, rule->op, FAULT_NONE,
					     now);
	return vb_lane_put(
		qp, wqe, wqe->length <= VB_REQUEST_MAX ? NEAR_SEND : NEAR_PULL,
		FAULT_NONE, now);
}

/* Is there a work request that was not sent yet? */
static bool has_next(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	const struct vb_near_qp *nq = vb_nq(qp);

	return nq->sent != nq->begun || (nq->begun != vb_sq_end(&qp->sq) &&
					 vb_near_state(qp) == QPS_RTS);
}

/* Carry out the next work request. */
static enum vb_next run_next(struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);
	struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, nq->sent);
	enum vb_wc_status status;

	if (!has_next(qp))
		return NEXT_WAITS;
	if (nq->step_left == 0)
		return NEXT_LATER;
	/* Prefetch: the cache line arrives while the work request is
	 * checked. */
	vb_registry_expect(nq->peer->registry, nq->view.adapter, wqe->rkey);
	status = near_req_judge(qp, wqe);
	if (status != WC_SUCCESS)
		return vb_near_fail_here(qp, status);
	/* A fenced request waits for all earlier READs and atomics (IBA
	 * 10.8.3.3). */
	if (wqe->flags & SEND_FENCE && nq->atomics)
		return NEXT_WAITS;
	if (vb_near_rule(wqe)->traits & LOCAL)
		return nq->peer_life == 0 && !vb_near_is_there(qp) &&
				       qp->way != WAY_NEAR
			       ? NEXT_WAITS
			       : do_local(qp, wqe);
	if (!vb_near_is_there(qp)) {
		if (qp->way == WAY_NEAR)
			vb_near_be_silent(qp, now);
		return NEXT_WAITS;
	}
	return do_next(qp, wqe, now);
}

/*
 * May small WRITEs gather? A program that posts many of them without polling
 * for their completion waits for none. So they gather, until there are enough,
 * or the program polls without a result, or GATHER_FOR has passed.
 */
static bool may_gather(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);
	uint32_t end = vb_sq_end(&qp->sq);
	uint32_t kept = end - atomic_load_explicit(&qp->sq.released,
						   memory_order_relaxed);

	bool beside = vb_peer_attends(nq->peer);

	if (kept < GATHER_BEHIND || (vb_near_outstanding(qp) && !beside) ||
	    end - nq->sent >= (beside ? GATHER_BESIDE : GATHER_MOST) ||
	    vb_near_state(qp) != QPS_RTS)
		return false;
	if ((int32_t)(nq->gathered - nq->sent) < 0)
		nq->gathered = nq->sent;
	for (; nq->gathered != end; nq->gathered++)
		if (!vb_near_is_small(vb_sq_at(&qp->sq, nq->gathered)))
			return false;
	return nq->sent != end;
}

static bool near_gathers(struct vb_near *n, struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);

	if (now >= nq->flush_at || !may_gather(qp)) {
		nq->flush_at = VB_NEVER;
		return false;
	}
	if (nq->flush_at == VB_NEVER) {
		nq->flush_at = now + GATHER_FOR;
		nq->burst_until = now + BURST_LASTS;
		vb_near_list(n, qp);
	}
	return true;
}

void vb_near_hurry(struct vb_qp *qp)
{
	if (vb_nq(qp)->flush_at != VB_NEVER)
		vb_nq(qp)->flush_at = 0;
}

/* Keep the timer armed as long as small WRITEs stream: arming it again for each
 * batch would wake the engine thread each time. */
static void keep_time(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);

	nq->tick_at = now < nq->burst_until ? now + GATHER_FOR : VB_NEVER;
}

bool vb_near_can_wait(const struct vb_qp *qp)
{
	return vb_nq(qp)->flush_at != VB_NEVER && may_gather(qp);
}

static bool has_no_timer(const struct vb_near_qp *nq)
{
	return (nq->rnr_at & nq->retry_at & nq->flush_at & nq->tick_at) ==
	       VB_NEVER;
}

bool vb_near_quick(struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);
	const struct vb_send_wqe *wqe;

	if (vb_near_state(qp) != QPS_RTS || nq->sent != nq->begun ||
	    vb_sq_end(&qp->sq) - nq->sent != 1 || !has_no_timer(nq))
		return false;
	wqe = vb_sq_at(&qp->sq, nq->sent);
	if (wqe->op != WR_SEND || wqe->length > VB_REQUEST_MAX ||
	    wqe->flags & SEND_FENCE || near_req_judge(qp, wqe) != WC_SUCCESS ||
	    !vb_near_is_there(qp) || qp->way != WAY_NEAR ||
	    !vb_lane_put_quick(qp, wqe))
		return false;
	nq->clock_owed = nq->look_at == VB_NEVER;
	vb_peer_ring(nq->peer);
	return true;
}

/*
 * The kernel no longer allows the access, because one of the two programs now
 * runs as another user. All requests up to here were carried out near, and none
 * is under way: the peer skips the requests that stand on the lane behind a
 * SEND that it could not fetch. The peer has seen no packet of this queue pair,
 * so the other requests can go by packets.
 */
static void leave_near(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	vb_log(LOG_INFO,
	       "near: queue pair %#x uses packets from now on: the kernel "
	       "no longer lets it access the peer's memory",
	       qp->qpn);
	qp->way = WAY_PACKETS;
	vb_near_req_reset(qp);
}

void vb_near_limit(struct vb_qp *qp, enum vb_near_limit limit)
{
	vb_nq(qp)->limit = (uint8_t)limit;
}

/* Begin a step, or continue it: all calls of one step pass an equal @now. A new
 * @now begins a new step, and renews its limit of bytes to copy. */
static void begin_step(struct vb_near_qp *nq, vb_time now)
{
	if (nq->step_at == now)
		return;
	nq->step_at = now;
	nq->step_left = nq->limit == NEAR_LIGHT ? LIGHT_BYTES : STEP_BYTES;
}

void vb_near_count(struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);

	if (!nq->noted)
		return;
	vb_count(qp->adapter, CNT_NEAR_REQUESTS, nq->noted);
	vb_count(qp->adapter, CNT_NEAR_BYTES, nq->noted_bytes);
	nq->noted = 0;
	nq->noted_bytes = 0;
}

bool vb_near_run(struct vb_near *n, struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);
	enum vb_next next = NEXT_GOES;

	if (VB_UNLIKELY(nq->limit == NEAR_NOTHING))
		return has_next(qp);
	vb_may_copy();
	near_check_time(qp, now);
	keep_time(qp, now);
	if (near_gathers(n, qp, now))
		return false;
	begin_step(nq, now);
	while (next == NEXT_GOES && vb_near_sends(qp) && !nq->denied &&
	       nq->rnr_at == VB_NEVER && nq->retry_at == VB_NEVER)
		next = run_next(qp, now);
	vb_near_count(qp);
	if (VB_UNLIKELY(nq->denied) && vb_near_sends(qp))
		leave_near(qp);
	return next == NEXT_LATER;
}

void vb_near_req_reset(struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);

	nq->sent = nq->begun = qp->sq.done;
	nq->acked = 0;
	nq->touched = nq->sent;
	nq->part_seq = nq->part_bytes = 0;
	nq->atomics = 0;
	nq->rnr_retries = nq->silences = 0;
	nq->decide_at = nq->decide_by = VB_NEVER;
	nq->meets = false;
	nq->rnr_at = nq->retry_at = nq->look_at = VB_NEVER;
	nq->placed = 0;
	nq->silent_for = 0;
	nq->gathered = nq->sent;
	nq->flush_at = nq->tick_at = VB_NEVER;
	nq->denied = false;
}

void vb_near_drain(struct vb_qp *qp)
{
	if (vb_near_state(qp) == QPS_SQD && qp->way == WAY_NEAR &&
	    qp->sq.done == vb_nq(qp)->begun)
		vb_qp_drained(qp);
}

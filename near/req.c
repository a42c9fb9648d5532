/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester: work requests in order, each either done here and now in the
 * peer's memory, or put on the lane and answered. What is done here waits for
 * the answers to all before it, so that the peer sees the order of posting
 * (IBA 9.5). A peer's queue pair that is not there, or not ready, is silence,
 * as on a wire: tried again, until the time is over.
 */
#include "base/log.h"
#include "core/fault.h"
#include "core/mw.h"
#include "core/sge.h"
#include "near/near_priv.h"
#include "near/reach.h"

enum rule_traits {
	ASKS = 1 << 0, /* counts among max_rd_atomic */
	HAS_IMM = 1 << 1,
	HAS_INV = 1 << 2,
	WRITES = 1 << 3, /* places data there */
	ATOMIC = 1 << 4,
	LOCAL = 1 << 5,	  /* tells the peer nothing */
	FETCHES = 1 << 6, /* brings data here */
};

struct rule {
	bool valid;
	uint8_t op;	/* enum vb_near_op, when its data goes along */
	uint8_t traits; /* enum rule_traits */
	uint8_t need;	/* enum vb_access of queue pair and key */
};

// clang-format off
#define ROW(wr, op, traits, need) [WR_##wr] = { true, NEAR_##op, traits, need }
static const struct rule rules[] = {
/*  work request | op       | traits            | right there */
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

#define ATOMIC_BYTES  8
#define TIMEOUT_SLACK (250 * VB_MSEC) /* as for packets: ib/req.c */
#define RETRY_FIRST   (20 * VB_USEC)
#define RETRY_DOUBLES 9 /* to 10 ms */
#define ROOM_AGAIN    (10 * VB_USEC)
#define GATHER_BEHIND 16 /* posted, and not known to be complete */
#define GATHER_MOST   64
#define GATHER_FOR    (100 * VB_USEC)
#define GATHER_BESIDE 32 /* while others are under way */
#define STREAM_LASTS  (2 * VB_MSEC)
#define MANY_LEAST    8	 /* worth a record of their own */
#define CALL_AFTER    16 /* batches, each close behind the last */
#define IS_CLOSE      (300 * VB_USEC)
#define CALL_GAP      (1 * VB_MSEC)
#define CALL_GAP_MOST (4 * VB_MSEC)

/* What became of the next work request. */
enum next {
	NEXT_GOES, /* on: done, or on the lane */
	NEXT_WAITS,
};

static const struct rule *rule_of(const struct vb_send_wqe *wqe)
{
	return &rules[wqe->op];
}

static bool sends(const struct vb_qp *qp)
{
	enum vb_qp_state s = vb_near_state(qp);

	return s == QPS_RTS || s == QPS_SQD;
}

static uint32_t outstanding(const struct vb_qp *qp)
{
	return vb_nq(qp)->sent - qp->sq.done;
}

/*
 * Time.
 */

/* How long silence lasts before packets would have given up: retry_cnt times
 * after the first, the local ACK timeout (IBA 9.7.6.1.3). A stream says
 * itself when it ends. */
static vb_time patience(const struct vb_qp *qp)
{
	vb_time t = vb_ack_timeout_ns(qp->attr.timeout);

	if (t == VB_NEVER || qp->adapter->rnic)
		return VB_NEVER;
	return (qp->attr.retry_cnt + 1u) * VB_MIN(4 * t, t + TIMEOUT_SLACK);
}

static void start_clock(struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);
	vb_time t = patience(qp);

	if (nq->give_up_at == VB_NEVER && t != VB_NEVER)
		nq->give_up_at = now + t;
}

/* The peer has done something for us. */
static void progress(struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);

	nq->silences = nq->rnr_retries = 0;
	nq->give_up_at = VB_NEVER;
	nq->clock_owed = false;
	if (outstanding(qp))
		start_clock(qp, now);
}

/* All that is on the lane is to go again: it will be answered as not
 * executed. */
static void go_back(struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);

	nq->sent = qp->sq.done;
	nq->atomics = 0;
}

static void be_silent(struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);

	nq->retry_at = now + (RETRY_FIRST << nq->silences);
	nq->silences += nq->silences < RETRY_DOUBLES;
	start_clock(qp, now);
}

static void fail_oldest(struct vb_qp *qp, enum vb_wc_status status)
{
	vb_count(qp->adapter, CNT_SEND_ERR, 1);
	vb_qp_send_done(qp, status);
	vb_qp_fail(qp, -1);
}

static void check_time(struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);

	if (nq->clock_owed && outstanding(qp))
		start_clock(qp, now);
	nq->clock_owed = false;
	if (now >= nq->rnr_at)
		nq->rnr_at = VB_NEVER;
	if (now >= nq->retry_at)
		nq->retry_at = VB_NEVER;
	if (now < nq->give_up_at)
		return;
	nq->give_up_at = VB_NEVER;
	vb_count(qp->adapter, CNT_RETRY_EXCEEDED, 1);
	fail_oldest(qp, WC_RETRY_EXC_ERR);
}

/*
 * What is wrong on this side.
 */

static bool keys_allow(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	uint32_t need = rule_of(wqe)->traits & FETCHES ? ACCESS_LOCAL_WRITE : 0;

	return vb_sge_is_allowed(qp->pd, wqe->sge, wqe->num_sge, need);
}

static enum vb_wc_status judge(const struct vb_qp *qp,
			       const struct vb_send_wqe *wqe)
{
	const struct rule *rule;

	if (wqe->op >= VB_COUNT(rules) || !rule_of(wqe)->valid)
		return WC_LOC_QP_OP_ERR;
	rule = rule_of(wqe);
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
	return keys_allow(qp, wqe) ? WC_SUCCESS : WC_LOC_PROT_ERR;
}

/* It fails here, once all before it has ended. */
static enum next fail_here(struct vb_qp *qp, enum vb_wc_status status)
{
	if (!outstanding(qp))
		fail_oldest(qp, status);
	return NEXT_WAITS;
}

/*
 * Who is there.
 */

static bool same_gid(const uint64_t halves[2], const struct vb_gid *gid)
{
	return memcmp(halves, gid->raw, sizeof(gid->raw)) == 0;
}

/* Is it connected to us, and since we began the same? A stream's addresses are
 * TCP's. */
static bool is_our_peer(const struct vb_qp *qp, const struct vb_yard_view *v)
{
	const struct vb_near_qp *nq = vb_nq(qp);

	if (v->dest_qpn != nq->number)
		return false;
	if (!qp->adapter->rnic && (!same_gid(v->sgid, &qp->route.dgid) ||
				   !same_gid(v->dgid, &qp->route.sgid)))
		return false;
	return nq->peer_life ? v->life == nq->peer_life
			     : v->rq_psn == qp->attr.sq_psn;
}

bool vb_near_is_there(struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);
	uint32_t qpn = nq->far_number;

	if (VB_UNLIKELY(!vb_peer_is_up(nq->peer)))
		return false;
	if (VB_LIKELY(nq->fits &&
		      vb_yard_is_current(nq->peer->yard, qpn, &nq->view)))
		return true;
	nq->fits = vb_yard_view(nq->peer->yard, qpn, &nq->view) &&
		   is_our_peer(qp, &nq->view);
	if (nq->fits && nq->view.adapter >= VB_YARD_NO_ADAPTER) {
		/* As from its first request on: nothing was sent by here. */
		qp->way = WAY_PACKETS;
		nq->fits = false;
	}
	if (nq->fits)
		nq->peer_life = nq->view.life;
	return nq->fits;
}

/*
 * The lane.
 */

static void fill_request(const struct vb_qp *qp, const struct vb_send_wqe *wqe,
			 struct vb_request *r)
{
	const struct vb_near_qp *nq = vb_nq(qp);
	uint8_t traits = rule_of(wqe)->traits;

	r->flags = (traits & HAS_IMM ? REQUEST_IMM : 0) |
		   (traits & HAS_INV ? REQUEST_INV : 0) |
		   (wqe->flags & SEND_SOLICITED ? REQUEST_SOLICITED : 0);
	r->dqpn = nq->far_number;
	r->sqpn = nq->number;
	r->life = nq->peer_life;
	r->src_life = nq->life;
	r->seq = nq->acked + outstanding(qp);
	r->length = wqe->length;
	r->imm = wqe->imm;
	r->rkey = wqe->rkey;
	r->va = wqe->remote_addr;
}

static unsigned count_pieces(const struct vb_send_wqe *wqe)
{
	unsigned n = 0;

	for (unsigned i = 0; i < wqe->num_sge; i++)
		n += wqe->sge[i].length > 0;
	return n;
}

static uint32_t bytes_along(const struct vb_send_wqe *wqe, enum vb_near_op op)
{
	switch (op) {
	case NEAR_SEND:
	case NEAR_WRITE:
	case NEAR_STORE:
		return wqe->length;
	case NEAR_PULL:
		return count_pieces(wqe) * (uint32_t)sizeof(struct vb_sge);
	case NEAR_CMP_SWAP:
	case NEAR_FETCH_ADD:
		return sizeof(struct vb_near_atomic);
	default:
		return 0;
	}
}

/* A null region is in nobody's yard: what is read there needs no key. */
static void put_pieces(const struct vb_qp *qp, const struct vb_send_wqe *wqe,
		       uint8_t *to)
{
	for (unsigned i = 0; i < wqe->num_sge; i++) {
		struct vb_sge piece = wqe->sge[i];

		if (piece.length == 0)
			continue;
		if (vb_mr_is_null(qp->pd, piece.lkey))
			piece.lkey = NEAR_ZEROS;
		memcpy(to, &piece, sizeof(piece));
		to += sizeof(piece);
	}
}

static enum vb_fault put_data(const struct vb_qp *qp,
			      const struct vb_send_wqe *wqe, uint8_t *to)
{
	bool is_word = wqe->op == WR_ATOMIC_WRITE;

	if (!(wqe->flags & SEND_INLINE))
		return vb_sge_gather(qp->pd, wqe->sge, wqe->num_sge, 0, to,
				     wqe->length);
	memcpy(to, is_word ? (const void *)&wqe->swap : wqe->inline_data,
	       wqe->length);
	return FAULT_NONE;
}

static enum vb_fault put_along(const struct vb_qp *qp,
			       const struct vb_send_wqe *wqe,
			       enum vb_near_op op, uint8_t *to)
{
	bool swap = op == NEAR_CMP_SWAP;
	const struct vb_near_atomic a = {
		.swap_add = swap ? wqe->swap : wqe->compare_add,
		.compare = swap ? wqe->compare_add : 0,
	};

	switch (op) {
	case NEAR_SEND:
	case NEAR_WRITE:
	case NEAR_STORE:
		return put_data(qp, wqe, to);
	case NEAR_PULL:
		put_pieces(qp, wqe, to);
		return FAULT_NONE;
	case NEAR_CMP_SWAP:
	case NEAR_FETCH_ADD:
		memcpy(to, &a, sizeof(a));
		return FAULT_NONE;
	default:
		return FAULT_NONE;
	}
}

/* The lane is full; others' answers may make room. */
static enum next wait_for_room(struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);

	if (!outstanding(qp)) /* else our own answers will */
		nq->retry_at = now + ROOM_AGAIN;
	start_clock(qp, now);
	return NEXT_WAITS;
}

static void note_sent(struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	struct vb_near_qp *nq = vb_nq(qp);

	nq->atomics += (rule_of(wqe)->traits & ATOMIC) != 0;
	if (nq->sent++ == nq->begun)
		nq->begun++;
}

enum put {
	PUT_DONE,
	PUT_NO_ROOM,
	PUT_OURS, /* our own memory cannot be read */
};

/* @fault: with NEAR_FAULT, what we may not do. */
static enum put put_request(const struct vb_qp *qp,
			    const struct vb_send_wqe *wqe, enum vb_near_op op,
			    enum vb_fault fault)
{
	struct vb_peer *p = vb_nq(qp)->peer;
	enum vb_fault ours = FAULT_NONE;
	struct vb_request *r;
	uint8_t *data;

	vb_mutex_lock(&p->tx);
	r = vb_ring_begin(&p->writer, bytes_along(wqe, op), &data);
	if (r) {
		fill_request(qp, wqe, r);
		r->op = (uint8_t)op;
		if (op == NEAR_FAULT)
			r->imm = fault;
		ours = put_along(qp, wqe, op, data);
		if (ours == FAULT_NONE)
			vb_ring_commit(&p->writer);
	}
	vb_mutex_unlock(&p->tx);
	if (!r)
		return PUT_NO_ROOM;
	return ours == FAULT_NONE ? PUT_DONE : PUT_OURS;
}

static enum next put_on_lane(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			     enum vb_near_op op, enum vb_fault fault,
			     vb_time now)
{
	switch (put_request(qp, wqe, op, fault)) {
	case PUT_NO_ROOM:
		return wait_for_room(qp, now);
	case PUT_OURS:
		return fail_here(qp, WC_LOC_PROT_ERR);
	case PUT_DONE:
		break;
	}
	note_sent(qp, wqe);
	start_clock(qp, now);
	vb_peer_ring(vb_nq(qp)->peer);
	return NEXT_GOES;
}

/* Its program may wait to hear that the connection is established; what is
 * done without it does not tell it. */
static void tell_news(struct vb_qp *qp)
{
	static const struct vb_send_wqe nothing = { .op = WR_SEND };
	struct vb_near_qp *nq = vb_nq(qp);
	struct vb_peer *p = nq->peer;
	struct vb_request *r;
	uint8_t *data;

	if (VB_LIKELY(!nq->view.rtr || nq->told_news))
		return;
	vb_mutex_lock(&p->tx);
	r = vb_ring_begin(&p->writer, 0, &data);
	if (r) {
		fill_request(qp, &nothing, r);
		r->op = NEAR_NEWS;
		vb_ring_commit(&p->writer);
		nq->told_news = true;
	}
	vb_mutex_unlock(&p->tx);
	if (r)
		vb_peer_ring(p);
}

/*
 * Straight into their memory.
 */

static enum vb_fault may_reach(const struct vb_qp *qp,
			       const struct vb_send_wqe *wqe)
{
	const struct vb_yard_view *v = &vb_nq(qp)->view;
	uint32_t need = rule_of(wqe)->need;

	if (qp->adapter->rnic && wqe->length == 0)
		return FAULT_NONE; /* streams begin with such (RFC 6581 s5) */
	if ((v->access & need) != need)
		return FAULT_ACCESS_FLAGS;
	if (wqe->op == WR_READ && v->reads == 0)
		return FAULT_TOO_MANY_READS;
	return FAULT_NONE;
}

static enum vb_reach reach(struct vb_qp *qp, struct vb_send_wqe *wqe)
{
	const struct vb_near_qp *nq = vb_nq(qp);
	const struct vb_near_side near = {
		.pd = qp->pd,
		.sge = wqe->sge,
		.count = wqe->num_sge,
		.plain = wqe->flags & SEND_INLINE ? wqe->inline_data : NULL,
	};
	const struct vb_far_side far = {
		.adapter = nq->view.adapter,
		.pd = nq->view.pd,
		.qpn = nq->view.qpn,
		.key = wqe->rkey,
		.iova = wqe->remote_addr,
		.need = rule_of(wqe)->need,
	};

	return vb_reach(nq->peer, &near, &far, wqe->length, wqe->op != WR_READ);
}

/* Place or fetch it. NEXT_WAITS: it could not be done, and what follows from
 * that is done. */
static enum next do_here(struct vb_qp *qp, struct vb_send_wqe *wqe, vb_time now)
{
	enum vb_fault fault = may_reach(qp, wqe);

	if (fault) {
		(void)put_on_lane(qp, wqe, NEAR_FAULT, fault, now);
		return NEXT_WAITS;
	}
	switch (reach(qp, wqe)) {
	case REACH_OK:
		break;
	case REACH_LOCAL:
		return fail_here(qp, WC_LOC_PROT_ERR);
	case REACH_REMOTE:
		(void)put_on_lane(qp, wqe, NEAR_FAULT, FAULT_RKEY, now);
		return NEXT_WAITS;
	case REACH_DENIED:
		vb_nq(qp)->denied = true;
		return NEXT_WAITS;
	case REACH_GONE:
		be_silent(qp, now);
		return NEXT_WAITS;
	}
	tell_news(qp);
	return NEXT_GOES;
}

static enum next finish_here(struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);

	if (nq->sent++ == nq->begun)
		nq->begun++;
	vb_qp_send_done(qp, WC_SUCCESS);
	return NEXT_GOES;
}

/* Windows (IBA 10.8.3.3). */
static enum next do_local(struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	if (outstanding(qp))
		return NEXT_WAITS;
	return vb_mw_run(qp, wqe) ? finish_here(qp)
				  : fail_here(qp, WC_MW_BIND_ERR);
}

static enum next do_one_sided(struct vb_qp *qp, struct vb_send_wqe *wqe,
			      vb_time now)
{
	if (do_here(qp, wqe, now) == NEXT_WAITS)
		return NEXT_WAITS;
	progress(qp, now);
	return finish_here(qp);
}

/*
 * What many small WRITEs cost is the kernel's way to each of their pages. The
 * target's own thread needs none: where they stream, it is asked to stand by,
 * which it does on a processor that nobody else wants. Until then, and where it
 * does not, they are placed from here.
 */
static void note_batch(struct vb_qp *qp, unsigned done, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);
	bool close = now - nq->streak_at < IS_CLOSE;

	nq->streak_at = now;
	nq->streak = close ? nq->streak + (done >= MANY_LEAST) : 0;
	if (nq->streak < CALL_AFTER || now < nq->call_at || nq->peer->is_self)
		return;
	nq->call_gap =
		VB_MIN(VB_MAX(2 * nq->call_gap, CALL_GAP), CALL_GAP_MOST);
	nq->call_at = now + nq->call_gap;
	vb_peer_call(nq->peer);
}

/* WRITEs in a row with one record; they are not many when the end of what is
 * posted is near, or one of them is large, or cannot be read. */
static unsigned pack(struct vb_qp *qp)
{
	struct vb_peer *p = vb_nq(qp)->peer;
	const struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, vb_nq(qp)->sent);
	struct vb_request *r;
	unsigned count = 0;
	uint32_t bytes;
	uint8_t *data;

	vb_mutex_lock(&p->tx);
	r = vb_ring_begin(&p->writer, VB_REQUEST_MAX, &data);
	if (r)
		count = vb_near_pack(qp, data, VB_REQUEST_MAX, &bytes);
	if (count >= MANY_LEAST) {
		fill_request(qp, wqe, r);
		r->op = NEAR_MANY;
		r->bytes = (uint16_t)bytes;
		vb_ring_commit(&p->writer);
	}
	vb_mutex_unlock(&p->tx);
	return count >= MANY_LEAST ? count : 0;
}

/* False: not now, by a record. */
static bool put_many(struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);
	unsigned count;

	if (!vb_peer_attends(nq->peer) || vb_near_state(qp) != QPS_RTS ||
	    vb_sq_end(&qp->sq) - nq->sent < MANY_LEAST)
		return false;
	count = pack(qp);
	if (count == 0)
		return false;
	nq->call_gap = 0;
	while (count--)
		note_sent(qp, vb_sq_at(&qp->sq, nq->sent));
	start_clock(qp, now);
	vb_peer_ring(nq->peer);
	return true;
}

/* Several small WRITEs at once. False: not even one. */
static bool place_many(struct vb_qp *qp, vb_time now)
{
	unsigned done = vb_near_batch(qp);

	if (done == 0)
		return false;
	note_batch(qp, done, now);
	tell_news(qp);
	progress(qp, now);
	while (done-- && sends(qp))
		finish_here(qp);
	return true;
}

/*
 * Who fetches a long message may offer a part of it: near/share.h.
 */

/* Ours, on the lane, and there is that much of it; or NULL. */
static struct vb_send_wqe *find_asked(const struct vb_qp *qp,
				      const struct vb_part *part)
{
	const struct vb_near_qp *nq = vb_nq(qp);
	uint32_t nth = part->seq - nq->acked;
	struct vb_send_wqe *wqe;

	if (qp->way != WAY_NEAR || part->life != nq->life || !sends(qp) ||
	    nth >= outstanding(qp))
		return NULL;
	wqe = vb_sq_at(&qp->sq, qp->sq.done + nth);
	if (rule_of(wqe)->op != NEAR_SEND || part->offset > wqe->length ||
	    part->len > wqe->length - part->offset)
		return NULL;
	return wqe;
}

static bool copy_part(struct vb_qp *qp, struct vb_send_wqe *wqe,
		      const struct vb_part *part)
{
	const struct vb_near_qp *nq = vb_nq(qp);
	bool plain = wqe->flags & SEND_INLINE;
	const struct vb_near_side near = {
		.pd = qp->pd,
		.sge = wqe->sge,
		.count = wqe->num_sge,
		.offset = plain ? 0 : part->offset,
		.plain = plain ? wqe->inline_data + part->offset : NULL,
		.helped = true,
	};
	const struct vb_far_side far = {
		.adapter = nq->view.adapter,
		.pd = nq->view.pd,
		.qpn = nq->view.qpn,
		.key = part->key,
		.iova = part->iova,
		.need = ACCESS_LOCAL_WRITE,
	};

	return vb_reach(nq->peer, &near, &far, part->len, true) == REACH_OK;
}

/* The receive is theirs to take away again with the queue pair, too: so that
 * is looked at once we have said that we are at it. (One thread helps at a
 * time: it never waits for two cells with all others doing so.) */
static bool lend_hand(struct vb_qp *qp, const struct vb_part *part)
{
	struct vb_send_wqe *wqe = find_asked(qp, part);
	struct vb_cell *cell;
	bool done;

	if (!wqe)
		return false;
	cell = vb_cell_take(vb_nq(qp)->peer->our_cells, part->key,
			    vb_nq(qp)->far_number);
	done = vb_near_is_there(qp) && copy_part(qp, wqe, part);
	vb_cell_give(cell);
	return done;
}

/* (Unchecked: the lock is given up behind a function pointer.) */
bool vb_near_help(struct vb_near *n, struct vb_peer *p) VB_UNCHECKED
{
	struct vb_part part;
	struct vb_qp *qp;
	uint32_t word;
	bool done;

	if (!vb_offer_take(p->offered, &part, &word))
		return false;
	qp = vb_near_find_qp(n, part.qpn);
	done = false;
	if (qp && vb_mutex_trylock(&qp->drive)) {
		done = vb_near_is_called(qp, part.qpn) &&
		       vb_nq(qp)->peer == p && lend_hand(qp, &part);
		n->c.release(n->c.arg, qp);
	}
	/* It has left the message where it is, and perhaps gone to sleep. */
	if (vb_offer_end(p->offered, word, done))
		vb_peer_ring(p);
	return true;
}

/*
 * In order.
 */

/* How a WRITE goes. A small one may overtake nobody, and need not wait, on the
 * lane; a large one is placed from here. */
static enum next do_write(struct vb_qp *qp, struct vb_send_wqe *wqe,
			  vb_time now)
{
	bool imm = rule_of(wqe)->traits & HAS_IMM;

	if (vb_near_is_small(wqe) && put_many(qp, now))
		return NEXT_GOES;
	if (wqe->length <= VB_REQUEST_MAX && (imm || outstanding(qp)))
		return put_on_lane(qp, wqe, NEAR_WRITE, FAULT_NONE, now);
	if (outstanding(qp))
		return NEXT_WAITS;
	if (!imm)
		return vb_near_is_small(wqe) && place_many(qp, now)
			       ? NEXT_GOES
			       : do_one_sided(qp, wqe, now);
	if (do_here(qp, wqe, now) == NEXT_WAITS)
		return NEXT_WAITS;
	return put_on_lane(qp, wqe, NEAR_PLACED, FAULT_NONE, now);
}

static enum next do_next(struct vb_qp *qp, struct vb_send_wqe *wqe, vb_time now)
{
	const struct rule *rule = rule_of(wqe);
	uint32_t limit = VB_MIN(qp->attr.max_rd_atomic, VB_MAX_RD_ATOM);

	if (rule->traits & WRITES)
		return do_write(qp, wqe, now);
	if (wqe->op == WR_READ)
		return outstanding(qp) ? NEXT_WAITS
				       : do_one_sided(qp, wqe, now);
	if (rule->traits & ATOMIC)
		return vb_nq(qp)->atomics >= limit
			       ? NEXT_WAITS
			       : put_on_lane(qp, wqe, rule->op, FAULT_NONE,
					     now);
	return put_on_lane(
		qp, wqe, wqe->length <= VB_REQUEST_MAX ? NEAR_SEND : NEAR_PULL,
		FAULT_NONE, now);
}

/* The next work request there is. */
static enum next go_on(struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);
	struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, nq->sent);
	enum vb_wc_status status;

	if (nq->sent == nq->begun &&
	    (nq->begun == vb_sq_end(&qp->sq) || vb_near_state(qp) != QPS_RTS))
		return NEXT_WAITS;
	/* Fetched while we look at our own. */
	vb_yard_expect(nq->peer->yard, nq->view.adapter, wqe->rkey);
	status = judge(qp, wqe);
	if (status != WC_SUCCESS)
		return fail_here(qp, status);
	/* IBA 10.8.3.3: behind every READ and atomic before it. */
	if (wqe->flags & SEND_FENCE && nq->atomics)
		return NEXT_WAITS;
	if (rule_of(wqe)->traits & LOCAL)
		return nq->peer_life == 0 && !vb_near_is_there(qp) &&
				       qp->way != WAY_NEAR
			       ? NEXT_WAITS
			       : do_local(qp, wqe);
	if (!vb_near_is_there(qp)) {
		if (qp->way == WAY_NEAR)
			be_silent(qp, now);
		return NEXT_WAITS;
	}
	return do_next(qp, wqe, now);
}

/*
 * A program that posts many small WRITEs without looking what became of the
 * earlier ones waits for none of them: they gather until there are enough, or
 * it polls and finds nothing, or for a short time.
 */
static bool may_gather(const struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);
	uint32_t end = vb_sq_end(&qp->sq);
	uint32_t kept = end - atomic_load_explicit(&qp->sq.released,
						   memory_order_relaxed);

	bool beside = vb_peer_attends(nq->peer);

	if (kept < GATHER_BEHIND || (outstanding(qp) && !beside) ||
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

static bool gathers(struct vb_near *n, struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);

	if (now >= nq->flush_at || !may_gather(qp)) {
		nq->flush_at = VB_NEVER;
		return false;
	}
	if (nq->flush_at == VB_NEVER) {
		nq->flush_at = now + GATHER_FOR;
		nq->stream_until = now + STREAM_LASTS;
		vb_near_list(n, qp);
	}
	return true;
}

/* While they come in a stream the timer stays armed: starting it anew for
 * each batch would wake the thread each time. */
static void keep_time(struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);

	nq->tick_at = now < nq->stream_until ? now + GATHER_FOR : VB_NEVER;
}

bool vb_near_can_wait(const struct vb_qp *qp)
{
	return vb_nq(qp)->flush_at != VB_NEVER && may_gather(qp);
}

static bool is_quiet(const struct vb_near_qp *nq)
{
	return (nq->rnr_at & nq->retry_at & nq->flush_at & nq->tick_at) ==
	       VB_NEVER;
}

bool vb_near_quick(struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);
	const struct vb_send_wqe *wqe;

	if (vb_near_state(qp) != QPS_RTS || nq->sent != nq->begun ||
	    vb_sq_end(&qp->sq) - nq->sent != 1 || !is_quiet(nq))
		return false;
	wqe = vb_sq_at(&qp->sq, nq->sent);
	if (wqe->op != WR_SEND || wqe->length > VB_REQUEST_MAX ||
	    wqe->flags & SEND_FENCE || judge(qp, wqe) != WC_SUCCESS ||
	    !vb_near_is_there(qp) || qp->way != WAY_NEAR ||
	    put_request(qp, wqe, NEAR_SEND, FAULT_NONE) != PUT_DONE)
		return false;
	note_sent(qp, wqe);
	nq->clock_owed = nq->give_up_at == VB_NEVER;
	vb_peer_ring(nq->peer);
	return true;
}

/*
 * What could be reached no longer can: a program has become another user
 * meanwhile. All that is done was done by here, and nothing is under way (what
 * stands on the lane behind a SEND that was not fetched is passed over), so the
 * rest can go by packets, of which the peer has seen none.
 */
static void leave_near(struct vb_qp *qp)
{
	vb_log(LOG_INFO,
	       "near: packets from queue pair %#x: memory is out of "
	       "reach by now",
	       qp->qpn);
	qp->way = WAY_PACKETS;
	vb_near_req_reset(qp);
}

bool vb_near_run(struct vb_near *n, struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);

	check_time(qp, now);
	keep_time(qp, now);
	if (gathers(n, qp, now))
		return false;
	while (sends(qp) && !nq->denied && nq->rnr_at == VB_NEVER &&
	       nq->retry_at == VB_NEVER)
		if (go_on(qp, now) == NEXT_WAITS)
			break;
	if (VB_UNLIKELY(nq->denied) && sends(qp))
		leave_near(qp);
	return false;
}

void vb_near_req_reset(struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);

	nq->sent = nq->begun = qp->sq.done;
	nq->acked = 0;
	nq->atomics = 0;
	nq->rnr_retries = nq->silences = 0;
	nq->decide_at = nq->decide_by = VB_NEVER;
	nq->rnr_at = nq->retry_at = nq->give_up_at = VB_NEVER;
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

/*
 * Answers.
 */

/* The oldest on the lane is done. */
static void retire(struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);
	const struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, qp->sq.done);

	nq->acked++;
	nq->atomics -= (rule_of(wqe)->traits & ATOMIC) != 0;
	vb_qp_send_done(qp, WC_SUCCESS);
}

static void retire_some(struct vb_qp *qp, uint32_t count)
{
	while (count-- && sends(qp))
		retire(qp);
}

static void take_value(struct vb_qp *qp, uint64_t value)
{
	const struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, qp->sq.done);

	if (!(rule_of(wqe)->traits & FETCHES))
		fail_oldest(qp, WC_BAD_RESP_ERR);
	else if (vb_sge_place(qp->pd, wqe->sge, wqe->num_sge, 0, &value,
			      sizeof(value)))
		fail_oldest(qp, WC_LOC_PROT_ERR);
	else
		retire(qp);
}

static void take_rnr(struct vb_qp *qp, uint8_t syndrome, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);

	vb_count(qp->adapter, CNT_RCVD_RNR_ERR, 1);
	/* 7: without end (IBA 9.7.5.2.8). With streams there is no second try
	 * (iwarp/term.c). */
	if (qp->adapter->rnic ||
	    (qp->attr.rnr_retry < 7 && nq->rnr_retries >= qp->attr.rnr_retry)) {
		vb_count(qp->adapter, CNT_RNR_RETRY_EXCEEDED, 1);
		fail_oldest(qp, WC_RNR_RETRY_EXC_ERR);
		return;
	}
	nq->rnr_retries += qp->attr.rnr_retry < 7;
	go_back(qp);
	nq->rnr_at = now + vb_rnr_ns(syndrome & 0x1f);
	/* It is there: while it waits for its program the clock stands. */
	nq->give_up_at = VB_NEVER;
	nq->silences = 0;
}

static void take_silence(struct vb_qp *qp, vb_time now)
{
	vb_nq(qp)->fits = false;
	go_back(qp);
	be_silent(qp, now);
}

/* Of the oldest that is not retired. */
static void take_verdict(struct vb_qp *qp, const struct vb_answer_note *a,
			 vb_time now)
{
	switch (a->kind) {
	case ANSWER_DONE:
		retire(qp);
		break;
	case ANSWER_PART:
		retire(qp);
		go_back(qp);
		break;
	case ANSWER_VALUE:
		take_value(qp, a->value);
		break;
	case ANSWER_RNR:
		take_rnr(qp, a->syndrome, now);
		break;
	case ANSWER_NAK:
		fail_oldest(qp, vb_fault_nak_status(a->syndrome));
		break;
	case ANSWER_SOURCE:
		fail_oldest(qp, WC_LOC_PROT_ERR);
		break;
	case ANSWER_DENIED:
		go_back(qp);
		vb_nq(qp)->denied = true;
		break;
	default:
		take_silence(qp, now);
		break;
	}
}

void vb_near_answered(struct vb_near *n, struct vb_qp *qp,
		      const struct vb_answer_note *a, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);
	uint32_t nth = a->seq - nq->acked;

	if (qp->way != WAY_NEAR || a->life != nq->life || !sends(qp) ||
	    a->kind == ANSWER_PASSED || nth >= outstanding(qp))
		return;
	/* Only success speaks of those before it. What else does not meet the
	 * oldest is about one that has been sent again since. */
	if (nth && a->kind != ANSWER_DONE && a->kind != ANSWER_PART)
		return;
	retire_some(qp, nth);
	if (nth)
		progress(qp, now);
	if (!sends(qp))
		return;
	take_verdict(qp, a, now);
	if (a->kind == ANSWER_DONE || a->kind == ANSWER_VALUE ||
	    a->kind == ANSWER_PART)
		progress(qp, now);
	vb_near_drain(qp);
}

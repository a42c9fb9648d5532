/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester's side of the lane: it writes requests, which the peer carries
 * out. */
#include "core/sge.h"
#include "near/cma.h"
#include "near/req_priv.h"

static void fill_lane_request(const struct vb_qp *qp,
			      const struct vb_send_wqe *wqe,
			      struct vb_request *r) VB_REQUIRES(qp->drive)
{
	const struct vb_near_qp *nq = vb_nq(qp);
	uint8_t traits = vb_near_rule(wqe)->traits;

	r->flags = (traits & HAS_IMM ? REQUEST_IMM : 0) |
		   (traits & HAS_INV ? REQUEST_INV : 0) |
		   (wqe->flags & SEND_SOLICITED ? REQUEST_SOLICITED : 0);
	r->dqpn = nq->remote_number;
	r->sqpn = nq->number;
	r->life = nq->peer_life;
	r->src_life = nq->life;
	r->seq = nq->acked + vb_near_outstanding(qp);
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

/* Write the pieces of @wqe to @to. A null region is in no registry, so a piece
 * of one gets the key NEAR_ZEROS, and the responder places zeros for it. */
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

static enum vb_fault near_put_data(const struct vb_qp *qp,
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
		return near_put_data(qp, wqe, to);
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

/* The lane is full. Answers will make room; if no answer is due for this queue
 * pair, a timer lets it try again. A peer that reports an impossible number of
 * requests as read would keep the lane full for ever, and is expelled. */
static enum vb_next wait_for_room(struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	/* if requests of @qp are on the lane, their answers let it try again */
	if (vb_near_outstanding(qp))
		return NEXT_WAITS;
	(void)vb_peer_is_honest(vb_nq(qp)->peer);
	vb_near_back_off(qp, now);
	return NEXT_WAITS;
}

static void note_sent(struct vb_qp *qp, const struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);

	nq->atomics += (vb_near_rule(wqe)->traits & ATOMIC) != 0;
	nq->placed = 0;
	if (nq->sent++ != nq->begun)
		return;
	nq->begun++;
	vb_near_note(nq, wqe);
}

enum put {
	PUT_DONE,
	PUT_NO_ROOM,
	PUT_OURS, /* the memory of this program cannot be read */
};

/* Put the request @wqe on the lane. @fault: with NEAR_FAULT, the reason why the
 * requester has no right to make the request. */
static enum put put_lane_request(const struct vb_qp *qp,
				 const struct vb_send_wqe *wqe,
				 enum vb_near_op op, enum vb_fault fault)
	VB_REQUIRES(qp->drive)
{
	struct vb_peer *p = vb_nq(qp)->peer;
	enum vb_fault ours = FAULT_NONE;
	struct vb_request *r;
	uint8_t *data;

	vb_mutex_lock(&p->tx);
	r = vb_ring_begin(&p->writer, bytes_along(wqe, op), &data);
	if (r) {
		fill_lane_request(qp, wqe, r);
		r->op = (uint8_t)op;
		if (op == NEAR_FAULT)
			r->imm = fault |
				 (uint32_t)vb_near_rule(wqe)->need << 8;
		ours = put_along(qp, wqe, op, data);
		if (ours == FAULT_NONE)
			vb_ring_commit(&p->writer);
	}
	vb_mutex_unlock(&p->tx);
	if (!r)
		return PUT_NO_ROOM;
	return ours == FAULT_NONE ? PUT_DONE : PUT_OURS;
}

/* Let the kernel supply the pages of a long SEND once, before the peer fetches
 * it. If a page is slow to come (userfaultfd, FUSE, swap), this program waits
 * for it, and not the peer, inside the kernel. Whether the pages can be read at
 * all, the peer finds out. False: the message is longer than what this step may
 * still touch, so another step goes on. */
static bool touch_source(struct vb_qp *qp, const struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive)
{
	const struct vb_local_side local = { .pd = qp->pd,
					     .sge = wqe->sge,
					     .count = wqe->num_sge };
	struct vb_near_qp *nq = vb_nq(qp);
	uint32_t part;

	if (nq->touched != nq->sent + 1) {
		nq->touched = nq->sent + 1;
		nq->touched_bytes = 0;
	}
	part = VB_MIN(wqe->length - nq->touched_bytes, nq->step_left);
	vb_near_set_copies(qp, true);
	if (part)
		(void)vb_cma_touch(&local, nq->touched_bytes, part);
	vb_near_set_copies(qp, false);
	nq->touched_bytes += part;
	nq->step_left -= part;
	return nq->touched_bytes == wqe->length;
}

enum vb_next vb_lane_put(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			 enum vb_near_op op, enum vb_fault fault, vb_time now)
{
	if (op == NEAR_PULL && !touch_source(qp, wqe))
		return NEXT_LATER;
	switch (put_lane_request(qp, wqe, op, fault)) {
	case PUT_NO_ROOM:
		return wait_for_room(qp, now);
	case PUT_OURS:
		return vb_near_fail_here(qp, WC_LOC_PROT_ERR);
	case PUT_DONE:
		break;
	}
	note_sent(qp, wqe);
	vb_near_start_clock(qp, now);
	vb_peer_ring(vb_nq(qp)->peer);
	return NEXT_GOES;
}

bool vb_lane_put_quick(struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	if (put_lane_request(qp, wqe, NEAR_SEND, FAULT_NONE) != PUT_DONE)
		return false;
	note_sent(qp, wqe);
	return true;
}

void vb_lane_establish(struct vb_qp *qp)
{
	static const struct vb_send_wqe nothing = { .op = WR_SEND };
	struct vb_near_qp *nq = vb_nq(qp);
	struct vb_peer *p = nq->peer;
	struct vb_request *r;
	uint8_t *data;

	if (VB_LIKELY(!nq->view.rtr || nq->establish_sent))
		return;
	vb_mutex_lock(&p->tx);
	r = vb_ring_begin(&p->writer, 0, &data);
	if (r) {
		fill_lane_request(qp, &nothing, r);
		r->op = NEAR_ESTABLISH;
		vb_ring_commit(&p->writer);
		nq->establish_sent = true;
	}
	vb_mutex_unlock(&p->tx);
	if (r)
		vb_peer_ring(p);
}

/* Put several WRITEs on the lane as one record. Returns the number of WRITEs.
 * 0: before the end of the queue, the first large WRITE, or the first one that
 * cannot be read, there are fewer than VB_MANY_LEAST. */
static unsigned pack(struct vb_qp *qp) VB_REQUIRES(qp->drive)
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
	if (count >= VB_MANY_LEAST) {
		fill_lane_request(qp, wqe, r);
		r->op = NEAR_MANY;
		r->bytes = (uint16_t)bytes;
		vb_ring_commit(&p->writer);
	}
	vb_mutex_unlock(&p->tx);
	return count >= VB_MANY_LEAST ? count : 0;
}

bool vb_lane_put_many(struct vb_qp *qp, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);
	unsigned count;

	if (!vb_peer_attends(nq->peer) || vb_near_state(qp) != QPS_RTS ||
	    vb_sq_end(&qp->sq) - nq->sent < VB_MANY_LEAST)
		return false;
	count = pack(qp);
	if (count == 0)
		return false;
	nq->call_gap = 0;
	while (count--)
		note_sent(qp, vb_sq_at(&qp->sq, nq->sent));
	vb_near_start_clock(qp, now);
	vb_peer_ring(nq->peer);
	return true;
}

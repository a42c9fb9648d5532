/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder: requests that a peer has put on its lane, carried out in
 * order. Judged in the order of IBA 9.7.4, as packets are; the first fault
 * ends it, and core/fault.c says how.
 */
#include "core/fault.h"
#include "core/mw.h"
#include "core/sge.h"
#include "near/near_priv.h"
#include "near/reach.h"

/* What is being carried out. */
struct job {
	struct vb_peer *peer;
	struct vb_qp *qp;
	const struct vb_request *r;
	const uint8_t *data; /* theirs to change */
	struct vb_answer_note *a;
};

static bool takes_requests(const struct vb_qp *qp)
{
	enum vb_qp_state s = vb_near_state(qp);

	return s == QPS_RTR || s == QPS_RTS || s == QPS_SQD || s == QPS_SQE;
}

static bool is_for(const struct job *j)
{
	const struct vb_near_qp *nq = vb_nq(j->qp);

	return nq && nq->life && j->r->life == nq->life &&
	       takes_requests(j->qp) && j->qp->attr.dest_qp_num == j->r->sqpn &&
	       j->r->sqpn >> VB_QPN_BITS == j->peer->slot;
}

/*
 * SEND.
 */

static void complete_recv(const struct job *j, enum vb_wc_op opcode)
{
	bool imm = j->r->flags & REQUEST_IMM;
	bool inv = j->r->flags & REQUEST_INV;
	const struct vb_recv_done done = {
		.status = WC_SUCCESS,
		.opcode = opcode,
		.byte_len = j->r->length,
		.imm = imm || inv ? j->r->imm : 0,
		.src_qp = j->qp->attr.dest_qp_num,
		.wc_flags = imm	  ? WC_WITH_IMM
			    : inv ? WC_WITH_INV
				  : 0,
		.solicited = j->r->flags & REQUEST_SOLICITED,
	};

	vb_qp_recv_done(j->qp, &done);
}

static enum vb_fault begin_recv(const struct job *j)
{
	if (!vb_qp_recv_begin(j->qp))
		return FAULT_NO_RQE;
	if (j->r->length > j->qp->recv.length || j->r->length > VB_MAX_MSG)
		return FAULT_RQE_TOO_SMALL;
	return FAULT_NONE;
}

static struct vb_pd *recv_pd(const struct vb_qp *qp)
{
	return qp->srq ? qp->srq->pd : qp->pd;
}

static enum vb_fault end_send(const struct job *j)
{
	if (j->r->flags & REQUEST_INV && !vb_mw_invalidate(j->qp, j->r->imm))
		return FAULT_INV_RKEY;
	complete_recv(j, WC_OP_RECV);
	return FAULT_NONE;
}

static enum vb_fault take_send(const struct job *j)
{
	const struct vb_recv_wqe *recv = &j->qp->recv;
	enum vb_fault fault;

	if (j->r->bytes != j->r->length)
		return FAULT_LENGTH;
	fault = begin_recv(j);
	if (fault)
		return fault;
	if (vb_sge_place(recv_pd(j->qp), recv->sge, recv->num_sge, 0, j->data,
			 j->r->length))
		return FAULT_RQE_LKEY;
	return end_send(j);
}

static enum vb_reach put_zeros(const struct vb_near_side *near, uint64_t len)
{
	static const uint8_t zeros[4096];

	for (uint64_t done = 0, part; done < len; done += part) {
		part = VB_MIN(len - done, sizeof(zeros));
		if (vb_sge_place(near->pd, near->sge, near->count,
				 near->offset + done, zeros, (uint32_t)part))
			return REACH_LOCAL;
	}
	return REACH_OK;
}

/* From their memory, by their own keys, into what was posted here. */
static enum vb_reach pull(const struct job *j, const struct vb_sge *pieces,
			  unsigned count, const struct vb_yard_view *v)
{
	const struct vb_recv_wqe *recv = &j->qp->recv;
	struct vb_near_side near = { .pd = recv_pd(j->qp),
				     .sge = recv->sge,
				     .count = recv->num_sge };
	enum vb_reach result = REACH_OK;

	for (unsigned i = 0; i < count && result == REACH_OK; i++) {
		const struct vb_far_side far = { .adapter = v->adapter,
						 .pd = v->pd,
						 .qpn = v->qpn,
						 .key = pieces[i].lkey,
						 .iova = pieces[i].addr };

		result = far.key == NEAR_ZEROS
				 ? put_zeros(&near, pieces[i].length)
				 : vb_reach(j->peer, &near, &far,
					    pieces[i].length, false);
		near.offset += pieces[i].length;
	}
	return result;
}

static enum vb_fault take_pull(const struct job *j)
{
	unsigned count = j->r->bytes / sizeof(struct vb_sge);
	struct vb_sge pieces[VB_MAX_SGE];
	struct vb_yard_view v;
	enum vb_fault fault;

	if (count > VB_MAX_SGE)
		return FAULT_LENGTH;
	memcpy(pieces, j->data, count * sizeof(pieces[0]));
	/* What was copied stays what it is. */
	__asm__ volatile("" : : "r"(pieces) : "memory");
	if (vb_sge_total(pieces, count) != j->r->length)
		return FAULT_LENGTH;
	fault = begin_recv(j);
	if (fault)
		return fault;
	if (!vb_yard_view(j->peer->yard, j->r->sqpn, &v) ||
	    v.life != j->r->src_life)
		return FAULT_NONE; /* answered as nobody's */
	switch (pull(j, pieces, count, &v)) {
	case REACH_OK:
		j->a->kind = ANSWER_DONE;
		return end_send(j);
	case REACH_LOCAL:
		return FAULT_RQE_LKEY;
	case REACH_REMOTE:
		j->a->kind = ANSWER_SOURCE;
		return FAULT_NONE;
	case REACH_GONE:
		return FAULT_NONE;
	}
	return FAULT_NONE;
}

/*
 * WRITE, and the end of one that the requester placed.
 */

static enum vb_fault finish_write(const struct job *j)
{
	if (j->r->flags & REQUEST_IMM)
		complete_recv(j, WC_OP_RECV_WRITE_IMM);
	return FAULT_NONE;
}

static enum vb_fault take_write(const struct job *j)
{
	const struct vb_request *r = j->r;
	struct vb_qp *qp = j->qp;
	enum vb_fault fault;

	if (!(qp->attr.access_flags & ACCESS_REMOTE_WRITE))
		return FAULT_ACCESS_FLAGS;
	if (r->length > VB_MAX_MSG ||
	    (r->op == NEAR_WRITE && r->bytes != r->length))
		return FAULT_LENGTH;
	fault = vb_mr_check(qp->adapter, qp->pd, r->dqpn, r->rkey, r->va,
			    r->length, ACCESS_REMOTE_WRITE);
	if (fault)
		return fault;
	if (r->flags & REQUEST_IMM && !vb_qp_recv_begin(qp))
		return FAULT_NO_RQE;
	if (r->op == NEAR_WRITE)
		fault = vb_mr_write(qp->adapter, qp->pd, r->dqpn, r->rkey,
				    r->va, j->data, r->length);
	return fault ? fault : finish_write(j);
}

static enum vb_fault take_atomic(const struct job *j)
{
	struct vb_qp *qp = j->qp;
	struct vb_near_atomic op;
	enum vb_fault fault;

	if (!(qp->attr.access_flags & ACCESS_REMOTE_ATOMIC))
		return FAULT_ACCESS_FLAGS;
	if (j->r->bytes != sizeof(op))
		return FAULT_LENGTH;
	if (qp->attr.max_dest_rd_atomic == 0)
		return FAULT_TOO_MANY_READS;
	memcpy(&op, j->data, sizeof(op));
	fault = vb_mr_atomic(qp->adapter, qp->pd, j->r->dqpn, j->r->rkey,
			     j->r->va, j->r->op == NEAR_CMP_SWAP, op.swap_add,
			     op.compare, &j->a->value);
	if (fault == FAULT_NONE)
		j->a->kind = ANSWER_VALUE;
	return fault;
}

/* IBA annex A19. */
static enum vb_fault take_store(const struct job *j)
{
	struct vb_qp *qp = j->qp;
	uint64_t word;

	if (!(qp->attr.access_flags & ACCESS_REMOTE_WRITE))
		return FAULT_ACCESS_FLAGS;
	if (j->r->bytes != sizeof(word) || j->r->length != sizeof(word))
		return FAULT_LENGTH;
	if (qp->attr.max_dest_rd_atomic == 0)
		return FAULT_TOO_MANY_READS;
	if (j->r->va & 7)
		return FAULT_ALIGNMENT;
	memcpy(&word, j->data, sizeof(word));
	return vb_mr_store64(qp->adapter, qp->pd, j->r->dqpn, j->r->rkey,
			     j->r->va, &word);
}

/* What the requester found that it may not do. It is believed: it harms but
 * its own connection. */
static enum vb_fault take_fault(const struct job *j)
{
	uint32_t fault = j->r->imm;

	if (fault < FAULT_RKEY || fault >= FAULT_COUNT ||
	    vb_fault_rc((enum vb_fault)fault)->action != ACT_NAK_AND_DIE)
		return FAULT_RKEY;
	return (enum vb_fault)fault;
}

static enum vb_fault execute(const struct job *j)
{
	switch (j->r->op) {
	case NEAR_SEND:
		j->a->kind = ANSWER_DONE;
		return take_send(j);
	case NEAR_PULL:
		return take_pull(j);
	case NEAR_WRITE:
	case NEAR_PLACED:
		j->a->kind = ANSWER_DONE;
		return take_write(j);
	case NEAR_CMP_SWAP:
	case NEAR_FETCH_ADD:
		return take_atomic(j);
	case NEAR_STORE:
		j->a->kind = ANSWER_DONE;
		return take_store(j);
	default:
		return take_fault(j);
	}
}

static void die(struct vb_qp *qp, const struct vb_fault_row *row)
{
	const struct vb_recv_done done = { .status = row->status };
	int event = row->event;

	if (qp->recv_busy) {
		vb_qp_recv_done(qp, &done);
		event = -1; /* the completion tells */
	}
	vb_qp_fail(qp, event);
}

static void refuse(const struct job *j, enum vb_fault fault)
{
	const struct vb_fault_row *row = vb_fault_rc(fault);
	struct vb_qp *qp = j->qp;

	j->a->kind = ANSWER_NOBODY; /* it goes into ERR without a word */
	if (row->action != ACT_DIE) {
		vb_count(qp->adapter, row->counter, 1);
		j->a->kind = ANSWER_NAK;
		j->a->syndrome = row->syndrome;
	}
	if (row->action != ACT_NAK_ONCE) {
		die(qp, row);
		return;
	}
	j->a->kind = ANSWER_RNR;
	j->a->syndrome |= qp->attr.min_rnr_timer & 0x1f;
}

static void note_established(struct vb_qp *qp)
{
	if (vb_near_state(qp) != QPS_RTR || qp->comm_est_sent)
		return;
	qp->comm_est_sent = true;
	vb_qp_event(qp, EVENT_COMM_EST);
}

/* Is it the next in its requester's order? */
static bool is_next(const struct job *j)
{
	struct vb_near_qp *nq = vb_nq(j->qp);

	if (nq->src_life != j->r->src_life) {
		nq->src_life = j->r->src_life;
		nq->expected = 0;
	}
	return j->r->op != NEAR_NEWS && j->r->seq == nq->expected;
}

void vb_near_request(struct vb_near *n, struct vb_peer *p, struct vb_qp *qp,
		     const struct vb_request *r, const uint8_t *data,
		     struct vb_answer_note *a)
{
	const struct job j = { p, qp, r, data, a };
	enum vb_fault fault;

	if (!is_for(&j))
		return;
	note_established(qp);
	if (!is_next(&j)) {
		a->kind = ANSWER_PASSED;
		return;
	}
	fault = execute(&j);
	if (fault)
		refuse(&j, fault);
	else if (a->kind == ANSWER_DONE || a->kind == ANSWER_VALUE)
		vb_nq(qp)->expected++;
}

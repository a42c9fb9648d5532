/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC between processes that share a domain. A request arrives at a target
 * queue pair of another process, which forwards it to this process, where the
 * shared receive queue is. This file checks and places the request as if a
 * target queue pair of this process had received it; the other process sends
 * the response. */
#include "core/mr.h"
#include "core/why_qp.h"
#include "ib/xrc_forward.h"
#include "ib/rc.h"

static bool ib_is_ours(const struct vb_forward_qp *f) VB_REQUIRES(f->qp.drive)
{
	return !f->qp.recv_busy || vb_xrc_is_home(&f->qp);
}

static enum vb_fault take_word(struct vb_forward_qp *f,
			       const struct vb_ib_pkt *pkt, uint64_t *value)
	VB_REQUIRES(f->qp.drive)
{
	const struct vb_atomic_eth *eth = &pkt->atomic;
	bool swap = (pkt->bth.opcode & 0x1f) == CODE_CMP_SWAP;
	struct vb_qp *qp = &f->qp;
	bool store = pkt->op->kind == KIND_ATOMIC_WRITE;

	if (store ? pkt->payload_bytes != 8 || pkt->reth.length != 8
		  : pkt->payload_bytes != 0)
		return FAULT_LENGTH;
	if ((store ? pkt->reth.va : eth->va) & 7)
		return FAULT_ALIGNMENT;
	if (store)
		return vb_mr_store64(qp->adapter, qp->pd, vb_rc_qpn(&f->qp),
				     pkt->reth.rkey, pkt->reth.va,
				     pkt->payload);
	return vb_mr_atomic(qp->adapter, qp->pd, vb_rc_qpn(&f->qp), eth->rkey,
			    eth->va, swap, eth->swap_add, eth->compare, value);
}

static enum vb_fault take(struct vb_forward_qp *f, const struct vb_ib_pkt *pkt,
			  uint64_t *value) VB_REQUIRES(f->qp.drive)
{
	switch (pkt->op->kind) {
	case KIND_SEND:
	case KIND_WRITE:
		return vb_resp_take(&f->qp, &f->in, f->prev, pkt);
	case KIND_READ:
		return vb_resp_judge_read(&f->qp, pkt);
	case KIND_ATOMIC:
	case KIND_ATOMIC_WRITE:
		return take_word(f, pkt, value);
	default:
		return FAULT_XRC_FORWARD;
	}
}

/* Log why the request is refused, while the shared receive queue is in use; the
 * other process logs only that it was refused. end_recv() gives the cause to
 * the completion, and then this queue pair serves the next request. */
static void tell_fault(struct vb_forward_qp *f, enum vb_fault fault,
		       const struct vb_ib_pkt *pkt) VB_REQUIRES(f->qp.drive)
{
	if (!vb_rc_is_known_here(fault))
		vb_rc_explain_fault(&f->qp, &f->in, fault, pkt);
}

/* Complete the receive in progress, as a responder does. The other process
 * decides whether the target queue pair moves to ERR. */
static void end_recv(struct vb_forward_qp *f, enum vb_wc_status status)
	VB_REQUIRES(f->qp.drive)
{
	const struct vb_recv_done done = { .status = status,
					   .opcode = WC_OP_RECV,
					   .why = f->qp.why };

	f->prev = NULL;
	vb_qp_recv_done(&f->qp, &done);
}

void vb_forward_end(struct vb_forward_qp *f)
{
	end_recv(f, WC_FLUSH_ERR);
}

enum vb_fault vb_forward_read(struct vb_forward_qp *f,
			      const struct vb_xrc_key *domain,
			      const struct vb_forward_piece *piece, uint8_t *to)
{
	const struct vb_why_ask ask = { .what = "RDMA READ",
					.key = piece->rkey,
					.need = ACCESS_REMOTE_READ,
					.va = piece->va,
					.len = piece->length };
	struct vb_qp *qp = &f->qp;
	enum vb_fault fault = vb_xrc_enter_by_key(&f->qp, domain, piece->srqn);

	if (fault == FAULT_NONE)
		fault = vb_mr_read(qp->adapter, qp->pd, vb_rc_qpn(&f->qp),
				   piece->rkey, piece->va, to, piece->length);
	if (fault && !vb_rc_is_known_here(fault))
		(void)vb_qp_why_fault(&f->qp, fault, &ask);
	qp->why = WHY_NONE;
	vb_xrc_leave(&f->qp);
	return fault;
}

enum vb_fault vb_forward_take(struct vb_forward_qp *f,
			      const struct vb_xrc_key *domain,
			      const struct vb_ib_pkt *pkt, uint64_t *value)
{
	struct vb_qp *qp = &f->qp;
	enum vb_fault fault;
	bool ends;

	/* This is a first packet, but a receive is in use: the other process's
	 * queue pair was reset in the middle of a message. Flush that
	 * receive. */
	if (pkt->op->place & PLACE_FIRST && qp->recv_busy)
		vb_forward_end(f);
	fault = vb_xrc_enter_by_key(&f->qp, domain, pkt->xrc_srqn);
	if (fault == FAULT_NONE)
		fault = ib_is_ours(f) ? take(f, pkt, value) : FAULT_ORDER;
	/* If the completion queue was full, this queue pair is in ERR now. Move
	 * it back to RTS, because it must serve later requests. */
	if (vb_rc_state(&f->qp) == QPS_ERR) {
		atomic_store(&qp->state, QPS_RTS);
		fault = FAULT_XRC_FORWARD;
	}
	if (fault == FAULT_NONE)
		f->prev = pkt->op;
	ends = fault && vb_fault_rc(fault)->action != ACT_NAK_ONCE;
	if (ends)
		tell_fault(f, fault, pkt);
	if (!ib_is_ours(f))
		/* End the use of the SRQ from which the receive came. */
		vb_xrc_leave(&f->qp);
	if (ends)
		end_recv(f, (enum vb_wc_status)vb_fault_rc(fault)->status);
	qp->why = WHY_NONE;
	vb_xrc_leave(&f->qp);
	return fault;
}

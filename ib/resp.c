/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder. It checks a request in the order of IBA 9.7.4 - PSN, operation,
 * permission, receive, length, key - up to the first fault. Then it places the
 * data and records what to answer. */
#include "base/guard.h"
#include "core/mw.h"
#include "core/sge.h"
#include "core/why_qp.h"
#include "ib/xrc_forward.h"
#include "ib/rc.h"

/* An ACK is sent after this many packets even if the requester does not ask. */
#define ACK_AT_LEAST_EVERY 64u

static const uint32_t needs[] = {
	/* The qp_access_flags that each kind of request needs. */
	[KIND_SEND] = 0,
	[KIND_WRITE] = ACCESS_REMOTE_WRITE,
	[KIND_READ] = ACCESS_REMOTE_READ,
	[KIND_ATOMIC] = ACCESS_REMOTE_ATOMIC,
	[KIND_ATOMIC_WRITE] = ACCESS_REMOTE_WRITE,
};

static void note_nak(struct vb_qp *qp, uint8_t syndrome, uint32_t psn)
	VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;

	resp->nak_due = true;
	resp->nak_syndrome = syndrome;
	resp->nak_psn = psn;
}

void vb_resp_die(struct vb_qp *qp, enum vb_fault fault, uint32_t psn)
{
	const struct vb_fault_row *row = vb_fault_rc(fault);
	struct vb_resp *resp = &vb_rc(qp)->resp;
	const struct vb_recv_done done = {
		.status = row->status, .why = vb_qp_why_fault(qp, fault, NULL)
	};
	int event = row->event;

	if (row->action == ACT_NAK_AND_DIE) {
		note_nak(qp, row->syndrome, psn);
		vb_count(qp->adapter, row->counter, 1);
	}
	resp->ack_due = false;
	resp->dying = true;
	if (qp->recv_busy) {
		vb_qp_recv_done(qp, &done);
		event = -1; /* the completion reports the fault */
	}
	vb_qp_fail(qp, event);
}

static void ib_refuse(struct vb_qp *qp, enum vb_fault fault,
		      const struct vb_ib_pkt *pkt) VB_REQUIRES(qp->drive)
{
	const struct vb_fault_row *row = vb_fault_rc(fault);

	if (row->action != ACT_NAK_ONCE) {
		vb_rc_explain_fault(qp, &vb_rc(qp)->resp.in, fault, pkt);
		vb_resp_die(qp, fault, pkt->bth.psn);
		return;
	}
	vb_rc(qp)->resp.nak_sent = NAK_RNR;
	vb_count(qp->adapter, row->counter, 1);
	note_nak(qp, row->syndrome | (qp->attr.min_rnr_timer & 0x1f),
		 pkt->bth.psn);
}

/* Functions that check and place the packets of SEND and WRITE. */

/* All packets but the last are full, and only a message of one packet may be
 * empty (IBA 9.7.4.1.6). */
static bool payload_fits_place(const struct vb_qp *qp,
			       const struct vb_ib_pkt *pkt)
{
	if (!(pkt->op->place & PLACE_LAST))
		return pkt->payload_bytes == qp->mtu;
	return pkt->payload_bytes <= qp->mtu &&
	       (pkt->payload_bytes || pkt->op->place == PLACE_ONLY);
}

static void ib_complete_recv(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
			     uint32_t byte_len) VB_REQUIRES(qp->drive)
{
	bool imm = pkt->op->headers & HDR_IMM;
	bool inv = pkt->op->headers & HDR_IETH;
	struct vb_recv_done done = {
		.status = WC_SUCCESS,
		.opcode = pkt->op->kind == KIND_SEND ? WC_OP_RECV
						     : WC_OP_RECV_WRITE_IMM,
		.byte_len = byte_len,
		.imm = imm   ? pkt->imm
		       : inv ? pkt->ieth_rkey
			     : 0,
		.src_qp = qp->attr.dest_qp_num,
		.wc_flags = imm	  ? WC_WITH_IMM
			    : inv ? WC_WITH_INV
				  : 0,
		.solicited = pkt->bth.solicited,
	};

	vb_qp_recv_done(qp, &done);
}

/* Begin a SEND: copy the next receive to qp->recv. The receive does not get the
 * first *@skip bytes of the message. */
static enum vb_fault begin_send(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
				uint32_t *skip) VB_REQUIRES(qp->drive)
{
	if (VB_UNLIKELY(qp->srq && qp->srq->tags))
		return vb_tag_begin(qp, pkt->payload, pkt->payload_bytes,
				    pkt->op->place & PLACE_LAST, skip);
	return qp->recv_busy || vb_qp_recv_begin(qp) ? FAULT_NONE
						     : FAULT_NO_RQE;
}

static enum vb_fault ib_take_send(struct vb_qp *qp, struct vb_inbound *in,
				  const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	struct vb_pd *pd = qp->srq ? qp->srq->pd : qp->pd;
	uint32_t len = pkt->payload_bytes, skip = 0;
	enum vb_fault fault;

	if (!payload_fits_place(qp, pkt))
		return FAULT_LENGTH;
	if (pkt->op->place & PLACE_FIRST) {
		fault = begin_send(qp, pkt, &skip);
		if (fault)
			return fault;
		in->offset = 0;
		len -= skip;
	}
	if (in->offset + len > qp->recv.length || in->offset + len > VB_MAX_MSG)
		return FAULT_RQE_TOO_SMALL;
	if (vb_sge_place(pd, qp->recv.sge, qp->recv.num_sge, in->offset,
			 pkt->payload + skip, len))
		return FAULT_RQE_LKEY;
	in->offset += len;
	if (!(pkt->op->place & PLACE_LAST))
		return FAULT_NONE;
	/* Invalidation waits for accesses: end the one that is kept open. */
	vb_mr_end(&in->run);
	if (pkt->op->headers & HDR_IETH &&
	    !vb_mw_invalidate(qp, pkt->ieth_rkey))
		return FAULT_INV_RKEY;
	ib_complete_recv(qp, pkt, (uint32_t)in->offset);
	return FAULT_NONE;
}

/* Check the whole range before placing its first byte (IBA 9.7.4.1.7). For a
 * single packet vb_mr_write() makes the same check. */
static enum vb_fault ib_begin_write(struct vb_qp *qp, struct vb_inbound *in,
				    const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	const struct vb_reth *reth = &pkt->reth;

	if (reth->length > VB_MAX_MSG)
		return FAULT_LENGTH;
	in->va = reth->va;
	in->rkey = reth->rkey;
	in->length = reth->length;
	in->offset = 0;
	if (pkt->op->place == PLACE_ONLY && pkt->payload_bytes == reth->length)
		return FAULT_NONE;
	return vb_mr_check(qp->adapter, qp->pd, vb_rc_qpn(qp), reth->rkey,
			   reth->va, reth->length, ACCESS_REMOTE_WRITE);
}

/* The last packet has all remaining bytes; earlier packets leave some. */
static bool payload_fits_write(const struct vb_inbound *in,
			       const struct vb_ib_pkt *pkt)
{
	uint64_t left = in->length - in->offset;

	return pkt->op->place & PLACE_LAST ? pkt->payload_bytes == left
					   : pkt->payload_bytes < left;
}

/* Most packets of a run use one key: vb_mr_begin_next() finds it only once. */
static enum vb_fault place_write(struct vb_qp *qp, struct vb_inbound *in,
				 const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	uint64_t va = in->va + in->offset;
	uint32_t len = pkt->payload_bytes;

	if (!in->in_run || len == 0 ||
	    !vb_mr_begin_next(qp->adapter, qp->pd, vb_rc_qpn(qp), in->rkey, va,
			      len, ACCESS_REMOTE_WRITE, &in->run))
		return vb_mr_write(qp->adapter, qp->pd, vb_rc_qpn(qp), in->rkey,
				   va, pkt->payload, len);
	return vb_guard_copy(in->run.at, pkt->payload, len)
		       ? FAULT_REMOTE_MEMORY
		       : FAULT_NONE;
}

static enum vb_fault ib_take_write(struct vb_qp *qp, struct vb_inbound *in,
				   const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	bool with_imm = pkt->op->headers & HDR_IMM;
	enum vb_fault fault = FAULT_NONE;

	if (!payload_fits_place(qp, pkt))
		return FAULT_LENGTH;
	/* IBA 9.7.4 demands a receive before the key is checked: without a
	 * receive the requester retries, but a wrong key is fatal. */
	if (with_imm && !qp->recv_busy && !vb_qp_recv_begin(qp))
		return FAULT_NO_RQE;
	if (pkt->op->place & PLACE_FIRST)
		fault = ib_begin_write(qp, in, pkt);
	if (fault)
		return fault;
	if (!payload_fits_write(in, pkt))
		return FAULT_LENGTH;
	fault = place_write(qp, in, pkt);
	if (fault)
		return fault;
	in->offset += pkt->payload_bytes;
	if (with_imm)
		ib_complete_recv(qp, pkt, in->length);
	return FAULT_NONE;
}

enum vb_fault vb_resp_take(struct vb_qp *qp, struct vb_inbound *in,
			   const struct vb_ib_op *prev,
			   const struct vb_ib_pkt *pkt)
{
	uint32_t need = needs[pkt->op->kind];

	if (vb_ib_op_order(prev, pkt->op) != ORDER_OK)
		return FAULT_ORDER;
	if ((qp->attr.access_flags & need) != need)
		return FAULT_ACCESS_FLAGS;
	return pkt->op->kind == KIND_SEND ? ib_take_send(qp, in, pkt)
					  : ib_take_write(qp, in, pkt);
}

/* Functions that check READs and atomics and record their answers. */

static uint32_t responses_for(const struct vb_qp *qp, uint32_t length)
{
	return length ? (length + qp->mtu - 1) / qp->mtu : 1;
}

static void set_run(struct vb_answer *a, uint32_t psn, uint64_t va,
		    uint32_t length, uint32_t count)
{
	a->run_psn = psn;
	a->run_va = va;
	a->run_length = length;
	a->run_count = count;
	a->sent = 0;
}

enum vb_fault vb_resp_judge_read(struct vb_qp *qp, const struct vb_ib_pkt *pkt)
{
	const struct vb_reth *reth = &pkt->reth;

	if (pkt->payload_bytes || reth->length > VB_MAX_MSG)
		return FAULT_LENGTH;
	return vb_mr_check(qp->adapter, qp->pd, vb_rc_qpn(qp), reth->rkey,
			   reth->va, reth->length, ACCESS_REMOTE_READ);
}

static void add_read(struct vb_qp *qp, const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;
	const struct vb_reth *reth = &pkt->reth;
	struct vb_answer *a = vb_replay_add(&resp->replay);

	a->kind = KIND_READ;
	a->psn = pkt->bth.psn;
	a->count = responses_for(qp, reth->length);
	a->msn = vb_psn_add(resp->msn, 1);
	a->va = reth->va;
	a->rkey = reth->rkey;
	a->length = reth->length;
	a->srqn = pkt->xrc_srqn;
	set_run(a, a->psn, a->va, a->length, a->count);
}

static enum vb_fault ib_resp_take_read(struct vb_qp *qp,
				       const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	enum vb_fault fault;

	if (!vb_replay_has_room(&vb_rc(qp)->resp.replay))
		return FAULT_TOO_MANY_READS;
	fault = vb_resp_judge_read(qp, pkt);
	if (fault)
		return fault;
	add_read(qp, pkt);
	return FAULT_NONE;
}

/* Record an answer of one packet, which needs no memory: for a duplicate of an
 * atomic the old value is sent again, and the atomic is not executed again. */
static struct vb_answer *ib_add_answer(struct vb_resp *resp,
				       const struct vb_ib_pkt *pkt)
{
	struct vb_answer *a = vb_replay_add(&resp->replay);

	a->kind = pkt->op->kind;
	a->psn = pkt->bth.psn;
	a->count = 1;
	a->msn = vb_psn_add(resp->msn, 1);
	set_run(a, a->psn, 0, 0, 1);
	return a;
}

static enum vb_fault ib_resp_take_atomic(struct vb_qp *qp,
					 const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	const struct vb_atomic_eth *eth = &pkt->atomic;
	bool swap = (pkt->bth.opcode & 0x1f) == CODE_CMP_SWAP;
	struct vb_resp *resp = &vb_rc(qp)->resp;
	enum vb_fault fault;
	uint64_t old;

	if (pkt->payload_bytes)
		return FAULT_LENGTH;
	if (!vb_replay_has_room(&resp->replay))
		return FAULT_TOO_MANY_READS;
	if (eth->va & 7)
		return FAULT_ALIGNMENT;
	fault = vb_mr_atomic(qp->adapter, qp->pd, vb_rc_qpn(qp), eth->rkey,
			     eth->va, swap, eth->swap_add, eth->compare, &old);
	if (fault)
		return fault;
	ib_add_answer(resp, pkt)->value = old;
	return FAULT_NONE;
}

/* ATOMIC WRITE stores one 8-byte word at once (IBA annex A19). */
static enum vb_fault take_atomic_write(struct vb_qp *qp,
				       const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;
	enum vb_fault fault;

	if (pkt->payload_bytes != 8 || pkt->reth.length != 8)
		return FAULT_LENGTH;
	if (!vb_replay_has_room(&resp->replay))
		return FAULT_TOO_MANY_READS;
	if (pkt->reth.va & 7)
		return FAULT_ALIGNMENT;
	fault = vb_mr_store64(qp->adapter, qp->pd, vb_rc_qpn(qp),
			      pkt->reth.rkey, pkt->reth.va, pkt->payload);
	if (fault == FAULT_NONE)
		ib_add_answer(resp, pkt);
	return fault;
}

/* Functions that handle requests that arrive in order. */

static enum vb_fault ib_resp_judge(struct vb_qp *qp,
				   const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;
	uint32_t need = needs[pkt->op->kind];

	if (pkt->op->kind == KIND_SEND || pkt->op->kind == KIND_WRITE)
		return vb_resp_take(qp, &resp->in, resp->prev, pkt);
	if (vb_ib_op_order(resp->prev, pkt->op) != ORDER_OK)
		return FAULT_ORDER;
	if ((qp->attr.access_flags & need) != need)
		return FAULT_ACCESS_FLAGS;
	switch (pkt->op->kind) {
	case KIND_READ:
		return ib_resp_take_read(qp, pkt);
	case KIND_ATOMIC:
		return ib_resp_take_atomic(qp, pkt);
	default:
		return take_atomic_write(qp, pkt);
	}
}

static void want_ack(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;

	resp->deferred += resp->ack_due;
	resp->ack_due = true;
}

/* Is the request answered by an ACK? READs and atomics have responses. */
static bool is_acked(uint8_t kind)
{
	return kind == KIND_SEND || kind == KIND_WRITE;
}

/* The request at the expected PSN was carried out: advance the expected PSN. */
static void accept(struct vb_qp *qp, const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;
	uint32_t psns = 1;

	resp->prev = pkt->op;
	resp->nak_sent = NAK_NONE;
	if (resp->nak_due && vb_syn_type(resp->nak_syndrome) == SYN_RNR)
		/* An RNR NAK that was not sent yet is obsolete. */
		resp->nak_due = false;
	if (pkt->op->place & PLACE_LAST)
		resp->msn = vb_psn_add(resp->msn, 1);
	if (pkt->op->kind == KIND_READ) {
		psns = responses_for(qp, pkt->reth.length);
	} else if (is_acked(pkt->op->kind)) {
		resp->ack_psn = pkt->bth.psn;
		if (pkt->bth.ack_req || ++resp->unacked >= ACK_AT_LEAST_EVERY)
			want_ack(qp);
	}
	resp->epsn = vb_psn_add(resp->epsn, psns);
}

/* Forward the request to the process that has the shared receive queue. This
 * side makes only the checks that do not involve that queue. */
static enum vb_fault ib_hand_over(struct vb_qp *qp, const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;
	struct vb_adapter *a = qp->adapter;
	uint32_t need = needs[pkt->op->kind];
	enum vb_fault fault;

	if (vb_ib_op_order(resp->prev, pkt->op) != ORDER_OK)
		return FAULT_ORDER;
	if ((qp->attr.access_flags & need) != need)
		return FAULT_ACCESS_FLAGS;
	if (!is_acked(pkt->op->kind) && !vb_replay_has_room(&resp->replay))
		return FAULT_TOO_MANY_READS;
	resp->forwarded.serial = atomic_fetch_add(&a->xrc_serial, 1) + 1;
	fault = a->forward_ops->hand_over(qp, pkt, resp->forwarded.serial,
					  &resp->forwarded.session);
	if (fault)
		return fault;
	resp->forwarded.pending = true;
	resp->forwarded.pkt = *pkt;
	resp->forwarded.pkt.payload = NULL;
	return FAULT_NONE;
}

/* With XRC: use the packet's SRQ until vb_xrc_leave(), or forward the packet.
 * All packets of a message must name one SRQ. */
static enum vb_fault enter_srq(struct vb_qp *qp, const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;
	enum vb_fault fault;

	if (pkt->op->place & PLACE_FIRST)
		resp->srqn = pkt->xrc_srqn;
	if (pkt->xrc_srqn != resp->srqn)
		return FAULT_ORDER;
	if (!qp->recv_busy && vb_xrc_is_forwarded(qp, pkt->xrc_srqn))
		return ib_hand_over(qp, pkt);
	fault = vb_xrc_enter(qp, pkt->xrc_srqn);
	if (!qp->recv_busy || vb_xrc_is_home(qp))
		return fault;
	/* The queue was destroyed, and a new queue has its number now. */
	vb_xrc_leave(qp);
	return fault ? fault : FAULT_ORDER;
}

static void take_next(struct vb_qp *qp, const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	bool xrc = qp->type == QPT_XRC_RECV;
	enum vb_fault fault = xrc ? enter_srq(qp, pkt) : FAULT_NONE;

	if (fault == FAULT_NONE && vb_rc(qp)->resp.forwarded.pending)
		return;
	if (fault == FAULT_NONE)
		fault = ib_resp_judge(qp, pkt);
	if (VB_UNLIKELY(fault))
		ib_refuse(qp, fault, pkt);
	else
		accept(qp, pkt);
	if (xrc)
		vb_xrc_leave(qp);
}

static void note_gap(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;
	const struct vb_fault_row *row = vb_fault_rc(FAULT_PSN_GAP);

	if (resp->nak_sent == NAK_NONE)
		vb_count(qp->adapter, row->counter, 1);
	resp->nak_sent = NAK_GAP;
	note_nak(qp, row->syndrome, resp->epsn);
}

/* Keep nothing after an RNR NAK: the requester sends everything again. */
static bool ib_resp_keep(struct vb_qp *qp, const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	struct vb_rc *rc = vb_rc(qp);
	int32_t ahead = vb_psn_diff(pkt->bth.psn, rc->resp.epsn);

	return rc->selective && rc->resp.nak_sent != NAK_RNR &&
	       (uint32_t)ahead < VB_OOO_PSNS &&
	       vb_ooo_keep(qp->adapter, &rc->resp.ooo, pkt);
}

/* A request came early: send one NAK, then wait for the missing packet (IBA
 * 9.7.5.1.4). A peer that repeats selectively gets a further NAK when it asks,
 * and when a new gap appears. */
static void take_ooo(struct vb_qp *qp, const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;
	int32_t past = vb_psn_diff(pkt->bth.psn, resp->gap_psn);
	bool first = resp->nak_sent == NAK_NONE, kept = ib_resp_keep(qp, pkt);

	if (first || past > 0)
		resp->gap_psn = pkt->bth.psn;
	if (first || (kept && (pkt->bth.ack_req || past > 1)))
		note_gap(qp);
}

/* Handle the requests kept in resp->ooo whose turn it is now. */
static void ib_resp_take_kept(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;
	struct vb_ooo_pkt *p;

	while (resp->nak_sent == NAK_NONE &&
	       (p = vb_ooo_take(&resp->ooo, resp->epsn))) {
		take_next(qp, &p->pkt);
		vb_ooo_free(qp->adapter, p);
		if (resp->dying || resp->forwarded.pending)
			break;
	}
	if (resp->forwarded.pending)
		return;
	if (resp->nak_sent == NAK_NONE && !resp->dying &&
	    vb_ooo_gap(&resp->ooo, resp->epsn))
		note_gap(qp);
	else
		vb_ooo_clear(qp->adapter, &resp->ooo);
}

/* A forwarded request and all later ones wait for the other process's verdict.
 * When the requester repeats that request, check that the process is there. */
static void wait_for_verdict(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
			     int32_t ahead) VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;

	if (ahead == 0 &&
	    !qp->adapter->forward_ops->is_up(resp->forwarded.session))
		vb_forward_verdict(qp, resp->forwarded.serial, FAULT_XRC_SRQ,
				   0);
	else if (ahead > 0 && (uint32_t)ahead < VB_OOO_PSNS)
		/* If the packet is not kept, the requester sends it again. */
		(void)vb_ooo_keep(qp->adapter, &resp->ooo, pkt);
}

void vb_forward_verdict(struct vb_qp *qp, uint64_t serial, enum vb_fault fault,
			uint64_t value)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;
	const struct vb_ib_pkt *pkt = &resp->forwarded.pkt;

	if (!resp->forwarded.pending || resp->forwarded.serial != serial ||
	    !(vb_rc_state(qp) == QPS_RTR || vb_rc_sends(qp)))
		return;
	resp->forwarded.pending = false;
	if (fault) {
		vb_rc_explain_forwarded(qp, fault);
		ib_refuse(qp, fault, pkt);
	} else {
		if (pkt->op->kind == KIND_READ)
			add_read(qp, pkt);
		else if (!is_acked(pkt->op->kind))
			ib_add_answer(resp, pkt)->value = value;
		accept(qp, pkt);
	}
	if (resp->ooo.count)
		ib_resp_take_kept(qp);
}

/* A duplicate (IBA 9.7.5.1.3) asks for responses again. Will these be sent
 * anyway, because they are due and not sent yet? */
static bool still_to_come(const struct vb_answer *a, uint32_t psn,
			  uint32_t count)
{
	uint32_t end = vb_psn_add(a->run_psn, a->run_count);

	return a->due != DUE_NOT &&
	       vb_psn_diff(psn, vb_psn_add(a->run_psn, a->sent)) >= 0 &&
	       vb_psn_diff(vb_psn_add(psn, count), end) <= 0;
}

static void repeat_read(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
			struct vb_answer *a) VB_REQUIRES(qp->drive)
{
	const struct vb_reth *reth = &pkt->reth;
	uint32_t skipped = (pkt->bth.psn - a->psn) & VB_PSN_MASK;
	uint32_t count = responses_for(qp, reth->length);
	uint64_t shift = reth->va - a->va;

	if (reth->rkey != a->rkey || reth->length > VB_MAX_MSG ||
	    shift > a->length || reth->length > a->length - shift ||
	    count > a->count - skipped ||
	    still_to_come(a, pkt->bth.psn, count))
		return;
	/* The answer's present run ends later than the duplicate's. Send from
	 * the duplicate's first response on to the end of the READ. */
	if (a->due != DUE_NOT &&
	    vb_psn_diff(vb_psn_add(a->run_psn, a->run_count),
			vb_psn_add(pkt->bth.psn, count)) > 0) {
		set_run(a, pkt->bth.psn, reth->va, a->length - (uint32_t)shift,
			a->count - skipped);
		vb_replay_again(&vb_rc(qp)->resp.replay, a);
		return;
	}
	set_run(a, pkt->bth.psn, reth->va, reth->length, count);
	vb_replay_again(&vb_rc(qp)->resp.replay, a);
}

static void take_again(struct vb_qp *qp, const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;
	struct vb_answer *a;

	vb_count(qp->adapter, CNT_DUPLICATE_REQUEST, 1);
	if (is_acked(pkt->op->kind)) {
		want_ack(qp);
		resp->repeated = true;
		return;
	}
	vb_xrc_read_check(qp);
	a = vb_replay_find(&resp->replay, pkt->bth.psn);
	if (!a || a->kind != pkt->op->kind)
		return; /* too old: the requester has received the answer */
	if (a->kind == KIND_READ)
		repeat_read(qp, pkt, a);
	else
		vb_replay_again(&resp->replay, a);
}

void vb_resp_established(struct vb_qp *qp)
{
	if (vb_rc_state(qp) != QPS_RTR || qp->comm_est_sent)
		return;
	qp->comm_est_sent = true;
	vb_qp_event(qp, EVENT_COMM_EST);
}

void vb_resp_reset(struct vb_qp *qp)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;

	vb_ooo_clear(qp->adapter, &resp->ooo);
	vb_replay_fini(&resp->replay);
	vb_xrc_read_reset(qp);
	*resp = (struct vb_resp){
		.epsn = qp->attr.rq_psn & VB_PSN_MASK,
		.ack_psn = vb_psn_add(qp->attr.rq_psn, VB_PSN_MASK),
	};
	vb_replay_reset(&resp->replay, qp->attr.max_dest_rd_atomic);
}

void vb_resp_recv(struct vb_qp *qp, const struct vb_ib_pkt *pkt, vb_time now)
{
	const struct vb_resp *resp = &vb_rc(qp)->resp;
	int32_t ahead = vb_psn_diff(pkt->bth.psn, resp->epsn);

	vb_rc_note_selective(qp, pkt);
	if (vb_rc_state(qp) != QPS_RTR && !vb_rc_sends(qp))
		return;
	vb_resp_established(qp);
	if (VB_UNLIKELY(resp->forwarded.pending) && ahead >= 0) {
		wait_for_verdict(qp, pkt, ahead);
		return;
	}
	if (ahead > 0)
		take_ooo(qp, pkt);
	else if (ahead < 0)
		take_again(qp, pkt);
	else
		take_next(qp, pkt);
	if (VB_UNLIKELY(ahead == 0 && resp->ooo.count))
		ib_resp_take_kept(qp);
}

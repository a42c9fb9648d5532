/* SPDX-License-Identifier: BSD-2-Clause */
/* Unreliable connections: messages consist of packets as with RC, without
 * acknowledgements. A lost packet loses its message (IBA 9.8.2). */
#include <errno.h>
#include <stdlib.h>

#include "core/mw.h"
#include "core/why.h"
#include "ib/unrel.h"

struct vb_uc {
	struct vb_unrel common;
	/* The fields below are for the requester. */
	bool begun; /* the oldest WQE has its PSNs */
	/* The fields below are for the responder. */
	uint32_t epsn;
	/* Operation of the last packet of the message in progress. NULL: no
	 * message is in progress, or the rest of a broken message is to be
	 * dropped. */
	const struct vb_ib_op *prev;
	struct vb_inbound in;
	/* the responder must answer that the packet heard_psn has arrived */
	bool heard_due;
	uint32_t heard_psn;
	/* the log says why packets of the peer's length are dropped */
	bool explained;
};

static struct vb_uc *uc_of(const struct vb_qp *qp)
{
	return qp->priv[PRIV_TRANSPORT];
}

static int uc_attach(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	qp->ops = &vb_uc_ops;
	qp->priv[PRIV_TRANSPORT] = calloc(1, sizeof(struct vb_uc));
	return uc_of(qp) ? 0 : -ENOMEM;
}

static void uc_detach(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	free(uc_of(qp));
	qp->priv[PRIV_TRANSPORT] = NULL;
}

/* In SQD, finish a message that has begun, and begin no further one. */
static void drain(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	if (vb_rc_state(qp) == QPS_SQD && !uc_of(qp)->begun)
		vb_qp_drained(qp);
}

static void uc_enter(struct vb_qp *qp, enum vb_qp_state from,
		     enum vb_qp_state to, vb_time now) VB_REQUIRES(qp->drive)
{
	struct vb_uc *uc = uc_of(qp);

	if (to == QPS_RTR && from == QPS_INIT)
		*uc = (struct vb_uc){ .epsn = qp->attr.rq_psn };
	else if (to == QPS_RTS && from == QPS_RTR)
		vb_unrel_start(qp);
	else
		drain(qp);
}

/* Functions of the requester, which sends messages. */

/* Carry out a work request on a window. False: the request must wait, and stays
 * the oldest one. */
static bool ib_run_local(struct vb_qp *qp, const struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive)
{
	switch (vb_mw_run(qp, wqe)) {
	case MW_DONE:
		vb_qp_send_done(qp, WC_SUCCESS);
		return true;
	case MW_REFUSED:
		vb_unrel_fail(qp, WC_MW_BIND_ERR);
		return true;
	case MW_BUSY:
		break;
	}
	return false;
}

/* Begin the oldest WQE. False: the state does not permit sending, the WQE must
 * wait, or it cannot be sent. */
static bool begin_message(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	struct vb_uc *uc = uc_of(qp);
	struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, qp->sq.done);
	enum vb_wc_status status;

	if (vb_rc_state(qp) != QPS_RTS)
		return false;
	status = vb_req_judge(qp, wqe);
	if (status != WC_SUCCESS) {
		vb_unrel_fail(qp, status);
		return false;
	}
	if (vb_req_is_local(wqe))
		return ib_run_local(qp, wqe);
	wqe->first_psn = uc->common.pace.next;
	wqe->psn_count = vb_req_psns(qp, wqe);
	uc->begun = true;
	return true;
}

static bool send_packet(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_uc *uc = uc_of(qp);
	struct vb_pace *pace = &uc->common.pace;
	const struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, qp->sq.done);

	if (!uc->begun && !begin_message(qp))
		return false;
	/* the WQE was a work request on a window, and is done */
	if (!uc->begun)
		return true;
	if (vb_req_put_data(qp, wqe, pace->next, vb_pace_asks(pace), out)) {
		/* The peer drops the part of the message that it has when the
		 * next message begins. */
		uc->begun = false;
		vb_unrel_fail(qp, WC_LOC_PROT_ERR);
		return false;
	}
	vb_pace_sent(pace, now);
	if (pace->next == vb_psn_add(wqe->first_psn, wqe->psn_count)) {
		uc->begun = false;
		vb_qp_send_done(qp, WC_SUCCESS);
		drain(qp);
	}
	return true;
}

static void ib_uc_put_heard(struct vb_qp *qp, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_uc *uc = uc_of(qp);
	const struct vb_ib_pkt pkt = {
		.bth = vb_rc_bth(qp, VB_OP_HEARD, uc->heard_psn),
	};
	size_t len = vb_ib_put_headers(vb_txq_begin(out), &pkt);

	vb_txq_commit(out, (uint32_t)len, &qp->route);
	uc->heard_due = false;
}

static bool uc_send(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	if (uc_of(qp)->heard_due && vb_txq_has_room(out))
		ib_uc_put_heard(qp, out);
	return vb_unrel_send(qp, now, out, send_packet);
}

/* Functions of the responder, which receives messages. */

/* Drop the message in progress if a PSN is missing or the message is cut short.
 * A first packet begins a new message, whatever its PSN (IBA 9.8.2.2). */
static void check_order(struct vb_uc *uc, const struct vb_ib_pkt *pkt)
{
	if (pkt->bth.psn != uc->epsn ||
	    vb_ib_op_order(uc->prev, pkt->op) == ORDER_NO_LAST)
		uc->prev = NULL;
	uc->epsn = vb_psn_add(pkt->bth.psn, 1);
}

/* Log why a packet of the peer is dropped. The queue pair does not fail by
 * this, so qp->why stays as it was: in SQE it is the cause of a failed send. */
static void explain_drop(struct vb_qp *qp, const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	uint16_t before = qp->why;

	qp->why = WHY_NONE;
	vb_rc_explain_length(qp, pkt->payload_bytes);
	qp->why = before;
}

static void uc_recv(struct vb_qp *qp, const struct vb_ib_pkt *pkt, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_uc *uc = uc_of(qp);
	enum vb_fault fault;

	if (!vb_unrel_receives(qp))
		return;
	vb_resp_established(qp);
	if (pkt->bth.ack_req) {
		uc->heard_due = true;
		uc->heard_psn = pkt->bth.psn;
	}
	check_order(uc, pkt);
	fault = vb_resp_take(qp, &uc->in, uc->prev, pkt);
	uc->prev = fault ? NULL : pkt->op;
	if (VB_UNLIKELY(fault == FAULT_LENGTH && !uc->explained)) {
		uc->explained = true;
		explain_drop(qp, pkt);
	}
	if (fault)
		vb_unrel_refuse(qp, fault);
}

static void uc_run(struct vb_qp *qp, bool begins) VB_REQUIRES(qp->drive)
{
	vb_inbound_run(&uc_of(qp)->in, begins);
}

const struct vb_transport_ops vb_uc_ops = {
	.name = "uc",
	.recv = { uc_recv, vb_unrel_heard },
	.run = uc_run,
	.send = uc_send,
	.deadline = vb_unrel_deadline,
};

const struct vb_transport vb_uc_transport = {
	.name = "uc",
	.attach = uc_attach,
	.detach = uc_detach,
	.enter = uc_enter,
};

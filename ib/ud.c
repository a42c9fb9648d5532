/* SPDX-License-Identifier: BSD-2-Clause */
/* Unreliable datagrams: each message is one packet, to and from any queue pair.
 * A packet is accepted only with the receiver's Q_Key. */
#include <errno.h>
#include <stdlib.h>

#include "core/why.h"
#include "ib/unrel.h"

/* A Q_Key with this bit in a work request stands for the queue pair's own
 * Q_Key, which an unprivileged program cannot choose (IBA 10.2.5). */
#define QKEY_OF_QP 0x80000000u

/* The most senders that can wait at a time for an answer that their packet has
 * arrived (ib/pace.h). */
#define HEARD_MAX 16

struct vb_ud {
	struct vb_unrel common;
	struct heard {
		struct vb_route route;
		uint32_t psn;
	} heard[HEARD_MAX];
	unsigned heard_due;
	/* The routes of the packets in the batch that is being filled. They
	 * must outlive the work requests, whose slots the program may reuse
	 * earlier. */
	struct vb_route routes[VB_TXQ_FRAMES];
};

static struct vb_ud *ud_of(const struct vb_qp *qp)
{
	return qp->priv[PRIV_TRANSPORT];
}

static int ud_attach(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	qp->ops = &vb_ud_ops;
	qp->priv[PRIV_TRANSPORT] = calloc(1, sizeof(struct vb_ud));
	return ud_of(qp) ? 0 : -ENOMEM;
}

static void ud_detach(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	free(ud_of(qp));
	qp->priv[PRIV_TRANSPORT] = NULL;
}

static void ud_enter(struct vb_qp *qp, enum vb_qp_state from,
		     enum vb_qp_state to, vb_time now) VB_REQUIRES(qp->drive)
{
	if (to == QPS_RTS && from == QPS_RTR)
		vb_unrel_start(qp);
	else if (to == QPS_SQD)
		/* nothing to drain: a datagram is always sent whole */
		vb_qp_drained(qp);
}

/* The requester, which sends datagrams. */

static enum vb_wc_status ib_ud_judge(const struct vb_qp *qp,
				     const struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive)
{
	if (wqe->op != WR_SEND && wqe->op != WR_SEND_IMM)
		return WC_LOC_QP_OP_ERR;
	if (wqe->length > qp->mtu)
		return WC_LOC_LEN_ERR;
	return vb_req_judge(qp, wqe);
}

static const struct vb_route *keep_route(struct vb_qp *qp,
					 const struct vb_route *route,
					 const struct vb_txq *out)
{
	struct vb_route *kept = &ud_of(qp)->routes[out->count];

	*kept = *route;
	return kept;
}

static enum vb_fault put_datagram(struct vb_qp *qp, struct vb_send_wqe *wqe,
				  struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	const struct vb_pace *pace = &ud_of(qp)->common.pace;
	const struct vb_send_dest *to = vb_sq_dest(&qp->sq, wqe);
	const struct vb_req_segment whole = {
		.len = wqe->length,
		.place = PLACE_ONLY,
		.route = keep_route(qp, &to->route, out),
	};
	struct vb_ib_pkt pkt = {
		.bth = vb_rc_bth(qp, 0, pace->next),
		.deth = { .sqpn = atomic_load(&qp->qpn) },
	};
	enum vb_fault fault;

	pkt.bth.dqpn = to->route.dqpn;
	/* Set AckReq only for single receivers: all members of a multicast
	 * group would answer at once. */
	pkt.bth.ack_req =
		vb_pace_asks(pace) && to->route.dqpn != VB_QPN_MULTICAST;
	pkt.deth.qkey = to->qkey & QKEY_OF_QP ? qp->attr.qkey : to->qkey;
	fault = vb_req_put(qp, wqe, &whole, &pkt, out);
	if (VB_UNLIKELY(to->route.ps_per_byte) && fault == FAULT_NONE)
		vb_txq_slow(out, out->frames[out->count - 1].len,
			    to->route.ps_per_byte);
	return fault;
}

static bool send_datagram(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, qp->sq.done);
	enum vb_wc_status status;

	if (vb_rc_state(qp) != QPS_RTS)
		return false;
	status = ib_ud_judge(qp, wqe);
	if (status == WC_SUCCESS && put_datagram(qp, wqe, out) != FAULT_NONE)
		status = WC_LOC_PROT_ERR;
	if (status != WC_SUCCESS) {
		vb_unrel_fail(qp, status);
		return false;
	}
	vb_pace_sent(&ud_of(qp)->common.pace, now);
	vb_qp_send_done(qp, WC_SUCCESS);
	return true;
}

static void ib_ud_put_heard(struct vb_qp *qp, const struct heard *h,
			    struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	struct vb_ib_pkt pkt = { .bth = vb_rc_bth(qp, VB_OP_HEARD, h->psn) };
	size_t len;

	pkt.bth.dqpn = h->route.dqpn;
	len = vb_ib_put_headers(vb_txq_begin(out), &pkt);
	vb_txq_commit(out, (uint32_t)len, &h->route);
}

static bool ud_send(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_ud *ud = ud_of(qp);

	while (ud->heard_due && vb_txq_has_room(out))
		ib_ud_put_heard(qp, &ud->heard[--ud->heard_due], out);
	return vb_unrel_send(qp, now, out, send_datagram);
}

/* The responder, which receives datagrams. */

static enum vb_fault take_datagram(struct vb_qp *qp,
				   const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	uint8_t grh[VB_GRH_BYTES] = { 0 };
	enum vb_fault fault;

	if (pkt->payload_bytes > qp->mtu)
		return FAULT_LENGTH;
	/* If a receive was too small for an earlier datagram, it is used for
	 * this one. */
	if (!qp->recv_busy && !vb_qp_recv_begin(qp))
		return FAULT_NO_RQE;
	if (sizeof(grh) + pkt->payload_bytes > qp->recv.length) {
		vb_why(WHY_RECV_SHORT, vb_rc_qpn(qp),
		       "qp 0x%x: dropped a datagram of %u bytes: the receive "
		       "has %llu bytes, and 40 bytes of GRH come first",
		       vb_rc_qpn(qp), pkt->payload_bytes,
		       (unsigned long long)qp->recv.length);
		return FAULT_RQE_TOO_SMALL;
	}
	if (pkt->grh)
		vb_grh_put(grh, pkt->grh);
	fault = vb_unrel_place(qp, 0, grh, sizeof(grh));
	if (fault)
		return fault;
	return vb_unrel_place(qp, sizeof(grh), pkt->payload,
			      pkt->payload_bytes);
}

static void ib_complete(struct vb_qp *qp, const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	bool imm = pkt->op->headers & HDR_IMM;
	const struct vb_recv_done done = {
		.status = WC_SUCCESS,
		.opcode = WC_OP_RECV,
		.byte_len = VB_GRH_BYTES + pkt->payload_bytes,
		.imm = imm ? pkt->imm : 0,
		.src_qp = pkt->deth.sqpn,
		.wc_flags = (pkt->grh ? WC_GRH : 0) | (imm ? WC_WITH_IMM : 0),
		.from = pkt->from ? *pkt->from : (struct vb_wc_from){ 0 },
		.solicited = pkt->bth.solicited,
	};

	vb_qp_recv_done(qp, &done);
}

/* Remember that the sender of this packet waits for an answer. If HEARD_MAX
 * senders wait already, this sender gets no answer, and stops waiting after its
 * time-out. */
static void note_heard(struct vb_qp *qp, const struct vb_ib_pkt *pkt)
{
	struct vb_ud *ud = ud_of(qp);
	struct heard *h = &ud->heard[ud->heard_due];

	if (ud->heard_due == HEARD_MAX || (!pkt->grh && !pkt->from))
		return;
	h->psn = pkt->bth.psn;
	if (vb_route_back(vb_qp_port(qp), pkt->grh, pkt->from,
			  atomic_load(&qp->qpn), pkt->deth.sqpn,
			  &h->route) == 0)
		ud->heard_due++;
}

static void ud_recv(struct vb_qp *qp, const struct vb_ib_pkt *pkt, vb_time now)
	VB_REQUIRES(qp->drive)
{
	enum vb_fault fault;

	if (!vb_unrel_receives(qp))
		return;
	if (pkt->deth.qkey != qp->attr.qkey) {
		vb_count(qp->adapter, CNT_DROP_QKEY, 1);
		vb_why(WHY_QKEY, vb_rc_qpn(qp),
		       "qp 0x%x: dropped a datagram of qp 0x%x: its Q_Key is "
		       "0x%x, and this queue pair's 0x%x",
		       vb_rc_qpn(qp), pkt->deth.sqpn, pkt->deth.qkey,
		       qp->attr.qkey);
		return;
	}
	if (pkt->bth.ack_req)
		note_heard(qp, pkt);
	fault = take_datagram(qp, pkt);
	if (fault)
		vb_unrel_refuse(qp, fault);
	else
		ib_complete(qp, pkt);
}

const struct vb_transport_ops vb_ud_ops = {
	.name = "ud",
	.recv = { ud_recv, vb_unrel_heard },
	.send = ud_send,
	.deadline = vb_unrel_deadline,
};

const struct vb_transport vb_ud_transport = {
	.name = "ud",
	.attach = ud_attach,
	.detach = ud_detach,
	.enter = ud_enter,
};

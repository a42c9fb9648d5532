/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport of raw packets (ib/raw.h). */
#include "ib/raw.h"

#include "core/sge.h"
#include "ib/unrel.h"
#include "wire/eth.h"

static int raw_attach(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	qp->ops = &vb_raw_ops;
	return 0;
}

static void raw_detach(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
}

static void raw_enter(struct vb_qp *qp, enum vb_qp_state from,
		      enum vb_qp_state to, vb_time now) VB_REQUIRES(qp->drive)
{
	if (to == QPS_SQD)
		/* nothing to drain: a frame is always sent whole */
		vb_qp_drained(qp);
}

/* Returns the longest frame that the interface accepts, in bytes: Ethernet
 * header, VLAN tag, MTU. */
static uint32_t longest(const struct vb_qp *qp)
{
	struct vb_port *p = vb_qp_port(qp);
	uint32_t mtu;

	vb_mutex_lock(&p->lock);
	mtu = p->netdev_mtu;
	vb_mutex_unlock(&p->lock);
	return VB_MIN(mtu + VB_ETH_BYTES + VB_VLAN_BYTES,
		      VB_TXQ_BYTES - VB_ICRC_BYTES);
}

static enum vb_fault ib_gather(const struct vb_qp *qp,
			       const struct vb_send_wqe *wqe, uint8_t *to)
{
	if (!(wqe->flags & SEND_INLINE))
		return vb_sge_gather(qp->pd, wqe->sge, wqe->num_sge, 0, to,
				     wqe->length);
	memcpy(to, wqe->inline_data, wqe->length);
	return FAULT_NONE;
}

static enum vb_wc_status
put_frame(struct vb_qp *qp, const struct vb_send_wqe *wqe, struct vb_txq *out)
{
	if (wqe->op != WR_SEND)
		return WC_LOC_QP_OP_ERR;
	if (wqe->length < VB_ETH_BYTES || wqe->length > longest(qp))
		return WC_LOC_LEN_ERR;
	if (ib_gather(qp, wqe, vb_txq_begin(out)))
		return WC_LOC_PROT_ERR;
	vb_txq_commit(out, wqe->length, NULL);
	return WC_SUCCESS;
}

static bool ib_has_room(const struct vb_txq *out, const struct vb_send_wqe *wqe)
{
	return out->count < VB_TXQ_FRAMES &&
	       (out->count == 0 ||
		out->used + wqe->length + VB_ICRC_BYTES <= VB_TXQ_BYTES);
}

static bool raw_send(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	unsigned before = out->count;
	bool more = false;

	while (vb_rc_state(qp) == QPS_RTS &&
	       qp->sq.done != vb_sq_end(&qp->sq)) {
		const struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, qp->sq.done);
		enum vb_wc_status status;

		more = !ib_has_room(out, wqe);
		if (more)
			break;
		status = put_frame(qp, wqe, out);
		if (status == WC_SUCCESS)
			vb_qp_send_done(qp, status);
		else
			vb_unrel_fail(qp, status);
	}
	vb_qp_flush(qp);
	if (out->count != before)
		vb_count(qp->adapter, CNT_SENT_PKTS, out->count - before);
	return more;
}

static vb_time raw_deadline(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return VB_NEVER;
}

static enum vb_fault ib_take_frame(struct vb_qp *qp,
				   const struct vb_raw_frame *f)
	VB_REQUIRES(qp->drive)
{
	if (!qp->recv_busy && !vb_qp_recv_begin(qp))
		return FAULT_NO_RQE;
	if (f->len > qp->recv.length)
		return FAULT_RQE_TOO_SMALL;
	return vb_unrel_place(qp, 0, f->bytes, f->len);
}

void vb_raw_recv(struct vb_qp *qp, const struct vb_raw_frame *f, vb_time now)
{
	const struct vb_recv_done done = {
		.status = WC_SUCCESS,
		.opcode = WC_OP_RECV,
		.byte_len = f->len,
		.flow_tag = f->tag,
	};
	enum vb_fault fault;

	if (!vb_unrel_receives(qp))
		return;
	(void)vb_qp_advance(qp, now);
	vb_count(qp->adapter, CNT_RCVD_PKTS, 1);
	fault = ib_take_frame(qp, f);
	if (fault)
		vb_unrel_refuse(qp, fault);
	else
		vb_qp_recv_done(qp, &done);
}

const struct vb_transport_ops vb_raw_ops = {
	.name = "raw",
	.send = raw_send,
	.deadline = raw_deadline,
};

const struct vb_transport vb_raw_transport = {
	.name = "raw",
	.attach = raw_attach,
	.detach = raw_detach,
	.enter = raw_enter,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by UC and UD: sending without acknowledgements, dropping packets
 * without a NAK. */
#include "ib/unrel.h"

#include "core/sge.h"
#include "core/why_qp.h"

static struct vb_pace *pace_of(const struct vb_qp *qp)
{
	struct vb_unrel *u = qp->priv[PRIV_TRANSPORT];

	return &u->pace;
}

void vb_unrel_start(struct vb_qp *qp)
{
	vb_pace_init(pace_of(qp), qp->attr.sq_psn, qp->mtu,
		     atomic_load(&qp->adapter->n_qp));
}

static bool may_send(const struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive)
{
	return vb_rc_sends(qp) && qp->sq.done != vb_sq_end(&qp->sq) &&
	       vb_pace_may_send(pace_of(qp), now);
}

bool vb_unrel_send(struct vb_qp *qp, vb_time now, struct vb_txq *out,
		   bool (*next)(struct vb_qp *qp, vb_time now,
				struct vb_txq *out))
{
	unsigned before = out->count;
	bool more = true;

	while (more && vb_txq_has_room(out))
		more = may_send(qp, now) && next(qp, now, out);
	vb_qp_flush(qp);
	if (out->count != before)
		vb_count(qp->adapter, CNT_SENT_PKTS, out->count - before);
	return more;
}

void vb_unrel_fail(struct vb_qp *qp, enum vb_wc_status status)
{
	vb_count(qp->adapter, CNT_SEND_ERR, 1);
	vb_qp_send_done(qp, status);
	vb_qp_stop_sends(qp);
}

bool vb_unrel_receives(const struct vb_qp *qp)
{
	enum vb_qp_state s = vb_rc_state(qp);

	return s == QPS_RTR || s == QPS_SQE || vb_rc_sends(qp);
}

void vb_unrel_heard(struct vb_qp *qp, const struct vb_ib_pkt *pkt, vb_time now)
{
	if (vb_unrel_receives(qp))
		vb_pace_heard(pace_of(qp), pkt->bth.psn, now);
}

enum vb_fault vb_unrel_place(struct vb_qp *qp, uint64_t offset,
			     const void *bytes, uint32_t len)
{
	struct vb_pd *pd = qp->srq ? qp->srq->pd : qp->pd;

	return vb_sge_place(pd, qp->recv.sge, qp->recv.num_sge, offset, bytes,
			    len)
		       ? FAULT_RQE_LKEY
		       : FAULT_NONE;
}

void vb_unrel_refuse(struct vb_qp *qp, enum vb_fault fault)
{
	const struct vb_fault_row *row = vb_fault_unreliable(fault);
	struct vb_recv_done done = { .status = row->status };

	if (row->counter >= 0)
		vb_count(qp->adapter, (enum vb_counter)row->counter, 1);
	if (row->action == ACT_DROP)
		return;
	done.why = vb_qp_why_fault(qp, fault, NULL);
	vb_qp_recv_done(qp, &done);
	vb_qp_fail(qp, row->event);
}

vb_time vb_unrel_deadline(const struct vb_qp *qp)
{
	if (!vb_rc_sends(qp) || qp->sq.done == vb_sq_end(&qp->sq))
		return VB_NEVER;
	return vb_pace_deadline(pace_of(qp));
}

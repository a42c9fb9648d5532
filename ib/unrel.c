/* SPDX-License-Identifier: BSD-2-Clause */
/* What UC and UD share: sending without an answer, dropping without a word. */
#include "ib/unrel.h"

bool vb_unrel_send(struct vb_qp *qp, struct vb_txq *out,
		   bool (*next)(struct vb_qp *qp, struct vb_txq *out))
{
	unsigned before = out->count;
	bool more = true;

	while (more && vb_txq_has_room(out))
		more = vb_rc_sends(qp) && next(qp, out);
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

void vb_unrel_refuse(struct vb_qp *qp, enum vb_fault fault)
{
	const struct vb_fault_row *row = vb_fault_unreliable(fault);
	const struct vb_recv_done done = { .status = row->status };

	if (row->counter >= 0)
		vb_count(qp->adapter, (enum vb_counter)row->counter, 1);
	if (row->action == ACT_DROP)
		return;
	vb_qp_recv_done(qp, &done);
	vb_qp_fail(qp, row->event);
}

/* Nothing that was sent is waited for. */
vb_time vb_unrel_deadline(const struct vb_qp *qp)
{
	return VB_NEVER;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that the engine, and not the program, moves to the error state.
 */
#include "engine/engine_priv.h"

void vb_engine_fail(struct vb_engine *e, struct vb_qp *qp, vb_time now)
{
	enum vb_qp_state from = atomic_load(&qp->state);

	atomic_store(&qp->state, QPS_ERR);
	vb_qp_note(qp);
	now = vb_qp_advance(qp, now);
	qp->adapter->transport->enter(qp, from, QPS_ERR, now);
	vb_qp_flush(qp);
	vb_drive_step(e, qp, now);
}

/* Is @qp one of the adapter's that has left RESET, and not in ERR yet? A queue
 * pair that was destroyed is in RESET. */
static bool can_fail(const struct vb_qp *qp, const struct vb_link *link)
{
	enum vb_qp_state state = atomic_load(&qp->state);

	return qp->adapter->link == link && state != QPS_RESET &&
	       state != QPS_ERR;
}

void vb_engine_fail_all(struct vb_engine *e, const struct vb_link *link,
			vb_time now)
{
	for (uint32_t i = 0; i < 1u << VB_QPN_BITS; i++) {
		struct vb_qp *qp = vb_idtab_get(e->qps, i);

		if (!qp)
			continue;
		vb_mutex_lock(&qp->drive);
		if (can_fail(qp, link))
			vb_engine_fail(e, qp, now);
		vb_drive_release(e, qp);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An InfiniBand port has changed, or its fabric has ended: each queue pair of
 * the adapter hears of it. The engine's thread, which holds list_lock, waits
 * for no queue pair: a thread that copies to or from a peer's memory may hold
 * drive for as long as the peer likes. News for a queue pair whose lock is held
 * stay in vb_engine_qp.port_news, and the queue pair's timer looks for them.
 */
#include "engine/engine_priv.h"

#include "base/log.h"
#include "link/ib.h"

/* Pause until the lock of a queue pair is tried again. */
#define HEAR_AGAIN (100 * VB_USEC)

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

/* A queue pair that was destroyed is in RESET. */
static bool can_fail(const struct vb_qp *qp)
{
	enum vb_qp_state state = atomic_load(&qp->state);

	return state != QPS_RESET && state != QPS_ERR;
}

/* Tell @qp the news of its port. This function asks the port again whether they
 * are true of @qp: the queue pair for which they were left may have been
 * destroyed, and @qp has its memory now. */
void vb_port_walk_hear(struct vb_engine *e, struct vb_qp *qp, vb_time now)
{
	unsigned news = atomic_exchange(&vb_eq(qp)->port_news, 0);

	if (!atomic_load(&qp->qpn) || !vb_port_is_ib(vb_qp_port(qp)))
		return;
	if (news & PORT_HAS_CHANGED && e->near && qp->type == QPT_RC)
		vb_mux_follow(e->near, qp);
	if (news & FABRIC_HAS_ENDED && vb_ib_has_ended(vb_qp_port(qp)->link) &&
	    can_fail(qp))
		vb_engine_fail(e, qp, now);
}

/* Another thread drives @qp: let its timer expire soon (vb_drive_due()). Until
 * the queue pair has heard the news, arm_timer() sets no later time. */
static void hear_soon(struct vb_engine *e, struct vb_qp *qp, vb_time now)
{
	struct vb_timer *timer = &vb_eq(qp)->timer;

	vb_mutex_lock(&e->timer_lock);
	if (timer->at > now + HEAR_AGAIN &&
	    vb_timer_set(&e->timers, timer, now + HEAR_AGAIN))
		vb_log(LOG_ERROR, "qp 0x%x: no memory for its timer",
		       atomic_load(&qp->qpn));
	atomic_store_explicit(&e->due, vb_timers_next(&e->timers),
			      memory_order_relaxed);
	vb_mutex_unlock(&e->timer_lock);
}

static void tell_qp(struct vb_engine *e, struct vb_qp *qp,
		    enum vb_port_news news, vb_time now)
{
	atomic_fetch_or(&vb_eq(qp)->port_news, news);
	if (!vb_mutex_trylock(&qp->drive)) {
		hear_soon(e, qp, now);
		return;
	}
	vb_port_walk_hear(e, qp, now);
	vb_mutex_unlock(&qp->drive);
	/* A post may copy for long, and this thread holds list_lock. */
	if (VB_UNLIKELY(vb_drive_is_kicked(qp)))
		hear_soon(e, qp, now);
}

/* Is the slot in the upper bits of @qpn that of adapter @a? Another adapter may
 * have the same slot, so a true result does not prove that the queue pair is
 * one of @a's. */
static bool is_number_of(const struct vb_adapter *a, uint32_t qpn)
{
	return qpn && (qpn ^ a->qpn_base) >> VB_QPN_BITS == 0;
}

void vb_port_walk(struct vb_engine *e, const struct vb_adapter *a,
		  enum vb_port_news news, vb_time now)
{
	for (uint32_t i = 0; i < 1u << VB_QPN_BITS; i++) {
		struct vb_qp *qp = vb_idtab_get(e->qps, i);

		if (qp && is_number_of(a, atomic_load(&qp->qpn)))
			tell_qp(e, qp, news, now);
	}
}

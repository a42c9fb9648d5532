/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends what a queue pair has kept back: an ACK that waits for the program's
 * reply, and messages that gather for a batch. Polls, verbs that wait or that
 * destroy a queue pair, and the engine thread call the functions of this file
 * when nothing more may come to leave with them. */
#include "engine/engine_priv.h"

/* Send an ACK that was delayed so that a reply of the program would carry
 * it. */
static void send_delayed_acks(struct vb_engine *e, struct vb_qp *qp,
			      vb_time now) VB_REQUIRES(qp->drive)
{
	const struct vb_transport_ops *ops = qp->ops;

	if (ops->unreplied && ops->unreplied(qp))
		vb_drive_step_rx(e, qp, now);
}

/* False: another thread has the lock, and sends the ACK when it releases the
 * lock. */
static bool take_or_leave(struct vb_qp *qp) VB_TRY_ACQUIRE(true, qp->drive)
{
	if (VB_LIKELY(vb_drive_take_rx(qp)))
		return true;
	/* pairs with the read-modify-write in vb_drive_is_kicked() */
	(void)atomic_exchange(&vb_eq(qp)->kick, 1);
	return vb_mutex_trylock(&qp->drive);
}

void vb_drive_delayed_acks(struct vb_engine *e, vb_time now)
{
	struct vb_qp *qp = e->delayed_ack_qp;

	if (!qp)
		return;
	e->delayed_ack_qp = NULL;
	if (!take_or_leave(qp))
		return;
	/* @qp may have been destroyed since the engine noted it; its memory is
	 * type-stable, and its QPN is then 0. */
	if (atomic_load(&qp->qpn))
		send_delayed_acks(e, qp, now);
	vb_drive_release_rx(e, qp);
}

void vb_drive_unreplied(struct vb_engine *e, vb_time now)
{
	if (e->delayed_ack_at <= e->poll.ended_at)
		vb_drive_delayed_acks(e, now);
}

/* Send the delayed ACK at exit. A signal handler that calls exit() may have
 * interrupted a thread that holds qp->drive and is sending the reply with the
 * ACK. That thread never releases the lock, so this function only tries it. */
void vb_drive_last(struct vb_engine *e)
{
	struct vb_qp *qp = e->delayed_ack_qp;

	if (!qp || !vb_mutex_trylock(&qp->drive))
		return;
	if (atomic_load(&qp->qpn))
		send_delayed_acks(e, qp, vb_now());
	vb_mutex_unlock(&qp->drive);
}

void vb_drive_settle(struct vb_qp *qp)
{
	struct vb_engine *e = vb_engine_running();

	if (!e)
		return;
	vb_mutex_lock(&qp->drive);
	send_delayed_acks(e, qp, vb_now());
	vb_drive_release(e, qp);
}

void vb_drive_gathered(struct vb_engine *e, vb_time now)
{
	struct vb_qp *fresh =
		atomic_load_explicit(&e->gathers, memory_order_relaxed);
	struct vb_qp *qp =
		atomic_load_explicit(&e->gathered, memory_order_relaxed);

	if (qp != fresh)
		atomic_store_explicit(&e->gathered, fresh,
				      memory_order_relaxed);
	if (fresh) {
		atomic_store_explicit(&e->gathers, NULL, memory_order_relaxed);
		return;
	}
	if (!qp || !vb_mutex_trylock(&qp->drive))
		return;
	if (atomic_load(&qp->qpn)) /* the queue pair may have been destroyed */
		vb_drive_step(e, qp, now);
	vb_drive_release(e, qp);
}

void vb_drive_forget(struct vb_qp *qp)
{
	struct vb_engine *e = vb_engine_running();

	if (!e)
		return;
	if (qp->adapter->rnic)
		vb_stream_orphan(e, qp);
	vb_mutex_lock(&qp->drive);
	send_delayed_acks(e, qp, vb_now());
	vb_mutex_unlock(&qp->drive);
	vb_held_settle(e, qp);
	vb_mutex_lock(&qp->drive);
	vb_held_drop(e, qp);
	vb_mutex_lock(&e->timer_lock);
	vb_timer_cancel(&e->timers, &vb_eq(qp)->timer);
	vb_mutex_unlock(&e->timer_lock);
	vb_eq(qp)->timer_at = VB_NEVER;
	vb_mutex_unlock(&qp->drive);
}

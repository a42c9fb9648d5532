/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs where small WRITEs gather, so that whoever polls can send them
 * off before he finds nothing.
 */
#include "near/near_priv.h"

#define AT_ONCE 16

void vb_near_list(struct vb_near *n, struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);

	vb_mutex_lock(&n->coalesce_lock);
	if (!nq->listed) {
		nq->listed = true;
		nq->coalesce_next = atomic_load(&n->coalescing);
		atomic_store(&n->coalescing, qp);
	}
	vb_mutex_unlock(&n->coalesce_lock);
}

void vb_near_unlist(struct vb_near *n, struct vb_qp *qp)
{
	struct vb_qp *first, **at;

	vb_mutex_lock(&n->coalesce_lock);
	first = atomic_load(&n->coalescing);
	at = &first;
	while (*at && *at != qp)
		at = &vb_nq(*at)->coalesce_next;
	if (*at)
		*at = vb_nq(qp)->coalesce_next;
	atomic_store(&n->coalescing, first);
	vb_nq(qp)->listed = false;
	vb_mutex_unlock(&n->coalesce_lock);
}

static unsigned take_some(struct vb_near *n, struct vb_qp *some[AT_ONCE])
{
	unsigned count = 0;
	struct vb_qp *qp;

	vb_mutex_lock(&n->coalesce_lock);
	while (count < AT_ONCE && (qp = atomic_load(&n->coalescing))) {
		vb_nq(qp)->listed = false;
		atomic_store(&n->coalescing, vb_nq(qp)->coalesce_next);
		some[count++] = qp;
	}
	vb_mutex_unlock(&n->coalesce_lock);
	return count;
}

/* Queue pairs are type-stable: one that is gone has no number. Whoever drives
 * it now may have left them to gather: then their time comes soon. (Unchecked:
 * the lock is given up behind a function pointer.) */
static bool flush(struct vb_near *n, struct vb_qp *qp, vb_time now) VB_UNCHECKED
{
	bool done = false;

	if (!vb_mutex_trylock(&qp->drive))
		return false;
	if (atomic_load(&qp->qpn) && qp->near &&
	    vb_nq(qp)->flush_at != VB_NEVER) {
		vb_nq(qp)->flush_at = 0;
		n->c.step(n->c.arg, qp, now);
		done = true;
	}
	n->c.release(n->c.arg, qp);
	return done;
}

bool vb_near_flush(struct vb_near *n, vb_time now)
{
	struct vb_qp *some[AT_ONCE];
	bool done = false;
	unsigned count;

	if (VB_LIKELY(!atomic_load_explicit(&n->coalescing,
					    memory_order_relaxed)))
		return false;
	count = take_some(n, some);
	while (count)
		done |= flush(n, some[--count], now);
	return done;
}

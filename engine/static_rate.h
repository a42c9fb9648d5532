/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static rates (IBA 9.11): a queue pair whose address is slower than its port
 * sends a short batch, and the next one when an adapter of that rate would have
 * sent the first. Queue pairs without a static rate only compare a time for
 * each batch.
 */
#ifndef ENGINE_STATIC_RATE_H
#define ENGINE_STATIC_RATE_H

#include "engine/engine_priv.h"

/* A queue pair whose packets waited for the next batch catches up with what
 * that batch was late, but for so long only: on a busy machine a thread waits
 * for its processor. A queue pair that had unfinished requests, but waited for
 * its peer, catches up for a shorter time; one that had none does not. */
#define VB_RATE_CATCHES_UP (20 * VB_MSEC)
#define VB_RATE_WINDOW	   (2 * VB_MSEC)
/* What a frame has besides the bytes of a batch: LRH and VCRC. */
#define VB_RATE_HEAD 10

/* Must the queue pair wait until vb_eq(qp)->rate_at before it sends? */
static inline bool vb_rate_waits(const struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	return VB_UNLIKELY(now < vb_eq(qp)->rate_at);
}

/* Limit the empty batch @q to what a connection with a static rate may send
 * now. */
static inline void vb_rate_begin(const struct vb_qp *qp, struct vb_txq *q)
	VB_REQUIRES(qp->drive)
{
	uint32_t ps = qp->route.ps_per_byte;

	/* An earlier batch that stayed empty may have left a limit here. */
	q->less = VB_UNLIKELY(ps) ? VB_TXQ_BYTES - VB_MIN(VB_TXQ_SLOW_PS / ps,
							  VB_TXQ_BYTES)
				  : 0;
}

/* The batch @q leaves: compute when the next one may leave. A batch of
 * datagrams has recorded in @q->slow_ps how long it takes, because each
 * datagram has a rate of its own. @more: packets wait for the next batch. */
static inline void vb_rate_sent(struct vb_qp *qp, const struct vb_txq *q,
				bool more, vb_time now) VB_REQUIRES(qp->drive)
{
	struct vb_engine_qp *eq = vb_eq(qp);
	uint64_t ps = q->slow_ps;
	bool pending;

	if (VB_UNLIKELY(qp->route.ps_per_byte))
		ps = (uint64_t)qp->route.ps_per_byte *
		     (q->used + q->count * VB_RATE_HEAD);
	if (VB_LIKELY(!ps))
		return;
	pending = qp->sq.done != vb_sq_end(&qp->sq);
	now -= VB_MIN(now, eq->rate_credit);
	eq->rate_at = VB_MAX(eq->rate_at, now) + ps / 1000;
	eq->rate_credit = more	    ? VB_RATE_CATCHES_UP
			  : pending ? VB_RATE_WINDOW
				    : 0;
}

#endif

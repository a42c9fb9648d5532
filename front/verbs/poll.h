/* SPDX-License-Identifier: BSD-2-Clause */
/* The way from a program's poll to core's completion queue: for poll.c and
 * cq_ex.c, inline since every poll uses it. */
#ifndef FRONT_VERBS_POLL_H
#define FRONT_VERBS_POLL_H

#include "front/verbs/front.h"

/* Remove up to @n completions from the queue and store them in @e. Completions
 * that are there already cost no system call; if the queue is empty, the caller
 * first receives from the link. Returns their number, or -errno when the queue
 * has overrun. */
static inline int vb_front_poll_core(struct vb_cq *cq, int n, struct vb_cqe *e)
{
	if (atomic_load_explicit(&cq->count, memory_order_relaxed) == 0)
		vb_engine_poll();
	else
		vb_engine_poll_hint(cq);
	return vb_cq_poll(cq, n, e);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* How a program's poll reaches core's completion queue: for poll.c and
 * cq_ex.c, inline since every poll passes here. */
#ifndef FRONT_VERBS_POLL_H
#define FRONT_VERBS_POLL_H

#include "front/verbs/front.h"

/* Take up to @n completions into @e. Completions that are there already cost no
 * system call; an empty queue makes the caller receive from the link first.
 * Returns how many, or -errno when the queue has overrun. */
static inline int vb_front_poll_core(struct vb_cq *cq, int n, struct vb_cqe *e)
{
	if (atomic_load_explicit(&cq->count, memory_order_relaxed) == 0)
		vb_engine_poll();
	else
		vb_engine_poll_hint(cq);
	return vb_cq_poll(cq, n, e);
}

#endif

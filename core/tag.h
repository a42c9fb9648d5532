/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching: a shared receive queue with a list of buffers. Each buffer
 * takes the first message whose tag equals the buffer's under the buffer's
 * mask. A message that matches none is unexpected: it takes an ordinary receive
 * of the queue, and the program looks for its buffer.
 *
 * A message may arrive while the program is posting the very buffer for it. So
 * that no later message overtakes it, a buffer posted after an unexpected
 * message matches nothing until the program has reported how many unexpected
 * messages it has handled; the program's count and the queue's are compared in
 * their low 16 bits, as adapters do.
 *
 * For a rendezvous the peer sends only the header. The queue pair itself reads
 * the data and sends the header back (FIN), if the program created it without a
 * send queue: then tag matching owns the send queue.
 */
#ifndef CORE_TAG_H
#define CORE_TAG_H

#include "base/timer.h"
#include "core/qp.h"
#include "wire/tm.h"

#define VB_TAG_MAX	  16384u /* buffers in a list */
#define VB_TAG_MAX_OPS	  16384u
#define VB_TAG_MAX_SGE	  4u
#define VB_TAG_RNDV_MAX	  64u  /* bytes of a rendezvous request */
#define VB_TAG_SEND_SLOTS 128u /* two for each rendezvous */

/* Who takes the message that is being received? */
enum vb_tag_kind {
	/* It is not for the list: an ordinary receive takes it. */
	TAG_NO_TAG,
	/* No buffer matched: an ordinary receive takes it. */
	TAG_UNEXPECTED,
	/* The tagged buffer takes it; one completion when it is whole. */
	TAG_WHOLE,
	/* The same, but a completion has told the program of the match. */
	TAG_LONG,
	/* A rendezvous: nothing is left to do for the message itself. */
	TAG_RNDV,
};

/* Give the new @srq a list of @max buffers, whose completions go to @cq. 0;
 * -EINVAL: @max is 0 or too large, or objects of different adapters; -ENOMEM.
 * vb_srq_destroy() frees the list. */
VB_MUST_CHECK int vb_tag_join(struct vb_srq *srq, struct vb_cq *cq,
			      uint32_t max);
/* Free the list; vb_srq_destroy() calls this. */
void vb_tag_leave(struct vb_srq *srq);

/* An operation on the list; the functions below carry it out at once. */
struct vb_tag_op {
	uint64_t wr_id;
	vb_time now;
	bool signaled;
	bool sync;	 /* `seen` is valid */
	uint32_t seen;	 /* how many the program has handled */
	uint32_t handle; /* input of DEL, result of ADD */
	uint64_t recv_wr_id, tag, mask;
	const struct vb_sge *sge;
	unsigned count;
};
/* Add a buffer. 0; -EINVAL: too many entries; -ENOMEM: the list is full. */
VB_MUST_CHECK int vb_tag_add(struct vb_srq *srq, struct vb_tag_op *op)
	VB_EXCLUDES(srq->rq.lock);
/* Remove a buffer. If a message has taken it already, the operation completes
 * with WC_TM_ERR. -EINVAL: the handle never existed. */
VB_MUST_CHECK int vb_tag_del(struct vb_srq *srq, const struct vb_tag_op *op)
	VB_EXCLUDES(srq->rq.lock);
/* Only report how many unexpected messages are handled: op->seen. */
void vb_tag_sync(struct vb_srq *srq, const struct vb_tag_op *op)
	VB_EXCLUDES(srq->rq.lock);

/* Queue pairs and transports call these, under drive of a queue pair that uses
 * a queue with tag matching. */

/* May tag matching use the send queue of a queue pair with this @srq, @pd and
 * @max_send_wr? Only if the program asked for no send queue. */
bool vb_tag_owns_sends(const struct vb_srq *srq, const struct vb_pd *pd,
		       uint32_t max_send_wr);
/* A message begins with the @len bytes at @head, which the sender may still
 * change; @whole: it has no others. Finds the receive for it, qp->recv, which
 * does not get the first *@skip bytes (perhaps all). FAULT_NO_RQE: there is no
 * receive now. */
enum vb_fault vb_tag_begin(struct vb_qp *qp, const void *head, uint32_t len,
			   bool whole, uint32_t *skip) VB_REQUIRES(qp->drive);
/* Fill in @e, the completion of a message for which vb_tag_begin() found a
 * receive. */
void vb_tag_fill(struct vb_qp *qp, struct vb_cqe *e) VB_REQUIRES(qp->drive);
/* A work request that tag matching posted has ended with @status. */
void vb_tag_sent(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		 enum vb_wc_status status) VB_REQUIRES(qp->drive);
/* The queue pair was reset or has failed: complete each rendezvous that waits
 * for data, with an error. */
void vb_tag_cancel(struct vb_qp *qp) VB_REQUIRES(qp->drive);

#endif

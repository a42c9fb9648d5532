/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching: a shared receive queue with a list of buffers. Each buffer
 * receives the first message whose tag equals the buffer's under the buffer's
 * mask. A message that matches no buffer is unexpected: it consumes an ordinary
 * receive of the queue, and the program looks for its buffer.
 *
 * A message may arrive while the program is posting the very buffer for it.
 * So that no later message overtakes the earlier one, a buffer posted after an
 * unexpected message matches nothing until the program has reported how many
 * unexpected messages it has handled. The program's count and the queue's count
 * are compared in their low 16 bits, as adapters do.
 *
 * For a rendezvous the peer sends only the header. The queue pair itself
 * reads the data and sends the header back (FIN), if the program created the
 * queue pair without a send queue: then tag matching owns the send queue.
 */
#ifndef CORE_TAG_H
#define CORE_TAG_H

#include "base/timer.h"
#include "core/qp.h"
#include "wire/tm.h"

#define VB_TAG_MAX	16384u /* the most tagged buffers in a list */
#define VB_TAG_MAX_OPS	16384u
#define VB_TAG_MAX_SGE	4u
#define VB_TAG_RNDV_MAX 64u /* the most bytes of a rendezvous request */
/* slots of the send queue: two for each rendezvous */
#define VB_TAG_SEND_SLOTS 128u

/* The destination of the message that is being received. */
enum vb_tag_kind {
	/* The message has no tag: it goes into an ordinary receive. */
	TAG_NO_TAG,
	/* No buffer matched: the message goes into an ordinary receive. */
	TAG_UNEXPECTED,
	/* The message goes into a tagged buffer, with one completion at its
	 * end. */
	TAG_WHOLE,
	/* The message goes into a tagged buffer; a first completion has already
	 * told the program of the match. */
	TAG_LONG,
	/* A rendezvous: the message itself needs no further work. */
	TAG_RNDV,
};

/* Give the new @srq a list of at most @max tagged buffers; the completions of
 * its operations and messages go to @cq. 0; -EINVAL: @max is 0 or too large, or
 * objects of different adapters; -ENOMEM. vb_srq_destroy() frees the list. */
VB_MUST_CHECK int vb_tag_join(struct vb_srq *srq, struct vb_cq *cq,
			      uint32_t max);
/* Free the list of tagged buffers of @srq; vb_srq_destroy() calls this. */
void vb_tag_leave(struct vb_srq *srq);

/* An operation on the list of tagged buffers; the functions below carry it out
 * at once. */
struct vb_tag_op {
	uint64_t wr_id;
	vb_time now;
	bool signaled;
	bool sync; /* @seen is valid */
	/* number of unexpected messages that the program has handled */
	uint32_t seen;
	uint32_t handle; /* the buffer's handle: input of DEL, result of ADD */
	uint64_t recv_wr_id, tag, mask;
	const struct vb_sge *sge;
	unsigned count;
};
/* Add a tagged buffer. 0; -EINVAL: too many entries; -ENOMEM: the list is
 * full. */
VB_MUST_CHECK int vb_tag_add(struct vb_srq *srq, struct vb_tag_op *op)
	VB_EXCLUDES(srq->rq.lock);
/* Remove a tagged buffer. If a message already uses the buffer, the operation
 * completes with WC_TM_ERR. -EINVAL: the handle never existed. */
VB_MUST_CHECK int vb_tag_del(struct vb_srq *srq, const struct vb_tag_op *op)
	VB_EXCLUDES(srq->rq.lock);
/* Carry out an operation that only reports how many unexpected messages the
 * program has handled: op->seen. */
void vb_tag_sync(struct vb_srq *srq, const struct vb_tag_op *op)
	VB_EXCLUDES(srq->rq.lock);

/* Functions for queue pairs and transports. The caller holds drive of a queue
 * pair whose SRQ has tag matching. */

/* Does tag matching own the send queue of a queue pair with this @srq, @pd and
 * @max_send_wr? Only if the program asked for no send queue. */
bool vb_tag_owns_sends(const struct vb_srq *srq, const struct vb_pd *pd,
		       uint32_t max_send_wr);
/* A message begins with the @len bytes at @head, which the sender may still
 * change; @whole: these are all its bytes. Finds the receive for the message,
 * qp->recv, which does not get the first *@skip bytes (perhaps all).
 * FAULT_NO_RQE: no receive is posted now. */
enum vb_fault vb_tag_begin(struct vb_qp *qp, const void *head, uint32_t len,
			   bool whole, uint32_t *skip) VB_REQUIRES(qp->drive);
/* Fill in @e, the completion of a message for which vb_tag_begin() found a
 * receive. */
void vb_tag_fill(struct vb_qp *qp, struct vb_cqe *e) VB_REQUIRES(qp->drive);
/* Call this when a work request that tag matching itself has posted to the send
 * queue (a READ or a FIN) has ended with @status. */
void vb_tag_sent(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		 enum vb_wc_status status) VB_REQUIRES(qp->drive);
/* The queue pair was reset or has failed: complete each rendezvous that waits
 * for data, with an error. */
void vb_tag_cancel(struct vb_qp *qp) VB_REQUIRES(qp->drive);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching: a shared receive queue with a list of buffers that are each
 * for the first message whose tag, under the buffer's mask, is the buffer's
 * own. What matches none is unexpected: it takes an ordinary receive of the
 * queue, and the program looks for a buffer that it was meant for.
 *
 * A message may arrive while the program is posting the very buffer for it.
 * So that nothing later overtakes it, buffers posted after an unexpected
 * message match nothing until the program has said how many it has seen to
 * (its count and ours agree in their low 16 bits, as adapters compare them).
 *
 * Of a rendezvous the program's peer sends the header only. The queue pair
 * then reads the data itself and sends the header back (FIN); it does so
 * when it was made without a send queue, which is ours then.
 */
#ifndef CORE_TAG_H
#define CORE_TAG_H

#include "base/timer.h"
#include "core/wq.h"
#include "wire/tm.h"

#define VB_TAG_MAX	  16384u /* buffers in a list */
#define VB_TAG_MAX_OPS	  16384u
#define VB_TAG_MAX_SGE	  4u
#define VB_TAG_RNDV_MAX	  64u  /* bytes of a message that asks for one */
#define VB_TAG_SEND_SLOTS 128u /* two of them for each rendezvous */

struct vb_qp;
struct vb_cqe;

/* What became of the message that is being received. */
enum vb_tag_kind {
	TAG_NO_TAG,	/* not for the list: into an ordinary receive */
	TAG_UNEXPECTED, /* the same */
	TAG_WHOLE, /* into the tagged buffer; to be told when it is there */
	TAG_LONG,  /* the same; that it matched has been told */
	TAG_RNDV,  /* nothing is left to be done */
};

struct vb_tag_note {
	uint8_t kind; /* enum vb_tag_kind */
	uint32_t app_ctx;
	uint64_t tag;
};

/* Makes @srq, which is new, one with a list of @max buffers that completes to
 * @cq. -EINVAL: none, or too many, or parts of different adapters; -ENOMEM.
 * Its end is vb_srq_destroy() as ever. */
VB_MUST_CHECK int vb_tag_join(struct vb_srq *srq, struct vb_cq *cq,
			      uint32_t max);
/* Of vb_srq_destroy(). */
void vb_tag_leave(struct vb_srq *srq);

/*
 * Operations on the list: carried out at once.
 */
struct vb_tag_op {
	uint64_t wr_id;
	vb_time now;
	bool signaled;
	bool sync;	 /* @seen counts... */
	uint32_t seen;	 /* ...the unexpected messages seen to */
	uint32_t handle; /* of DEL; and what ADD gave */
	uint64_t recv_wr_id, tag, mask;
	const struct vb_sge *sge;
	unsigned count;
};
/* -EINVAL: too many entries; -ENOMEM: the list is full. */
VB_MUST_CHECK int vb_tag_add(struct vb_srq *srq, struct vb_tag_op *op);
/* One that has been taken by a message completes with WC_TM_ERR. -EINVAL: not
 * such a handle at all. */
VB_MUST_CHECK int vb_tag_del(struct vb_srq *srq, const struct vb_tag_op *op);
void vb_tag_sync(struct vb_srq *srq, const struct vb_tag_op *op);

/*
 * What queue pairs and transports call, under drive of a queue pair that
 * stands on such a queue.
 */

/* May its send queue be ours? Of one that has none of its own. */
bool vb_tag_owns_sends(const struct vb_srq *srq, const struct vb_pd *pd,
		       uint32_t max_send_wr);
/*
 * A message begins with the @len bytes at @head, which may change under us;
 * @whole: those are all. Finds where it goes: qp->recv, without the first
 * *@skip bytes, which may be all. FAULT_NO_RQE: nowhere now.
 */
enum vb_fault vb_tag_begin(struct vb_qp *qp, const void *head, uint32_t len,
			   bool whole, uint32_t *skip);
/* How the receive of such a message completes. */
void vb_tag_fill(struct vb_qp *qp, struct vb_cqe *e);
/* One of our own work requests has ended. */
void vb_tag_sent(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		 enum vb_wc_status status);
/* The queue pair forgets what it was about: those that wait for data are
 * told. */
void vb_tag_cancel(struct vb_qp *qp);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of the responder: near/resp.c checks and carries out requests,
 * near/pull.c fetches the data of long SENDs. The caller of every function
 * has claimed the lane of job.peer, and holds the drive lock of job.qp.
 */
#ifndef NEAR_RESP_PRIV_H
#define NEAR_RESP_PRIV_H

#include "core/tag.h"
#include "near/near_priv.h"

/* The request that the responder is carrying out. */
struct vb_near_job {
	struct vb_near *near;
	struct vb_peer *peer; /* the program of the requester */
	struct vb_qp *qp;     /* the queue pair of the responder */
	const struct vb_request *r;
	const uint8_t *data; /* r->bytes bytes that the peer may still change */
	struct vb_answer_note *a; /* the answer that the responder fills in */
};

/* Does the receive queue of @qp match receives to messages by tags? */
static inline bool vb_resp_is_tagged(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	return VB_UNLIKELY(qp->srq && qp->srq->tags);
}

/* Returns the protection domain of the receives that @qp consumes. */
static inline struct vb_pd *vb_resp_recv_pd(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	return qp->srq ? qp->srq->pd : qp->pd;
}

/* Functions of near/resp.c. */
/*
 * Find the receive of a SEND and copy it to qp->recv. @head: the first
 * VB_RNDV_BYTES bytes of the message, or all of a shorter one; only a queue
 * that matches tags reads them. *@skip: the number of leading bytes that are
 * not placed (a tag header). FAULT_NO_RQE: no receive is posted;
 * FAULT_RQE_TOO_SMALL: the message is longer than the receive.
 */
enum vb_fault vb_resp_begin_recv(const struct vb_near_job *j, const void *head,
				 uint32_t *skip)
	VB_REQUIRES(j->peer->claim, j->qp->drive);
/* Does the message without its first @skip bytes fit into qp->recv? FAULT_NONE,
 * or FAULT_RQE_TOO_SMALL; FAULT_LENGTH: it has not so many bytes. */
enum vb_fault vb_resp_check_recv(const struct vb_near_job *j, uint32_t skip)
	VB_REQUIRES(j->qp->drive);
/* All data of a SEND is placed: invalidate the key that the SEND names (SEND
 * with invalidate), and complete the receive with @byte_len. */
enum vb_fault vb_resp_end_send(const struct vb_near_job *j, uint32_t byte_len)
	VB_REQUIRES(j->peer->claim, j->qp->drive);

/* Functions of near/pull.c. */
/* Carry out a NEAR_PULL request. j->a->kind is the answer to the requester,
 * unless a fault is returned; ANSWER_LATER: the request stays on the lane. */
enum vb_fault vb_pull_take(const struct vb_near_job *j)
	VB_REQUIRES(j->peer->claim, j->qp->drive);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended reliable connections (IBA annex A14). A request names a shared
 * receive queue. That queue and the target queue pair that receives the request
 * belong to the same XRC domain; protection domain and completion queue are
 * those of the shared receive queue.
 *
 * Each ibv_open_xrcd() makes a struct vb_xrcd. Those for the same inode share
 * one struct vb_xrc_domain. A target queue pair can have several handles.
 */
#ifndef CORE_XRC_H
#define CORE_XRC_H

#include "base/chain.h"
#include "core/qp.h"

/* The inode that names a domain. */
struct vb_xrc_key {
	uint64_t dev, ino;
};

struct vb_xrc_domain {
	struct vb_xrc_key key;
	/* false: the domain was opened without a file, and is shared with no
	 * other */
	bool has_key;
	/* The fields below are protected by adapter->xrc_lock. */
	uint32_t opened;
	/* link in the list adapter->xrc_domains; unused if the domain has no
	 * key */
	struct vb_chain link;
};

struct vb_xrcd {
	struct vb_adapter *adapter;
	struct vb_xrc_domain *domain;
	/* number of SRQs and of handles of queue pairs that use the domain */
	_Atomic uint32_t refs;
};

enum vb_xrcd_flags {
	XRCD_CREATE = 1 << 0,
	/* with XRCD_CREATE: fail if the domain exists */
	XRCD_EXCLUSIVE = 1 << 1,
	XRCD_ELSEWHERE = 1 << 2, /* another process has the domain open */
};

/* Open the domain named @key; @key NULL: a new domain without a key. The caller
 * owns *@out. 0; -EAGAIN: the domain does not exist, and XRCD_CREATE is not
 * set; -EINVAL: the domain exists, and XRCD_EXCLUSIVE is set; -ENOMEM. */
VB_MUST_CHECK int vb_xrcd_open(struct vb_adapter *a,
			       const struct vb_xrc_key *key, unsigned flags,
			       struct vb_xrcd **out) VB_EXCLUDES(a->xrc_lock);
/* Close the domain's handle @x. -EBUSY while a shared receive queue or queue
 * pair uses it. */
VB_MUST_CHECK int vb_xrcd_close(struct vb_xrcd *x)
	VB_EXCLUDES(x->adapter->xrc_lock);

/* Add the new @srq to domain @x: @srq gets a number, and its completions go to
 * @cq. 0; -EINVAL: objects of different adapters; -ENOMEM. vb_srq_destroy()
 * removes @srq from the domain. */
VB_MUST_CHECK int vb_xrc_srq_join(struct vb_srq *srq, struct vb_xrcd *x,
				  struct vb_cq *cq)
	VB_EXCLUDES(x->adapter->xrc_lock);
/* Remove @srq from its domain, so that its number names no queue any more, and
 * wait for packets that already use it. vb_srq_destroy() calls this. */
void vb_xrc_srq_leave(struct vb_srq *srq)
	VB_EXCLUDES(srq->pd->adapter->xrc_lock);

/* Make a target queue pair use shared receive queue @srqn for one packet;
 * transports call this under drive. Until vb_xrc_leave() the queue pair's srq,
 * pd and recv_cq are those of the shared receive queue, which no thread can
 * destroy meanwhile; at other times they are NULL. FAULT_NONE, FAULT_XRC_SRQ,
 * FAULT_XRC_DOMAIN or FAULT_XRC_FORWARD. */
enum vb_fault vb_xrc_enter(struct vb_qp *qp, uint32_t srqn)
	VB_REQUIRES(qp->drive);
/* End the use of the shared receive queue that vb_xrc_enter() began, if there
 * is one. */
void vb_xrc_leave(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Does what vb_xrc_enter() does, for a queue pair that represents one of
 * another process (ib/xrc_forward.c): the caller names its XRC domain. */
enum vb_fault vb_xrc_enter_by_key(struct vb_qp *qp,
				  const struct vb_xrc_key *domain,
				  uint32_t srqn) VB_REQUIRES(qp->drive);
/* Make the queue pair use the shared receive queue from which the receive in
 * qp->recv came. False: the queue was destroyed, and the receive with it. */
bool vb_xrc_enter_home(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Does the queue pair now use the SRQ from which qp->recv came? */
bool vb_xrc_is_home(const struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* One handle of a target queue pair; its owner receives the queue pair's
 * events. */
struct vb_qp_share {
	struct vb_async *async;
	void *owner;
	struct vb_xrcd *xrcd;
	/* the next handle; protected by the queue pair's drive */
	struct vb_qp_share *next;
};

/* Add a handle to the queue pair. The caller holds drive, or has not made the
 * queue pair visible to other threads yet. */
void vb_qp_share(struct vb_qp *qp, struct vb_qp_share *share)
	VB_REQUIRES(qp->drive);
/* Add a handle to the target queue pair @qpn of the domain. -EINVAL: there is
 * no such queue pair. */
VB_MUST_CHECK int vb_qp_open(struct vb_qp_share *share, uint32_t qpn,
			     struct vb_qp **out);
/* Remove a handle. True: it was the last one, no thread can find the queue pair
 * any more, and the caller destroys the queue pair. */
VB_MUST_CHECK bool vb_qp_unshare(struct vb_qp *qp, struct vb_qp_share *share)
	VB_EXCLUDES(qp->drive);

/* The engine's functions for requests that name shared receive queues of other
 * processes, which have opened a domain of the same inode. */
struct vb_ib_pkt;
/* bytes forwarded at a time: whole packets of every MTU */
#define VB_FORWARD_BYTES (4u * 4096)
struct vb_forward_piece {
	/* the number of the SRQ, and an rkey of the SRQ's domain */
	uint32_t srqn, rkey;
	uint64_t va;
	/* length of the piece in bytes, at most VB_FORWARD_BYTES */
	uint32_t length;
};
struct vb_forward_ops {
	/* Forward request @pkt to the process that owns the SRQ. Sets *@session
	 * to the connection that was used. FAULT_XRC_SRQ: no process has the
	 * SRQ; FAULT_NO_RQE: forwarding is not possible now. The verdict
	 * arrives later (ib/xrc_forward.h). */
	enum vb_fault (*hand_over)(struct vb_qp *qp,
				   const struct vb_ib_pkt *pkt, uint64_t serial,
				   uint64_t *session);
	/* Ask the other process for the bytes of a READ response, which arrive
	 * later. FAULT_NO_RQE: asking is not possible now. */
	enum vb_fault (*fetch)(struct vb_qp *qp,
			       const struct vb_forward_piece *piece,
			       uint64_t serial, uint64_t *session);
	/* Can answers still come by @session? False: the other process has
	 * ended. */
	bool (*is_up)(uint64_t session);
};
/* Does @srqn belong to another process, to which the request may be
 * forwarded? */
bool vb_xrc_is_forwarded(const struct vb_qp *qp, uint32_t srqn)
	VB_REQUIRES(qp->drive);

#endif

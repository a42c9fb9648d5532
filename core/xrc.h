/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended reliable connections (IBA annex A14). A request names a shared
 * receive queue. That queue and the target queue pair that receives the request
 * belong to the same XRC domain; protection domain and completion queue are
 * those of the shared receive queue.
 *
 * Each ibv_open_xrcd() makes a struct vb_xrcd. Those for the same inode share
 * one struct vb_xrc_domain. A target queue pair can have several holders, too.
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
	bool has_key; /* false: opened without a file, shared with nobody */
	/* Under adapter->xrc_lock: */
	uint32_t opened;
	struct vb_chain link; /* with a key: in adapter->xrc_domains */
};

struct vb_xrcd {
	struct vb_adapter *adapter;
	struct vb_xrc_domain *domain;
	/* SRQs and holders of queue pairs that use it */
	_Atomic uint32_t refs;
};

enum vb_xrcd_flags {
	XRCD_CREATE = 1 << 0,
	XRCD_EXCLUSIVE = 1 << 1, /* with CREATE: fail if it exists */
	XRCD_ELSEWHERE = 1 << 2, /* another process has the domain open */
};

/* Open the domain named @key; NULL: a private one. The caller owns *@out. 0;
 * -EAGAIN: the domain does not exist, and XRCD_CREATE is not set; -EINVAL: it
 * exists, and XRCD_EXCLUSIVE is set; -ENOMEM. */
VB_MUST_CHECK int vb_xrcd_open(struct vb_adapter *a,
			       const struct vb_xrc_key *key, unsigned flags,
			       struct vb_xrcd **out) VB_EXCLUDES(a->xrc_lock);
/* Close it. -EBUSY while a shared receive queue or queue pair uses it. */
VB_MUST_CHECK int vb_xrcd_close(struct vb_xrcd *x)
	VB_EXCLUDES(x->adapter->xrc_lock);

/* Add the new @srq to domain @x: it gets a number, and completes to @cq. 0;
 * -EINVAL: objects of different adapters; -ENOMEM. vb_srq_destroy() removes
 * it. */
VB_MUST_CHECK int vb_xrc_srq_join(struct vb_srq *srq, struct vb_xrcd *x,
				  struct vb_cq *cq)
	VB_EXCLUDES(x->adapter->xrc_lock);
/* Remove @srq from its domain, so that its number names nothing, and wait for
 * packets that have entered it. vb_srq_destroy() calls this. */
void vb_xrc_srq_leave(struct vb_srq *srq)
	VB_EXCLUDES(srq->pd->adapter->xrc_lock);

/* Transports call this under drive of a target queue pair. Between enter and
 * leave the queue pair's srq, pd and recv_cq are those of shared receive queue
 * @srqn, which nobody can destroy meanwhile; else they are NULL. FAULT_NONE,
 * FAULT_XRC_SRQ, FAULT_XRC_DOMAIN or FAULT_XRC_FAR. */
enum vb_fault vb_xrc_enter(struct vb_qp *qp, uint32_t srqn)
	VB_REQUIRES(qp->drive);
/* Leave the shared receive queue, if the queue pair has entered one. */
void vb_xrc_leave(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* vb_xrc_enter() for a queue pair that stands for one of another process
 * (ib/xrc_forward.c): the caller names its domain. */
enum vb_fault vb_xrc_enter_by_key(struct vb_qp *qp,
				  const struct vb_xrc_key *domain,
				  uint32_t srqn) VB_REQUIRES(qp->drive);
/* Enter the shared receive queue that the receive in qp->recv came from. False:
 * the queue was destroyed, and the receive with it. */
bool vb_xrc_enter_home(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Has the queue pair entered the SRQ from which qp->recv came? */
bool vb_xrc_is_home(const struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* One holder of a target queue pair; it receives the queue pair's events. */
struct vb_qp_share {
	struct vb_async *async;
	void *owner;
	struct vb_xrcd *xrcd;
	struct vb_qp_share *next; /* under the queue pair's drive */
};

/* Add a holder. The caller holds drive, or nobody can find the queue pair
 * yet. */
void vb_qp_share(struct vb_qp *qp, struct vb_qp_share *share)
	VB_REQUIRES(qp->drive);
/* Add a holder to the target queue pair @qpn of the domain. -EINVAL: there is
 * no such queue pair. */
VB_MUST_CHECK int vb_qp_open(struct vb_qp_share *share, uint32_t qpn,
			     struct vb_qp **out);
/* Remove a holder. True: it was the last one. Then no thread can find the queue
 * pair any more, and the caller destroys it. */
VB_MUST_CHECK bool vb_qp_unshare(struct vb_qp *qp, struct vb_qp_share *share)
	VB_EXCLUDES(qp->drive);

/* The engine's functions for requests that name shared receive queues of other
 * processes, which have opened a domain of the same inode. */
struct vb_ib_pkt;
#define VB_FORWARD_BYTES (4u * 4096) /* whole packets of every MTU */
struct vb_forward_piece {
	uint32_t srqn, rkey; /* the rkey is of the SRQ's domain */
	uint64_t va;
	uint32_t length; /* bytes; at most VB_FORWARD_BYTES */
};
struct vb_forward_ops {
	/* Forward request @pkt to the process that owns the SRQ. Sets *@session
	 * to the connection used. FAULT_XRC_SRQ: no process has it;
	 * FAULT_NO_RQE: not possible now. The verdict arrives later
	 * (ib/xrc_forward.h). */
	enum vb_fault (*hand_over)(struct vb_qp *qp,
				   const struct vb_ib_pkt *pkt, uint64_t serial,
				   uint64_t *session);
	/* Ask the other process for the bytes of a READ response; they arrive
	 * later. FAULT_NO_RQE: not possible now. */
	enum vb_fault (*fetch)(struct vb_qp *qp,
			       const struct vb_forward_piece *piece,
			       uint64_t serial, uint64_t *session);
	/* Can answers still come by @session? False: its process has gone. */
	bool (*is_up)(uint64_t session);
};
/* Is @srqn a number of another process, and may the request be forwarded
 * there? */
bool vb_xrc_is_forwarded(const struct vb_qp *qp, uint32_t srqn)
	VB_REQUIRES(qp->drive);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended reliable connections (IBA annex A14). A request names a shared
 * receive queue, which belongs to a domain, as the target queue pair does that
 * it came to; the shared queue's protection domain and completion queue count.
 *
 * Who opens a domain holds a struct vb_xrcd; those who opened the same inode
 * share what is behind it. A target queue pair may have several holders, too.
 */
#ifndef CORE_XRC_H
#define CORE_XRC_H

#include "base/chain.h"
#include "core/wq.h"

struct vb_qp;

/* Of an inode. */
struct vb_xrc_key {
	uint64_t dev, ino;
};

struct vb_xrc_domain {
	struct vb_xrc_key key;
	bool has_key; /* without: of one who opened it alone */
	/* adapter->xrc_lock */
	uint32_t opened;
	struct vb_chain link; /* with a key: others look for it */
};

struct vb_xrcd {
	struct vb_adapter *adapter;
	struct vb_xrc_domain *domain;
	_Atomic uint32_t refs; /* shared queues, holders of queue pairs */
};

enum vb_xrcd_flags {
	XRCD_CREATE = 1 << 0,
	XRCD_EXCLUSIVE = 1 << 1, /* with CREATE: not when it is there */
	XRCD_ELSEWHERE = 1 << 2, /* another process has it */
};

/* @key: NULL for a domain of one's own. -EAGAIN: it is not there and shall not
 * be made; -EINVAL: it is there and shall not be; -ENOMEM. */
VB_MUST_CHECK int vb_xrcd_open(struct vb_adapter *a,
			       const struct vb_xrc_key *key, unsigned flags,
			       struct vb_xrcd **out);
VB_MUST_CHECK int vb_xrcd_close(struct vb_xrcd *x); /* -EBUSY */

/* Make a shared queue that is new one of the domain's, which completes to @cq
 * and has a number. -EINVAL: parts of different adapters; -ENOMEM. Its end is
 * vb_srq_destroy() as ever. */
VB_MUST_CHECK int vb_xrc_srq_join(struct vb_srq *srq, struct vb_xrcd *x,
				  struct vb_cq *cq);
/* Of vb_srq_destroy(): nobody finds it any more. */
void vb_xrc_srq_leave(struct vb_srq *srq);

/*
 * What transports call, under drive of a target queue pair. From enter to
 * leave its srq, pd and recv_cq are the shared queue's, which stays for as
 * long; at other times they are NULL. The shared queue's destroyer waits.
 */
enum vb_fault vb_xrc_enter(struct vb_qp *qp, uint32_t srqn);
void vb_xrc_leave(struct vb_qp *qp);
/* The same for one that stands for another process's (ib/xrc_forward.c). */
enum vb_fault vb_xrc_enter_by_key(struct vb_qp *qp,
				  const struct vb_xrc_key *domain,
				  uint32_t srqn);
/* To where the receive that qp->recv holds is from. False: it is gone, and the
 * receive with it. */
bool vb_xrc_enter_home(struct vb_qp *qp);
/* Has it entered where qp->recv is from? */
bool vb_xrc_is_home(const struct vb_qp *qp);

/* One holder of a target queue pair, who hears of its events. */
struct vb_qp_share {
	struct vb_async *async;
	void *owner;
	struct vb_xrcd *xrcd;
	struct vb_qp_share *next; /* the queue pair's drive */
};

/* Under drive, or before anybody finds it. */
void vb_qp_share(struct vb_qp *qp, struct vb_qp_share *share);
/* -EINVAL: no target queue pair of that number in this domain. */
VB_MUST_CHECK int vb_qp_open(struct vb_qp_share *share, uint32_t qpn,
			     struct vb_qp **out);
/* True: that was the last. Nobody finds it any more; the caller is to destroy
 * it. */
VB_MUST_CHECK bool vb_qp_unshare(struct vb_qp *qp, struct vb_qp_share *share);

/*
 * Requests for shared queues of other processes that have the same inode's
 * domain: a seam that the engine fills.
 */
struct vb_ib_pkt;
#define VB_FORWARD_BYTES (4u * 4096) /* whole packets of every MTU */
struct vb_forward_piece {
	uint32_t srqn, rkey; /* the key is of the shared queue's domain */
	uint64_t va;
	uint32_t length; /* at most VB_FORWARD_BYTES */
};
struct vb_forward_ops {
	/* @session: what it is under way by. FAULT_XRC_SRQ: nobody is there;
	 * FAULT_NO_RQE: not now. A verdict follows (ib/xrc_forward.h). */
	enum vb_fault (*hand_over)(struct vb_qp *qp,
				   const struct vb_ib_pkt *pkt, uint64_t serial,
				   uint64_t *session);
	/* Bytes for the answer to a READ that was judged; they follow, too.
	 * FAULT_NO_RQE: not now. */
	enum vb_fault (*fetch)(struct vb_qp *qp,
			       const struct vb_forward_piece *piece,
			       uint64_t serial, uint64_t *session);
	/* False: nothing will come by it any more. */
	bool (*is_up)(uint64_t session);
};
/* Is it another process's number, and may a request for it go there? */
bool vb_xrc_is_forwarded(const struct vb_qp *qp, uint32_t srqn);

#endif

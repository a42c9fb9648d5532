/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows: parts of a region that peers may access, with bounds and
 * rights of their own, opened and shut by work requests (IBA 10.6.6.2).
 *
 * A window is an entry of the same table as regions, with a key while it is
 * bound. Type 1 may be bound anew at any time, and every queue pair of its PD
 * serves it. Type 2 is 2B: the queue pair that bound it serves it, and it is
 * bound again only after it was invalidated.
 */
#ifndef CORE_MW_H
#define CORE_MW_H

#include "core/mr.h"

struct vb_qp;

/* @type: 1 or 2, else -EINVAL. -ENOSPC, -ENOMEM. Bits 31:8 of *@key are the
 * window's for as long as it lives. */
VB_MUST_CHECK int vb_mw_alloc(struct vb_pd *pd, unsigned type,
			      struct vb_mr **mw, uint32_t *key);
/* Bound or not. After the return nobody accesses memory through it. */
void vb_mw_free(struct vb_mr *mw);
/* The key to bind a window with that has had @window: bits 31:8 are the
 * window's, the consumer chooses the others (IBA 10.6.7.2), and of @consumer
 * nothing else counts. */
uint32_t vb_mw_key(uint32_t window, uint32_t consumer);

struct vb_send_wqe;

struct vb_mw_bind {
	uint32_t key;	 /* the new one; bits 31:8 name the window */
	uint32_t region; /* its key */
	uint64_t addr, length;
	uint32_t access; /* enum vb_access */
};

enum vb_mw_end {
	MW_DONE,
	MW_REFUSED, /* the rules forbid it (the log says which) */
	MW_BUSY,    /* the window is shut, and another program's access by its
		     * old key is still under way: ask again at qp->local_at */
};

/*
 * Carry out a work request of @qp, under its drive: a bind, or an invalidation
 * of our own. Does not wait. A bind of length 0 shuts a window of type 1.
 */
VB_MUST_CHECK enum vb_mw_end vb_mw_run(struct vb_qp *qp,
				       const struct vb_send_wqe *wqe);
VB_MUST_CHECK enum vb_mw_end vb_mw_bind(struct vb_qp *qp,
					const struct vb_mw_bind *b);
/* An invalidation by the peer. False: it is refused. */
VB_MUST_CHECK bool vb_mw_invalidate(struct vb_qp *qp, uint32_t key);
/* @qp is being destroyed, under its drive: what it bound opens no more. */
void vb_mw_shut_all(struct vb_qp *qp);
/* Nobody accesses memory through that any more. */
void vb_mw_detach_all(struct vb_qp *qp);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows: parts of a region with bounds and rights of their own, which
 * work requests bind and invalidate (IBA 10.6.6.2).
 *
 * A window is an entry of the table of keys, as regions are, and has a key
 * while it is bound. A window of type 1 may be bound again at any time and
 * serves every queue pair of its domain. A window of type 2 (2B) serves the
 * queue pair that bound it, and is bound again only after an invalidation.
 */
#ifndef CORE_MW_H
#define CORE_MW_H

#include "core/qp.h"

/* Allocate a window of @type 1 or 2. Bits 31:8 of *@key name the window for its
 * whole life. 0; -EINVAL: another type; -ENOSPC: max_mw windows exist; -ENOMEM.
 */
VB_MUST_CHECK int vb_mw_alloc(struct vb_pd *pd, unsigned type,
			      struct vb_mr **mw, uint32_t *key)
	VB_EXCLUDES(pd->adapter->mr_lock);
/* Free a window, bound or not. When this call returns, no access through the
 * window is in progress. May wait; the caller holds no lock. */
void vb_mw_free(struct vb_mr *mw) VB_EXCLUDES(mw->pd->adapter->mr_lock);
/* Returns the next key of a window whose key was @window: bits 31:8 stay, and
 * bits 7:0, which the consumer chooses (IBA 10.6.7.2), are those of
 * @consumer. */
uint32_t vb_mw_key(uint32_t window, uint32_t consumer);

struct vb_send_wqe;

struct vb_mw_bind {
	uint32_t key;	 /* the new key; its bits 31:8 name the window */
	uint32_t region; /* the lkey of the region */
	uint64_t addr, length;
	uint32_t access; /* rights of the window, enum vb_access */
};

enum vb_mw_end {
	MW_DONE,
	/* A rule of IBA forbids the operation; the log says which rule. */
	MW_REFUSED,
	/* The window is closed, but another process's access by the old key is
	 * still in progress: call again at qp->local_at. */
	MW_BUSY,
};

/* Carry out a work request of @qp on a window: a bind (of 0 bytes: close a
 * window of type 1), or a local invalidate. The caller holds qp->drive. Never
 * waits. */
VB_MUST_CHECK enum vb_mw_end vb_mw_run(struct vb_qp *qp,
				       const struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive) VB_EXCLUDES(qp->adapter->mr_lock);
/* Bind the window @mw as @b says, by the rules of vb_mw_run(). */
VB_MUST_CHECK enum vb_mw_end vb_mw_bind(struct vb_qp *qp,
					const struct vb_mw_bind *b)
	VB_REQUIRES(qp->drive) VB_EXCLUDES(qp->adapter->mr_lock);
/* Invalidate @key because the peer asks (SEND with Invalidate). False: the key
 * must not be invalidated. The caller holds qp->drive. */
VB_MUST_CHECK bool vb_mw_invalidate(struct vb_qp *qp, uint32_t key)
	VB_REQUIRES(qp->drive) VB_EXCLUDES(qp->adapter->mr_lock);
/* Revoke the keys of the windows that @qp bound, because @qp is being
 * destroyed. The caller holds qp->drive. */
void vb_mw_shut_all(struct vb_qp *qp) VB_REQUIRES(qp->drive)
	VB_EXCLUDES(qp->adapter->mr_lock);
/* Wait until every access through the windows that vb_mw_shut_all() closed has
 * ended, and unbind these windows. */
void vb_mw_detach_all(struct vb_qp *qp) VB_EXCLUDES(qp->drive)
	VB_EXCLUDES(qp->adapter->mr_lock);

#endif

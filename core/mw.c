/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows: allocate, bind, invalidate, free. */
#include "core/mw.h"
#include "core/why_qp.h"

#include <errno.h>

#include "core/mr_priv.h"
#include "core/qp.h"

#define WRITES	    (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)
#define REMOTE	    (WRITES | ACCESS_REMOTE_READ)
#define AGAIN_AFTER (50 * VB_USEC)

int vb_mw_alloc(struct vb_pd *pd, unsigned type, struct vb_mr **out,
		uint32_t *key)
{
	struct vb_adapter *a = pd->adapter;
	struct vb_mr *mw;
	int rc;

	if (type != 1 && type != 2)
		return -EINVAL;
	if (!vb_limit_take(&a->n_mw, vb_limits.max_mw))
		return -ENOSPC;
	rc = vb_mr_take(pd, &mw);
	if (rc) {
		vb_limit_give(&a->n_mw);
		return rc;
	}
	vb_mutex_lock(&a->mr_lock);
	mw->kind = type == 1 ? MR_WINDOW_1 : MR_WINDOW_2;
	mw->pd = pd;
	mw->region = NULL;
	vb_mutex_unlock(&a->mr_lock);
	*key = vb_mr_next_key(a, mw);
	*out = mw;
	return 0;
}

/* Add a window of type 2 to the list of its queue pair. The caller holds
 * mr_lock. */
static void give_to(struct vb_mr *mw, struct vb_qp *qp)
{
	mw->qpn = atomic_load(&qp->qpn);
	vb_chain_add(&qp->windows, &mw->link);
}

/* Remove a window of type 2 from the list of its queue pair. The caller holds
 * mr_lock. */
static void core_take_back(struct vb_mr *mw)
{
	if (mw->qpn == 0)
		return;
	vb_chain_del(&mw->link);
	mw->qpn = 0;
}

/* Revoke the window's key; accesses may still be in progress. The caller holds
 * mr_lock. */
static void shut(struct vb_mr *mw)
{
	uint32_t key = vb_mr_shut(mw);

	if (key == 0)
		return;
	mw->closing = key;
	mw->closed_for = (struct vb_age){ 0 };
}

/* Unbind a window whose accesses have ended. The caller holds mr_lock. */
static void core_detach(struct vb_mr *mw)
{
	mw->closing = 0;
	core_take_back(mw);
	if (mw->region)
		atomic_fetch_sub(&mw->region->windows, 1);
	mw->region = NULL;
}

/* Unbind the window if all accesses through it have ended. False: some are in
 * progress. The caller holds mr_lock. */
static bool detach_if_drained(struct vb_mr *mw)
{
	if (mw->closing && !vb_mr_is_drained(mw, mw->closing, &mw->closed_for))
		return false;
	core_detach(mw);
	return true;
}

static struct vb_mr *window_of(struct vb_chain *link)
{
	return VB_CONTAINER_OF(link, struct vb_mr, link);
}

void vb_mw_shut_all(struct vb_qp *qp)
{
	struct vb_adapter *a = qp->adapter;

	vb_mutex_lock(&a->mr_lock);
	for (struct vb_chain *l = qp->windows; l; l = l->next)
		shut(window_of(l));
	vb_mutex_unlock(&a->mr_lock);
}

void vb_mw_detach_all(struct vb_qp *qp)
{
	struct vb_adapter *a = qp->adapter;

	vb_mutex_lock(&a->mr_lock);
	while (qp->windows)
		core_detach(window_of(qp->windows));
	vb_mutex_unlock(&a->mr_lock);
}

void vb_mw_free(struct vb_mr *mw)
{
	struct vb_adapter *a = mw->pd->adapter;
	uint32_t key;

	vb_mutex_lock(&a->mr_lock);
	shut(mw);
	key = mw->closing;
	vb_mutex_unlock(&a->mr_lock);
	vb_mr_await(mw, key);
	vb_mutex_lock(&a->mr_lock);
	core_detach(mw);
	/* a recycled entry has the kind MR_REGION again */
	mw->kind = MR_REGION;
	vb_mutex_unlock(&a->mr_lock);
	vb_mr_give(mw);
	vb_limit_give(&a->n_mw);
}

uint32_t vb_mw_key(uint32_t window, uint32_t consumer)
{
	uint32_t key = (window & ~0xffu) | (consumer & 0xff);

	return key ? key : 1; /* a key of 0 would mean: not bound */
}

/* The rules of a bind (IBA 10.6.7.2), one function for each object that they
 * check. Each function returns an error text, or NULL. */

static const char *refuse_window(const struct vb_mr *mw, const struct vb_pd *pd,
				 const struct vb_mw_bind *b)
{
	if (!mw || (mw->kind != MR_WINDOW_1 && mw->kind != MR_WINDOW_2))
		return "no such window";
	/* IBA C10-72 requires one domain of window and queue pair */
	if (mw->pd != pd)
		return "the queue pair has another protection domain";
	if (mw->kind == MR_WINDOW_1)
		return b->access & ACCESS_ZERO_BASED
			       ? "a window of type 1 cannot be zero-based"
			       : NULL;
	/* IBA o10-37.2.30 requires an unbound window */
	if (mw->region && !mw->closing)
		return "a bound window of type 2 must be invalidated before it is bound again";
	if (b->length == 0) /* IBA o10-37.2.40 forbids length 0 */
		return "a window of type 2 must not be empty";
	return NULL;
}

static bool core_mw_is_inside(const struct vb_mr *region,
			      const struct vb_mw_bind *b)
{
	uint64_t offset = b->addr - region->iova;

	return offset <= region->length && b->length <= region->length - offset;
}

static const char *refuse_region(const struct vb_mr *region,
				 const struct vb_pd *pd,
				 const struct vb_mw_bind *b)
{
	if (!region || region->kind != MR_REGION)
		return "no such region";
	if (region->pd != pd)
		return "the region has another protection domain";
	if (region->access & ACCESS_ZERO_BASED)
		return "the region is zero-based";
	/* IBA C10-73 requires the right to bind windows */
	if (!(region->access & ACCESS_MW_BIND))
		return "the region was registered without MW_BIND";
	if (b->access & WRITES && !(region->access & ACCESS_LOCAL_WRITE))
		/* IBA C10-74 requires a region with local write */
		return "the region is not writable";
	/* IBA C10-75 requires a window inside the region */
	if (!core_mw_is_inside(region, b))
		return "the range is not inside the region";
	return NULL;
}

/* Bind the window to @region. The caller holds a use of @region, and
 * mr_lock. */
static void open_window(struct vb_mr *mw, struct vb_mr *region,
			struct vb_qp *qp, const struct vb_mw_bind *b)
{
	mw->base = region->base + (b->addr - region->iova);
	mw->iova = b->access & ACCESS_ZERO_BASED ? 0 : b->addr;
	mw->length = b->length;
	mw->access = b->access & REMOTE;
	mw->region = region;
	atomic_fetch_add(&region->windows, 1);
	if (mw->kind == MR_WINDOW_2)
		give_to(mw, qp);
	vb_mr_open(mw, b->key);
}

/* Unbind the window if it is bound, then bind it as @b says. The caller holds
 * mr_lock. */
static enum vb_mw_end core_bind_to(struct vb_mr *mw, struct vb_mr *region,
				   struct vb_qp *qp, const struct vb_mw_bind *b)
{
	shut(mw);
	if (!detach_if_drained(mw))
		return MW_BUSY;
	if (b->length > 0)
		open_window(mw, region, qp, b);
	return MW_DONE;
}

/* Check the rules of a bind and bind the window. The caller holds mr_lock. */
static enum vb_mw_end bind_locked(struct vb_qp *qp, const struct vb_mw_bind *b,
				  const char **why)
	VB_REQUIRES(qp->adapter->mr_lock)
{
	struct vb_mr *mw = vb_mr_find(qp->adapter, b->key), *region = NULL;
	enum vb_mw_end end = MW_REFUSED;

	*why = refuse_window(mw, qp->pd, b);
	if (!*why && b->length > 0) {
		region = vb_mr_hold(qp->adapter, b->region);
		*why = refuse_region(region, qp->pd, b);
	}
	if (!*why)
		end = core_bind_to(mw, region, qp, b);
	if (region)
		vb_mr_drop(region);
	return end;
}

enum vb_mw_end vb_mw_bind(struct vb_qp *qp, const struct vb_mw_bind *b)
{
	enum vb_mw_end end;
	const char *why;

	vb_mutex_lock(&qp->adapter->mr_lock);
	end = bind_locked(qp, b, &why);
	vb_mutex_unlock(&qp->adapter->mr_lock);
	if (end == MW_REFUSED)
		vb_qp_why(qp, WHY_BIND, "window 0x%x: not bound: %s", b->key,
			  why);
	return end;
}

/* Returns the reason why no queue pair, or not @qp, may invalidate @key; NULL:
 * @qp may. Only windows can be invalidated, since a region is not registered by
 * a work request (IBA 10.6.5). The caller holds mr_lock. */
static const char *refuse_invalidate(const struct vb_mr *mw,
				     const struct vb_qp *qp, uint32_t key)
	VB_REQUIRES(qp->adapter->mr_lock)
{
	if (!mw || key == 0 ||
	    (atomic_load(&mw->key) != key && mw->closing != key))
		return "no such key";
	if (mw->kind != MR_WINDOW_2)
		return "it is not a window of type 2";
	if (mw->pd != qp->pd || mw->qpn != atomic_load(&qp->qpn))
		return "another queue pair bound it";
	return NULL;
}

static void explain_key(struct vb_qp *qp, uint32_t key, const char *why)
	VB_REQUIRES(qp->drive)
{
	if (why)
		vb_qp_why(qp, WHY_INVALIDATE, "key 0x%x: not invalidated: %s",
			  key, why);
}

/* Carry out a local invalidate. The work request may complete only when no
 * access is in progress. MW_BUSY: an access is still in progress. */
static enum vb_mw_end invalidate(struct vb_qp *qp, uint32_t key)
	VB_REQUIRES(qp->drive)
{
	struct vb_mr *mw = vb_mr_find(qp->adapter, key);
	enum vb_mw_end end = MW_REFUSED;
	const char *why;

	vb_mutex_lock(&qp->adapter->mr_lock);
	why = refuse_invalidate(mw, qp, key);
	if (!why) {
		shut(mw);
		end = detach_if_drained(mw) ? MW_DONE : MW_BUSY;
	}
	vb_mutex_unlock(&qp->adapter->mr_lock);
	explain_key(qp, key, why);
	return end;
}

static bool peer_lies(struct vb_qp *qp, uint32_t key) VB_REQUIRES(qp->drive)
{
	const struct vb_key_ops *ops = qp->adapter->key_ops;

	return ops && ops->lies && ops->lies(qp, key);
}

/* This function waits for threads of this process only, and not for other
 * processes: only the peer has used the window, and an honest peer invalidates
 * it only when its own accesses have ended. If the peer shows an access
 * nevertheless, the window stays bound, with its key revoked: so the region
 * cannot be deregistered before the window is deallocated or its queue pair
 * destroyed, and these wait for that access. */
bool vb_mw_invalidate(struct vb_qp *qp, uint32_t key)
{
	struct vb_mr *mw = vb_mr_find(qp->adapter, key);
	const char *why;

	vb_mutex_lock(&qp->adapter->mr_lock);
	why = refuse_invalidate(mw, qp, key);
	if (!why) {
		shut(mw);
		vb_mr_await_users(mw);
		if (VB_UNLIKELY(peer_lies(qp, key)))
			why = "the peer still accesses memory by it";
		else
			core_detach(mw);
	}
	vb_mutex_unlock(&qp->adapter->mr_lock);
	explain_key(qp, key, why);
	return !why;
}

/* Returns the time of the next try: the longer the accesses last, the longer
 * the pauses between tries. A pause that is longer than VB_AGE_STEP would not
 * count as a whole. */
static vb_time again_at(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	uint32_t key = wqe->op == WR_LOCAL_INV ? wqe->imm : wqe->rkey;
	vb_time age = vb_mr_find(qp->adapter, key)->closed_for.sum;

	return qp->now + VB_MIN(VB_MAX(AGAIN_AFTER, age / 4), VB_AGE_STEP / 2);
}

enum vb_mw_end vb_mw_run(struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	const struct vb_mw_bind bind = {
		.key = wqe->rkey,
		.region = (uint32_t)wqe->swap,
		.addr = wqe->remote_addr,
		.length = wqe->compare_add,
		.access = wqe->imm,
	};
	enum vb_mw_end end = wqe->op == WR_LOCAL_INV ? invalidate(qp, wqe->imm)
						     : vb_mw_bind(qp, &bind);

	qp->local_at = end == MW_BUSY ? again_at(qp, wqe) : VB_NEVER;
	return end;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC: domains, numbers of shared receive queues, handles of queue pairs. */
#include "core/xrc.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "core/qp.h"

/* Find the domain that has the key @key; NULL: there is none. The caller holds
 * xrc_lock. */
static struct vb_xrc_domain *find_domain(const struct vb_adapter *a,
					 const struct vb_xrc_key *key)
	VB_REQUIRES(a->xrc_lock)
{
	for (struct vb_chain *l = a->xrc_domains; l; l = l->next) {
		struct vb_xrc_domain *d =
			VB_CONTAINER_OF(l, struct vb_xrc_domain, link);

		if (d->key.dev == key->dev && d->key.ino == key->ino)
			return d;
	}
	return NULL;
}

static struct vb_xrc_domain *make_domain(struct vb_adapter *a,
					 const struct vb_xrc_key *key)
{
	struct vb_xrc_domain *d = calloc(1, sizeof(*d));

	if (!d || !key)
		return d;
	d->has_key = true;
	d->key = *key;
	vb_chain_add(&a->xrc_domains, &d->link);
	return d;
}

static void drop_domain(struct vb_xrc_domain *d)
{
	if (--d->opened)
		return;
	if (d->has_key)
		vb_chain_del(&d->link);
	free(d);
}

/* Open the domain of @key, or create it. The caller holds xrc_lock. */
static int enter_domain(struct vb_adapter *a, const struct vb_xrc_key *key,
			unsigned flags, struct vb_xrc_domain **out)
	VB_REQUIRES(a->xrc_lock)
{
	struct vb_xrc_domain *d = key ? find_domain(a, key) : NULL;
	bool there = d || flags & XRCD_ELSEWHERE;

	if (key && !there && !(flags & XRCD_CREATE))
		return -EAGAIN;
	if (there && flags & XRCD_EXCLUSIVE)
		return -EINVAL;
	if (!d)
		d = make_domain(a, key);
	if (!d)
		return -ENOMEM;
	d->opened++;
	*out = d;
	return 0;
}

int vb_xrcd_open(struct vb_adapter *a, const struct vb_xrc_key *key,
		 unsigned flags, struct vb_xrcd **out)
{
	struct vb_xrcd *x = calloc(1, sizeof(*x));
	int rc;

	if (!x)
		return -ENOMEM;
	x->adapter = a;
	vb_mutex_lock(&a->xrc_lock);
	rc = enter_domain(a, key, flags, &x->domain);
	vb_mutex_unlock(&a->xrc_lock);
	if (rc) {
		free(x);
		return rc;
	}
	*out = x;
	return 0;
}

int vb_xrcd_close(struct vb_xrcd *x)
{
	if (atomic_load(&x->refs))
		return -EBUSY;
	vb_mutex_lock(&x->adapter->xrc_lock);
	drop_domain(x->domain);
	vb_mutex_unlock(&x->adapter->xrc_lock);
	free(x);
	return 0;
}

/* Shared receive queues. The high bits of their numbers are the process's slot,
 * like those of QPNs, so that a number tells which process has the queue. */

/* Assign a number to the SRQ. The caller holds xrc_lock. */
static int give_number(struct vb_adapter *a, struct vb_srq *srq)
	VB_REQUIRES(a->xrc_lock)
{
	uint32_t index;
	int rc;

	/* begin at a random index, so that others cannot guess the numbers */
	if (!a->xrc_srqs)
		a->xrc_srqs = vb_idtab_create(vb_limits.max_srq,
					      a->key_mask % vb_limits.max_srq);
	if (!a->xrc_srqs)
		return -ENOMEM;
	rc = vb_idtab_add(a->xrc_srqs, srq, &index);
	if (rc)
		return rc == -ENOSPC ? -ENOMEM : rc;
	srq->number = a->qpn_base | index;
	srq->life = ++a->xrc_lives;
	return 0;
}

int vb_xrc_srq_join(struct vb_srq *srq, struct vb_xrcd *x, struct vb_cq *cq)
{
	struct vb_adapter *a = x->adapter;
	int rc;

	if (srq->pd->adapter != a || cq->adapter != a)
		return -EINVAL;
	vb_mutex_lock(&a->xrc_lock);
	rc = give_number(a, srq);
	if (rc == 0) {
		srq->xrcd = x;
		srq->cq = cq;
		atomic_fetch_add(&x->refs, 1);
		atomic_fetch_add(&cq->refs, 1);
		vb_srq_note(srq);
	}
	vb_mutex_unlock(&a->xrc_lock);
	return rc;
}

void vb_xrc_srq_leave(struct vb_srq *srq)
{
	struct vb_adapter *a = srq->pd->adapter;

	vb_mutex_lock(&a->xrc_lock);
	vb_idtab_del(a->xrc_srqs, srq->number ^ a->qpn_base);
	vb_mutex_unlock(&a->xrc_lock);
	/* Wait for packets in progress. The work on each packet lasts
	 * microseconds. */
	while (atomic_load(&srq->users))
		sched_yield();
	atomic_fetch_sub(&srq->cq->refs, 1);
	atomic_fetch_sub(&srq->xrcd->refs, 1);
}

/* How a target queue pair uses the shared receive queue that a packet names. */

/* Find the queue with number @srqn and check its XRC domain. The caller holds
 * xrc_lock. */
static enum vb_fault find_srq(const struct vb_adapter *a,
			      const struct vb_xrc_domain *domain, uint32_t srqn,
			      struct vb_srq **out) VB_REQUIRES(a->xrc_lock)
{
	*out = a->xrc_srqs ? vb_idtab_get(a->xrc_srqs, srqn ^ a->qpn_base)
			   : NULL;
	if (!*out)
		return FAULT_XRC_SRQ;
	return (*out)->xrcd->domain == domain ? FAULT_NONE : FAULT_XRC_DOMAIN;
}

/* Make the target queue pair use SRQ @srqn. If @key is not NULL, the domain of
 * @key counts instead of the queue pair's own. */
static enum vb_fault core_enter(struct vb_qp *qp, const struct vb_xrc_key *key,
				uint32_t srqn)
{
	struct vb_adapter *a = qp->adapter;
	struct vb_srq *srq;
	enum vb_fault fault;

	vb_mutex_lock(&a->xrc_lock);
	if (key)
		qp->xrc_domain = find_domain(a, key);
	fault = find_srq(a, qp->xrc_domain, srqn, &srq);
	if (fault == FAULT_NONE)
		atomic_fetch_add(&srq->users, 1);
	vb_mutex_unlock(&a->xrc_lock);
	if (fault)
		return fault;
	qp->srq = srq;
	qp->pd = srq->pd;
	qp->recv_cq = srq->cq;
	return FAULT_NONE;
}

enum vb_fault vb_xrc_enter(struct vb_qp *qp, uint32_t srqn)
{
	return core_enter(qp, NULL, srqn);
}

enum vb_fault vb_xrc_enter_by_key(struct vb_qp *qp,
				  const struct vb_xrc_key *domain,
				  uint32_t srqn)
{
	return core_enter(qp, domain, srqn);
}

bool vb_xrc_is_forwarded(const struct vb_qp *qp, uint32_t srqn)
{
	return qp->adapter->forward_ops && qp->xrc_domain->has_key &&
	       (srqn ^ qp->adapter->qpn_base) >= vb_limits.max_srq;
}

void vb_xrc_leave(struct vb_qp *qp)
{
	struct vb_srq *srq = qp->srq;

	if (!srq)
		return;
	qp->srq = NULL;
	qp->pd = NULL;
	qp->recv_cq = NULL;
	/* This is the last access to the SRQ; after it the thread that destroys
	 * the SRQ may go on. */
	atomic_fetch_sub(&srq->users, 1);
}

bool vb_xrc_is_home(const struct vb_qp *qp)
{
	return qp->srq && qp->srq->life == qp->recv_life;
}

bool vb_xrc_enter_home(struct vb_qp *qp)
{
	if (vb_xrc_enter(qp, qp->recv_srqn) != FAULT_NONE)
		return false;
	if (vb_xrc_is_home(qp))
		return true;
	vb_xrc_leave(qp);
	return false;
}

/* Handles that share a target queue pair. */

void vb_qp_share(struct vb_qp *qp, struct vb_qp_share *share)
{
	share->next = qp->shares;
	qp->shares = share;
	atomic_fetch_add(&share->xrcd->refs, 1);
}

int vb_qp_open(struct vb_qp_share *share, uint32_t qpn, struct vb_qp **out)
{
	struct vb_adapter *a = share->xrcd->adapter;
	/* If @qpn belongs to another process, the index computed here is beyond
	 * the end of this table. */
	struct vb_qp *qp = vb_idtab_get(a->qps, qpn ^ a->qpn_base);
	bool fits;

	/* Check the type before locking, and leave drive of other types alone:
	 * a poster that found drive held would rely on this thread to send. The
	 * type may still change until drive is held. */
	if (!qp || qp->type != QPT_XRC_RECV)
		return -EINVAL;
	vb_mutex_lock(&qp->drive);
	fits = qpn && atomic_load(&qp->qpn) == qpn && qp->adapter == a &&
	       qp->type == QPT_XRC_RECV &&
	       qp->xrc_domain == share->xrcd->domain;
	if (fits)
		vb_qp_share(qp, share);
	vb_mutex_unlock(&qp->drive);
	*out = qp;
	return fits ? 0 : -EINVAL;
}

static void unlink_share(struct vb_qp *qp, struct vb_qp_share *share)
{
	struct vb_qp_share **at = &qp->shares;

	while (*at != share)
		at = &(*at)->next;
	*at = share->next;
	atomic_fetch_sub(&share->xrcd->refs, 1);
}

bool vb_qp_unshare(struct vb_qp *qp, struct vb_qp_share *share)
{
	bool last;

	vb_mutex_lock(&qp->drive);
	unlink_share(qp, share);
	last = !qp->shares;
	if (last)
		atomic_store(&qp->qpn, 0);
	vb_mutex_unlock(&qp->drive);
	return last;
}

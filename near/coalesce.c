/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester copies many small WRITEs in a row with one system call, which
 * takes a fifth of the time of a call for each. Or it packs them into one
 * record on the lane, and the peer places their data.
 */
#include <sys/uio.h>

#include "base/guard.h"
#include "near/near_priv.h"

#define PIECES 64 /* the most WRITEs in one system call or record */
/* The most queue pairs in one round of vb_near_flush(). */
#define AT_ONCE 16

struct batch {
	unsigned count;
	struct iovec local[PIECES], remote[PIECES];
	/* The local regions that this batch references, and the key of the last
	 * one. */
	struct vb_mr_use held[PIECES];
	unsigned holds;
	uint32_t lkey;
};

static void near_coalesce_let_go(struct batch *b)
{
	while (b->holds)
		vb_mr_end(&b->held[--b->holds]);
}

bool vb_near_is_small(const struct vb_send_wqe *wqe)
{
	return wqe->op == WR_WRITE && !(wqe->flags & SEND_FENCE) &&
	       wqe->length && wqe->length <= VB_REQUEST_MAX &&
	       (wqe->flags & SEND_INLINE || wqe->num_sge == 1);
}

/* Returns the address of @s, if it is in the region that was referenced last,
 * as is most often the case; otherwise NULL. */
static uint8_t *near_coalesce_find_held(const struct batch *b,
					const struct vb_sge *s)
{
	const struct vb_mr *mr;

	if (b->holds == 0 || s->lkey != b->lkey)
		return NULL;
	mr = b->held[b->holds - 1].mr;
	if (mr->kind != MR_REGION || s->addr - mr->iova > mr->length ||
	    s->length > mr->length - (s->addr - mr->iova))
		return NULL;
	return mr->base + (s->addr - mr->iova);
}

static uint8_t *near_coalesce_hold(struct batch *b, struct vb_pd *pd,
				   const struct vb_sge *s)
{
	uint8_t *at = near_coalesce_find_held(b, s);

	if (at)
		return at;
	if (vb_mr_begin(pd->adapter, pd, 0, s->lkey, s->addr, s->length, 0,
			&b->held[b->holds]) != FAULT_NONE)
		return NULL;
	b->lkey = s->lkey;
	return b->held[b->holds++].at;
}

static bool near_add(struct batch *b, const struct vb_qp *qp,
		     struct vb_send_wqe *wqe, const struct vb_grant *g)
{
	uint8_t *here = wqe->inline_data;
	uint64_t there;

	if (!vb_registry_covers(g, wqe->remote_addr, wqe->length, &there))
		return false;
	if (!(wqe->flags & SEND_INLINE))
		here = near_coalesce_hold(b, qp->pd, &wqe->sge[0]);
	/* The page must not be missing inside the system call: see
	 * near/cma.c. */
	if (!here || !vb_guard_touch(here, wqe->length, false))
		return false;
	b->local[b->count] = (struct iovec){ here, wqe->length };
	b->remote[b->count++] =
		(struct iovec){ (void *)(uintptr_t)there, wqe->length };
	return true;
}

static void near_gather(struct batch *b, const struct vb_qp *qp,
			const struct vb_grant *g) VB_REQUIRES(qp->drive)
{
	uint32_t end = vb_sq_end(&qp->sq), i = vb_nq(qp)->sent;

	b->count = b->holds = 0;
	for (; i != end && b->count < PIECES; i++) {
		struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, i);

		if (!vb_near_is_small(wqe) || wqe->rkey != g->key ||
		    !near_add(b, qp, wqe, g))
			return;
	}
}

/* Copy the batch. Returns the number of WRITEs that were copied whole. */
static unsigned near_place(const struct batch *b, const struct vb_peer *p,
			   const struct vb_permit *permit)
{
	ssize_t n = p->world->copy(p->world->arg, permit, p->pid, true,
				   b->local, b->count, b->remote, b->count);
	unsigned done = 0;

	if (vb_peer_expels(p))
		return 0;
	while (done < b->count && n >= (ssize_t)b->local[done].iov_len)
		n -= (ssize_t)b->local[done++].iov_len;
	return done;
}

unsigned vb_near_coalesce(struct vb_qp *qp)
{
	const struct vb_near_qp *nq = vb_nq(qp);
	const struct vb_remote_side remote =
		vb_remote_side_by(&nq->view, vb_sq_at(&qp->sq, nq->sent)->rkey,
				  0, ACCESS_REMOTE_WRITE);
	struct vb_peer *p = nq->peer;
	struct vb_permit permit;
	struct vb_hazard *hazard;
	unsigned done = 0;
	struct vb_grant g;
	struct batch b;

	if (!(nq->view.access & ACCESS_REMOTE_WRITE))
		return 0;
	b.count = b.holds = 0;
	hazard = vb_hazard_announce(&p->ours, remote.key, remote.qpn);
	if (VB_UNLIKELY(!hazard))
		return 0;
	if (vb_registry_open(p->registry, &remote, &g, &permit))
		near_gather(&b, qp, &g);
	if (b.count > 1 && vb_peer_may_copy(p))
		done = near_place(&b, p, &permit);
	vb_hazard_withdraw(&p->ours, hazard);
	near_coalesce_let_go(&b);
	return done;
}

/* Add one WRITE to the record. False: its source cannot be read. A later
 * attempt with this WRITE alone finds the error. */
static bool pack_one(struct batch *b, const struct vb_qp *qp,
		     struct vb_send_wqe *wqe, uint8_t *to)
{
	const struct vb_near_write head = { wqe->remote_addr, wqe->rkey,
					    wqe->length };
	const uint8_t *from =
		wqe->flags & SEND_INLINE
			? wqe->inline_data
			: near_coalesce_hold(b, qp->pd, &wqe->sge[0]);

	memcpy(to, &head, sizeof(head));
	return from && vb_guard_copy(to + sizeof(head), from, wqe->length) == 0;
}

unsigned vb_near_pack(struct vb_qp *qp, uint8_t *data, uint32_t room,
		      uint32_t *bytes)
{
	uint32_t end = vb_sq_end(&qp->sq), from = vb_nq(qp)->sent, i;
	struct batch b;

	b.holds = 0;
	*bytes = 0;
	for (i = from; i != end && i - from < PIECES; i++) {
		struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, i);
		uint32_t size = vb_near_write_size(wqe->length);

		if (!vb_near_is_small(wqe) || size > room - *bytes ||
		    !pack_one(&b, qp, wqe, data + *bytes))
			break;
		*bytes += size;
	}
	near_coalesce_let_go(&b);
	return i - from;
}

/* The list of queue pairs with WRITEs that gather. */

void vb_near_list(struct vb_near *n, struct vb_qp *qp)
{
	struct vb_near_qp *nq = vb_nq(qp);

	vb_mutex_lock(&n->coalesce_lock);
	if (!nq->listed) {
		nq->listed = true;
		nq->coalesce_next = atomic_load(&n->coalescing);
		atomic_store(&n->coalescing, qp);
	}
	vb_mutex_unlock(&n->coalesce_lock);
}

void vb_near_unlist(struct vb_near *n, struct vb_qp *qp)
{
	struct vb_qp *first, **at;

	vb_mutex_lock(&n->coalesce_lock);
	first = atomic_load(&n->coalescing);
	at = &first;
	while (*at && *at != qp)
		at = &vb_nq(*at)->coalesce_next;
	if (*at)
		*at = vb_nq(qp)->coalesce_next;
	atomic_store(&n->coalescing, first);
	vb_nq(qp)->listed = false;
	vb_mutex_unlock(&n->coalesce_lock);
}

static unsigned take_some(struct vb_near *n, struct vb_qp *some[AT_ONCE])
{
	unsigned count = 0;
	struct vb_qp *qp;

	vb_mutex_lock(&n->coalesce_lock);
	while (count < AT_ONCE && (qp = atomic_load(&n->coalescing))) {
		vb_nq(qp)->listed = false;
		atomic_store(&n->coalescing, vb_nq(qp)->coalesce_next);
		some[count++] = qp;
	}
	vb_mutex_unlock(&n->coalesce_lock);
	return count;
}

/* Send the WRITEs that @qp has gathered. Queue pairs are type-stable, so even a
 * destroyed one can be locked; its number is 0. If another thread holds drive
 * and leaves the WRITEs to gather, the timer at flush_at sends them. */
static bool flush(struct vb_near *n, struct vb_qp *qp, vb_time now)
{
	bool done = false;

	if (!vb_mutex_trylock(&qp->drive))
		return false;
	if (atomic_load(&qp->qpn) && vb_nq(qp) &&
	    vb_nq(qp)->flush_at != VB_NEVER) {
		vb_nq(qp)->flush_at = 0;
		vb_near_step(n, qp, now);
		done = true;
	}
	vb_near_release(n, qp);
	return done;
}

bool vb_near_flush(struct vb_near *n, vb_time now)
{
	struct vb_qp *some[AT_ONCE];
	bool done = false;
	unsigned count;

	if (VB_LIKELY(!atomic_load_explicit(&n->coalescing,
					    memory_order_relaxed)))
		return false;
	count = take_some(n, some);
	while (count)
		done |= flush(n, some[--count], now);
	return done;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings of work requests; each has one poster and one consumer at a time. */
#include "core/lock_order.h"
#include "core/wq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/cq.h"
#include "core/sge.h"
#include "core/tag.h"
#include "core/xrc.h"

/* A posted receive, as stored in its slot. */
struct recv_slot {
	uint64_t wr_id;
	uint32_t num_sge;
	struct vb_sge sge[];
};
_Static_assert(sizeof(struct recv_slot) % _Alignof(struct vb_sge) == 0,
	       "entries are aligned");
_Static_assert(_Alignof(struct vb_send_wqe) <= 16, "slots are aligned");
_Static_assert(sizeof(struct vb_send_dest) % _Alignof(struct vb_send_wqe) ==
			       0 &&
		       _Alignof(struct vb_send_dest) <=
			       _Alignof(struct vb_send_wqe),
	       "slots are aligned behind destinations, and these at their end");

static uint32_t round_up_pow2(uint32_t n)
{
	return n <= 1 ? n : 1u << (32 - __builtin_clz(n - 1));
}

/* Allocate the slots of a ring. With @cap 0, *@slots is NULL and the call
 * succeeds. The heap's memory is zeroed, so slots that were never used take no
 * memory. */
static int core_make_slots(struct vb_memory **m, uint32_t cap, uint32_t stride,
			   uint8_t **slots)
{
	*slots = cap ? vb_memory_take(m, cap, stride) : NULL;
	return cap && !*slots ? -ENOMEM : 0;
}

int vb_sq_init(struct vb_sq *sq, uint32_t cap, uint32_t max_sge,
	       uint32_t max_inline, bool sig_all, bool datagrams,
	       struct vb_memory *m)
{
	uint32_t list = max_sge * (uint32_t)sizeof(struct vb_sge);
	uint32_t room = (VB_MAX(list, max_inline) + 15) & ~15u;

	memset(sq, 0, sizeof(*sq));
	sq->cap = sq->open = round_up_pow2(cap);
	sq->max_sge = max_sge;
	sq->max_inline = room;
	sq->sig_all = sig_all;
	sq->stride = (uint32_t)sizeof(struct vb_send_wqe) + room;
	if (datagrams)
		sq->stride += sizeof(struct vb_send_dest);
	sq->memory = m;
	if (core_make_slots(&sq->memory, sq->cap, sq->stride, &sq->slots))
		return -ENOMEM;
	vb_mutex_init(&sq->lock, RANK_WQ);
	return 0;
}

void vb_sq_fini(struct vb_sq *sq)
{
	vb_memory_give(sq->memory, sq->slots);
	sq->slots = NULL;
	vb_mutex_fini(&sq->lock);
}

int vb_rq_init(struct vb_rq *rq, uint32_t cap, uint32_t max_sge,
	       struct vb_memory *m)
{
	memset(rq, 0, sizeof(*rq));
	rq->cap = round_up_pow2(cap);
	rq->max_sge = max_sge;
	rq->stride = (uint32_t)(sizeof(struct recv_slot) +
				max_sge * sizeof(struct vb_sge));
	rq->memory = m;
	if (core_make_slots(&rq->memory, rq->cap, rq->stride, &rq->slots))
		return -ENOMEM;
	vb_mutex_init(&rq->lock, RANK_WQ);
	return 0;
}

void vb_rq_fini(struct vb_rq *rq)
{
	vb_memory_give(rq->memory, rq->slots);
	rq->slots = NULL;
	vb_mutex_fini(&rq->lock);
}

static struct recv_slot *rq_at(const struct vb_rq *rq, uint32_t i)
{
	return (struct recv_slot *)(rq->slots +
				    (size_t)(i & (rq->cap - 1)) * rq->stride);
}

static int post_locked(struct vb_rq *rq, uint64_t wr_id,
		       const struct vb_sge *sge, unsigned count)
{
	struct recv_slot *slot;

	if (!vb_wq_free(&rq->posted, &rq->released, rq->cap))
		return -ENOMEM;
	slot = rq_at(rq,
		     atomic_load_explicit(&rq->posted, memory_order_relaxed));
	slot->wr_id = wr_id;
	slot->num_sge = count;
	if (count)
		memcpy(slot->sge, sge, count * sizeof(*sge));
	vb_wq_publish(&rq->posted);
	return 0;
}

int vb_rq_post(struct vb_rq *rq, uint64_t wr_id, const struct vb_sge *sge,
	       unsigned count)
{
	int rc;

	if (count > rq->max_sge)
		return -EINVAL;
	vb_mutex_lock(&rq->lock);
	rc = post_locked(rq, wr_id, sge, count);
	vb_mutex_unlock(&rq->lock);
	return rc;
}

bool vb_rq_take(struct vb_rq *rq, struct vb_recv_wqe *out)
{
	uint32_t i = atomic_load_explicit(&rq->taken, memory_order_relaxed);
	const struct recv_slot *slot;

	/* Acquire: pairs with the release in vb_wq_publish(). */
	if (i == atomic_load_explicit(&rq->posted, memory_order_acquire))
		return false;
	slot = rq_at(rq, i);
	out->wr_id = slot->wr_id;
	out->num_sge = slot->num_sge;
	out->index = i;
	memcpy(out->sge, slot->sge, slot->num_sge * sizeof(slot->sge[0]));
	out->length = vb_sge_total(out->sge, out->num_sge);
	/* Relaxed: only the thread that removes receives relies on @taken;
	 * others read it as a hint. */
	atomic_store_explicit(&rq->taken, i + 1, memory_order_relaxed);
	return true;
}

/* The type of the SRQ is IBV_SRQT_*: basic, XRC, or tag matching. */
static struct vb_roster_row core_wq_row_of(const struct vb_srq *srq)
{
	return (struct vb_roster_row){
		.kind = ROSTER_SRQ,
		.type = srq->xrcd   ? 1
			: srq->tags ? 2
				    : 0,
		.pd = srq->pd->row,
		.recv_cq = srq->cq ? srq->cq->row : 0,
	};
}

void vb_srq_note(const struct vb_srq *srq)
{
	struct vb_roster_row row = core_wq_row_of(srq);

	vb_roster_set(&srq->pd->adapter->roster, srq->row, &row);
}

int vb_srq_create(struct vb_pd *pd, uint32_t cap, uint32_t max_sge,
		  struct vb_async *async, struct vb_memory *m,
		  struct vb_srq **out)
{
	struct vb_adapter *a = pd->adapter;
	struct vb_roster_row row;
	struct vb_srq *srq;

	if (cap == 0 || cap > vb_limits.max_srq_wr ||
	    max_sge > vb_limits.max_srq_sge)
		return -EINVAL;
	if (!vb_limit_take(&a->n_srq, vb_limits.max_srq))
		return -ENOMEM;
	srq = calloc(1, sizeof(*srq));
	if (!srq || vb_rq_init(&srq->rq, cap, max_sge, m)) {
		free(srq);
		vb_limit_give(&a->n_srq);
		return -ENOMEM;
	}
	srq->pd = pd;
	srq->async = async;
	vb_pd_get(pd);
	row = core_wq_row_of(srq);
	srq->row = vb_roster_add(&a->roster, &row);
	*out = srq;
	return 0;
}

int vb_srq_destroy(struct vb_srq *srq)
{
	if (atomic_load(&srq->refs))
		return -EBUSY;
	if (srq->xrcd)
		vb_xrc_srq_leave(srq);
	if (srq->tags)
		vb_tag_leave(srq);
	if (srq->async && srq->owner)
		vb_async_forget(srq->async, srq->owner);
	vb_roster_del(&srq->pd->adapter->roster, ROSTER_SRQ, srq->row);
	vb_limit_give(&srq->pd->adapter->n_srq);
	vb_pd_put(srq->pd);
	vb_rq_fini(&srq->rq);
	free(srq);
	return 0;
}

/* Copy the receives that no message has consumed to another ring, and swap the
 * rings. The caller holds the lock. */
static int move_slots(struct vb_rq *rq, uint8_t **slots, uint32_t cap)
	VB_REQUIRES(rq->lock)
{
	uint32_t end = atomic_load_explicit(&rq->posted, memory_order_relaxed);
	uint32_t i = atomic_load_explicit(&rq->taken, memory_order_relaxed);
	uint8_t *old = rq->slots;

	if (end - i > cap)
		return -EINVAL;
	for (; i != end; i++)
		memcpy(*slots + (size_t)(i & (cap - 1)) * rq->stride,
		       rq_at(rq, i), rq->stride);
	rq->slots = *slots;
	rq->cap = cap;
	*slots = old;
	return 0;
}

int vb_srq_resize(struct vb_srq *srq, uint32_t asked)
{
	uint32_t cap = round_up_pow2(asked);
	struct vb_rq *rq = &srq->rq;
	struct vb_memory *m = rq->memory, *was = m;
	uint8_t *slots;
	int rc;

	if (asked == 0 || asked > vb_limits.max_srq_wr)
		return -EINVAL;
	if (core_make_slots(&m, cap, rq->stride, &slots))
		return -ENOMEM;
	vb_mutex_lock(&rq->lock);
	rc = move_slots(rq, &slots, cap);
	if (rc == 0)
		rq->memory = m;
	vb_mutex_unlock(&rq->lock);
	/* Free the slots that are no longer used: after success the old ones,
	 * after an error the new ones, which were too few. */
	vb_memory_give(rc ? m : was, slots);
	return rc;
}

void vb_srq_set_limit(struct vb_srq *srq, uint32_t limit)
{
	vb_mutex_lock(&srq->rq.lock);
	srq->limit = limit;
	vb_mutex_unlock(&srq->rq.lock);
}

/* Are fewer receives queued than the limit? True only once. The caller holds
 * rq.lock. */
static bool falls_below_limit(struct vb_srq *srq) VB_REQUIRES(srq->rq.lock)
{
	uint32_t left =
		atomic_load_explicit(&srq->rq.posted, memory_order_relaxed) -
		atomic_load_explicit(&srq->rq.taken, memory_order_relaxed);

	if (left >= srq->limit)
		return false;
	/* the event of the limit disarms the limit (IBA 11.2.3.3) */
	srq->limit = 0;
	return true;
}

bool vb_srq_take_locked(struct vb_srq *srq, struct vb_recv_wqe *out,
			bool *event)
{
	if (!vb_rq_take(&srq->rq, out))
		return false;
	/* @out has a copy of the receive, so the slot is free. */
	atomic_store_explicit(&srq->rq.released, out->index + 1,
			      memory_order_release);
	*event = falls_below_limit(srq);
	return true;
}

bool vb_srq_take(struct vb_srq *srq, struct vb_recv_wqe *out)
{
	bool taken, event = false;

	vb_mutex_lock(&srq->rq.lock);
	taken = vb_srq_take_locked(srq, out, &event);
	vb_mutex_unlock(&srq->rq.lock);
	if (event && srq->async)
		vb_async_post(srq->async, EVENT_SRQ_LIMIT, srq->owner);
	return taken;
}

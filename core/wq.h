/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Send queues, receive queues, shared receive queues.
 *
 * Indices run freely and wrap at 2^32; the slot is index mod cap. A cap is 0
 * or a power of two, so that consecutive indices use consecutive slots across
 * the wrap. Each posted request occupies a slot. As with adapters, the slot
 * becomes free when the program has polled a completion of this request or of a
 * later one; a slot of an SRQ becomes free when a message consumes its receive.
 */
#ifndef CORE_WQ_H
#define CORE_WQ_H

#include <stdatomic.h>

#include "core/adapter.h"
#include "core/event.h"
#include "core/memory.h"
#include "link/link.h"

struct vb_send_wqe {
	/* The fields that the poster writes. */
	uint64_t wr_id;
	uint64_t remote_addr;
	/* of atomics: the value to compare with, or to add */
	uint64_t compare_add;
	/* of atomics: the value to swap in; of an ATOMIC WRITE the word to
	 * write */
	uint64_t swap;
	uint32_t rkey;
	/* immediate data in wire order, or the rkey to invalidate */
	uint32_t imm;
	uint32_t length; /* length of the message in bytes */
	uint8_t op;	 /* operation, an enum vb_wr_op */
	/* enum vb_send_flags; SEND_INLINE: the payload is in inline_data */
	uint8_t flags;
	uint8_t num_sge;
	uint32_t srqn; /* with XRC: number of the destination SRQ */
	/* The fields that the transport writes, under drive. */

	/* the request's first PSN, valid once PSNs are assigned */
	uint32_t first_psn;
	uint32_t psn_count;
	union {
		struct vb_sge sge[0];
		uint8_t inline_data[0];
	};
};

/* Destination of a datagram, at the end of each slot in a send queue for
 * datagrams. */
struct vb_send_dest {
	/* route to the destination, with the QPN of the destination */
	_Alignas(8) struct vb_route route;
	uint32_t qkey; /* Q_Key as the program posted it */
};

struct vb_sq {
	uint32_t cap, stride, max_sge, max_inline;
	/* slots that the program may use: @cap, or 0 if it may not post
	 * (core/tag.h) */
	uint32_t open;
	bool sig_all;
	uint8_t *slots;
	/* the allocator of the slots; NULL: the heap */
	struct vb_memory *memory;
	struct vb_mutex lock; /* held while a request is posted */
	/* index behind the last posted request; written under lock */
	_Atomic uint32_t posted;
	/* index behind the last slot that a poll freed; written under the CQ's
	 * lock */
	_Atomic uint32_t released;
	/* protected by drive: all WQEs before this index are complete */
	uint32_t done;
	/* the send queue index of vb_sq_defer_doorbell(); written under
	 * drive */
	_Atomic uint64_t deferred;
};

struct vb_recv_wqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t index;	 /* index of the receive in its queue */
	uint64_t length; /* sum of the entries' lengths in bytes */
	struct vb_sge sge[VB_MAX_SGE];
};

struct vb_rq {
	/* in an SRQ, @cap is protected by lock */
	uint32_t cap, stride, max_sge;
	uint8_t *slots;
	/* the allocator of the slots; NULL: the heap */
	struct vb_memory *memory;
	/* held while a receive is posted; in an SRQ also while one is
	 * removed */
	struct vb_mutex lock;
	/* index behind the last posted receive; written under lock */
	_Atomic uint32_t posted;
	/* index behind the last freed slot; written under the CQ's lock (SRQ:
	 * lock) */
	_Atomic uint32_t released;
	/* index behind the last consumed receive; written under drive (SRQ:
	 * lock) */
	_Atomic uint32_t taken;
};

struct vb_xrcd;
struct vb_cq;
struct vb_tags;

struct vb_srq {
	struct vb_rq rq;
	struct vb_pd *pd;
	/* completion queue of an SRQ with XRC or tag matching; or NULL */
	struct vb_cq *cq;
	struct vb_tags *tags; /* tag matching (core/tag.h); or NULL */
	/* XRC (core/xrc.h); NULL and 0 in other SRQs. */
	struct vb_xrcd *xrcd;
	uint32_t number;
	/* a value that no other SRQ with this number has or had */
	uint64_t life;
	/* number of packets in progress that use this queue */
	_Atomic uint32_t users;
	struct vb_async *async;
	void *owner;
	/* protected by rq.lock: the limit of EVENT_SRQ_LIMIT; 0: not armed */
	uint32_t limit;
	_Atomic uint32_t refs;
	uint32_t row; /* number of the SRQ's row in the roster */
};

/* Allocate a send queue. Rounds the capacities up to powers of two; the queue's
 * fields then have the real values. The slots' memory comes from @m, or from
 * the heap when @m is NULL. @datagrams: each slot has room for a struct
 * vb_send_dest. 0 or -ENOMEM. */
VB_MUST_CHECK int vb_sq_init(struct vb_sq *sq, uint32_t cap, uint32_t max_sge,
			     uint32_t max_inline, bool sig_all, bool datagrams,
			     struct vb_memory *m);
void vb_sq_fini(struct vb_sq *sq);
/* Allocate a receive queue, as vb_sq_init() does a send queue. 0 or -ENOMEM. */
VB_MUST_CHECK int vb_rq_init(struct vb_rq *rq, uint32_t cap, uint32_t max_sge,
			     struct vb_memory *m);
void vb_rq_fini(struct vb_rq *rq);

static inline struct vb_send_wqe *vb_sq_at(const struct vb_sq *sq, uint32_t i)
{
	return (struct vb_send_wqe *)(sq->slots +
				      (size_t)(i & (sq->cap - 1)) * sq->stride);
}

/* Returns the destination of @wqe, which is in a queue that was initialized
 * with @datagrams. */
static inline struct vb_send_dest *vb_sq_dest(const struct vb_sq *sq,
					      struct vb_send_wqe *wqe)
{
	return (struct vb_send_dest *)((uint8_t *)wqe + sq->stride -
				       sizeof(struct vb_send_dest));
}

/* Returns the number of free slots of a ring. The caller holds the poster's
 * lock, so no other thread writes @posted. */
static inline uint32_t vb_wq_free(const _Atomic uint32_t *posted,
				  const _Atomic uint32_t *released,
				  uint32_t cap)
{
	/* Acquire: pairs with the release of the thread that polls, after which
	 * that thread does not read the freed slot any more. */
	uint32_t used = atomic_load_explicit(posted, memory_order_relaxed) -
			atomic_load_explicit(released, memory_order_acquire);

	return used < cap ? cap - used : 0;
}

/* Publish one more slot. Release: pairs with the acquire in vb_sq_end() and in
 * vb_rq_take(), so that a thread that sees the index also sees the slot's
 * contents. */
static inline void vb_wq_publish(_Atomic uint32_t *posted)
{
	uint32_t n = atomic_load_explicit(posted, memory_order_relaxed);

	atomic_store_explicit(posted, n + 1, memory_order_release);
}

/* Returns the free slot @ahead slots behind the next one; NULL: there is none.
 * The caller holds sq->lock. */
static inline struct vb_send_wqe *vb_sq_peek(struct vb_sq *sq, uint32_t ahead)
	VB_REQUIRES(sq->lock)
{
	uint32_t room = vb_wq_free(&sq->posted, &sq->released, sq->open);
	uint32_t i = atomic_load_explicit(&sq->posted, memory_order_relaxed);

	return ahead < room ? vb_sq_at(sq, i + ahead) : NULL;
}

/* Returns the next free slot, or NULL when the queue is full. The caller holds
 * sq->lock. */
static inline struct vb_send_wqe *vb_sq_begin(struct vb_sq *sq)
	VB_REQUIRES(sq->lock)
{
	return vb_sq_peek(sq, 0);
}

/* Publish the slot that vb_sq_begin() returned. The caller holds sq->lock. */
static inline void vb_sq_commit(struct vb_sq *sq) VB_REQUIRES(sq->lock)
{
	vb_wq_publish(&sq->posted);
}

/* Does the success of @wqe make a completion entry? */
static inline bool vb_sq_signals(const struct vb_sq *sq,
				 const struct vb_send_wqe *wqe)
{
	return sq->sig_all || wqe->flags & SEND_SIGNALED;
}

/* Returns the index behind the last posted WQE. The caller holds drive. */
static inline uint32_t vb_sq_end(const struct vb_sq *sq)
{
	/* Acquire: pairs with the release in vb_sq_commit(), so that the
	 * contents of the slot are visible. */
	return atomic_load_explicit(&sq->posted, memory_order_acquire);
}

/*
 * Deferred doorbells. While many packets are in flight, no thread needs to look
 * at a short work request when it is posted, because a response makes a thread
 * look soon enough. The driver (the thread that holds drive) permits this up to
 * a send queue index with vb_sq_defer_doorbell(). Before a driver looks at the
 * queue, or changes the state that made the permission right, it calls
 * vb_sq_resume_doorbell(), which withdraws the permission, and then reads
 * vb_sq_end(). A poster publishes its slot and then asks vb_sq_is_deferred():
 * if the answer is yes, the driver that withdraws the permission sees the slot.
 */
#define VB_DEFER_BYTES 256
#define VB_IS_DEFERRED (1ull << 32)

static inline void vb_sq_defer_doorbell(struct vb_sq *sq, uint32_t until)
{
	/* Relaxed: posters do not read the data that the permission depends
	 * on. */
	atomic_store_explicit(&sq->deferred, VB_IS_DEFERRED | until,
			      memory_order_relaxed);
}

static inline void vb_sq_resume_doorbell(struct vb_sq *sq)
{
	/* A read-modify-write, as in vb_sq_is_deferred(): of two such
	 * operations the later one reads the value that the earlier one wrote,
	 * so its thread also sees what the earlier thread did before. */
	if (atomic_load_explicit(&sq->deferred, memory_order_relaxed))
		(void)atomic_exchange(&sq->deferred, 0);
}

/* May the poster of a work request of at most VB_DEFER_BYTES bytes return
 * without asking whether to send? A plain load comes first, so that the cache
 * line stays shared when the answer is no. */
static inline bool vb_sq_is_deferred(struct vb_sq *sq)
{
	uint32_t end = atomic_load_explicit(&sq->posted, memory_order_relaxed);
	uint64_t deferred =
		atomic_load_explicit(&sq->deferred, memory_order_relaxed);

	if (!(deferred & VB_IS_DEFERRED) ||
	    (int32_t)((uint32_t)deferred - end) < 0)
		return false;
	return atomic_fetch_add(&sq->deferred, 0) == deferred;
}

/* Post a receive. 0; -ENOMEM: the queue is full; -EINVAL: too many entries.
 * Takes rq->lock. */
VB_MUST_CHECK int vb_rq_post(struct vb_rq *rq, uint64_t wr_id,
			     const struct vb_sge *sge, unsigned count)
	VB_EXCLUDES(rq->lock);
/* Remove the oldest receive and copy it to @out. False: the queue is empty. The
 * caller holds drive; not for the queue of an SRQ. */
bool vb_rq_take(struct vb_rq *rq, struct vb_recv_wqe *out);

/* Create a shared receive queue, which the caller owns. 0; -EINVAL: @cap is 0
 * or above vb_limits; -ENOMEM. */
VB_MUST_CHECK int vb_srq_create(struct vb_pd *pd, uint32_t cap,
				uint32_t max_sge, struct vb_async *async,
				struct vb_memory *m, struct vb_srq **srq);
/* Change the capacity to @cap or more; the queue keeps its receives. -EINVAL:
 * the receives do not fit; -ENOMEM. Takes rq.lock. */
VB_MUST_CHECK int vb_srq_resize(struct vb_srq *srq, uint32_t cap)
	VB_EXCLUDES(srq->rq.lock);
/* Free the shared receive queue. -EBUSY while a queue pair uses it. */
VB_MUST_CHECK int vb_srq_destroy(struct vb_srq *srq);
/* Update the SRQ's row in the roster. */
void vb_srq_note(const struct vb_srq *srq);
/* Raise EVENT_SRQ_LIMIT once, when fewer than @limit receives are in the queue
 * (IBA 11.2.3.3); @limit 0: never. Takes rq.lock. */
void vb_srq_set_limit(struct vb_srq *srq, uint32_t limit)
	VB_EXCLUDES(srq->rq.lock);
/* Remove the oldest receive and copy it to @out. False: the queue is empty.
 * Takes rq.lock. */
bool vb_srq_take(struct vb_srq *srq, struct vb_recv_wqe *out)
	VB_EXCLUDES(srq->rq.lock);
/* vb_srq_take() for a caller that holds rq.lock. *@event true: the caller
 * raises EVENT_SRQ_LIMIT after it has released the lock. */
bool vb_srq_take_locked(struct vb_srq *srq, struct vb_recv_wqe *out,
			bool *event) VB_REQUIRES(srq->rq.lock);

#endif

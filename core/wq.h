/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Send queues, receive queues, shared receive queues.
 *
 * Indices run freely and wrap at 2^32; the slot is index mod cap. A cap is 0 or
 * a power of two, so that consecutive indices use consecutive slots across the
 * wrap. A post occupies a slot. As with adapters, the slot becomes free when
 * the program has polled a completion for it or for a later one; a slot of an
 * SRQ, when a message takes its receive.
 */
#ifndef CORE_WQ_H
#define CORE_WQ_H

#include <stdatomic.h>

#include "core/adapter.h"
#include "core/event.h"
#include "core/memory.h"
#include "link/link.h"

struct vb_send_wqe {
	/* the poster writes: */
	uint64_t wr_id;
	uint64_t remote_addr;
	uint64_t compare_add; /* value to compare with, or to add */
	/* value to swap in; or, copied in, the word of an ATOMIC WRITE */
	uint64_t swap;
	uint32_t rkey;
	uint32_t imm;	 /* in wire order; or the rkey to invalidate */
	uint32_t length; /* bytes of the message */
	uint8_t op;	 /* enum vb_wr_op */
	uint8_t flags;	 /* enum vb_send_flags; SEND_INLINE: inline_data */
	uint8_t num_sge;
	uint32_t srqn; /* XRC: the destination SRQ */
	/* the transport writes, under drive: */
	uint32_t first_psn; /* valid once it has PSNs */
	uint32_t psn_count;
	union {
		struct vb_sge sge[0];
		uint8_t inline_data[0];
	};
};

/* Destination of a datagram, at the end of a slot in a queue of datagrams. */
struct vb_send_dest {
	_Alignas(8) struct vb_route route; /* with the dqpn */
	uint32_t qkey;			   /* as the program posted it */
};

struct vb_sq {
	uint32_t cap, stride, max_sge, max_inline;
	uint32_t open; /* cap; 0: the program may not post (core/tag.h) */
	bool sig_all;
	uint8_t *slots;
	struct vb_memory *memory;  /* the slots come from here; or NULL */
	struct vb_mutex lock;	   /* taken to post */
	_Atomic uint32_t posted;   /* written under lock */
	_Atomic uint32_t released; /* written under the CQ's lock */
	uint32_t done; /* under drive: all WQEs before it are complete */
	/* written under drive: vb_sq_defer_doorbell() */
	_Atomic uint64_t quiet;
};

struct vb_recv_wqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t index;	 /* of the receive queue */
	uint64_t length; /* bytes of all entries */
	struct vb_sge sge[VB_MAX_SGE];
};

struct vb_rq {
	uint32_t cap, stride, max_sge; /* of an SRQ, cap is under lock */
	uint8_t *slots;
	struct vb_memory *memory;  /* the slots come from here; or NULL */
	struct vb_mutex lock;	   /* taken to post; of an SRQ, also to take */
	_Atomic uint32_t posted;   /* written under lock */
	_Atomic uint32_t released; /* written under the CQ's lock (SRQ: lock) */
	_Atomic uint32_t taken;	   /* written under drive (SRQ: lock) */
};

struct vb_xrcd;
struct vb_cq;
struct vb_tags;

struct vb_srq {
	struct vb_rq rq;
	struct vb_pd *pd;
	struct vb_cq *cq;     /* with XRC or tags; or NULL */
	struct vb_tags *tags; /* core/tag.h; or NULL */
	/* XRC (core/xrc.h); or NULL and 0: */
	struct vb_xrcd *xrcd;
	uint32_t number;
	uint64_t life; /* unique among the SRQs with this number */
	/* packets in progress that have entered this queue */
	_Atomic uint32_t users;
	struct vb_async *async;
	void *owner;
	uint32_t limit; /* under rq.lock; 0: not armed */
	_Atomic uint32_t refs;
	uint32_t row; /* its row in the roster */
};

/* Allocate a queue. Rounds caps up to powers of two; the queue's fields say
 * what the caller got. The slots' memory comes from @m, or from the heap when
 * @m is NULL. @datagrams: each slot has room for a struct vb_send_dest. 0 or
 * -ENOMEM. */
VB_MUST_CHECK int vb_sq_init(struct vb_sq *sq, uint32_t cap, uint32_t max_sge,
			     uint32_t max_inline, bool sig_all, bool datagrams,
			     struct vb_memory *m);
void vb_sq_fini(struct vb_sq *sq);
/* The same for a receive queue, without data inline and datagrams. */
VB_MUST_CHECK int vb_rq_init(struct vb_rq *rq, uint32_t cap, uint32_t max_sge,
			     struct vb_memory *m);
void vb_rq_fini(struct vb_rq *rq);

static inline struct vb_send_wqe *vb_sq_at(const struct vb_sq *sq, uint32_t i)
{
	return (struct vb_send_wqe *)(sq->slots +
				      (size_t)(i & (sq->cap - 1)) * sq->stride);
}

/* The destination of @wqe. Only in a queue initialized with @datagrams. */
static inline struct vb_send_dest *vb_sq_dest(const struct vb_sq *sq,
					      struct vb_send_wqe *wqe)
{
	return (struct vb_send_dest *)((uint8_t *)wqe + sq->stride -
				       sizeof(struct vb_send_dest));
}

/* The number of free slots of a ring. The caller holds the poster's lock, so no
 * other thread writes @posted. */
static inline uint32_t vb_wq_free(const _Atomic uint32_t *posted,
				  const _Atomic uint32_t *released,
				  uint32_t cap)
{
	/* Acquire: pairs with the poller's release; nobody reads the freed slot
	 * any more. */
	uint32_t used = atomic_load_explicit(posted, memory_order_relaxed) -
			atomic_load_explicit(released, memory_order_acquire);

	return used < cap ? cap - used : 0;
}

/* Publish one more slot. Release pairs with the acquire in vb_sq_end() and in
 * the taker: a thread that sees the index sees the slot's contents. */
static inline void vb_wq_publish(_Atomic uint32_t *posted)
{
	uint32_t n = atomic_load_explicit(posted, memory_order_relaxed);

	atomic_store_explicit(posted, n + 1, memory_order_release);
}

/* The free slot @ahead places behind the next one; NULL: there is none. The
 * caller holds sq->lock. */
static inline struct vb_send_wqe *vb_sq_peek(struct vb_sq *sq, uint32_t ahead)
	VB_REQUIRES(sq->lock)
{
	uint32_t room = vb_wq_free(&sq->posted, &sq->released, sq->open);
	uint32_t i = atomic_load_explicit(&sq->posted, memory_order_relaxed);

	return ahead < room ? vb_sq_at(sq, i + ahead) : NULL;
}

/* The next free slot, or NULL when the queue is full. The caller holds
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

/* Does the WQE's success make a completion entry? */
static inline bool vb_sq_signals(const struct vb_sq *sq,
				 const struct vb_send_wqe *wqe)
{
	return sq->sig_all || wqe->flags & SEND_SIGNALED;
}

/* The index behind the last WQE posted. The caller holds drive. */
static inline uint32_t vb_sq_end(const struct vb_sq *sq)
{
	/* Pairs with the release in vb_sq_commit(): the slot's contents are
	 * visible. */
	return atomic_load_explicit(&sq->posted, memory_order_acquire);
}

/*
 * Deferred doorbells. While many packets are in flight, nobody needs to look at
 * a short work request when it is posted: a response makes a thread look soon
 * enough. The driver (the thread that holds drive) permits this up to a send
 * queue index with vb_sq_defer_doorbell(). Before it looks at the queue, or
 * changes what the permission rests on, a driver calls vb_sq_resume_doorbell(),
 * which withdraws it, and then reads vb_sq_end(). A poster publishes its slot
 * and then asks vb_sq_is_deferred(): if the answer is yes, the driver that
 * withdraws the permission sees the slot.
 */
#define VB_QUIET_BYTES 256
#define VB_IS_QUIET    (1ull << 32)

static inline void vb_sq_defer_doorbell(struct vb_sq *sq, uint32_t until)
{
	/* Relaxed: only drivers read what the permission rests on. */
	atomic_store_explicit(&sq->quiet, VB_IS_QUIET | until,
			      memory_order_relaxed);
}

static inline void vb_sq_resume_doorbell(struct vb_sq *sq)
{
	/* A read-modify-write, as in vb_sq_is_deferred(): the later of the two
	 * reads what the earlier one wrote, and so also sees what that thread
	 * did before. */
	if (atomic_load_explicit(&sq->quiet, memory_order_relaxed))
		(void)atomic_exchange(&sq->quiet, 0);
}

/* May the poster of a work request of at most VB_QUIET_BYTES bytes return
 * without asking whether to send? The plain load first keeps the cache line
 * shared when the answer is no. */
static inline bool vb_sq_is_deferred(struct vb_sq *sq)
{
	uint32_t end = atomic_load_explicit(&sq->posted, memory_order_relaxed);
	uint64_t quiet = atomic_load_explicit(&sq->quiet, memory_order_relaxed);

	if (!(quiet & VB_IS_QUIET) || (int32_t)((uint32_t)quiet - end) < 0)
		return false;
	return atomic_fetch_add(&sq->quiet, 0) == quiet;
}

/* Post a receive. 0; -ENOMEM: the queue is full; -EINVAL: too many entries.
 * Takes rq->lock. */
VB_MUST_CHECK int vb_rq_post(struct vb_rq *rq, uint64_t wr_id,
			     const struct vb_sge *sge, unsigned count)
	VB_EXCLUDES(rq->lock);
/* Copy out the oldest receive. False: there is none. Under drive; no SRQ's. */
bool vb_rq_take(struct vb_rq *rq, struct vb_recv_wqe *out);

/* Create a shared receive queue, which the caller owns. 0; -EINVAL: @cap is 0
 * or above vb_limits; -ENOMEM. */
VB_MUST_CHECK int vb_srq_create(struct vb_pd *pd, uint32_t cap,
				uint32_t max_sge, struct vb_async *async,
				struct vb_memory *m, struct vb_srq **srq);
/* Change the capacity to @cap or more; the queue keeps its receives. -EINVAL:
 * they do not fit; -ENOMEM. Takes rq.lock. */
VB_MUST_CHECK int vb_srq_resize(struct vb_srq *srq, uint32_t cap)
	VB_EXCLUDES(srq->rq.lock);
/* Free the queue. -EBUSY while a queue pair uses it. */
VB_MUST_CHECK int vb_srq_destroy(struct vb_srq *srq);
/* Write the SRQ's row in the roster. */
void vb_srq_note(const struct vb_srq *srq);
/* Raise EVENT_SRQ_LIMIT once, when fewer than @limit receives are in the queue
 * (IBA 11.2.3.3); 0: never. Takes rq.lock. */
void vb_srq_set_limit(struct vb_srq *srq, uint32_t limit)
	VB_EXCLUDES(srq->rq.lock);
/* Copy out the oldest receive; false: none. Takes rq.lock. */
bool vb_srq_take(struct vb_srq *srq, struct vb_recv_wqe *out)
	VB_EXCLUDES(srq->rq.lock);
/* The same for a caller that holds rq.lock. *@event true: the caller raises
 * EVENT_SRQ_LIMIT after it has released the lock. */
bool vb_srq_take_locked(struct vb_srq *srq, struct vb_recv_wqe *out,
			bool *event) VB_REQUIRES(srq->rq.lock);

#endif

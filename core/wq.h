/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Send queues, receive queues, shared receive queues.
 *
 * Indices run freely and wrap at 2^32; slot = index mod cap, and a cap is 0 or
 * a power of two, so that slots follow each other across the wrap. A slot is
 * taken when posted and free again when the program has polled a completion
 * at or after it, as adapters do (SRQ: when its message has begun).
 */
#ifndef CORE_WQ_H
#define CORE_WQ_H

#include <stdatomic.h>

#include "core/adapter.h"
#include "core/event.h"
#include "core/memory.h"
#include "link/link.h"

struct vb_send_wqe {
	/* written by the poster */
	uint64_t wr_id;
	uint64_t remote_addr;
	uint64_t compare_add; /* compare, or the value to add */
	uint64_t swap;	      /* or, inline, the word of an ATOMIC WRITE */
	uint32_t rkey;
	uint32_t imm;	 /* as on the wire; or the rkey to invalidate */
	uint32_t length; /* bytes of the message */
	uint8_t op;	 /* enum vb_wr_op */
	uint8_t flags;	 /* enum vb_send_flags; SEND_INLINE: data follows */
	uint8_t num_sge;
	uint32_t srqn; /* XRC: the shared queue that it is for */
	/* drive: the transport's */
	uint32_t first_psn; /* valid once begun */
	uint32_t psn_count;
	union {
		struct vb_sge sge[0];
		uint8_t inline_data[0];
	};
};

/* Where a datagram goes; the end of a slot in a queue of datagrams. */
struct vb_send_dest {
	_Alignas(8) struct vb_route route; /* dqpn: whose */
	uint32_t qkey;			   /* as posted */
};

struct vb_sq {
	uint32_t cap, stride, max_sge, max_inline;
	uint32_t open; /* cap; 0: the program posts nothing (core/tag.h) */
	bool sig_all;
	uint8_t *slots;
	struct vb_memory *memory;  /* the slots' */
	struct vb_mutex lock;	   /* posters */
	_Atomic uint32_t posted;   /* lock to write */
	_Atomic uint32_t released; /* CQ lock to write */
	uint32_t done;		   /* drive: all before it are completed */
	_Atomic uint64_t quiet;	   /* drive to write: vb_sq_defer_doorbell() */
};

struct vb_recv_wqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t index;	 /* its queue index */
	uint64_t length; /* room, bytes */
	struct vb_sge sge[VB_MAX_SGE];
};

struct vb_rq {
	uint32_t cap, stride, max_sge; /* SRQ: cap under the lock */
	uint8_t *slots;
	struct vb_memory *memory;  /* the slots' */
	struct vb_mutex lock;	   /* posters; SRQ: takers too */
	_Atomic uint32_t posted;   /* lock to write */
	_Atomic uint32_t released; /* CQ lock to write (SRQ: lock) */
	_Atomic uint32_t taken;	   /* drive to write (SRQ: lock) */
};

struct vb_xrcd;
struct vb_cq;
struct vb_tags;

struct vb_srq {
	struct vb_rq rq;
	struct vb_pd *pd;
	struct vb_cq *cq;     /* of XRC and with tags, or NULL */
	struct vb_tags *tags; /* or NULL: core/tag.h */
	/* of XRC, or NULL, 0: core/xrc.h */
	struct vb_xrcd *xrcd;
	uint32_t number;
	uint64_t life;		/* differs from all others with this number */
	_Atomic uint32_t users; /* queue pairs that take a packet for it */
	struct vb_async *async;
	void *owner;
	uint32_t limit; /* rq.lock; 0: not armed */
	_Atomic uint32_t refs;
	uint32_t row; /* in the roster */
};

/* Caps are rounded up: what was given stands in the queue. @m: where the slots
 * come from, or NULL. -ENOMEM. */
VB_MUST_CHECK int vb_sq_init(struct vb_sq *sq, uint32_t cap, uint32_t max_sge,
			     uint32_t max_inline, bool sig_all, bool datagrams,
			     struct vb_memory *m);
void vb_sq_fini(struct vb_sq *sq);
VB_MUST_CHECK int vb_rq_init(struct vb_rq *rq, uint32_t cap, uint32_t max_sge,
			     struct vb_memory *m);
void vb_rq_fini(struct vb_rq *rq);

static inline struct vb_send_wqe *vb_sq_at(const struct vb_sq *sq, uint32_t i)
{
	return (struct vb_send_wqe *)(sq->slots +
				      (size_t)(i & (sq->cap - 1)) * sq->stride);
}

/* With the queue made for datagrams. */
static inline struct vb_send_dest *vb_sq_dest(const struct vb_sq *sq,
					      struct vb_send_wqe *wqe)
{
	return (struct vb_send_dest *)((uint8_t *)wqe + sq->stride -
				       sizeof(struct vb_send_dest));
}

/* With sq->lock held: the next free slot, or NULL when the queue is full. */
struct vb_send_wqe *vb_sq_begin(struct vb_sq *sq);
/* The same for the slot @ahead places further on. */
struct vb_send_wqe *vb_sq_peek(struct vb_sq *sq, uint32_t ahead);
/* With sq->lock held: publish what vb_sq_begin() gave. */
void vb_sq_commit(struct vb_sq *sq);

/* Whether its success makes an entry. */
static inline bool vb_sq_signals(const struct vb_sq *sq,
				 const struct vb_send_wqe *wqe)
{
	return sq->sig_all || wqe->flags & SEND_SIGNALED;
}

/* Posted and not yet completed, as the driver sees it. */
static inline uint32_t vb_sq_end(const struct vb_sq *sq)
{
	/* Pairs with the release in vb_sq_commit(): the slot is written. */
	return atomic_load_explicit(&sq->posted, memory_order_acquire);
}

/*
 * Short work requests that are posted while many packets are under way need
 * nobody who looks at them at once: the answers will make somebody look. So,
 * under drive, up to an index that is quiet; whoever looks, or changes what
 * that rests on, ends it first, and then asks for vb_sq_end(). A poster asks
 * when his slot is published: a slot that its poster left alone is seen by who
 * ended the quiet.
 */
#define VB_QUIET_BYTES 256
#define VB_IS_QUIET    (1ull << 32)

static inline void vb_sq_defer_doorbell(struct vb_sq *sq, uint32_t until)
{
	/* What the promise rests on is only looked at under drive. */
	atomic_store_explicit(&sq->quiet, VB_IS_QUIET | until,
			      memory_order_relaxed);
}

static inline void vb_sq_resume_doorbell(struct vb_sq *sq)
{
	/* Not mere stores: who comes second reads what the first has written,
	 * and sees what it did before. */
	if (atomic_load_explicit(&sq->quiet, memory_order_relaxed))
		(void)atomic_exchange(&sq->quiet, 0);
}

/* Of who has just posted one of VB_QUIET_BYTES at most. A first look spares
 * the others the second. */
static inline bool vb_sq_is_deferred(struct vb_sq *sq)
{
	uint32_t end = atomic_load_explicit(&sq->posted, memory_order_relaxed);
	uint64_t quiet = atomic_load_explicit(&sq->quiet, memory_order_relaxed);

	if (!(quiet & VB_IS_QUIET) || (int32_t)((uint32_t)quiet - end) < 0)
		return false;
	return atomic_fetch_add(&sq->quiet, 0) == quiet;
}

/* Takes the lock. -ENOMEM: full; -EINVAL: too many entries. */
VB_MUST_CHECK int vb_rq_post(struct vb_rq *rq, uint64_t wr_id,
			     const struct vb_sge *sge, unsigned count);
/* Copy out the oldest; false when there is none. RQ: under drive. */
bool vb_rq_take(struct vb_rq *rq, struct vb_recv_wqe *out);

/* -EINVAL: no work requests, or more than vb_limits; -ENOMEM. */
VB_MUST_CHECK int vb_srq_create(struct vb_pd *pd, uint32_t cap,
				uint32_t max_sge, struct vb_async *async,
				struct vb_memory *m, struct vb_srq **srq);
/* To @cap or more, keeping what waits; -EINVAL when that would not fit. */
VB_MUST_CHECK int vb_srq_resize(struct vb_srq *srq, uint32_t cap);
VB_MUST_CHECK int vb_srq_destroy(struct vb_srq *srq); /* -EBUSY */
/* The roster is to tell what it has become. */
void vb_srq_note(const struct vb_srq *srq);
/* Arms @limit (0: not); raises EVENT_SRQ_LIMIT once when fewer are left. */
void vb_srq_set_limit(struct vb_srq *srq, uint32_t limit);
bool vb_srq_take(struct vb_srq *srq, struct vb_recv_wqe *out);
/* The same with rq.lock held. *@event: EVENT_SRQ_LIMIT is the caller's to
 * raise. */
bool vb_srq_take_locked(struct vb_srq *srq, struct vb_recv_wqe *out,
			bool *event);

#endif

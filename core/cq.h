/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: add, poll, arm, moderate, overrun (IBA 11.4.2). */
#ifndef CORE_CQ_H
#define CORE_CQ_H

#include <stdatomic.h>

#include "base/timer.h"
#include "core/adapter.h"
#include "core/event.h"
#include "core/memory.h"

struct vb_qp;

struct vb_cqe {
	uint64_t wr_id;
	/* the status of the work request, an enum vb_wc_status */
	uint8_t status;
	/* the operation that completed, an enum vb_wc_op; of receives, also of
	 * those that failed, it has the bit WC_OP_RECV */
	uint8_t opcode;
	uint8_t wc_flags; /* flags of the completion, enum vb_wc_flags */
	/* where a datagram came from: see struct vb_wc_from in core/types.h */
	uint8_t path_bits, sl, pkey_index;
	uint16_t slid;
	uint32_t byte_len;
	/* immediate data in wire order, or the rkey that was invalidated */
	uint32_t imm;
	uint32_t qpn, src_qp;
	/* the queue pair whose work queue slots are freed when the program
	 * polls this entry; NULL: no slots are freed */
	struct vb_qp *qp;
	/* The index that becomes the work queue's released index when the
	 * program polls this entry. */
	uint32_t release;
	union {
		uint32_t flow_tag; /* flow tag of a raw packet */
		/* with tm_tag: application context of a message that matched a
		 * tagged buffer */
		uint32_t tm_app_ctx;
		/* with vb_cqe_failed(): the cause, an enum vb_why */
		uint32_t why;
	};
	uint64_t tm_tag;
	vb_time timestamp;
};
_Static_assert(sizeof(struct vb_cqe) == 64, "a cache line");

static inline bool vb_cqe_is_recv(const struct vb_cqe *e)
{
	return e->opcode & WC_OP_RECV;
}

/* Does the entry report an error, so that it has a cause? The program finishes
 * a WC_TM_RNDV_INCOMPLETE message by itself, which is no error. */
static inline bool vb_cqe_failed(const struct vb_cqe *e)
{
	return e->status != WC_SUCCESS && e->status != WC_TM_RNDV_INCOMPLETE;
}

enum vb_cq_arm { CQ_UNARMED, CQ_ARMED_SOLICITED, CQ_ARMED_ANY };

struct vb_cq {
	struct vb_adapter *adapter;
	/* the channel that gets events; NULL: the program only polls */
	struct vb_channel *channel;
	/* the queue of asynchronous events, which receives EVENT_CQ_ERR */
	struct vb_async *async;
	void *owner;
	uint32_t row; /* the number of this queue's row in the roster */
	/* number of queue pairs that put completions into this queue */
	_Atomic uint32_t refs;
	/* number of entries in the queue; only a hint for readers without the
	 * lock */
	_Atomic uint32_t count;
	struct vb_mutex lock;
	/* The fields below are protected by lock. */
	struct vb_cqe *ring;
	/* the allocator that the ring came from; NULL: the heap */
	struct vb_memory *memory;
	/* @cap: capacity, a power of two; @head: index of the oldest entry */
	uint32_t cap, head;
	enum vb_cq_arm armed;
	/* The weakest arming with which the entries in the queue raise an
	 * event. CQ_ARMED_SOLICITED: a solicited entry or an error is among
	 * them; CQ_ARMED_ANY: other entries only; CQ_UNARMED: no entry.
	 * `strongest` is for all entries, `untold` for those that no event has
	 * announced, or that a poll has left here since. */
	enum vb_cq_arm strongest, untold;
	/* True: an entry was lost, and the queue takes no more entries. */
	_Atomic bool overrun;
	/* Moderation (vb_cq_moderate). @alarm asks the engine to call
	 * vb_cq_due() at time @at; a later request replaces an earlier one.
	 * False: the engine has no timer for it. */

	/* number of entries that share one event; 0 and 1: no moderation */
	uint32_t per_event;
	uint32_t held;	  /* number of entries that share the delayed event */
	vb_time patience; /* longest delay of an event, in nanoseconds */
	bool (*alarm)(struct vb_cq *cq, vb_time at);
	/* timer of the delayed event; protected by the engine's timer lock */
	struct vb_timer timer;
	/* The fields below are protected by channel->lock. */
	struct vb_cq *event_next;
	/* number of this queue's events in the channel that the program has not
	 * read */
	uint32_t events_queued;
	/* number of events that the program has read so far */
	uint32_t events_taken;
	/* how many of the next events engine/wait.c delivers without delay */
	_Atomic int spare;
};

/* Returns, as a hint for the engine, the queue pair to which all waiting
 * entries belong, if these are few and all are completions of sends; otherwise
 * NULL. The queue pair may have been destroyed when the caller looks at it, but
 * its memory is never freed. */
struct vb_qp *vb_cq_sender(struct vb_cq *cq) VB_EXCLUDES(cq->lock);

/* Create a queue of at least @cap entries; cq->cap then has the real capacity.
 * The ring's memory comes from @m, or from the heap when @m is NULL. The caller
 * owns *@cq. 0, -EINVAL when @cap is 0 or above the limit, or -ENOMEM. */
VB_MUST_CHECK int vb_cq_create_in(struct vb_adapter *a, uint32_t cap,
				  struct vb_channel *ch, struct vb_async *async,
				  struct vb_memory *m, struct vb_cq **cq);
/* Free the queue. -EBUSY while a queue pair uses it. The caller (front/verbs)
 * first waits until the program has acknowledged all events. */
VB_MUST_CHECK int vb_cq_destroy(struct vb_cq *cq);
/* Change the capacity; the queue keeps its entries. -EINVAL: the entries do not
 * fit into @cap; -ENOMEM. Takes cq->lock. */
VB_MUST_CHECK int vb_cq_resize(struct vb_cq *cq, uint32_t cap)
	VB_EXCLUDES(cq->lock);

/* Add an entry, and signal the channel if the queue is armed
 * (CQ_ARMED_SOLICITED: only for @solicited entries and errors). False: the
 * queue is full; the entry is lost, EVENT_CQ_ERR is posted once, and the caller
 * must move the queue pair to ERR. Takes cq->lock. */
VB_MUST_CHECK bool vb_cq_push(struct vb_cq *cq, const struct vb_cqe *e,
			      bool solicited) VB_EXCLUDES(cq->lock);

/* Remove up to @n entries, oldest first, and free the work queue slots that
 * they release. Returns the number of entries, or -EIO when the queue is empty
 * after an overrun. Takes cq->lock. */
int vb_cq_poll(struct vb_cq *cq, int n, struct vb_cqe *out)
	VB_EXCLUDES(cq->lock);

/*
 * Request one event for the next entry added. If an entry waits that arrived
 * while the queue was not armed, or that a poll left in the queue, the event
 * comes at once: mlx5 does this, and programs written for it (UCX) arm and
 * sleep without polling again. Arming for solicited entries does not weaken an
 * outstanding arming for all (IBA 11.4.2.2).
 */
void vb_cq_arm(struct vb_cq *cq, bool solicited_only) VB_EXCLUDES(cq->lock);
/* From now on raise one event for @count entries, or @period ns after the first
 * of them; an error raises its event at once. @count of 0 or 1, or @period of
 * 0: each entry raises an event. */
void vb_cq_moderate(struct vb_cq *cq, uint32_t count, vb_time period,
		    bool (*alarm)(struct vb_cq *cq, vb_time at))
	VB_EXCLUDES(cq->lock);
/* The engine calls this at the time for which alarm() asked: raise the
 * event. */
void vb_cq_due(struct vb_cq *cq) VB_EXCLUDES(cq->lock);
/* Remove @qp's entries, when @qp enters RESET or is destroyed (IBA 10.3.1,
 * 10.2.4.4). Takes cq->lock. */
void vb_cq_purge(struct vb_cq *cq, const struct vb_qp *qp)
	VB_EXCLUDES(cq->lock);

#endif

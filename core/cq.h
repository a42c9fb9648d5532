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
	uint8_t status;	  /* enum vb_wc_status */
	uint8_t opcode;	  /* enum vb_wc_op */
	uint8_t wc_flags; /* enum vb_wc_flags */
	bool is_recv : 1;
	/* of a datagram: see struct vb_wc_from in core/types.h */
	uint8_t path_bits : 7;
	uint8_t sl, pkey_index;
	uint16_t slid;
	uint32_t byte_len;
	uint32_t imm; /* in wire order; or the invalidated rkey */
	uint32_t qpn, src_qp;
	struct vb_qp *qp; /* whose slots a poll frees; NULL: nobody's */
	/* The poll that takes this entry sets the work queue's released index
	 * to this. */
	uint32_t release;
	union {
		uint32_t flow_tag; /* of a raw packet */
		/* with tm_tag: of a message that matched a tagged buffer */
		uint32_t tm_app_ctx;
	};
	uint64_t tm_tag;
	vb_time timestamp;
};
_Static_assert(sizeof(struct vb_cqe) == 64, "a cache line");

enum vb_cq_arm { CQ_UNARMED, CQ_ARMED_SOLICITED, CQ_ARMED_ANY };

struct vb_cq {
	struct vb_adapter *adapter;
	struct vb_channel *channel; /* NULL: the program only polls */
	struct vb_async *async;	    /* receives EVENT_CQ_ERR */
	void *owner;
	uint32_t row;		/* its row in the roster */
	_Atomic uint32_t refs;	/* queue pairs that put completions here */
	_Atomic uint32_t count; /* entries waiting; a hint for pollers */
	struct vb_mutex lock;
	/* Under lock: */
	struct vb_cqe *ring;
	struct vb_memory *memory; /* the ring comes from here, or NULL */
	uint32_t cap, head; /* cap: a power of two; head: the oldest entry */
	enum vb_cq_arm armed;
	/* For which arming do the entries in the queue suffice?
	 * CQ_ARMED_SOLICITED: a solicited entry or an error is among them;
	 * CQ_ARMED_ANY: other entries only; CQ_UNARMED: no entry. `strongest`
	 * is for all entries, `untold` for those that no event has announced,
	 * or that a poll has left here since. */
	enum vb_cq_arm strongest, untold;
	/* An entry was lost, so no entry is added any more. */
	_Atomic bool overrun;
	/* Moderation (vb_cq_moderate). @alarm asks the engine to call
	 * vb_cq_due() at time @at; a later request replaces an earlier one.
	 * False: the engine has no timer for it. */
	uint32_t per_event; /* entries for one event; 0 and 1: no moderation */
	uint32_t held;	    /* entries that share one delayed event */
	vb_time patience;   /* longest delay of an event, ns */
	bool (*alarm)(struct vb_cq *cq, vb_time at);
	struct vb_timer timer; /* under the engine's timer lock */
	/* Under channel->lock: */
	struct vb_cq *event_next;
	uint32_t events_queued; /* in the channel, not taken by the program */
	uint32_t events_taken;	/* events that the program has taken so far */
	/* how many next events engine/wait.c delivers without delay */
	_Atomic int spare;
};

/* A hint for the engine: if few entries wait here and all are completions of
 * sends of one queue pair, that queue pair, else NULL. It may have been
 * destroyed when the caller looks at it, but its memory is never freed. */
struct vb_qp *vb_cq_sender(struct vb_cq *cq) VB_EXCLUDES(cq->lock);

/* Create a queue of at least @cap entries; cq->cap says how many. The ring's
 * memory comes from @m, or from the heap when @m is NULL. The caller owns *@cq.
 * 0, -EINVAL when @cap is 0 or above the limit, or -ENOMEM. */
VB_MUST_CHECK int vb_cq_create_in(struct vb_adapter *a, uint32_t cap,
				  struct vb_channel *ch, struct vb_async *async,
				  struct vb_memory *m, struct vb_cq **cq);
/* Free the queue. -EBUSY while a queue pair uses it. The caller (front/verbs)
 * first waits until the program has acknowledged all events. */
VB_MUST_CHECK int vb_cq_destroy(struct vb_cq *cq);
/* Change the capacity; the queue keeps its entries. -EINVAL: they do not fit;
 * -ENOMEM. Takes cq->lock. */
VB_MUST_CHECK int vb_cq_resize(struct vb_cq *cq, uint32_t cap)
	VB_EXCLUDES(cq->lock);

/* Add an entry, and signal the channel if the queue is armed
 * (CQ_ARMED_SOLICITED: only for @solicited entries and errors). False: the
 * queue is full; the entry is lost, EVENT_CQ_ERR is posted once, and the caller
 * must move the queue pair to ERR. Takes cq->lock. */
VB_MUST_CHECK bool vb_cq_push(struct vb_cq *cq, const struct vb_cqe *e,
			      bool solicited) VB_EXCLUDES(cq->lock);

/* Take up to @n entries, oldest first, and free the queue slots they stand for.
 * Returns how many, or -EIO when the queue is empty after an overrun. Takes
 * cq->lock. */
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

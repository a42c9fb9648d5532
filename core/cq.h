/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: push, arm, poll, overrun. */
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
	bool is_recv;
	uint8_t sl; /* of a datagram: core/qp.h, struct vb_recv_done */
	uint32_t byte_len;
	uint32_t imm; /* as on the wire, or the invalidated rkey */
	uint32_t qpn, src_qp;
	struct vb_qp *qp; /* for the release of queue slots, and purging */
	uint32_t release; /* the queue's released index once this is polled */
	union {
		uint32_t flow_tag;   /* of a raw packet */
		uint32_t tm_app_ctx; /* of one that met a tagged buffer: */
	};
	uint64_t tm_tag;
	vb_time timestamp;
};
_Static_assert(sizeof(struct vb_cqe) == 64, "a cache line");

enum vb_cq_arm { CQ_UNARMED, CQ_ARMED_SOLICITED, CQ_ARMED_ANY };

struct vb_cq {
	struct vb_adapter *adapter;
	struct vb_channel *channel; /* NULL: polled only */
	struct vb_async *async;	    /* where CQ_ERR goes */
	void *owner;
	uint32_t row;		/* in the roster */
	_Atomic uint32_t refs;	/* queue pairs that use it */
	_Atomic uint32_t count; /* entries waiting: a hint for pollers */
	struct vb_mutex lock;
	/* lock */
	struct vb_cqe *ring;
	struct vb_memory *memory; /* the ring's */
	uint32_t cap, head;	  /* a power of two; head: oldest */
	enum vb_cq_arm armed;
	/* The least arming that meets one of the entries waiting, and one of
	 * those that the program does not know of: no event has told of them,
	 * or a poll since has left them. CQ_UNARMED: there are none. */
	enum vb_cq_arm strongest, untold;
	_Atomic bool overrun; /* an entry was lost: nothing is added any more */
	/* Moderation. @alarm: vb_cq_due() is to be called at that time, in
	 * place of any before; false: that cannot be. */
	uint32_t per_event; /* entries; up to 1: each is an event */
	uint32_t held;	    /* whose event is put off */
	vb_time patience;   /* how long it is, at most */
	bool (*alarm)(struct vb_cq *cq, vb_time at);
	struct vb_timer timer; /* the engine's timer lock */
	/* channel->lock */
	struct vb_cq *event_next;
	uint32_t events_queued; /* waiting in the channel */
	uint32_t events_taken;	/* given to the program so far */
	_Atomic int spare;	/* events not to be held back (engine/wait.c) */
};

/* The queue pair whose send completions wait here, if nothing else does and
 * they are few; NULL. It may be gone by the time it is looked at. */
struct vb_qp *vb_cq_sender(struct vb_cq *cq);

/* @m: where the ring comes from, or NULL.
 * @cap: at least this many entries; cq->cap tells. -EINVAL for 0 or too many,
 * -ENOMEM. */
VB_MUST_CHECK int vb_cq_create_in(struct vb_adapter *a, uint32_t cap,
				  struct vb_channel *ch, struct vb_async *async,
				  struct vb_memory *m, struct vb_cq **cq);
VB_MUST_CHECK static inline int vb_cq_create(struct vb_adapter *a, uint32_t cap,
					     struct vb_channel *ch,
					     struct vb_async *async,
					     struct vb_cq **cq)
{
	return vb_cq_create_in(a, cap, ch, async, NULL, cq);
}
/* -EBUSY while a queue pair uses it. Waiting for acknowledged events is the
 * caller's (front/verbs). */
VB_MUST_CHECK int vb_cq_destroy(struct vb_cq *cq);
/* Keeps what waits; -EINVAL when that would not fit. */
VB_MUST_CHECK int vb_cq_resize(struct vb_cq *cq, uint32_t cap);

/*
 * Add an entry; signals the channel when armed (a solicited arming takes
 * solicited entries and errors only). False: the queue is full; the entry is
 * lost, EVENT_CQ_ERR was posted once, and the queue pair must die.
 */
VB_MUST_CHECK bool vb_cq_push(struct vb_cq *cq, const struct vb_cqe *e,
			      bool solicited);

/* Take up to @n entries, oldest first; releases the queue slots behind them.
 * Returns how many, or -EIO once the queue has overrun and is empty. */
int vb_cq_poll(struct vb_cq *cq, int n, struct vb_cqe *out);

/* One event for the first entry added from now on, or at once for one that
 * waits and came while the queue was not armed, or was left by a poll: as mlx5
 * does. Programs written for that (UCX) arm and sleep without another look.
 * A solicited arming does not weaken a full one that is outstanding (IBA
 * 11.4.2.2). */
void vb_cq_arm(struct vb_cq *cq, bool solicited_only);
/* From now on one event for @count entries, or @period after the first of
 * them; an error is an event at once. Up to 1, or no time: each is one. */
void vb_cq_moderate(struct vb_cq *cq, uint32_t count, vb_time period,
		    bool (*alarm)(struct vb_cq *cq, vb_time at));
/* The time that was asked for by alarm() has come. */
void vb_cq_due(struct vb_cq *cq);
/* Drop @qp's entries (RESET, destroy: IBA 10.3.1, 10.2.4.4). */
void vb_cq_purge(struct vb_cq *cq, const struct vb_qp *qp);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels and asynchronous events: queues behind an eventfd in
 * semaphore mode, one count for each event queued.
 */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "base/sync.h"
#include "core/types.h"

struct vb_cq;

struct vb_channel {
	int fd; /* readable while an event waits; the program may poll it */
	struct vb_mutex lock;
	/* lock: completion queues with events waiting, oldest first; a CQ
	 * stands there once for each event (vb_cq.event_next chains CQs and
	 * vb_cq.events_queued counts) */
	struct vb_cq *first, *last;
};

VB_MUST_CHECK int vb_channel_init(struct vb_channel *ch); /* -errno */
void vb_channel_fini(struct vb_channel *ch);

/* Queue an event for @cq and wake a waiter. Any thread. */
void vb_channel_signal(struct vb_channel *ch, struct vb_cq *cq);

/* Wait for an event as read(2) on the fd does: blocks unless the program made
 * the fd non-blocking; -EAGAIN, -EINTR. Counts into cq->events_taken. */
VB_MUST_CHECK int vb_channel_take(struct vb_channel *ch, struct vb_cq **cq);

/* Forget the events still queued for @cq (it is being destroyed). */
void vb_channel_forget(struct vb_channel *ch, struct vb_cq *cq);

/* One asynchronous event. @object is the queue pair, CQ or SRQ (its owner
 * pointer), or NULL for the port. */
struct vb_event {
	enum vb_event_type type;
	void *object;
	struct vb_event *next;
};

struct vb_async {
	int fd;
	struct vb_mutex lock;
	struct vb_event *first, *last; /* lock */
};

VB_MUST_CHECK int vb_async_init(struct vb_async *a);
void vb_async_fini(struct vb_async *a);
/* Without memory for it the event is lost and counted in the log. */
void vb_async_post(struct vb_async *a, enum vb_event_type type, void *object);
/* Like vb_channel_take(); fills type and object. */
VB_MUST_CHECK int vb_async_take(struct vb_async *a, struct vb_event *out);
void vb_async_forget(struct vb_async *a, const void *object);

#endif

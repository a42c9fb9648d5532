/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels and asynchronous events: queues behind an eventfd in
 * semaphore mode, one count for each event queued.
 */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "base/bell.h"
#include "base/sync.h"
#include "core/types.h"

struct vb_cq;

/* Whose the counts in an eventfd are (core/event.c). Under the queue's lock. */
struct vb_tokens {
	uint32_t readers; /* threads that may be inside read(2) */
	uint32_t surplus; /* counts whose events have been forgotten */
};

struct vb_channel {
	int fd; /* readable while an event waits; the program may poll it */
	struct vb_mutex lock;
	struct vb_tokens tokens;
	/* lock: completion queues with events waiting; each stands there once
	 * (vb_cq.event_next), vb_cq.events_queued counts its events, and after
	 * one is taken it goes behind the others */
	struct vb_cq *first, *last;
	struct vb_bell *bell; /* lock: by which a waiter sleeps; or NULL */
};

VB_MUST_CHECK int vb_channel_init(struct vb_channel *ch); /* -errno */
void vb_channel_fini(struct vb_channel *ch);

/* Queue an event for @cq and wake a waiter. Any thread. */
void vb_channel_signal(struct vb_channel *ch, struct vb_cq *cq);

/* Wait for an event as read(2) on the fd does: blocks unless the program made
 * the fd non-blocking; -EAGAIN, -EINTR. Counts into cq->events_taken. */
VB_MUST_CHECK int vb_channel_take(struct vb_channel *ch, struct vb_cq **cq);

/*
 * For a waiter that does not sleep in read(2), but by @bell (NULL: no longer):
 * whoever queues an event rings it, too.
 */
void vb_channel_watch(struct vb_channel *ch, struct vb_bell *bell);
/* A hint. */
bool vb_channel_has_events(struct vb_channel *ch);
/*
 * What this thread does between these two may queue events for @ch: the first
 * of them is for itself, and costs no system call. Returns the queue it is
 * for, as vb_channel_take() would, or NULL.
 */
void vb_channel_begin(struct vb_channel *ch);
struct vb_cq *vb_channel_end(struct vb_channel *ch);

/* Forget the events still queued for @cq (it is being destroyed). The fd is no
 * longer readable for them. */
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
	struct vb_tokens tokens;
	/* immutable: called with the lock held for each event handed out, so
	 * that a destroyer can count what it must wait for; or NULL */
	void (*taken)(const struct vb_event *e);
	struct vb_event *first, *last; /* lock */
};

VB_MUST_CHECK int vb_async_init(struct vb_async *a);
void vb_async_fini(struct vb_async *a);
/* Without memory for it the event is lost, and the log says so. */
void vb_async_post(struct vb_async *a, enum vb_event_type type, void *object);
/* Like vb_channel_take(); fills type and object. */
VB_MUST_CHECK int vb_async_take(struct vb_async *a, struct vb_event *out);
void vb_async_forget(struct vb_async *a, const void *object);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels and asynchronous events: each is a queue of events behind
 * an eventfd in semaphore mode, which holds one count per queued event. */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "base/bell.h"
#include "base/sync.h"
#include "core/types.h"

struct vb_cq;

/* To which event the counts of an eventfd belong (core/event.c). Under the lock
 * of the channel or event queue. */
struct vb_tokens {
	uint32_t readers; /* threads that may be blocked in read(2) */
	uint32_t surplus; /* counts whose events were forgotten */
};

struct vb_channel {
	int fd; /* readable while an event waits; programs may poll(2) it */
	struct vb_mutex lock;
	struct vb_tokens tokens;
	/* Under lock: the completion queues with events, each once (linked by
	 * vb_cq.event_next). vb_cq.events_queued counts its events. A queue
	 * whose event is taken moves to the end if it has further ones. */
	struct vb_cq *first, *last;
	struct vb_bell *bell; /* under lock: a waiter sleeps on it; or NULL */
};

/* Creates the eventfd. 0 or -errno. */
VB_MUST_CHECK int vb_channel_init(struct vb_channel *ch);
void vb_channel_fini(struct vb_channel *ch);

/* Queue an event for @cq and wake one waiter. Any thread; takes ch->lock. */
void vb_channel_signal(struct vb_channel *ch, struct vb_cq *cq)
	VB_EXCLUDES(ch->lock);

/* Take one event: like read(2) on the fd, this blocks unless the program made
 * the fd non-blocking. 0, -EAGAIN or -EINTR. Increments the event's
 * cq->events_taken. */
VB_MUST_CHECK int vb_channel_take(struct vb_channel *ch, struct vb_cq **cq)
	VB_EXCLUDES(ch->lock);

/* Attach a waiter that sleeps on @bell instead of in read(2): each queued event
 * rings the bell, too. NULL detaches it. */
void vb_channel_watch(struct vb_channel *ch, struct vb_bell *bell)
	VB_EXCLUDES(ch->lock);
/* Does an event wait? By the time the caller looks, another thread may have
 * taken it. Takes ch->lock. */
bool vb_channel_has_events(struct vb_channel *ch) VB_EXCLUDES(ch->lock);
/* Bracket work of this thread that may queue events for @ch. The first such
 * event is handed to this thread itself and costs no system call:
 * vb_channel_end() returns its completion queue, as vb_channel_take() would, or
 * NULL. */
void vb_channel_begin(struct vb_channel *ch) VB_EXCLUDES(ch->lock);
struct vb_cq *vb_channel_end(struct vb_channel *ch) VB_EXCLUDES(ch->lock);

/* Drop the events queued for @cq, which is being destroyed. The fd is no longer
 * readable for them. */
void vb_channel_forget(struct vb_channel *ch, struct vb_cq *cq)
	VB_EXCLUDES(ch->lock);

/* One asynchronous event. @object is the `owner` pointer of the queue pair, CQ
 * or SRQ, or NULL for an event of the port. */
struct vb_event {
	enum vb_event_type type;
	void *object;
	struct vb_event *next;
};

struct vb_async {
	int fd;
	struct vb_mutex lock;
	struct vb_tokens tokens;
	/* Immutable; or NULL. Called under lock for each event given to the
	 * program, so that the destroyer of the object can count the events to
	 * wait for. */
	void (*taken)(const struct vb_event *e);
	struct vb_event *first, *last; /* under lock; oldest first */
};

/* Create the eventfd. 0 or -errno. vb_async_fini() also drops the events still
 * queued. */
VB_MUST_CHECK int vb_async_init(struct vb_async *a);
void vb_async_fini(struct vb_async *a);
/* Queue an event and wake one waiter. Any thread; takes a->lock. If memory is
 * exhausted the event is lost and the log says so. */
void vb_async_post(struct vb_async *a, enum vb_event_type type, void *object)
	VB_EXCLUDES(a->lock);
/* Like vb_channel_take(); fills in type and object. vb_async_forget() drops the
 * events of @object, which is being destroyed. */
VB_MUST_CHECK int vb_async_take(struct vb_async *a, struct vb_event *out)
	VB_EXCLUDES(a->lock);
/* Drop the events of @object, which is being destroyed. Takes a->lock. */
void vb_async_forget(struct vb_async *a, const void *object)
	VB_EXCLUDES(a->lock);

#endif

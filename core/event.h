/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels and asynchronous events: each is a queue of events behind
 * an eventfd in semaphore mode, which holds one count per queued event. */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "base/bell.h"
#include "base/sync.h"
#include "core/types.h"

struct vb_cq;

/* What an eventfd's count stands for: events that wait, and a surplus
 * (core/event.c). Under the lock of the channel or event queue. */
struct vb_tokens {
	uint32_t readers; /* threads that may be blocked in read(2) */
	uint32_t surplus; /* counts left of events that were dropped */
};

struct vb_channel {
	int fd; /* readable while an event waits; programs may poll(2) it */
	struct vb_mutex lock;
	struct vb_tokens tokens;
	/* Under lock: the completion queues with events, each once (linked by
	 * vb_cq.event_next). vb_cq.events_queued counts its events. A queue
	 * whose event is taken moves to the end if it has further ones. */
	struct vb_cq *first, *last;
	struct vb_bell *bell; /* under lock: where a waiter sleeps, or NULL */
};

/* Create the channel's eventfd. 0 or -errno. */
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

/* From now on ring @bell, too, for each event queued: the waiter sleeps on the
 * bell instead of in read(2). NULL: ring none any more. */
void vb_channel_watch(struct vb_channel *ch, struct vb_bell *bell)
	VB_EXCLUDES(ch->lock);
/* Does an event wait? By the time the caller looks, another thread may have
 * taken it. Takes ch->lock. */
bool vb_channel_has_events(struct vb_channel *ch) VB_EXCLUDES(ch->lock);
/* This thread calls vb_channel_begin() before, and vb_channel_end() after, work
 * that may queue events for @ch. vb_channel_end() takes the first such event
 * and returns its completion queue, as vb_channel_take() would, but without a
 * system call; NULL: the work has queued no event. */
void vb_channel_begin(struct vb_channel *ch) VB_EXCLUDES(ch->lock);
struct vb_cq *vb_channel_end(struct vb_channel *ch) VB_EXCLUDES(ch->lock);

/* Drop the events queued for @cq, which is being destroyed. The fd is then not
 * readable because of them. */
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
	/* Or NULL; never changes. Called under lock for each event that the
	 * program takes: whoever destroys the object waits until the program
	 * has acknowledged as many. */
	void (*taken)(const struct vb_event *e);
	struct vb_event *first, *last; /* under lock; oldest first */
};

/* Create the eventfd. 0 or -errno. vb_async_fini() closes it and drops the
 * events that the program has not taken. */
VB_MUST_CHECK int vb_async_init(struct vb_async *a);
void vb_async_fini(struct vb_async *a);
/* Queue an event and wake one waiter. Any thread; takes a->lock. When memory is
 * exhausted this drops the event and logs it. */
void vb_async_post(struct vb_async *a, enum vb_event_type type, void *object)
	VB_EXCLUDES(a->lock);
/* Take one event, like vb_channel_take(), into *@out: its type and object.
 * Takes a->lock. */
VB_MUST_CHECK int vb_async_take(struct vb_async *a, struct vb_event *out)
	VB_EXCLUDES(a->lock);
/* Drop the events of @object, which is being destroyed. Takes a->lock. */
void vb_async_forget(struct vb_async *a, const void *object)
	VB_EXCLUDES(a->lock);

#endif

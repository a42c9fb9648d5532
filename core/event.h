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
	uint32_t readers; /* number of threads that may be blocked in read(2) */
	/* counts that stand for no event: of events that were dropped, and of
	 * nudges; -1: a thread has read the count of a nudge of which
	 * vb_channel_nudged() has not been told yet */
	int32_t surplus;
};

/* What raises the events that a thread signals. */
enum vb_raised {
	RAISED_OTHERWISE,
	/* packets of the engine's link: RAISED_BY_PROGRAM if a thread of the
	 * program has received them, RAISED_BY_ENGINE if the engine thread
	 * has */
	RAISED_BY_PROGRAM,
	RAISED_BY_ENGINE,
	/* records of peers of this host, which the engine thread has read */
	RAISED_ON_LANE
};

struct vb_channel {
	/* the eventfd: readable while an event waits; programs may poll(2)
	 * it */
	int fd;
	struct vb_mutex lock;
	struct vb_tokens tokens;
	/* Under lock: the completion queues with events, each once (linked by
	 * vb_cq.event_next). vb_cq.events_queued counts its events. A queue
	 * whose event is taken moves to the end if it has further ones. */
	struct vb_cq *first, *last;
	/* protected by lock: the bell of a waiter that sleeps, or NULL */
	struct vb_bell *bell;
	/* a hint for engine/wait.c: whether packets of the link raise the
	 * events of this channel (vb_wait_by_link()) */
	_Atomic unsigned by_link;
	/* hints: @raised: what raised the last event; @elsewhere: the program
	 * sleeps in poll(2) */
	_Atomic enum vb_raised raised;
	_Atomic bool elsewhere;
	/* ibv_get_cq_event() has returned EAGAIN before, because the channel
	 * had no event, so the program is prepared for EAGAIN */
	_Atomic bool met_empty;
};

/* Create the channel's eventfd. 0 or -errno. */
VB_MUST_CHECK int vb_channel_init(struct vb_channel *ch);
void vb_channel_fini(struct vb_channel *ch);

/* Note that @by is what raises the events that the calling thread signals from
 * now on. */
void vb_channel_raises(enum vb_raised by);
/* Queue an event for @cq and wake one waiting thread. Any thread may call this;
 * takes ch->lock. */
void vb_channel_signal(struct vb_channel *ch, struct vb_cq *cq)
	VB_EXCLUDES(ch->lock);

/* Remove one event from the channel. Like read(2) on the fd, this call blocks
 * unless the program made the fd non-blocking. 0, -EAGAIN or -EINTR. Increments
 * cq->events_taken of the event's completion queue. */
VB_MUST_CHECK int vb_channel_take(struct vb_channel *ch, struct vb_cq **cq)
	VB_EXCLUDES(ch->lock);

/* Remove one count from the eventfd, as vb_channel_take() does, and one event.
 * Returns 0 and sets *@cq. *@cq is NULL if the count stood for no event: it
 * came from a nudge (base/nudge.h), or another thread has removed its event. */
VB_MUST_CHECK int vb_channel_next(struct vb_channel *ch, struct vb_cq **cq)
	VB_EXCLUDES(ch->lock);
/* Call this after a nudge, which has added a count to the eventfd or will soon
 * add it. The function removes that count, unless another thread has read it.
 * May wait 1 ms for the count. */
void vb_channel_nudged(struct vb_channel *ch) VB_EXCLUDES(ch->lock);

/* From now on, ring @bell for each event that is queued, in addition to the
 * eventfd: the waiter sleeps on the bell instead of in read(2). NULL: from now
 * on ring no bell. */
void vb_channel_watch(struct vb_channel *ch, struct vb_bell *bell)
	VB_EXCLUDES(ch->lock);
/* Does the channel have an event? By the time the caller acts, another thread
 * may have read the event. Takes ch->lock. */
bool vb_channel_has_events(struct vb_channel *ch) VB_EXCLUDES(ch->lock);
/* This thread calls vb_channel_begin() before, and vb_channel_end() after, work
 * that may queue events for @ch. vb_channel_end() takes the first such event
 * and returns its completion queue, as vb_channel_take() would, but without a
 * system call; NULL: the work has queued no event. */
void vb_channel_begin(struct vb_channel *ch) VB_EXCLUDES(ch->lock);
struct vb_cq *vb_channel_end(struct vb_channel *ch) VB_EXCLUDES(ch->lock);

/* Drop the events that are queued for @cq, which is being destroyed. They no
 * longer make the fd readable. */
void vb_channel_forget(struct vb_channel *ch, struct vb_cq *cq)
	VB_EXCLUDES(ch->lock);

/* One asynchronous event. @object is the `owner` pointer of the queue pair, CQ
 * or SRQ, or NULL for an event of the port with number @port. */
struct vb_event {
	enum vb_event_type type;
	uint8_t port;
	void *object;
	struct vb_event *next;
};

struct vb_async {
	int fd;
	struct vb_mutex lock;
	struct vb_tokens tokens;
	/* May be NULL; never changes. Called under lock for each event of the
	 * object that the program reads. A thread that destroys the object
	 * later waits until the program has acknowledged all of these
	 * events. */
	void (*taken)(const struct vb_event *e);
	/* protected by lock; @first is the oldest event */
	struct vb_event *first, *last;
};

/* Create the eventfd. 0 or -errno. vb_async_fini() closes it and drops the
 * events that the program has not taken. */
VB_MUST_CHECK int vb_async_init(struct vb_async *a);
void vb_async_fini(struct vb_async *a);
/* Queue an event and wake one waiting thread. Any thread may call this; takes
 * a->lock. When memory is exhausted the event is dropped and logged. */
void vb_async_post(struct vb_async *a, enum vb_event_type type, void *object)
	VB_EXCLUDES(a->lock);
/* Queue an event of the port with number @port; otherwise as
 * vb_async_post(). */
void vb_async_post_port(struct vb_async *a, enum vb_event_type type,
			uint8_t port) VB_EXCLUDES(a->lock);
/* Remove one event from the queue, as vb_channel_take() does, into *@out: its
 * type, and its object or port. Takes a->lock. */
VB_MUST_CHECK int vb_async_take(struct vb_async *a, struct vb_event *out)
	VB_EXCLUDES(a->lock);
/* Drop the queued events of @object, which is being destroyed. Takes
 * a->lock. */
void vb_async_forget(struct vb_async *a, const void *object)
	VB_EXCLUDES(a->lock);

#endif

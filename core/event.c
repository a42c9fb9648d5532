/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues behind an eventfd in semaphore mode.
 *
 * A waiter reads the eventfd without the lock, so that it sleeps and is
 * interrupted exactly as in read(2), and then takes an event under the lock.
 * Under the lock this always holds:
 *
 *     counts in the fd + counts held by threads = events + surplus
 *
 * The surplus comes from events that were dropped, and from nudges, by which a
 * packet wakes the program (base/nudge.h). A thread that will take an event
 * which it queues itself holds that count without using the fd. A waiter
 * that finds no event held a count of the surplus. When no waiter is inside
 * read(2), this code reads the surplus, so that poll(2) reports only events.
 */
#include "core/lock_order.h"
#include "core/event.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "core/cq.h"

/* The fields of a channel or asynchronous queue that a waiter needs. */
struct waiter {
	int fd;
	struct vb_mutex *lock;
	struct vb_tokens *tokens;
};

/* The channel whose first event this thread itself returns to the program,
 * between vb_channel_begin() and vb_channel_end(). @count: the thread has
 * queued an event without writing a token for it. */
static __thread struct {
	const struct vb_channel *ch;
	bool count;
} hand;

/* what raises the events that this thread signals: see vb_channel_raises() */
static __thread enum vb_raised raised;

void vb_channel_raises(enum vb_raised by)
{
	raised = by;
}

static int open_counter(void)
{
	int fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Write one count to the eventfd. The caller holds the lock of the channel or of
 * the event queue, so that the equation at the top of this file stays true. */
static void add_token(int fd)
{
	/* static: MemorySanitizer knows that this is initialized */
	static const uint64_t one = 1;

	/* write(2) fails only if the count is near 2^64. */
	if (write(fd, &one, sizeof(one)) < 0)
		vb_log(LOG_ERROR, "event fd %d: cannot wake a waiter", fd);
}

static int read_token(int fd)
{
	uint64_t one;

	return read(fd, &one, sizeof(one)) < 0 ? -errno : 0;
}

/* Read the surplus counts from the eventfd. The caller holds the lock. This
 * function asks poll(2) first, for @wait ms, because a forked child may have read
 * counts of this process. */
static void drop_surplus_for(int fd, struct vb_tokens *t, int wait)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int cancel;

	if (t->readers || t->surplus <= 0)
		return;
	cancel = vb_cancel_off();
	for (; t->surplus > 0; t->surplus--)
		if (poll(&p, 1, wait) != 1 || read_token(fd) != 0)
			vb_log(LOG_DEBUG,
			       "event fd %d: fewer counts than expected", fd);
	vb_cancel_back(cancel);
}

static void drop_surplus(int fd, struct vb_tokens *t)
{
	drop_surplus_for(fd, t, 0);
}

static void stop_reading(void *arg)
{
	struct waiter *w = arg;

	vb_mutex_lock(w->lock);
	w->tokens->readers--;
	drop_surplus(w->fd, w->tokens);
	vb_mutex_unlock(w->lock);
}

/* Read one count from the eventfd. If the program cancels the thread meanwhile,
 * the thread no longer counts as a reader. */
static int wait_token(struct waiter *w)
{
	int rc;

	vb_mutex_lock(w->lock);
	w->tokens->readers++;
	vb_mutex_unlock(w->lock);
	pthread_cleanup_push(stop_reading, w);
	rc = read_token(w->fd);
	pthread_cleanup_pop(0);
	return rc;
}

/* Adjust the numbers of readers and surplus counts after a wait. The caller
 * holds the lock, has called wait_token(), which returned @rc, and has then
 * looked for an event: @found. */
static void core_event_end_wait(struct waiter *w, int rc, bool found)
{
	w->tokens->readers--;
	if (rc == 0 && !found)
		w->tokens->surplus--;
	drop_surplus(w->fd, w->tokens);
}

int vb_channel_init(struct vb_channel *ch)
{
	*ch = (struct vb_channel){ .fd = open_counter() };
	if (ch->fd < 0)
		return ch->fd;
	vb_mutex_init(&ch->lock, RANK_CHANNEL);
	return 0;
}

void vb_channel_fini(struct vb_channel *ch)
{
	close(ch->fd);
	vb_mutex_fini(&ch->lock);
}

static void append_cq(struct vb_channel *ch, struct vb_cq *cq)
{
	cq->event_next = NULL;
	if (ch->first)
		ch->last->event_next = cq;
	else
		ch->first = cq;
	ch->last = cq;
}

void vb_channel_signal(struct vb_channel *ch, struct vb_cq *cq)
{
	struct vb_bell *bell;

	vb_mutex_lock(&ch->lock);
	if (cq->events_queued++ == 0)
		append_cq(ch, cq);
	atomic_store_explicit(&ch->raised, raised, memory_order_relaxed);
	if (hand.ch == ch && !hand.count)
		hand.count = true;
	else
		add_token(ch->fd);
	bell = ch->bell;
	vb_mutex_unlock(&ch->lock);
	if (bell && hand.ch != ch)
		vb_bell_wake(bell);
}

void vb_channel_watch(struct vb_channel *ch, struct vb_bell *bell)
{
	vb_mutex_lock(&ch->lock);
	ch->bell = bell;
	vb_mutex_unlock(&ch->lock);
}

bool vb_channel_has_events(struct vb_channel *ch)
{
	bool has;

	vb_mutex_lock(&ch->lock);
	has = ch->first != NULL;
	vb_mutex_unlock(&ch->lock);
	return has;
}

void vb_channel_begin(struct vb_channel *ch)
{
	vb_mutex_lock(&ch->lock);
	ch->tokens.readers++;
	vb_mutex_unlock(&ch->lock);
	hand.ch = ch;
	hand.count = false;
}

/* Remove one event of the first completion queue in the list. If that queue has
 * more events, it moves to the end of the list. The caller holds the lock. */
static struct vb_cq *pop_cq(struct vb_channel *ch) VB_REQUIRES(ch->lock)
{
	struct vb_cq *cq = ch->first;

	if (!cq)
		return NULL;
	ch->first = cq->event_next;
	cq->events_taken++;
	if (--cq->events_queued > 0)
		append_cq(ch, cq);
	return cq;
}

struct vb_cq *vb_channel_end(struct vb_channel *ch)
{
	struct waiter w = { ch->fd, &ch->lock, &ch->tokens };
	struct vb_cq *cq = NULL;

	vb_mutex_lock(&ch->lock);
	if (hand.count)
		cq = pop_cq(ch);
	core_event_end_wait(&w, hand.count ? 0 : -EAGAIN, cq);
	vb_mutex_unlock(&ch->lock);
	hand.ch = NULL;
	return cq;
}

int vb_channel_next(struct vb_channel *ch, struct vb_cq **out)
{
	struct waiter w = { ch->fd, &ch->lock, &ch->tokens };
	struct vb_cq *cq = NULL;
	int rc = wait_token(&w);

	vb_mutex_lock(&ch->lock);
	if (rc == 0)
		cq = pop_cq(ch);
	core_event_end_wait(&w, rc, cq);
	vb_mutex_unlock(&ch->lock);
	*out = cq;
	return rc;
}

int vb_channel_take(struct vb_channel *ch, struct vb_cq **out)
{
	struct vb_cq *cq = NULL;
	int rc = 0;

	while (!rc && !cq)
		rc = vb_channel_next(ch, &cq);
	if (rc == 0)
		*out = cq;
	return rc;
}

void vb_channel_nudged(struct vb_channel *ch)
{
	vb_mutex_lock(&ch->lock);
	ch->tokens.surplus++;
	drop_surplus_for(ch->fd, &ch->tokens, 1);
	vb_mutex_unlock(&ch->lock);
}

/* Remove the completion queue @cq from the channel's list. The caller holds the
 * lock. */
static void unlink_cq(struct vb_channel *ch, struct vb_cq *cq)
	VB_REQUIRES(ch->lock)
{
	struct vb_cq **at = &ch->first, *before = NULL;

	while (*at && *at != cq) {
		before = *at;
		at = &before->event_next;
	}
	if (!*at)
		return;
	*at = cq->event_next;
	if (ch->last == cq)
		ch->last = before;
}

void vb_channel_forget(struct vb_channel *ch, struct vb_cq *cq)
{
	vb_mutex_lock(&ch->lock);
	unlink_cq(ch, cq);
	ch->tokens.surplus += (int32_t)cq->events_queued;
	cq->events_queued = 0;
	drop_surplus(ch->fd, &ch->tokens);
	vb_mutex_unlock(&ch->lock);
}

int vb_async_init(struct vb_async *a)
{
	*a = (struct vb_async){ .fd = open_counter() };
	if (a->fd < 0)
		return a->fd;
	vb_mutex_init(&a->lock, VB_RANK_LEAF);
	return 0;
}

void vb_async_fini(struct vb_async *a)
{
	struct vb_event *e;

	while ((e = a->first)) {
		a->first = e->next;
		free(e);
	}
	close(a->fd);
	vb_mutex_fini(&a->lock);
}

static void post_event(struct vb_async *a, const struct vb_event *event)
	VB_EXCLUDES(a->lock)
{
	struct vb_event *e = malloc(sizeof(*e));

	if (!e) {
		vb_log(LOG_ERROR, "event %d: lost, memory is exhausted",
		       event->type);
		return;
	}
	*e = *event;
	vb_mutex_lock(&a->lock);
	if (a->first)
		a->last->next = e;
	else
		a->first = e;
	a->last = e;
	add_token(a->fd);
	vb_mutex_unlock(&a->lock);
}

void vb_async_post(struct vb_async *a, enum vb_event_type type, void *object)
{
	post_event(a, &(struct vb_event){ .type = type, .object = object });
}

void vb_async_post_port(struct vb_async *a, enum vb_event_type type,
			uint8_t port)
{
	post_event(a, &(struct vb_event){ .type = type, .port = port });
}

/* Remove the oldest asynchronous event from the queue. The caller holds the
 * lock. */
static struct vb_event *pop_event(struct vb_async *a) VB_REQUIRES(a->lock)
{
	struct vb_event *e = a->first;

	if (!e)
		return NULL;
	a->first = e->next;
	if (a->taken)
		a->taken(e);
	return e;
}

int vb_async_take(struct vb_async *a, struct vb_event *out)
{
	struct waiter w = { a->fd, &a->lock, &a->tokens };
	struct vb_event *e = NULL;
	int rc = 0;

	while (!rc && !e) {
		rc = wait_token(&w);
		vb_mutex_lock(&a->lock);
		if (rc == 0)
			e = pop_event(a);
		core_event_end_wait(&w, rc, e);
		vb_mutex_unlock(&a->lock);
	}
	if (rc)
		return rc;
	*out = *e;
	out->next = NULL;
	free(e);
	return 0;
}

void vb_async_forget(struct vb_async *a, const void *object)
{
	struct vb_event **at = &a->first, *last = NULL, *e;

	vb_mutex_lock(&a->lock);
	while ((e = *at)) {
		if (e->object != object) {
			last = e;
			at = &e->next;
			continue;
		}
		*at = e->next;
		free(e);
		a->tokens.surplus++;
	}
	a->last = last;
	drop_surplus(a->fd, &a->tokens);
	vb_mutex_unlock(&a->lock);
}

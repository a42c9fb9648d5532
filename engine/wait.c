/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program waits for a completion event (vb_engine_wait(), below
 * ibv_get_cq_event). A message from a peer of this host would wake the engine
 * thread, which would wake the program's thread: two wake-ups for one message.
 * These rules avoid the first one, and more. Times are scaled to the machine's
 * speed (vb_engine_span()).
 *
 * 1. Watch. One program thread that waits serves the lanes of peers of this
 *    host in place of the engine thread. It sleeps by the bell that peers
 *    ring; a thread that queues an event for its channel rings that bell too.
 *    All other waiting threads, and those whose channel does not block, sleep
 *    in read(2) or poll(2), and the engine thread serves the lanes.
 *
 * 2. Prompt programs. A program that came back to wait within 50 us, 8 times
 *    in a row, most often has answered in between, which wakes the peer. When
 *    such a program leaves, the engine thread does not take the lanes at once
 *    but in 2 ms, and the peer is not woken just to hear that a message
 *    arrived. One return after more than 50 us ends this.
 *
 * 3. Look before sleeping. To sleep and to be woken takes 1 to 3 us where the
 *    peer shares the processor, and 10 to 20 us where a virtual machine has to
 *    start an idle one. When 4 sleeps in a row took less than 100 us, the
 *    thread looks for up to 30 us before it sleeps. It yields before each
 *    look, and stops when a yield takes 3 us or more, since another thread
 *    wants this processor. After a look in vain twice as many short sleeps are
 *    needed for the next one, up to 256; after a successful one half as many.
 *
 * 4. Events that come too early. See hold_back().
 */
#include "engine/engine_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define STOP_PATIENCE VB_SEC
#define SOON	      (2 * VB_MSEC)
#define PUT_OFF	      (500 * VB_USEC)
#define IS_PROMPT     (50 * VB_USEC)
#define MANY	      8
/* Rule 3: how long to look; what a short sleep is; how many short sleeps in a
 * row are needed, at least and at most; looks between two yields; a yield takes
 * less than ALONE if no other thread runs. */
#define LINGER	   (30 * VB_USEC)
#define IS_SHORT   (100 * VB_USEC)
#define WARY_LEAST 4
#define WARY_MOST  256
#define LOOKS	   64
#define ALONE	   (3 * VB_USEC)
/* An event that came too early (see hold_back()): how long it is held back at
 * most; how many looks follow each other before the thread sleeps between them,
 * and for how long; how many events are not held back after one was in vain. */
#define HELD_MOST   (100 * VB_MSEC)
#define HELD_LOOKS  50
#define HELD_SLEEP  (50 * VB_USEC)
#define HELD_SPARED 64

struct watch {
	struct vb_engine *e;
	struct vb_channel *ch;
};

/*
 * Setting a kernel timer wakes no thread. A program that comes often puts the
 * timer off each time, so that the engine thread is not woken beside it; at
 * most every 500 us, since that is a system call.
 */
void vb_wait_soon(struct vb_engine *e)
{
	static const struct itimerspec in = { .it_value.tv_nsec = SOON };
	vb_time now = vb_now();

	if (atomic_load(&e->soon) &&
	    now - atomic_load_explicit(&e->soon_set, memory_order_relaxed) <
		    vb_engine_span(e, PUT_OFF))
		return;
	atomic_store_explicit(&e->soon_set, now, memory_order_relaxed);
	atomic_store(&e->soon, true);
	if (timerfd_settime(e->soon_fd, 0, &in, NULL) == 0)
		return;
	atomic_store(&e->soon, false);
	vb_engine_wake(e);
}

void vb_wait_over(struct vb_engine *e)
{
	uint64_t drop;

	if (read(e->soon_fd, &drop, sizeof(drop)) < 0)
		return;
	atomic_store(&e->soon, false);
	vb_near_wake_peers(e->near);
}

/* Rings that peers are owed must not be lost, even if the program cancels this
 * thread. */
static void eng_wait_settle(struct vb_engine *e)
{
	int cancel = vb_cancel_off();

	vb_near_wake_peers(e->near);
	vb_cancel_back(cancel);
}

static bool blocks(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

/*
 * Rule 2 above: did the program come back to wait within 50 us, 8 times in a
 * row?
 */
static bool is_prompt(const struct vb_engine *e)
{
	return e->prompt >= MANY;
}

static void note_return(struct vb_engine *e)
{
	if (vb_now() - e->left_at > vb_engine_span(e, IS_PROMPT))
		e->prompt = 0;
	else if (e->prompt < MANY)
		e->prompt++;
}

static bool begin_watch(struct vb_engine *e, struct vb_channel *ch)
{
	bool none = false;

	if (!e || !e->near || atomic_load(&e->spinning) ||
	    vb_channel_has_events(ch) ||
	    !atomic_compare_exchange_strong(&e->watched, &none, true))
		return false;
	note_return(e);
	vb_channel_watch(ch, vb_near_bell(e->near));
	return true;
}

/* The wait is over: the engine thread serves the lanes again, with what may
 * have arrived there; at once, or for a prompt program in 2 ms. Also runs when
 * the thread is cancelled. */
static void end_watch(void *arg)
{
	struct watch *w = arg;
	struct vb_engine *e = w->e;
	bool prompt = is_prompt(e);
	int cancel = vb_cancel_off();

	vb_channel_watch(w->ch, NULL);
	vb_bell_clear(vb_near_bell(e->near));
	e->left_at = vb_now();
	if (prompt)
		vb_wait_soon(e);
	/* Clear @watched only now: the engine thread, if it was woken
	 * meanwhile, left the lanes to this one. */
	atomic_store(&e->watched, false);
	if (prompt ? !atomic_load(&e->soon) : !vb_near_sleep(e->near))
		vb_engine_wake(e);
	vb_cancel_back(cancel);
}

/* Another thread serves the lanes now, or the engine ends. */
static bool is_over(struct vb_engine *e)
{
	return atomic_load(&e->spinning) || atomic_load(&e->stop);
}

/*
 * Rule 3 above. True: no other thread wants this processor.
 */
static bool eng_yield_alone(const struct vb_engine *e)
{
	vb_time then = vb_now();

	sched_yield();
	return vb_now() - then < vb_engine_span(e, ALONE);
}

static bool eng_wait_look(struct watch *w)
{
	bool found = false;

	for (unsigned i = 0; i < LOOKS && !found; i++)
		found = vb_near_has_something(w->e->near);
	return found || vb_channel_has_events(w->ch) || is_over(w->e);
}

static bool finds(struct watch *w)
{
	vb_time until = vb_now() + vb_engine_span(w->e, LINGER);
	bool found, alone;

	do {
		alone = eng_yield_alone(w->e);
		found = eng_wait_look(w);
	} while (!found && alone && vb_now() < until);
	return found;
}

static bool is_eager(const struct vb_engine *e)
{
	return e->short_sleeps >= VB_MAX(e->wary, WARY_LEAST);
}

static void eng_wait_linger(struct watch *w)
{
	struct vb_engine *e = w->e;

	if (finds(w)) {
		e->wary /= 2;
		return;
	}
	e->wary = VB_MIN(VB_MAX(e->wary, WARY_LEAST) * 2, WARY_MOST);
	e->short_sleeps = 0;
}

static int eng_sleep_by(struct vb_engine *e, struct vb_bell *bell)
{
	vb_time then = vb_now();
	int rc = vb_bell_wait(bell);

	e->short_sleeps = vb_now() - then < vb_engine_span(e, IS_SHORT)
				  ? e->short_sleeps + 1
				  : 0;
	return rc;
}

/* Serve what peers have sent until there is an event for this channel. The
 * event is taken at once: the program polls for what is left. */
static struct vb_cq *eng_wait_attend(struct watch *w)
{
	int cancel = vb_cancel_off();
	struct vb_cq *cq;
	bool found;

	do {
		vb_channel_begin(w->ch);
		found = vb_near_attend(w->e->near, vb_now(), is_prompt(w->e));
		cq = vb_channel_end(w->ch);
	} while (found && !cq && !is_over(w->e));
	vb_cancel_back(cancel);
	return cq;
}

/* Returns 0: *@cq has an event, or it is NULL and the caller goes on with
 * vb_channel_take(). -EINTR: a signal came. */
static int eng_wait_watch(struct watch *w, struct vb_cq **cq)
{
	struct vb_bell *bell = vb_near_bell(w->e->near);
	int rc = 0;

	*cq = NULL;
	pthread_cleanup_push(end_watch, w);
	while (rc == 0) {
		bool looks = is_eager(w->e);

		if (!looks) /* while it looks, peers need not ring */
			vb_bell_set(bell);
		vb_near_awake(w->e->near);
		*cq = eng_wait_attend(w);
		if (*cq || vb_channel_has_events(w->ch) || is_over(w->e))
			break;
		/* The channel does not block: the program sleeps in poll(2). */
		if (!blocks(w->ch->fd)) {
			w->e->prompt = 0;
			break;
		}
		eng_wait_settle(w->e);
		if (!looks)
			rc = eng_sleep_by(w->e, bell);
		else
			eng_wait_linger(w);
	}
	pthread_cleanup_pop(1);
	return rc;
}

/* The program has polled since it armed its queue: others leave work to its
 * polls, which will not come while it waits. */
static bool has_polled(struct vb_engine *e)
{
	return atomic_load_explicit(&e->looping, memory_order_relaxed) ||
	       atomic_load_explicit(&e->attentive, memory_order_relaxed) ||
	       atomic_load(&e->resting) || atomic_load(&e->spinning);
}

static int wait_event(struct vb_channel *ch, struct vb_cq **cq)
{
	struct watch w = { vb_engine_running(), ch };
	int rc;

	if (w.e && w.e->near)
		eng_wait_settle(w.e);
	if (w.e && has_polled(w.e) && !vb_channel_has_events(ch) &&
	    blocks(ch->fd))
		vb_engine_armed();
	if (!begin_watch(w.e, ch))
		return vb_channel_take(ch, cq);
	rc = eng_wait_watch(&w, cq);
	return rc || *cq ? rc : vb_channel_take(ch, cq);
}

static bool is_empty(struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->count, memory_order_relaxed) == 0 &&
	       !atomic_load(&cq->overrun);
}

/* False: the program gets its event now. */
static bool holds_on(struct vb_cq *cq, struct vb_channel *ch, unsigned looks)
{
	static const struct timespec nap = { .tv_nsec = HELD_SLEEP };

	vb_engine_poll();
	if (!is_empty(cq) || vb_channel_has_events(ch))
		return false;
	if (looks < HELD_LOOKS)
		return sched_yield() == 0;
	return nanosleep(&nap, NULL) == 0;
}

/*
 * The completion behind an event may have been taken already, by a poll that
 * began just before the event (ibv_get_cq_event(3)). With a hardware adapter
 * that is rare: while its interrupt is under way the next completion arrives,
 * too. Some programs take an empty queue for an error then (ibv_rc_pingpong -e
 * -t). Therefore such an event is held back until the next completion comes,
 * for up to 100 ms: a program that took the completion in another way may be
 * counting on the event. After one such wait in vain the next 64 events are not
 * held back.
 */
static void hold_back(struct vb_channel *ch, struct vb_cq *cq)
{
	vb_time until = vb_now() + HELD_MOST;
	int cancel;

	if (atomic_load(&cq->spare) > 0) {
		atomic_fetch_sub(&cq->spare, 1);
		return;
	}
	cancel = vb_cancel_off();
	for (unsigned looks = 0; holds_on(cq, ch, looks); looks++)
		if (vb_now() > until) {
			atomic_store(&cq->spare, HELD_SPARED);
			break;
		}
	vb_cancel_back(cancel);
}

int vb_engine_wait(struct vb_channel *ch, struct vb_cq **cq)
{
	int rc = wait_event(ch, cq);

	if (rc == 0 && VB_UNLIKELY(is_empty(*cq)) && blocks(ch->fd))
		hold_back(ch, *cq);
	return rc;
}

void vb_wait_stop(struct vb_engine *e)
{
	vb_time until = vb_now() + STOP_PATIENCE;

	while (atomic_load(&e->watched) && vb_now() < until) {
		vb_bell_wake(vb_near_bell(e->near));
		sched_yield();
	}
}

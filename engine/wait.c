/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a completion event. What comes from a peer of this host used to
 * wake the engine's thread, which woke the program's: a processor woken twice,
 * for one message. So one program's thread that waits here does the thread's
 * part at the lanes meanwhile. It sleeps by the bell that peers ring; whoever
 * queues an event for its channel rings it too. Others who wait sleep in
 * read(2), as do all whose descriptor does not block.
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
/* Looking before sleeping: for how long, after how many sleeps in a row that
 * were as short or little more, and what a yield to nobody takes less than. */
#define LINGER	   (30 * VB_USEC)
#define IS_SHORT   (100 * VB_USEC)
#define WARY_LEAST 4
#define WARY_MOST  256
#define LOOKS	   64
#define ALONE	   (3 * VB_USEC)
/* An event that came too early: for how long it is held back, how often one
 * looks, first in a row and then asleep; and how many are not, after one was in
 * vain. */
#define HELD_MOST   (100 * VB_MSEC)
#define HELD_LOOKS  50
#define HELD_SLEEP  (50 * VB_USEC)
#define HELD_SPARED 64

struct watch {
	struct vb_engine *e;
	struct vb_channel *ch;
};

/*
 * A timer of the kernel's: setting it wakes nobody. A program that comes often
 * puts it off each time, so that the thread is not woken beside it, and does so
 * now and then only, since that is a system call.
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
	vb_near_settle(e->near);
}

/* Who is owed a ring gets it, whoever cancels us. */
static void eng_wait_settle(struct vb_engine *e)
{
	int cancel = vb_cancel_off();

	vb_near_settle(e->near);
	vb_cancel_back(cancel);
}

static bool blocks(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

/*
 * A program that was back in a moment, many times in a row, will be again. It
 * has most often answered meanwhile, which wakes the peer; so for such a one
 * the thread need not be ready, and its peer is not woken only to hear that a
 * message has arrived. Once it is not back, that was the last time.
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

/* The lanes are the thread's again, with what may have come to them; or they
 * are nobody's for a moment. */
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
	/* Only then: the thread, if it was woken meanwhile, left the lanes to
	 * us. */
	atomic_store(&e->watched, false);
	if (prompt ? !atomic_load(&e->soon) : !vb_near_sleep(e->near))
		vb_engine_wake(e);
	vb_cancel_back(cancel);
}

/* Others have taken the lanes, or nobody needs them. */
static bool is_over(struct vb_engine *e)
{
	return atomic_load(&e->spinning) || atomic_load(&e->stop);
}

/*
 * Sleeping and being woken takes 1 to 3 us where the peer shares our processor,
 * and 10 to 20 where an idle one of a virtual machine has to be started for
 * us. So, when sleeps were that short many times in a row, look for a while
 * first, as long as nobody else wants this processor. Looking in vain makes
 * wary: twice as many short sleeps are asked for the next time.
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

static int sleep_by(struct vb_engine *e, struct vb_bell *bell)
{
	vb_time then = vb_now();
	int rc = vb_bell_wait(bell);

	e->short_sleeps = vb_now() - then < vb_engine_span(e, IS_SHORT)
				  ? e->short_sleeps + 1
				  : 0;
	return rc;
}

/* What peers have sent, until there is an event for this channel: that is
 * taken at once, and the program will poll for what is left. */
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

/* 0: *@cq, or it is for vb_channel_take() now; -EINTR. */
static int eng_wait_watch(struct watch *w, struct vb_cq **cq)
{
	struct vb_bell *bell = vb_near_bell(w->e->near);
	int rc = 0;

	*cq = NULL;
	pthread_cleanup_push(end_watch, w);
	while (rc == 0) {
		bool looks = is_eager(w->e);

		if (!looks) /* else nobody need ring */
			vb_bell_set(bell);
		vb_near_awake(w->e->near);
		*cq = eng_wait_attend(w);
		if (*cq || vb_channel_has_events(w->ch) || is_over(w->e))
			break;
		if (!blocks(w->ch->fd)) { /* it will sleep elsewhere */
			w->e->prompt = 0;
			break;
		}
		eng_wait_settle(w->e);
		if (!looks)
			rc = sleep_by(w->e, bell);
		else
			eng_wait_linger(w);
	}
	pthread_cleanup_pop(1);
	return rc;
}

/* Since it armed its queue: others leave work to it that it will not do. */
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

/* False: the program is to have its event now. */
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
 * The entry behind an event may have been taken already, by a poll that began
 * just before it came (ibv_get_cq_event(3)). With an adapter that is hardly
 * ever seen: while its interrupt is under way the next entry comes, too, and
 * there are programs that take an empty queue for an error then
 * (ibv_rc_pingpong -e -t). So such an event waits for the next entry, but not
 * for long: a program that took the entry in another way may count on it.
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

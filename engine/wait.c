/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program waits for a completion event (vb_engine_wait(), below
 * ibv_get_cq_event). A message from a peer of this host would wake the engine
 * thread, which would wake the program's thread: two wake-ups for one message.
 * These rules avoid the first of these wake-ups, and more.
 *
 * 1. Watch. One program thread that waits serves the lanes of peers of this
 *    host in place of the engine thread. It sleeps by the bells that peers ring
 *    (near/watch.c); a thread that queues an event for its channel rings one,
 *    too. All other waiting threads, and those whose channel does not block,
 *    sleep in read(2) or poll(2), and the engine thread serves the lanes.
 *
 * 2. Link. Where packets bring a channel's events, the thread that waits serves
 *    the link instead, and the engine thread leaves the link alone. The thread
 *    sleeps in read(2), and the kernel nudges it when a packet arrives
 *    (base/nudge.h); a thread that queues an event wakes it as well. The engine
 *    thread serves the lanes and all other sources of work meanwhile.
 *
 * 3. When a prompt program stops waiting, the engine thread takes the lanes
 *    later, and its peers are owed rings meanwhile. A thread whose sleeps were
 *    short looks before it sleeps. hold_back() holds back an event that comes
 *    too early. engine/policy_program.c decides all of these.
 */
#include "engine/engine_priv.h"
#include "engine/wait_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/log.h"

#define STOP_PATIENCE VB_SEC
struct watch {
	struct vb_engine *e;
	struct vb_channel *ch;
	int rc; /* 0, or what the last sleep returned */
	bool slept;
};

static int eng_wait_timer(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd >= 0)
		vb_fork_closes(fd);
	return fd;
}

void vb_wait_open(struct vb_engine *e)
{
	e->soon.fd = eng_wait_timer();
	e->back.fd = eng_wait_timer();
}

void vb_wait_close(struct vb_engine *e)
{
	vb_nudge_close(&e->nudge);
	vb_nudge_close(&e->lend.lanes);
	if (e->soon.fd >= 0)
		close(e->soon.fd);
	if (e->back.fd >= 0)
		close(e->back.fd);
}

/* Set the timer of @o, which expires @in nanoseconds from now. False: it does
 * not run. */
static bool set_owed(struct vb_owed *o, vb_time in, vb_time now)
{
	struct itimerspec at = { .it_value.tv_nsec = (long)in };

	atomic_store_explicit(&o->set_at, now, memory_order_relaxed);
	atomic_store(&o->is_set, true);
	if (timerfd_settime(o->fd, 0, &at, NULL) == 0)
		return true;
	atomic_store(&o->is_set, false);
	return false;
}

static bool owes_already(struct vb_engine *e, struct vb_owed *o, vb_time now)
{
	return atomic_load(&o->is_set) &&
	       vb_wait_owes_already(
		       vb_engine_slowdown(e),
		       atomic_load_explicit(&o->set_at, memory_order_relaxed),
		       now);
}

/* The timer of @o has made its descriptor readable. False: it was set again
 * meanwhile. */
static bool owed_is_due(struct vb_owed *o)
{
	uint64_t drop;

	if (read(o->fd, &drop, sizeof(drop)) < 0)
		return false;
	atomic_store(&o->is_set, false);
	return true;
}

/*
 * Delay the rings that are owed to peers. Setting a kernel timer wakes no
 * thread. Each call postpones the timer, so that beside a program that comes
 * often it never wakes the engine thread; but the timer is set at most every
 * 500 us, since that is a system call.
 */
void vb_wait_soon(struct vb_engine *e)
{
	vb_time now = vb_now();

	if (!owes_already(e, &e->soon, now) &&
	    !set_owed(&e->soon, VB_OWED_LASTS, now))
		vb_engine_wake(e);
}

void vb_wait_over(struct vb_engine *e)
{
	if (owed_is_due(&e->soon) && e->near)
		vb_near_wake_peers(e->near);
}

void vb_wait_is_late(struct vb_engine *e)
{
	if (owed_is_due(&e->back))
		atomic_store(&e->polls_wait, false);
}

/* Ring the peers that are owed a ring. Cancellation is off meanwhile: a ring
 * must not be lost when the program cancels this thread. */
static void eng_wait_ring(struct vb_engine *e)
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

/* Record how an event of the channel came. */
static void eng_wait_came(struct vb_channel *ch, enum vb_came how)
{
	unsigned score =
		atomic_load_explicit(&ch->by_link, memory_order_relaxed);

	atomic_store_explicit(&ch->by_link, vb_wait_came(score, how),
			      memory_order_relaxed);
}

bool vb_wait_can_nudge(struct vb_engine *e)
{
	int rc;

	if (e->nudge.context || e->no_nudges)
		return !e->no_nudges;
	rc = vb_nudge_open(&e->nudge);
	e->no_nudges = rc != 0;
	if (rc)
		vb_log(LOG_INFO,
		       "engine: packets wake the engine thread before programs: no asynchronous I/O here: %s",
		       strerror(-rc));
	return rc == 0;
}

/* Decide what this thread watches while it waits, and announce it. */
static enum vb_watch begin_watch(struct vb_engine *e, struct vb_channel *ch)
{
	enum vb_watch watch = WATCHES_NOTHING;

	if (!e || vb_engine_spins(e) || vb_channel_has_events(ch) ||
	    !atomic_compare_exchange_strong(&e->watched, &watch, WATCHES_LANES))
		return WATCHES_NOTHING;
	if (vb_wait_by_link(
		    atomic_load_explicit(&ch->by_link, memory_order_relaxed)) &&
	    vb_wait_can_nudge(e))
		watch = WATCHES_LINK;
	else if (e->near)
		watch = WATCHES_LANES;
	atomic_store(&e->watched, watch);
	if (watch != WATCHES_NOTHING)
		vb_wait_begins(&e->wait, vb_engine_slowdown(e), vb_now());
	if (watch == WATCHES_LANES)
		vb_channel_watch(ch, vb_near_bell(e->near));
	return watch;
}

/* The wait is over: the engine thread serves the lanes again and what has
 * arrived there, at once, or for a prompt program in 2 ms. This function also
 * runs when the program cancels the thread. */
static void end_watch(void *arg)
{
	struct watch *w = arg;
	struct vb_engine *e = w->e;
	bool prompt = vb_wait_is_prompt(&e->wait);
	int cancel = vb_cancel_off();

	vb_channel_watch(w->ch, NULL);
	vb_near_clear_bells(e->near);
	vb_wait_ends(&e->wait, vb_now());
	if (prompt)
		vb_wait_soon(e);
	/* Clear @watched only now: the engine thread, if it was woken
	 * meanwhile, left the lanes to this one. */
	atomic_store(&e->watched, WATCHES_NOTHING);
	if (prompt ? !atomic_load(&e->soon.is_set) : !vb_near_sleep(e->near))
		vb_engine_wake(e);
	vb_cancel_back(cancel);
}

/* Does another thread serve the lanes now, or does the engine end? */
static bool is_over(struct vb_engine *e)
{
	return vb_engine_spins(e) || atomic_load(&e->stop);
}

/* Yield the processor, and return how long the yield lasted. */
static vb_time eng_wait_yield(void)
{
	vb_time then = vb_now();

	sched_yield();
	return vb_now() - then;
}

static bool eng_wait_look(struct watch *w)
{
	bool found = false;

	for (unsigned i = 0; i < VB_LOOKS && !found; i++)
		found = vb_near_has_something(w->e->near);
	return found || vb_channel_has_events(w->ch) || is_over(w->e);
}

/* Look for an event for a while before sleeping. */
static void eng_wait_linger(struct watch *w)
{
	unsigned slowdown = vb_engine_slowdown(w->e);
	vb_time since = vb_now(), took;
	bool found;

	do {
		took = eng_wait_yield();
		found = eng_wait_look(w);
	} while (!found && vb_wait_looks_on(slowdown, since, took, vb_now()));
	vb_wait_looked(&w->e->wait, found);
}

static int eng_sleep_by_bells(struct vb_engine *e)
{
	vb_time then = vb_now();
	int rc = vb_near_wait(e->near);

	vb_wait_slept(&e->wait, vb_engine_slowdown(e), vb_now() - then);
	return rc;
}

/* Serve the messages of peers until there is an event for this channel. The
 * first event is removed at once: the program then polls for further
 * completions. */
static struct vb_cq *eng_wait_attend(struct watch *w)
{
	int cancel = vb_cancel_off();
	struct vb_cq *cq;
	bool found;

	do {
		vb_channel_begin(w->ch);
		found = vb_near_attend(w->e->near, vb_now(),
				       vb_wait_is_prompt(&w->e->wait));
		cq = vb_channel_end(w->ch);
	} while (found && !cq && !is_over(w->e));
	vb_cancel_back(cancel);
	return cq;
}

/* While this thread looks at the lanes, peers need not ring; before it sleeps,
 * it sets the bells. False: it cannot sleep by bells. The thread may release
 * the last reference to a peer here, so it is not cancelled meanwhile. */
static bool eng_wait_bells(struct vb_near *near, bool looks)
{
	int cancel = vb_cancel_off();
	bool can = true;

	if (looks)
		vb_near_clear_bells(near);
	else
		can = vb_near_set_bells(near);
	vb_cancel_back(cancel);
	return can;
}

/* Watch the lanes and wait. Returns 0: *@cq has an event, or is NULL and the
 * caller continues with vb_channel_take(). -EINTR: a signal came. */
static int eng_wait_watch(struct watch *w, struct vb_cq **cq)
{
	struct vb_near *near = w->e->near;

	w->rc = 0;
	*cq = NULL;
	pthread_cleanup_push(end_watch, w);
	while (w->rc == 0) {
		bool looks = vb_wait_looks(&w->e->wait);

		if (!eng_wait_bells(near, looks)) {
			vb_wait_is_elsewhere(&w->e->wait);
			break;
		}
		vb_near_awake(near);
		*cq = eng_wait_attend(w);
		if (*cq)
			eng_wait_came(w->ch, CAME_BY_LANE);
		else if (w->slept && vb_channel_has_events(w->ch) &&
			 atomic_load(&w->ch->raised) != RAISED_OTHERWISE)
			eng_wait_came(w->ch, CAME_BY_OTHERS);
		if (*cq || vb_channel_has_events(w->ch) || is_over(w->e))
			break;
		/* The channel does not block, so the program sleeps in
		 * poll(2). */
		if (!blocks(w->ch->fd)) {
			vb_wait_is_elsewhere(&w->e->wait);
			break;
		}
		eng_wait_ring(w->e);
		w->slept = true;
		if (!looks)
			w->rc = eng_sleep_by_bells(w->e);
		else
			eng_wait_linger(w);
	}
	pthread_cleanup_pop(1);
	return w->rc;
}

void vb_nudge_end(struct vb_nudge *n, struct vb_channel *ch)
{
	if (!n->awaited)
		return;
	if (!vb_nudge_came(n))
		vb_nudge_call_off(n);
	vb_channel_nudged(ch);
}

bool vb_wait_asks(struct vb_engine *e, struct vb_channel *ch)
{
	int fd = atomic_load(&e->link_fd);

	return fd >= 0 && vb_nudge_ask(&e->nudge, fd, ch->fd) == 0;
}

/* Set the timer of @back. Setting it is a system call, so a call with a time of
 * VB_OWED_LASTS or more leaves the timer as it is if it was set within the last
 * 500 us. */
void vb_wait_leaves_link(struct vb_engine *e, vb_time lasts, vb_time now)
{
	if (lasts < VB_OWED_LASTS || !owes_already(e, &e->back, now))
		(void)set_owed(&e->back, lasts, now);
}

/* The wait by the link is over. While this thread is away the engine thread
 * leaves the link alone; but it is told if this thread is late. This function
 * also runs when the program cancels the thread. */
static void end_link(void *arg)
{
	struct watch *w = arg;
	struct vb_engine *e = w->e;
	vb_time now = vb_now();
	int cancel = vb_cancel_off();

	vb_nudge_end(&e->nudge, w->ch);
	vb_wait_ends(&e->wait, now);
	vb_wait_leaves_link(e, vb_wait_is_back_in(&e->wait), now);
	atomic_store(&e->watched, WATCHES_NOTHING);
	/* If the timer expired while @watched was still set, the engine thread
	 * left the link to this thread, and must now take it back. */
	if (!atomic_load(&e->back.is_set))
		vb_engine_wake(e);
	vb_cancel_back(cancel);
}

/* Let the kernel nudge this thread for the next packet. False: it does not. */
static bool ask_for_nudge(struct watch *w)
{
	int cancel = vb_cancel_off();
	bool asked = w->e->nudge.awaited || vb_wait_asks(w->e, w->ch);

	vb_cancel_back(cancel);
	return asked;
}

/* A nudge has come, as @by says (enum vb_nudged): take the packets and the
 * messages on lanes, and the first event that they raise for this channel.
 * *@found: there were some. */
static struct vb_cq *attend_nudge(struct watch *w, unsigned by, bool *found)
{
	int cancel = vb_cancel_off();
	struct vb_cq *cq;

	vb_channel_begin(w->ch);
	*found = (by & NUDGED_BY_LINK) && vb_poll_for_waiter(w->e);
	if (by & NUDGED_BY_LANES)
		*found |= vb_lend_attend(w->e);
	cq = vb_channel_end(w->ch);
	if (cq)
		eng_wait_came(w->ch, CAME_BY_LINK);
	if (cq && (by & NUDGED_BY_LANES))
		vb_lend_has_event(w->e);
	vb_cancel_back(cancel);
	return cq;
}

/* Call this after the thread has read a count of the channel's eventfd. If no
 * event came with it (*@cq is NULL), the count may be a nudge: take the packets
 * that wait, and set *@cq to the first event that they raise. */
static void eng_wait_read(struct watch *w, struct vb_cq **cq)
{
	bool found;

	if (*cq) {
		eng_wait_came(w->ch, CAME_BY_OTHERS);
		return;
	}
	if (vb_nudge_came(&w->e->nudge))
		vb_channel_nudged(w->ch);
	*cq = attend_nudge(w, NUDGED_BY_LINK, &found);
	if (!*cq && !found)
		eng_wait_came(w->ch, CAME_IN_VAIN);
}

/* Watch the link in place of the engine thread, and wait for an event. Returns
 * as eng_wait_watch() does, or -EAGAIN: the channel does not block. */
static int wait_by_link(struct watch *w, struct vb_cq **cq)
{
	struct vb_near *near = w->e->near;

	w->rc = 0;
	*cq = NULL;
	pthread_cleanup_push(end_link, w);
	if (near && !vb_near_sleep(near))
		vb_engine_wake(w->e);
	while (w->rc == 0 && !*cq && !is_over(w->e) &&
	       vb_wait_by_link(atomic_load(&w->ch->by_link))) {
		if (!ask_for_nudge(w)) {
			atomic_store(&w->ch->by_link, 0);
			break;
		}
		w->rc = vb_channel_next(w->ch, cq);
		if (w->rc == 0)
			eng_wait_read(w, cq);
	}
	/* The channel does not block. */
	if (w->rc == -EAGAIN)
		atomic_store(&w->ch->by_link, 0);
	pthread_cleanup_pop(1);
	return w->rc;
}

/* Record that the program has polled since it armed its queue: the engine
 * thread leaves work to its polls, which do not come while it waits. */
static bool has_polled(struct vb_engine *e)
{
	uint64_t program = vb_engine_program(e);

	return vb_program_loops(program) || vb_program_spins(program) ||
	       atomic_load_explicit(&e->attentive, memory_order_relaxed) ||
	       atomic_load(&e->thread_does) == THREAD_RESTS;
}

/* Note how an event came that this thread has not waited for by lanes or link:
 * whether packets raise the channel's events, and whether the program sleeps in
 * poll(2). */
static void eng_wait_elsewhere(struct vb_engine *e, struct vb_channel *ch)
{
	unsigned score =
		atomic_load_explicit(&ch->by_link, memory_order_relaxed);
	bool polls;

	switch (atomic_load_explicit(&ch->raised, memory_order_relaxed)) {
	case RAISED_OTHERWISE:
		eng_wait_came(ch, CAME_BY_LANE);
		return;
	case RAISED_BY_PROGRAM:
		return;
	case RAISED_ON_LANE:
	case RAISED_BY_ENGINE:
		break;
	}
	polls = !blocks(ch->fd);
	atomic_store(&ch->elsewhere, polls);
	if ((polls || !e->near) && !vb_wait_by_link(score))
		eng_wait_came(ch, CAME_BY_OTHERS);
}

/* Wait without watching anything. */
static int eng_wait_plain(struct watch *w, struct vb_cq **cq)
{
	int rc = vb_channel_take(w->ch, cq);

	if (rc == 0 && w->e)
		eng_wait_elsewhere(w->e, w->ch);
	return rc;
}

/* The program sleeps again, perhaps without arming a queue before. */
static void sleeps_lent(struct watch *w)
{
	int cancel = vb_cancel_off();

	vb_lend_settle(w->e, w->ch);
	(void)vb_lend_begin(w->e, w->ch);
	vb_cancel_back(cancel);
}

/* Wait by a channel to which the link is lent: a packet, or a message of a peer
 * of this host, may have woken the program. If this function finds neither, a
 * poll of the program may have taken it since. */
static int wait_lent(struct watch *w, struct vb_cq **cq)
{
	unsigned by;
	bool found;
	int rc;

	*cq = NULL;
	do {
		rc = vb_channel_next(w->ch, cq);
		if (*cq && atomic_load(&w->ch->raised) == RAISED_OTHERWISE)
			eng_wait_came(w->ch, CAME_BY_OTHERS);
		by = rc == 0 && !*cq ? vb_lend_is_nudged(w->e, w->ch) : 0;
		if (by)
			*cq = attend_nudge(w, by, &found);
	} while (rc == 0 && !*cq);
	if (rc == -EAGAIN)
		sleeps_lent(w);
	return rc;
}

static int wait_event(struct vb_channel *ch, struct vb_cq **cq)
{
	struct watch w = { vb_engine_running(), ch };
	enum vb_watch watch;
	int rc;

	if (w.e && vb_lend_is_lent(w.e, ch))
		return wait_lent(&w, cq);
	if (w.e && w.e->near)
		eng_wait_ring(w.e);
	watch = begin_watch(w.e, ch);
	if (watch != WATCHES_LINK && w.e && has_polled(w.e) &&
	    !vb_channel_has_events(ch) && blocks(ch->fd))
		vb_engine_armed(NULL);
	if (watch == WATCHES_NOTHING)
		return eng_wait_plain(&w, cq);
	if (watch == WATCHES_LINK)
		rc = wait_by_link(&w, cq);
	else
		rc = eng_wait_watch(&w, cq);
	return rc || *cq ? rc : vb_channel_take(ch, cq);
}

static bool is_empty(struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->count, memory_order_relaxed) == 0 &&
	       !atomic_load(&cq->overrun);
}

/* Is there a completion or another event, so that the event need not be held
 * back any more? */
static bool has_come(struct vb_cq *cq, struct vb_channel *ch)
{
	vb_engine_poll();
	return !is_empty(cq) || vb_channel_has_events(ch);
}

/* Wait until @cq has a completion, @ch has another event, or a signal comes.
 * False: nothing came in the time that vb_wait_holds() allows. */
static bool cq_holds(struct vb_cq *cq, struct vb_channel *ch)
{
	static const struct timespec nap = { .tv_nsec = VB_EARLY_SLEEP };
	vb_time since = vb_now();

	for (unsigned looks = 0; !has_come(cq, ch); looks++) {
		enum vb_held_event next = vb_wait_holds(looks, since, vb_now());

		if (next == HELD_GIVES_UP)
			return false;
		if (next == HELD_YIELDS)
			sched_yield();
		else if (nanosleep(&nap, NULL) != 0)
			break; /* end the wait, because a signal came */
	}
	return true;
}

/*
 * Hold back an event without a completion. A poll that began just before an
 * event can have removed the completion behind it already
 * (ibv_get_cq_event(3)). With a hardware adapter this is rare: while its
 * interrupt is under way the next completion arrives. Some programs treat an
 * empty queue as an error then (ibv_rc_pingpong -e -t). Therefore this thread
 * holds such an event back until the next completion comes, but for at most 100
 * ms: a program that removed the completion in another way may be counting on
 * the event. After one such wait without a result it holds back none of the
 * next 64 events.
 */
static void hold_back(struct vb_channel *ch, struct vb_cq *cq)
{
	int cancel;

	if (atomic_load(&cq->spare) > 0) {
		atomic_fetch_sub(&cq->spare, 1);
		return;
	}
	cancel = vb_cancel_off();
	if (!cq_holds(cq, ch))
		atomic_store(&cq->spare, VB_EARLY_SPARED);
	vb_cancel_back(cancel);
}

/* The program is about to wait, so it will not reply soon to the messages that
 * it has received: send the delayed ACKs. A program that sleeps in poll(2) only
 * asks whether there are more events, and may still reply: do nothing then. */
static void settle(struct vb_channel *ch)
{
	struct vb_engine *e = vb_engine_running();
	int cancel;

	if (!e || vb_channel_has_events(ch) || atomic_load(&ch->elsewhere))
		return;
	cancel = vb_cancel_off();
	vb_poll_before_sleep(e);
	vb_cancel_back(cancel);
}

int vb_engine_wait(struct vb_channel *ch, struct vb_cq **cq)
{
	int rc;

	settle(ch);
	rc = wait_event(ch, cq);
	if (rc == -EAGAIN)
		atomic_store(&ch->met_empty, true);
	if (rc == 0 && VB_UNLIKELY(is_empty(*cq)) && blocks(ch->fd))
		hold_back(ch, *cq);
	return rc;
}

void vb_wait_stop(struct vb_engine *e)
{
	vb_time until = vb_now() + STOP_PATIENCE;

	while (atomic_load(&e->watched) && vb_now() < until) {
		if (e->near)
			vb_bell_wake(vb_near_bell(e->near));
		sched_yield();
	}
}

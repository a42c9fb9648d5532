/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's thread: it sleeps in the kernel and serves what nobody polls:
 * one-sided operations on a passive target, timers, completion channels,
 * address changes, a broker that went away.
 *
 * While a program spins in ibv_poll_cq it drains the link itself, and waking
 * this thread for each packet would only take the processor from it. So the
 * thread leaves packets to a program that polled a moment ago and found
 * nothing, for it will poll again; to one that found something as long as that
 * was right so far. After REST_AFTER wake-ups in a row that were not needed it
 * rests: it looks at the clock instead of the socket, for longer and longer,
 * until the polling stops. A program that polls now and spins on memory then
 * leaves work for the thread each time round, and so never sends it to rest.
 */
#include "core/lock_order.h"
#include "engine/engine_priv.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "link/netif.h"

#define REST_AFTER     8
#define REST_AFTER_MAX 64
#define NAP	       (20 * VB_USEC) /* a program polls: look again soon */
#define REST_MIN       (50 * VB_USEC)
#define REST_MAX       (1 * VB_MSEC)
#define POLL_IS_RECENT (50 * VB_USEC)
#define LOOP_LASTS     (1 * VB_MSEC)
#define TRUST_MOST     8 /* naps in a row that were right... */
#define TRUST_LOST     4 /* ...and what one that was not takes away */
#define DRAIN_BATCHES  16
#define REFRESH_EVERY  (2 * VB_SEC)    /* of addresses, where nobody tells */
#define SLICE	       (100 * VB_USEC) /* the least that Linux takes */
#define LINGER	       (30 * VB_USEC)
#define LINGER_TURN    (200 * VB_USEC)
#define ALONE	       (3 * VB_USEC)   /* a yield to nobody takes less */
#define CROWDED	       (100 * VB_USEC) /* to who spins, and not an interrupt */
#define EAGER_MOST     8
#define ATTEND_TURN    (100 * VB_USEC)
#define ATTEND_LOOKS   16
#define AWAY	       (4 * VB_MSEC) /* when somebody wanted the processor */
#define AWAY_MOST      (1 * VB_SEC)
#define IS_RARE	       (20 * VB_MSEC) /* between two that wanted it */
#define CROWD_MIN      (10 * VB_MSEC)
#define CROWD_MAX      (640 * VB_MSEC)
#define REFRESH_AFTER  (50 * VB_MSEC)
#define SWEEP_EVERY    (1 * VB_SEC) /* of streams that end */

enum {
	FD_WAKE,
	FD_LINK,
	FD_BROKER,
	FD_WATCH,
	FD_NEAR,
	FD_RAW,
	FD_STREAM,
	FD_SOON,
	FD_FORWARD,
	FD_COUNT
};

struct service {
	struct vb_engine *e;
	struct vb_netif_watch *watch; /* NULL: the host does not let us */
	struct pollfd fds[FD_COUNT];
	vb_time rest; /* away from the socket for this long; 0: watching */
	vb_time rest_until; /* when @rest */
	unsigned idle_wakes, rest_after, trust, eager;
	vb_time crowd, crowded_until; /* no lingering; for how long, last */
	vb_time rejoin_at;
	bool attends; /* stands by for small messages of peers */
	vb_time away_until, away;
	vb_time near_rest;  /* how long peers' lanes were left to a program */
	vb_time refresh_at; /* without a watch, or a while after it told */
};

enum drained { DRAINED_NOTHING, DRAINED_SOME, DRAINED_BUSY };

/* Serve what has arrived, but not for ever: timers and the rest of the loop
 * have their turn, and the socket stays readable. */
static enum drained eng_service_drain_link(struct vb_engine *e)
{
	enum drained got = DRAINED_NOTHING;

	for (unsigned i = 0; i < DRAIN_BATCHES; i++) {
		vb_time now;
		bool other;

		if (!vb_mutex_trylock(&e->rx))
			return DRAINED_BUSY;
		other = e->raws && vb_raw_drain(e, vb_now());
		if (e->streams)
			other |= vb_stream_drain(e, vb_now());
		if (e->link->ops->recv(e->link, &e->rxq) < 0)
			e->rxq.count = 0;
		if (e->rxq.count == 0 && !other) {
			vb_mutex_unlock(&e->rx);
			return got;
		}
		got = DRAINED_SOME;
		now = vb_now();
		vb_drive_owing(e, now);
		vb_dispatch(e, now);
		/* Between batches a program's poll may take over. */
		vb_mutex_unlock(&e->rx);
		if (atomic_load_explicit(&e->awaited, memory_order_relaxed))
			break;
	}
	return got;
}

/* Hints, ordered by nothing. */
static vb_time last_poll(struct vb_engine *e)
{
	return atomic_load_explicit(&e->last_poll, memory_order_relaxed);
}

static bool eng_service_program_polls(struct vb_engine *e, vb_time now)
{
	return last_poll(e) + vb_engine_span(e, POLL_IS_RECENT) > now;
}

/* It does, and will again, or is at it. */
static bool program_loops(struct service *s, vb_time now)
{
	if (atomic_load_explicit(&s->e->looping, memory_order_relaxed))
		return last_poll(s->e) +
			       vb_engine_span(s->e, s->trust ? LOOP_LASTS
							     : POLL_IS_RECENT) >
		       now;
	if (s->trust)
		return eng_service_program_polls(s->e, now);
	return last_poll(s->e) > now;
}

static void rest(struct service *s, vb_time how_long, vb_time now)
{
	s->rest = how_long;
	s->rest_until = now + how_long;
	s->fds[FD_LINK].fd = -1;
	s->fds[FD_RAW].fd = -1;
	s->fds[FD_STREAM].fd = -1;
	if (how_long >= vb_engine_span(s->e, REST_MIN))
		atomic_store(&s->e->resting, true);
}

static void watch_link(struct service *s)
{
	s->rest = 0;
	atomic_store(&s->e->resting, false);
	s->idle_wakes = 0;
	s->fds[FD_LINK].fd = s->e->link->ops->fd(s->e->link);
	s->fds[FD_RAW].fd = atomic_load(&s->e->raw_fd);
	s->fds[FD_STREAM].fd = atomic_load(&s->e->stream_fd);
}

/* From a long rest: the program that polled is about to sleep. */
static bool is_called_back(const struct service *s)
{
	return s->rest >= vb_engine_span(s->e, REST_MIN) &&
	       !atomic_load(&s->e->resting);
}

static void trust(struct service *s)
{
	s->trust = VB_MIN(s->trust + 1, TRUST_MOST);
}

/* Woken for something that a program's thread does as well. */
static void was_not_needed(struct service *s, bool still_there, vb_time now)
{
	if (++s->idle_wakes >= s->rest_after)
		rest(s, vb_engine_span(s->e, REST_MIN), now);
	else if (still_there) /* the socket stays readable: do not spin */
		rest(s, vb_engine_span(s->e, NAP), now);
}

/*
 * Others want this processor. Linux takes a yield for the end of our slice
 * (since 6.18 even where it chose nobody else), and then lets a spinning thread
 * run for milliseconds before it gives us the processor again.
 */
static void note_crowd(struct service *s, vb_time now)
{
	s->crowd = VB_MIN(VB_MAX(2 * s->crowd, CROWD_MIN), CROWD_MAX);
	s->crowded_until = now + s->crowd;
}

/*
 * Going to sleep and waking up takes longer than what a peer that waits for
 * our answer needs for its next request. So, where packets came that close
 * behind each other lately, look again for a while: as long as nobody else
 * wants this processor, and no program polls. False: in vain.
 */
static bool eng_service_linger(struct service *s)
{
	vb_time start = vb_now(), since = start, now = start, then;

	do {
		enum drained got;

		then = now;
		sched_yield();
		now = vb_now();
		if (now - then > vb_engine_span(s->e, CROWDED))
			note_crowd(s, now);
		if (now - then > vb_engine_span(s->e, ALONE))
			return since != start;
		got = eng_service_drain_link(s->e);
		if (got == DRAINED_BUSY || eng_service_program_polls(s->e, now))
			return true;
		if (got == DRAINED_SOME)
			since = now = vb_now();
	} while (now - since < vb_engine_span(s->e, LINGER) &&
		 now - start < vb_engine_span(s->e, LINGER_TURN));
	s->crowd /= 2;
	return since != start;
}

static void linger_if_busy(struct service *s)
{
	if (s->eager && vb_now() >= s->crowded_until && !eng_service_linger(s))
		s->eager--;
}

/* The socket was readable. */
static void on_link(struct service *s, vb_time now)
{
	if (program_loops(s, now)) {
		was_not_needed(s, true, now);
		return;
	}
	switch (eng_service_drain_link(s->e)) {
	case DRAINED_SOME:
		s->idle_wakes = 0;
		linger_if_busy(s);
		break;
	case DRAINED_NOTHING:
		trust(s);
		was_not_needed(s, false, now);
		break;
	case DRAINED_BUSY:
		trust(s);
		was_not_needed(s, true, now);
		break;
	}
}

/* Did the program see to what came? Else it is seen to now. */
static void on_napped(struct service *s, vb_time now)
{
	unsigned idle_wakes = s->idle_wakes;
	bool right = last_poll(s->e) > s->rest_until - s->rest;

	watch_link(s);
	if (right) {
		trust(s);
		s->idle_wakes = idle_wakes;
		return;
	}
	s->trust -= VB_MIN(s->trust, TRUST_LOST);
	if (eng_service_drain_link(s->e) != DRAINED_SOME)
		s->idle_wakes = idle_wakes;
}

/* The time away from the socket is over. */
static void on_rested(struct service *s, vb_time now)
{
	if (s->rest < vb_engine_span(s->e, REST_MIN)) {
		on_napped(s, now);
		return;
	}
	if (eng_service_program_polls(s->e, now)) {
		rest(s, VB_MIN(s->rest * 2, vb_engine_span(s->e, REST_MAX)),
		     now);
		s->rest_after = VB_MAX(s->rest_after / 2, REST_AFTER);
		return;
	}
	watch_link(s);
	s->near_rest = 0; /* look soon whether it was for nothing */
	if (eng_service_drain_link(s->e) ==
	    DRAINED_SOME) /* rested too eagerly */
		s->rest_after = VB_MIN(s->rest_after * 2, REST_AFTER_MAX);
	else
		s->rest_after = VB_MAX(s->rest_after / 2, REST_AFTER);
}

/* The session's end, or a step on the way to the next one. */
static void on_broker(struct service *s)
{
	struct vb_lease *l = &s->e->lease;

	if (vb_lease_rejoin(l) == 0)
		vb_log(LOG_DEBUG, "engine: rejoined a broker");
	s->fds[FD_BROKER].fd = l->broker_fd;
	s->rejoin_at = l->retry_at;
}

/* Something changed, and others follow: list the interfaces once for all that
 * comes in a short time. */
static void on_watch(struct service *s, vb_time now)
{
	s->fds[FD_WATCH].fd = -1;
	s->refresh_at = now + REFRESH_AFTER;
}

static void refresh_ports(struct service *s, vb_time now)
{
	bool changed = true;

	s->refresh_at = now + REFRESH_EVERY;
	if (s->watch) {
		s->refresh_at = VB_NEVER;
		s->fds[FD_WATCH].fd = vb_netif_watch_fd(s->watch);
		changed = vb_netif_watch_drain(s->watch);
	}
	if (changed)
		vb_ports_refresh(s->e);
}

/* A program polls now and then, and we come back to see. */
static bool is_attentive(struct vb_engine *e, vb_time now)
{
	return last_poll(e) + vb_engine_span(e, REST_MAX) > now;
}

/* How long to sleep; also tells arm_timer() when we wake by ourselves, and
 * whether who polls sees to the timers meanwhile. */
static vb_time plan_sleep(struct service *s, bool attentive, vb_time now)
{
	struct vb_engine *e = s->e;
	vb_time until, due;

	vb_mutex_lock(&e->timer_lock);
	until = VB_MIN(s->rejoin_at, vb_timers_next(&e->cq_timers));
	e->polls_look = attentive;
	due = vb_timers_next(&e->timers);
	/* Those to come, and not what we have just left undone. */
	if (vb_drive_is_for_polls(e, due, now))
		due = now + vb_engine_span(e, REST_MAX);
	until = VB_MIN(until, due);
	until = VB_MIN(until, s->refresh_at);
	if (s->rest)
		until = VB_MIN(until, s->rest_until);
	e->sleep_until = until;
	vb_mutex_unlock(&e->timer_lock);
	return until;
}

/*
 * Lanes of peers (near/): a program that polls all the time serves them, and
 * we look now and then whether it still does; else peers ring. Returns until
 * when to sleep.
 */
static vb_time plan_near(struct service *s, vb_time until, vb_time now)
{
	struct vb_engine *e = s->e;

	if (atomic_load(&e->spinning) &&
	    last_poll(e) + vb_engine_span(e, REST_MIN) > now) {
		/* Another thread that waited may have asked to be rung. */
		vb_near_awake(e->near);
		s->near_rest = VB_MIN(
			VB_MAX(2 * s->near_rest, vb_engine_span(e, REST_MIN)),
			vb_engine_span(e, REST_MAX));
		return VB_MIN(until, now + s->near_rest);
	}
	s->near_rest = 0;
	if (s->attends)
		return now;
	atomic_store(&e->spinning, false);
	if (vb_wait_attends(e))
		return until;
	return vb_near_sleep(e->near) ? until : now;
}

/*
 * A thread that sleeps by a socket is woken for each packet, and if a program
 * has taken that meanwhile the kernel puts it to sleep again, in the midst of
 * ppoll: a processor is taken from others each time, and it hears of nothing.
 * How often it has gone to sleep in there tells; once was its own will.
 */

/* So far; 0: nobody spins beside us, or nothing wakes us. */
static long count_sleeps(const struct service *s)
{
	struct rusage use;

	if (s->rest ||
	    !atomic_load_explicit(&s->e->spinning, memory_order_relaxed) ||
	    getrusage(RUSAGE_THREAD, &use) < 0)
		return 0;
	return use.ru_nvcsw;
}

static void note_unheard(struct service *s, long before)
{
	long sleeps = before ? count_sleeps(s) - before : 0;

	if (sleeps > 1)
		s->idle_wakes += (unsigned)(sleeps - 1);
}

static void rest_if_unheard(struct service *s, vb_time now)
{
	if (!s->rest && s->idle_wakes >= s->rest_after &&
	    atomic_load_explicit(&s->e->spinning, memory_order_relaxed) &&
	    eng_service_program_polls(s->e, now))
		rest(s, vb_engine_span(s->e, REST_MIN), now);
}

/* An ACK that has waited for the program's reply for long enough. */
static void settle_old(struct vb_engine *e, vb_time now)
{
	if (!vb_mutex_trylock(&e->rx))
		return;
	if (now > e->owing_at + vb_engine_span(e, NAP))
		vb_drive_owing(e, now);
	vb_mutex_unlock(&e->rx);
}

/* False: a program drains, and may have left one behind. */
static bool settle_all(struct vb_engine *e, vb_time now)
{
	if (!vb_mutex_trylock(&e->rx))
		return false;
	atomic_store_explicit(&e->attentive, false, memory_order_relaxed);
	vb_drive_owing(e, now);
	vb_mutex_unlock(&e->rx);
	return true;
}

/* While a program polls now and then, ACKs may wait for its replies, and we
 * come back to see. Returns until when to sleep. */
static vb_time plan_debts(struct service *s, bool attentive, vb_time until,
			  vb_time now)
{
	struct vb_engine *e = s->e;
	bool was = atomic_load_explicit(&e->attentive, memory_order_relaxed);

	if (attentive)
		atomic_store_explicit(&e->attentive, true,
				      memory_order_relaxed);
	else if (was && !settle_all(e, now))
		return VB_MIN(until, now + vb_engine_span(e, NAP));
	return until;
}

/*
 * Standing by: a peer that streams small messages has asked for it, since what
 * it does without us costs the kernel's way to each page (near/here.c). As long
 * as more come, no program polls, and nobody else wants this processor; where
 * somebody did, we stay away, for longer each time.
 */

/* Give way to whoever waits for this processor. False: somebody wants it, and
 * not for a moment only, as an interrupt does. */
static bool give_way(const struct service *s)
{
	vb_time then = vb_now();

	sched_yield();
	return vb_now() - then < vb_engine_span(s->e, ATTEND_TURN);
}

static void eng_stay_away(struct service *s, vb_time now)
{
	s->away = now > s->away_until + IS_RARE
			  ? AWAY
			  : VB_MIN(2 * s->away, AWAY_MOST);
	s->away_until = now + s->away;
}

static bool others_serve(struct vb_engine *e)
{
	return atomic_load(&e->spinning) || vb_wait_attends(e);
}

/* One turn. False: it is over. */
static bool attend_turn(struct service *s)
{
	vb_time start = vb_now(), now = start;
	bool found = false;

	do {
		for (unsigned i = 0; i < ATTEND_LOOKS; i++)
			found |= vb_near_poll(s->e->near, now);
		now = vb_now();
	} while (now - start < vb_engine_span(s->e, ATTEND_TURN) &&
		 !others_serve(s->e));
	if (!give_way(s)) {
		eng_stay_away(s, now);
		return false;
	}
	return found && !others_serve(s->e);
}

static void eng_service_attend(struct service *s, bool woken, vb_time now)
{
	struct vb_near *n = s->e->near;

	if (!s->attends && (!woken || !vb_near_is_wanted(n) ||
			    now < s->away_until || others_serve(s->e)))
		return;
	if (!s->attends)
		vb_near_stand_by(n, true);
	s->attends = attend_turn(s);
	if (!s->attends)
		vb_near_stand_by(n, false);
}

static int sleep_until(struct service *s, vb_time until, vb_time now)
{
	vb_time ns = until > now ? until - now : 0;
	struct timespec ts = { (time_t)(ns / VB_SEC), (long)(ns % VB_SEC) };

	return ppoll(s->fds, FD_COUNT, until == VB_NEVER ? NULL : &ts, NULL);
}

static void eng_service_serve(struct service *s, vb_time now)
{
	struct pollfd *fds = s->fds;
	uint64_t drop;

	if (fds[FD_WAKE].revents &&
	    read(fds[FD_WAKE].fd, &drop, sizeof(drop)) < 0 && errno != EAGAIN)
		vb_log(LOG_DEBUG, "engine: wake fd unreadable");
	if (fds[FD_SOON].revents)
		vb_wait_over(s->e);
	if (fds[FD_WAKE].revents && is_called_back(s))
		watch_link(s);
	/* The first raw packet queue pair, or the first stream, woke us. */
	if (fds[FD_WAKE].revents && !s->rest) {
		fds[FD_RAW].fd = atomic_load(&s->e->raw_fd);
		fds[FD_STREAM].fd = atomic_load(&s->e->stream_fd);
	}
	if (fds[FD_LINK].revents || fds[FD_RAW].revents ||
	    fds[FD_STREAM].revents)
		on_link(s, now);
	else if (s->rest && now >= s->rest_until)
		on_rested(s, now);
	if (fds[FD_WATCH].revents)
		on_watch(s, now);
	else if (now >= s->refresh_at)
		refresh_ports(s, now);
	/* Who wants to be introduced woke us, or a peer has news. */
	if (s->e->near && (fds[FD_WAKE].revents || fds[FD_NEAR].revents))
		vb_near_meet(s->e->near, now);
	if (fds[FD_FORWARD].revents)
		vb_forward_serve(atomic_load(&s->e->forward));
	if (fds[FD_BROKER].revents || now >= s->rejoin_at)
		on_broker(s);
}

/* Packets that come so soon had better be waited for. */
static void slept_since(struct service *s, vb_time then, int ready)
{
	if (ready > 0 &&
	    (s->fds[FD_LINK].revents || s->fds[FD_STREAM].revents) &&
	    vb_now() - then < vb_engine_span(s->e, LINGER))
		s->eager = VB_MIN(s->eager + 1, EAGER_MOST);
}

static void loop(struct service *s)
{
	struct vb_engine *e = s->e;

	while (!atomic_load(&e->stop)) {
		vb_time now = vb_now(), until;
		bool attentive = is_attentive(e, now); /* it changes */
		long sleeps;
		int ready;

		rest_if_unheard(s, now);
		until = plan_sleep(s, attentive, now);
		until = plan_debts(s, attentive, until, now);
		if (e->near)
			until = plan_near(s, until, now);
		if (atomic_load(&e->stream_ending))
			until = VB_MIN(until, now + SWEEP_EVERY);
		if (s->fds[FD_FORWARD].fd < 0 && atomic_load(&e->forward))
			s->fds[FD_FORWARD].fd =
				vb_forward_fd(atomic_load(&e->forward));
		sleeps = count_sleeps(s);
		ready = sleep_until(s, until, now);
		note_unheard(s, sleeps);
		slept_since(s, now, ready);
		now = vb_now();
		if (e->near && !atomic_load(&e->spinning) &&
		    !vb_wait_attends(e))
			(void)vb_near_poll(e->near, now);
		if (e->near)
			eng_service_attend(
				s, ready > 0 && s->fds[FD_WAKE].revents, now);
		vb_drive_due(e, now, UINT_MAX);
		vb_moderate_due(e, now);
		if (atomic_load(&e->stream_ending))
			vb_stream_sweep(e, now);
		settle_old(e, now);
		if (ready < 0) {
			for (int i = 0; i < FD_COUNT; i++)
				s->fds[i].revents = 0;
		}
		eng_service_serve(s, now);
	}
}

/*
 * Linux 6.12 and later let a thread with a shorter slice preempt one with a
 * longer slice as soon as it wakes. Without that, a core whose other thread
 * spins gives us the processor milliseconds later. No privilege is needed;
 * older kernels ignore the value.
 */
static void ask_for_short_slices(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = 48, .runtime = SLICE };

	attr.nice = getpriority(PRIO_PROCESS, 0);
	/* The program's real-time or batch policy stays what it is. */
	if (sched_getscheduler(0) == SCHED_OTHER &&
	    syscall(SYS_sched_setattr, 0, &attr, 0) != 0)
		vb_log(LOG_DEBUG, "engine: slice unchanged: %s",
		       strerror(errno));
}

static void *service_main(void *arg)
{
	struct vb_engine *e = arg;
	struct service s = { .e = e,
			     .rest_after = REST_AFTER,
			     .trust = TRUST_LOST,
			     .rejoin_at = VB_NEVER,
			     .refresh_at = VB_NEVER };

	atomic_store(&e->thread, pthread_self()); /* as who started it will */
	prctl(PR_SET_NAME, "verbena");
	prctl(PR_SET_TIMERSLACK, 1ul);
	ask_for_short_slices();
	if (vb_netif_watch_open(&s.watch) != 0) {
		s.watch = NULL;
		s.refresh_at = vb_now() + REFRESH_EVERY;
	}
	s.fds[FD_WAKE] = (struct pollfd){ e->wake_fd, POLLIN, 0 };
	s.fds[FD_LINK] =
		(struct pollfd){ e->link->ops->fd(e->link), POLLIN, 0 };
	s.fds[FD_BROKER] = (struct pollfd){ e->lease.broker_fd, POLLIN, 0 };
	s.fds[FD_WATCH] =
		(struct pollfd){ s.watch ? vb_netif_watch_fd(s.watch) : -1,
				 POLLIN, 0 };
	s.fds[FD_NEAR] = (struct pollfd){ e->near ? vb_near_fd(e->near) : -1,
					  POLLIN, 0 };
	s.fds[FD_RAW] = (struct pollfd){ atomic_load(&e->raw_fd), POLLIN, 0 };
	s.fds[FD_STREAM] =
		(struct pollfd){ atomic_load(&e->stream_fd), POLLIN, 0 };
	s.fds[FD_SOON] = (struct pollfd){ e->soon_fd, POLLIN, 0 };
	s.fds[FD_FORWARD] = (struct pollfd){ -1, POLLIN, 0 };
	if (e->near)
		vb_near_begin(e->near);
	loop(&s);
	if (e->near)
		vb_near_end(e->near);
	if (s.watch)
		vb_netif_watch_close(s.watch);
	return NULL;
}

int vb_service_start(struct vb_engine *e)
{
	sigset_t all, old;
	pthread_t thread;
	int rc;

	/* The program's signals are for the program's threads. Faults stay
	 * deliverable: base/guard.h turns them into errors. */
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, service_main, e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	e->serving = rc == 0;
	if (e->serving)
		atomic_store(&e->thread, thread);
	return -rc;
}

void vb_service_stop(struct vb_engine *e)
{
	const uint64_t one = 1;

	if (!e->serving)
		return;
	atomic_store(&e->stop, true);
	if (write(e->wake_fd, &one, sizeof(one)) < 0)
		vb_log(LOG_ERROR, "engine: cannot wake its thread");
	vb_may_wait();
	pthread_join(atomic_load(&e->thread), NULL);
	atomic_store(&e->thread, (pthread_t)0); /* the next one may have it */
	e->serving = false;
}

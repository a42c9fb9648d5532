/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine thread: it sleeps in the kernel and serves what no program polls:
 * one-sided operations on a passive target, timers, completion channels,
 * address changes, a broker that went away.
 *
 * How long it sleeps follows from these rules; engine/service_rest.c has those
 * for packets, engine/service_attend.c those for standing by.
 *
 * 1. Timers. While a program polls now and then (within the last millisecond),
 *    the program's polls step queue pairs whose timers are due, and the thread
 *    sleeps a millisecond at a time to see whether the polls go on: a wake-up
 *    for each timer would take the processor from the program every 2 ms. A
 *    timer that is already due is left only to a program that polled in vain
 *    within 200 us.
 *
 * 2. Delayed ACKs. While a program polls now and then, ACKs may wait for its
 *    replies, and the thread sends those that waited too long: after 20 us
 *    when it wakes anyway, and all of them when the polling stops.
 *
 * 3. Lanes of peers of this host. A program that polls all the time serves
 *    them, and peers need not ring. The thread checks whether it still polls
 *    after 50 us, then after twice as long each time, up to 1 ms. Once the
 *    program stops, the thread asks peers to ring and sleeps; it does not
 *    sleep when something has arrived meanwhile.
 *
 * 4. Interfaces. Where the kernel tells of changes, the thread waits 50 ms
 *    after the first one, since others follow, and then lists the interfaces
 *    once; where it does not tell, the thread lists them every 2 s.
 */
#include "core/lock_order.h"
#include "engine/service_priv.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

#define REFRESH_EVERY (2 * VB_SEC)    /* where the kernel tells of no changes */
#define REFRESH_AFTER (50 * VB_MSEC)  /* after a change, since others follow */
#define SWEEP_EVERY   (1 * VB_SEC)    /* streams that close have deadlines */
#define SLICE	      (100 * VB_USEC) /* the shortest that Linux accepts */

/* The session with the broker ended, or rejoining can go a step further. */
static void on_broker(struct vb_service *s)
{
	struct vb_lease *l = &s->e->lease;

	if (vb_lease_rejoin(l) == 0)
		vb_log(LOG_DEBUG, "engine: rejoined a broker");
	s->fds[FD_BROKER].fd = l->broker_fd;
	s->rejoin_at = l->retry_at;
}

/* An interface changed. Others follow most often, so the interfaces are listed
 * once, in a while. */
static void on_watch(struct vb_service *s, vb_time now)
{
	s->fds[FD_WATCH].fd = -1;
	s->refresh_at = now + REFRESH_AFTER;
}

static void refresh_ports(struct vb_service *s, vb_time now)
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

/* A program has polled within the last millisecond; the thread comes back
 * within the next one to see whether it still does. */
static bool is_attentive(struct vb_engine *e, vb_time now)
{
	return vb_service_last_poll(e) + vb_engine_span(e, REST_MAX) > now;
}

/* Until when to sleep, by rules 1 and 4. Also tells arm_timer()
 * (engine/drive.c) when the thread wakes by itself, and whether polls see to
 * timers meanwhile. */
static vb_time plan_sleep(struct vb_service *s, bool attentive, vb_time now)
{
	struct vb_engine *e = s->e;
	vb_time until, due;

	vb_mutex_lock(&e->timer_lock);
	until = VB_MIN(s->rejoin_at, vb_timers_next(&e->cq_timers));
	e->polls_look = attentive;
	due = vb_timers_next(&e->timers);
	/* Future timers are left to polls; one that is due already is not,
	 * unless a program has just polled in vain. */
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
 * Rule 3 above: who serves the lanes of peers of this host? Returns until when
 * to sleep, at most @until.
 */
static vb_time plan_near(struct vb_service *s, vb_time until, vb_time now)
{
	struct vb_engine *e = s->e;

	if (atomic_load(&e->spinning) &&
	    vb_service_last_poll(e) + vb_engine_span(e, REST_MIN) > now) {
		/* A thread that waited for an event may have asked peers to
		 * ring; the polling program needs no ring. */
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

/* Send an ACK that was delayed for a reply of the program and has waited long
 * enough. */
static void settle_old(struct vb_engine *e, vb_time now)
{
	if (!vb_mutex_trylock(&e->rx))
		return;
	if (now > e->delayed_ack_at + vb_engine_span(e, NAP))
		vb_drive_delayed_acks(e, now);
	vb_mutex_unlock(&e->rx);
}

/* Send the delayed ACK and let no other be delayed. False: a program drains the
 * link, and may leave an ACK delayed. */
static bool settle_all(struct vb_engine *e, vb_time now)
{
	if (!vb_mutex_trylock(&e->rx))
		return false;
	atomic_store_explicit(&e->attentive, false, memory_order_relaxed);
	vb_drive_delayed_acks(e, now);
	vb_mutex_unlock(&e->rx);
	return true;
}

/* Rule 2 above: may ACKs be delayed? Returns until when to sleep, at most
 * @until. */
static vb_time plan_debts(struct vb_service *s, bool attentive, vb_time until,
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

static int sleep_until(struct vb_service *s, vb_time until, vb_time now)
{
	vb_time ns = until > now ? until - now : 0;
	struct timespec ts = { (time_t)(ns / VB_SEC), (long)(ns % VB_SEC) };

	return ppoll(s->fds, FD_COUNT, until == VB_NEVER ? NULL : &ts, NULL);
}

static void eng_service_serve(struct vb_service *s, vb_time now)
{
	struct pollfd *fds = s->fds;
	uint64_t drop;

	if (fds[FD_WAKE].revents &&
	    read(fds[FD_WAKE].fd, &drop, sizeof(drop)) < 0 && errno != EAGAIN)
		vb_log(LOG_DEBUG, "engine: cannot read the wake-up eventfd");
	if (fds[FD_SOON].revents)
		vb_wait_over(s->e);
	if (fds[FD_WAKE].revents && vb_rest_is_called_back(s))
		vb_rest_end(s);
	/* The first raw packet queue pair, or the first stream, woke the thread
	 * to watch it. */
	if (fds[FD_WAKE].revents && !s->rest) {
		fds[FD_RAW].fd = atomic_load(&s->e->raw_fd);
		fds[FD_STREAM].fd = atomic_load(&s->e->stream_fd);
	}
	if (fds[FD_LINK].revents || fds[FD_RAW].revents ||
	    fds[FD_STREAM].revents)
		vb_rest_on_packets(s, now);
	else if (s->rest && now >= s->rest_until)
		vb_rest_on_timeout(s, now);
	if (fds[FD_WATCH].revents)
		on_watch(s, now);
	else if (now >= s->refresh_at)
		refresh_ports(s, now);
	/* A queue pair of this process wants to be introduced to its peer, or a
	 * peer answers. */
	if (s->e->near && (fds[FD_WAKE].revents || fds[FD_NEAR].revents))
		vb_near_meet(s->e->near, now);
	if (fds[FD_FORWARD].revents)
		vb_forward_serve(atomic_load(&s->e->forward));
	if (fds[FD_BROKER].revents || now >= s->rejoin_at)
		on_broker(s);
}

static void loop(struct vb_service *s)
{
	struct vb_engine *e = s->e;

	while (!atomic_load(&e->stop)) {
		vb_time now = vb_now(), until;
		bool attentive = is_attentive(
			e, now); /* read once: programs change it */
		long sleeps;
		int ready;

		vb_rest_if_unheard(s, now);
		until = plan_sleep(s, attentive, now);
		until = plan_debts(s, attentive, until, now);
		if (e->near)
			until = plan_near(s, until, now);
		if (atomic_load(&e->stream_ending))
			until = VB_MIN(until, now + SWEEP_EVERY);
		if (s->fds[FD_FORWARD].fd < 0 && atomic_load(&e->forward))
			s->fds[FD_FORWARD].fd =
				vb_forward_fd(atomic_load(&e->forward));
		sleeps = vb_rest_count_sleeps(s);
		ready = sleep_until(s, until, now);
		vb_rest_note_sleeps(s, sleeps);
		vb_rest_note_packets(s, now, ready);
		now = vb_now();
		if (e->near && !atomic_load(&e->spinning) &&
		    !vb_wait_attends(e))
			(void)vb_near_poll(e->near, now);
		if (e->near)
			vb_service_attend(
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
 * Linux 6.12 and later let a thread with a shorter slice preempt a thread with
 * a longer slice as soon as it wakes. Without that, a thread that spins on this
 * processor keeps it for milliseconds. No privilege is needed; older kernels
 * ignore the value.
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
	/* A real-time or batch policy of the program stays as it is. */
	if (sched_getscheduler(0) == SCHED_OTHER &&
	    syscall(SYS_sched_setattr, 0, &attr, 0) != 0)
		vb_log(LOG_DEBUG,
		       "engine: cannot shorten the thread's time slice: %s",
		       strerror(errno));
}

static void *service_main(void *arg)
{
	struct vb_engine *e = arg;
	struct vb_service s = { .e = e,
				.rest_after = REST_AFTER,
				.trust = TRUST_LOST,
				.rejoin_at = VB_NEVER,
				.refresh_at = VB_NEVER };

	atomic_store(&e->thread,
		     pthread_self()); /* the creator stores the same value */
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

	/* Signals for the program must be handled by the program's threads.
	 * Faults stay deliverable: base/guard.h turns them into errors. */
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
		vb_log(LOG_ERROR, "engine: cannot wake the engine thread");
	vb_may_wait();
	pthread_join(atomic_load(&e->thread), NULL);
	atomic_store(&e->thread,
		     (pthread_t)0); /* another thread may get this id */
	e->serving = false;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine thread: it sleeps in the kernel and serves the work that no
 * program polls for: one-sided operations on a passive target, timers,
 * completion channels, address changes, a broker that ended.
 *
 * engine/policy_thread.c decides what the thread does and how long it sleeps,
 * and this file does it. Two rules are in this file:
 *
 * Interfaces. Where the kernel reports changes, the thread waits 50 ms after
 * the first one, since others follow, and then lists the interfaces once; where
 * the kernel does not, the thread lists them every 2 s.
 *
 * Fairness. The thread serves at most 16 batches before timers have their turn,
 * and fewer when a program's poll waits for the receive lock.
 */
#include "core/lock_order.h"
#include "engine/engine_priv.h"
#include "engine/wait_priv.h"

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
#include "base/prompt.h"
#include "link/netif.h"

/* Pause between lists where the kernel does not report changes. */
#define REFRESH_EVERY (2 * VB_SEC)
/* Pause after a change, since other changes follow. */
#define REFRESH_AFTER (50 * VB_MSEC)
/* Pause between checks of the deadlines of closing streams. */
#define SWEEP_EVERY (1 * VB_SEC)
/* How often to ask whether a peer whose session has ended copies no more. */
#define SEE_OFF_EVERY (10 * VB_MSEC)

/* Descriptors on which the thread sleeps: indices of @fds in struct
 * vb_service. */
enum {
	FD_WAKE,    /* an eventfd: vb_engine_wake() */
	FD_LINK,    /* the socket of port 4791 */
	FD_BROKER,  /* the session with the broker */
	FD_WATCH,   /* changes of interfaces and addresses */
	FD_NEAR,    /* introductions and rings of peers of this host (near/) */
	FD_RAW,	    /* epoll descriptor of the raw packet queue pairs */
	FD_STREAM,  /* epoll descriptor of iWARP's TCP sockets */
	FD_ROCE1,   /* the packet socket of RoCEv1 */
	FD_FABRIC,  /* epoll descriptor of the bells of InfiniBand adapters */
	FD_CONTROL, /* epoll descriptor of their connections to fabrics */
	FD_SOON,    /* the timer of vb_wait_over() */
	FD_BACK,    /* the timer of vb_wait_is_late() */
	FD_FORWARD, /* XRC requests of other processes */
	FD_COUNT
};

struct vb_service { /* state that only the engine's thread uses */
	struct vb_engine *e;
	/* reports changes of interfaces; NULL: the host denies netlink */
	struct vb_netif_watch *watch;
	struct pollfd fds[FD_COUNT];
	struct vb_thread_policy policy;
	enum vb_thread shown; /* the value that @thread_does was last set to */
	/* the time of the next step towards a broker, or VB_NEVER */
	vb_time rejoin_at;
	vb_time refresh_at; /* the time to list the interfaces, or VB_NEVER */
	/* The thread has announced its sleep to fabrics; @ready: their frames
	 * were there already. */
	bool announced, ready;
};

/* The session with the broker ended, or rejoining can go a step further. */
static void on_broker(struct vb_service *s)
{
	struct vb_lease *l = &s->e->lease;

	if (vb_lease_rejoin(l) == 0)
		vb_log(LOG_DEBUG, "engine: rejoined a broker");
	s->fds[FD_BROKER].fd = l->broker_fd;
	s->rejoin_at = l->retry_at;
}

/* An interface has changed. Other changes most often follow, so the thread
 * lists the interfaces once, 50 ms later. */
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

/*
 * Watch the packet sockets or not, as the policy demands, and show other
 * threads whether this thread rests. A rest that continues is not stored again,
 * because that would overwrite the word of a program that has ended the rest in
 * between.
 */
static void publish(struct vb_service *s)
{
	bool watches = vb_thread_watches(&s->policy);
	struct vb_engine *e = s->e;

	s->fds[FD_LINK].fd = watches && !vb_wait_has_link(e)
				     ? e->link->ops->fd(e->link)
				     : -1;
	s->fds[FD_NEAR].fd =
		e->near && !vb_wait_has_lanes(e) ? vb_near_fd(e->near) : -1;
	s->fds[FD_RAW].fd = watches ? atomic_load(&e->raw_fd) : -1;
	s->fds[FD_STREAM].fd = watches ? atomic_load(&e->stream_fd) : -1;
	s->fds[FD_ROCE1].fd = watches ? atomic_load(&e->roce.fd) : -1;
	s->fds[FD_FABRIC].fd = watches ? atomic_load(&e->fabric_fd) : -1;
	s->fds[FD_CONTROL].fd =
		atomic_load(&e->fabric_fd) < 0 ? -1 : e->control_fd;
	s->announced = s->fds[FD_FABRIC].fd >= 0;
	s->ready = s->announced && !vb_fabric_sleep(e);
	if (s->shown == s->policy.does)
		return;
	s->shown = s->policy.does;
	atomic_store(&e->thread_does, s->shown);
}

/* Has a program armed a queue before it could see that the thread rests? */
static bool is_armed_meanwhile(const struct vb_service *s)
{
	return s->shown == THREAD_RESTS &&
	       vb_program_does(vb_engine_program(s->e)) == PROGRAM_AWAY;
}

/* Has a program that is about to sleep ended the thread's rest? */
static bool is_called_back(const struct vb_service *s)
{
	return s->shown == THREAD_RESTS &&
	       atomic_load(&s->e->thread_does) != THREAD_RESTS;
}

/* Serve what has arrived beside the frames of the engine's own link. */
static enum vb_drained eng_service_drain_others(struct vb_engine *e)
	VB_REQUIRES(e->rx)
{
	enum vb_drained got = DRAINED_NOTHING;

	if (e->streams)
		got = vb_stream_drain(e, vb_now());
	if (e->raws && vb_raw_drain(e, vb_now()))
		got = DRAINED_SOME;
	if (e->fabrics && vb_fabric_drain(e))
		got = DRAINED_SOME;
	if (e->roce.v1 && vb_engine_roce1_drain(e))
		got = DRAINED_SOME;
	return got;
}

/* Serve the frames that have arrived, at most VB_DRAIN_BATCHES batches. Frames
 * that are not served keep the socket readable, so that the next ppoll()
 * returns at once. */
static enum vb_drained eng_service_drain_link(struct vb_engine *e)
{
	enum vb_drained got = DRAINED_NOTHING, other;

	for (unsigned i = 0; i < VB_DRAIN_BATCHES; i++) {
		vb_time now;

		vb_stream_pass_lanes(e, vb_now());
		if (!vb_mutex_trylock(&e->rx))
			return DRAINED_BUSY;
		other = eng_service_drain_others(e);
		if (e->link->ops->recv(e->link, &e->rxq) < 0)
			e->rxq.count = 0;
		if (e->rxq.count == 0 && other != DRAINED_SOME) {
			vb_mutex_unlock(&e->rx);
			return got == DRAINED_SOME ? got : other;
		}
		got = DRAINED_SOME;
		now = vb_now();
		vb_drive_unreplied(e, now);
		vb_dispatch(e, now);
		/* Between two batches a program's poll can take over. */
		vb_mutex_unlock(&e->rx);
		if (vb_program_does(vb_engine_program(e)) == PROGRAM_AWAITS)
			break;
	}
	return got;
}

static void eng_drain(struct vb_service *s)
{
	enum vb_drained got = eng_service_drain_link(s->e);

	vb_thread_drained(&s->policy, got, vb_engine_program(s->e), vb_now());
}

/* Look for the next packets before sleeping. */
static void eng_service_linger(struct vb_service *s)
{
	vb_time then = vb_now(), now;

	while (s->policy.does == THREAD_LINGERS) {
		sched_yield();
		now = vb_now();
		if (vb_thread_yielded(&s->policy, now - then, now))
			eng_drain(s);
		then = vb_now();
	}
}

static void on_packets(struct vb_service *s, vb_time now)
{
	if (vb_thread_on_packets(&s->policy, vb_engine_program(s->e), now))
		eng_drain(s);
	eng_service_linger(s);
}

static void on_left_packets(struct vb_service *s, vb_time now)
{
	if (vb_thread_on_time(&s->policy, vb_engine_program(s->e), now))
		eng_drain(s);
}

/* Returns the time until which to sleep, and records it for arm_timer()
 * (engine/drive.c). */
static vb_time plan_sleep(struct vb_service *s, bool attentive, vb_time until,
			  vb_time now)
{
	struct vb_engine *e = s->e;

	vb_mutex_lock(&e->timer_lock);
	until = VB_MIN(until,
		       vb_thread_sleeps(&s->policy, vb_engine_program(e),
					attentive, vb_timers_next(&e->timers),
					now));
	until = VB_MIN(until, vb_timers_next(&e->cq_timers));
	until = VB_MIN(until, VB_MIN(s->rejoin_at, s->refresh_at));
	e->sleep_until = until;
	vb_mutex_unlock(&e->timer_lock);
	return until;
}

/* Decide which thread serves the lanes of peers of this host. Returns the time
 * until which to sleep, at most @until. */
static vb_time plan_near(struct vb_service *s, vb_time until, vb_time now)
{
	struct vb_engine *e = s->e;
	enum vb_lanes lanes = vb_thread_lanes(&s->policy, vb_engine_program(e),
					      vb_wait_attends(e), &until, now);

	if (lanes == LANES_PROGRAM && !atomic_load(&e->polls_wait))
		/* A thread that waited for an event may have asked peers to
		 * ring; the polling program needs no ring. */
		vb_near_awake(e->near);
	if (lanes == LANES_PROGRAM || lanes == LANES_THREAD)
		return until;
	(void)vb_engine_spins_no_more(e);
	if (lanes == LANES_WAITER)
		return until;
	return vb_near_sleep(e->near) ? until : now;
}

/* Send an ACK that was delayed for a reply of the program and has waited long
 * enough. */
static void send_old_acks(struct vb_service *s, vb_time now)
{
	struct vb_engine *e = s->e;

	if (!vb_mutex_trylock(&e->rx))
		return;
	if (vb_thread_sends_ack(&s->policy, e->delayed_ack_at, now))
		vb_drive_delayed_acks(e, now);
	vb_mutex_unlock(&e->rx);
}

/* Send the delayed ACK and let no other ACK be delayed. False: a program drains
 * the link, and may leave an ACK delayed. */
static bool send_all_acks(struct vb_engine *e, vb_time now)
{
	if (!vb_mutex_trylock(&e->rx))
		return false;
	atomic_store_explicit(&e->attentive, false, memory_order_relaxed);
	vb_drive_delayed_acks(e, now);
	vb_mutex_unlock(&e->rx);
	return true;
}

/* Publish whether ACKs may be delayed and timers be left to polls; if not, send
 * the delayed ACK. Call this before plan_sleep(), which sees the timers that
 * were left meanwhile. Returns the latest time until which to sleep. */
static vb_time plan_debts(struct vb_service *s, bool attentive, vb_time now)
{
	struct vb_engine *e = s->e;
	bool was = atomic_load_explicit(&e->attentive, memory_order_relaxed);

	if (attentive)
		atomic_store_explicit(&e->attentive, true,
				      memory_order_relaxed);
	else if (was && !send_all_acks(e, now))
		return vb_thread_soon(&s->policy, now);
	return VB_NEVER;
}

/* Does another thread serve the lanes of peers of this host? */
static bool others_serve(struct vb_engine *e)
{
	return vb_engine_spins(e) || vb_wait_attends(e);
}

/* Look at the lanes once. True: a lane had something. */
static bool look_at_lanes(struct vb_engine *e, vb_time now)
{
	bool found;

	vb_channel_raises(RAISED_ON_LANE);
	found = vb_near_poll(e->near, now);
	vb_channel_raises(RAISED_OTHERWISE);
	return found;
}

/* Has this program, or a peer of this host, woken the thread? */
static bool is_rung(const struct vb_service *s)
{
	return s->fds[FD_WAKE].revents || s->fds[FD_NEAR].revents;
}

/* Shall the thread stand by? Only if an event woke it (@woken) and a peer has
 * called for it. The look clears that call, even if the thread cannot stand by
 * now. If it shall, this function tells peers so. */
static bool eng_stand_by(struct vb_service *s, bool woken, vb_time now)
{
	struct vb_engine *e = s->e;

	if (s->policy.does == THREAD_STANDS_BY)
		return true;
	if (!woken || !vb_near_is_wanted(e->near) ||
	    !vb_thread_stands_by(&s->policy, others_serve(e), now))
		return false;
	vb_near_stand_by(e->near, true);
	return true;
}

/* Look at the lanes of peers for one turn. */
static void eng_service_turn(struct vb_service *s)
{
	struct vb_engine *e = s->e;
	vb_time now = vb_now();
	bool found = false, served;

	vb_thread_turn_begins(&s->policy, now);
	do {
		for (unsigned i = 0; i < VB_STAND_LOOKS; i++)
			found |= look_at_lanes(e, now);
		now = vb_now();
	} while (vb_thread_looks_on(&s->policy, others_serve(e), now));
	sched_yield();
	served = others_serve(e);
	if (!vb_thread_turn_ends(&s->policy, found, served, vb_now() - now,
				 now))
		vb_near_stand_by(e->near, false);
}

static int sleep_until(struct vb_service *s, vb_time until, vb_time now)
{
	vb_time ns = until > now ? until - now : 0;
	struct timespec ts = { (time_t)(ns / VB_SEC), (long)(ns % VB_SEC) };

	return ppoll(s->fds, FD_COUNT, until == VB_NEVER ? NULL : &ts, NULL);
}

/* A packet, or a peer of this host, has woken this thread: perhaps a thread of
 * the program that waits for it, or sleeps in poll(2), takes what has come. */
static void leave_to_waiter(struct vb_service *s)
{
	struct pollfd *link = &s->fds[FD_LINK], *near = &s->fds[FD_NEAR];

	if (s->fds[FD_BACK].revents)
		vb_wait_is_late(s->e);
	if (!link->revents && !near->revents)
		return;
	if (!vb_wait_has_link(s->e) && !vb_lend_leaves(s->e, vb_now()))
		return;
	link->revents = 0;
	if (vb_wait_has_lanes(s->e))
		near->revents = 0;
}

static bool has_packets(const struct vb_service *s)
{
	return s->fds[FD_LINK].revents || s->fds[FD_STREAM].revents ||
	       s->fds[FD_ROCE1].revents || s->fds[FD_FABRIC].revents;
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
	if (is_called_back(s))
		vb_thread_called_back(&s->policy);
	if (fds[FD_CONTROL].revents)
		vb_fabric_take_updates(s->e);
	if (has_packets(s) || fds[FD_RAW].revents)
		on_packets(s, now);
	else if (!vb_thread_watches(&s->policy) && now >= s->policy.left_until)
		on_left_packets(s, now);
	if (fds[FD_WATCH].revents)
		on_watch(s, now);
	else if (now >= s->refresh_at)
		refresh_ports(s, now);
	/* A queue pair of this process needs an introduction to its peer, or a
	 * peer answers. */
	if (s->e->near && (is_rung(s) || vb_near_sees_off(s->e->near)))
		vb_near_meet(s->e->near, now);
	if (fds[FD_FORWARD].revents)
		vb_forward_serve(atomic_load(&s->e->forward));
	if (fds[FD_BROKER].revents || now >= s->rejoin_at)
		on_broker(s);
}

/* Returns how often the kernel has put this thread to sleep so far. 0: the
 * thread does not count this, because no program spins or no packet wakes the
 * thread. */
static long count_sleeps(const struct vb_service *s)
{
	struct rusage use;

	if (!vb_thread_watches(&s->policy) || !vb_engine_spins(s->e) ||
	    getrusage(RUSAGE_THREAD, &use) < 0)
		return 0;
	return use.ru_nvcsw;
}

/* Sleep until @until, and tell the policy how often the kernel put the thread
 * to sleep meanwhile, and whether packets woke it. */
static int eng_service_sleep(struct vb_service *s, vb_time until, vb_time now)
{
	long before = count_sleeps(s);
	int ready = sleep_until(s, s->ready ? now : until, now);

	if (s->ready && ready >= 0) {
		s->fds[FD_FABRIC].revents = POLLIN;
		ready = VB_MAX(ready, 1);
	}
	if (s->announced)
		vb_fabric_wake(s->e, s->fds[FD_FABRIC].revents);
	if (before)
		vb_thread_slept(&s->policy, count_sleeps(s) - before);
	if (ready > 0 && has_packets(s) && !vb_wait_has_link(s->e))
		vb_thread_woke(&s->policy, now, vb_now());
	return ready;
}

static void loop(struct vb_service *s)
{
	struct vb_engine *e = s->e;

	while (!atomic_load(&e->stop)) {
		vb_time now = vb_now(), until;
		uint64_t program =
			/* programs change this word at any time */
			vb_engine_program(e);
		bool attentive;
		int ready;

		vb_thread_sees_waits(
			&s->policy,
			atomic_load_explicit(&e->waits, memory_order_relaxed),
			now);
		attentive = vb_thread_is_attentive(&s->policy, program, now);
		s->policy.dear = atomic_load(&e->fabric_fd) >= 0;
		vb_thread_will_sleep(&s->policy, program, now);
		publish(s);
		if (is_armed_meanwhile(s)) {
			vb_thread_called_back(&s->policy);
			publish(s);
		}
		until = plan_debts(s, attentive, now);
		until = plan_sleep(s, attentive, until, now);
		if (e->near)
			until = plan_near(s, until, now);
		if (atomic_load(&e->stream_ending))
			until = VB_MIN(until, now + SWEEP_EVERY);
		if (e->near && vb_near_sees_off(e->near))
			until = VB_MIN(until, now + SEE_OFF_EVERY);
		if (s->fds[FD_FORWARD].fd < 0 && atomic_load(&e->forward))
			s->fds[FD_FORWARD].fd =
				vb_forward_fd(atomic_load(&e->forward));
		ready = eng_service_sleep(s, until, now);
		if (ready > 0)
			leave_to_waiter(s);
		now = vb_now();
		/* Threads of this program that put something on its lane to
		 * itself wake this thread and not the program. */
		if (e->near && (!others_serve(e) || (s->fds[FD_WAKE].revents &&
						     vb_wait_has_lanes(e))))
			(void)look_at_lanes(e, now);
		if (e->near && eng_stand_by(s, ready > 0 && is_rung(s), now))
			eng_service_turn(s);
		vb_drive_due(e, now, UINT_MAX);
		vb_moderate_due(e, now);
		if (atomic_load(&e->stream_ending))
			vb_stream_sweep(e, now);
		send_old_acks(s, now);
		if (ready < 0) {
			for (int i = 0; i < FD_COUNT; i++)
				s->fds[i].revents = 0;
		}
		eng_service_serve(s, now);
	}
}

static void *service_main(void *arg)
{
	struct vb_engine *e = arg;
	struct vb_service s = { .e = e,
				.rejoin_at = VB_NEVER,
				.refresh_at = VB_NEVER };

	atomic_store(&e->thread,
		     /* the thread that creates this one stores an equal
		      * value */
		     pthread_self());
	vb_thread_init(&s.policy, vb_engine_slowdown(e));
	atomic_store(&e->thread_does, s.shown = s.policy.does);
	prctl(PR_SET_NAME, "verbena");
	vb_prompt_thread();
	if (vb_netif_watch_open(&s.watch) != 0) {
		s.watch = NULL;
		s.refresh_at = vb_now() + REFRESH_EVERY;
	}
	s.fds[FD_WAKE] = (struct pollfd){ e->wake_fd, POLLIN, 0 };
	s.fds[FD_LINK] = (struct pollfd){ -1, POLLIN, 0 };
	s.fds[FD_BROKER] = (struct pollfd){ e->lease.broker_fd, POLLIN, 0 };
	s.fds[FD_WATCH] =
		(struct pollfd){ s.watch ? vb_netif_watch_fd(s.watch) : -1,
				 POLLIN, 0 };
	s.fds[FD_NEAR] = (struct pollfd){ e->near ? vb_near_fd(e->near) : -1,
					  POLLIN, 0 };
	s.fds[FD_RAW] = (struct pollfd){ -1, POLLIN, 0 };
	s.fds[FD_STREAM] = (struct pollfd){ -1, POLLIN, 0 };
	s.fds[FD_ROCE1] = (struct pollfd){ -1, POLLIN, 0 };
	s.fds[FD_FABRIC] = (struct pollfd){ -1, POLLIN, 0 };
	s.fds[FD_CONTROL] = (struct pollfd){ -1, POLLIN, 0 };
	s.fds[FD_SOON] = (struct pollfd){ e->soon.fd, POLLIN, 0 };
	s.fds[FD_BACK] = (struct pollfd){ e->back.fd, POLLIN, 0 };
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

	/* The program's own threads must handle the program's signals. Faults
	 * stay deliverable: base/guard.h turns them into errors. */
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
	static const uint64_t one = 1;

	if (!e->serving)
		return;
	atomic_store(&e->stop, true);
	if (write(e->wake_fd, &one, sizeof(one)) < 0)
		vb_log(LOG_ERROR, "engine: cannot wake the engine thread");
	vb_may_wait();
	pthread_join(atomic_load(&e->thread), NULL);
	atomic_store(&e->thread,
		     /* clear the id, because another thread can get an equal
		      * one */
		     (pthread_t)0);
	e->serving = false;
}

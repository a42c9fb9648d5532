/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The policy at work: the engine thread's real loop, real polls and real
 * timers, on two processors that share one virtual clock. The seed decides when
 * the program spins, computes, polls now and then, arms and sleeps, or waits by
 * the link as engine/wait.c does; and whether others want its processor, so that
 * its polls wait. For every seed, no packet, timer or message of a peer may wait
 * longer than the rules allow, and the thread never sleeps without end while it
 * has left work to a program.
 *
 *	policy_sim_test [SEED [LAST]]		one seed alone, or from one to
 * another
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "core/lock_order.h"
#include "engine/wait_priv.h"

#define SEEDS	60
#define LASTS	(60 * VB_MSEC)

#include "tests/unit/engine/policy_sim_world.h"

#define vb_now		  fake_now
#define getrusage	  fake_usage
#define sched_yield	  fake_yield
#define ppoll		  fake_ppoll
#define write		  fake_write
#define read		  fake_read
#define vb_engine_wake	  fake_wake
#define vb_near_poll	  fake_near_poll
#define vb_near_sleep	  fake_near_sleep
#define vb_near_awake	  fake_near_awake
#define vb_near_is_wanted fake_near_is_wanted
#define vb_near_stand_by  fake_near_stand_by
#define vb_near_meet	  fake_near_meet
#define vb_near_sees_off  fake_near_sees_off
#define vb_dispatch	  fake_dispatch
#define vb_wait_is_late	  fake_is_late
#define vb_wait_leaves_link fake_leaves_link
#define vb_near_hear_rings  fake_hear_rings
#define vb_near_fd	    fake_near_fd
#define vb_mutex_unlock	  fake_unlock
#include "engine/drive.c"
#include "engine/poll_wait.c"
#include "engine/poll.c"
#undef SOON
#include "engine/service.c"

static bool must_wake(struct pollfd *fds)
{
	bool packets =
		fds[FD_LINK].fd >= 0 && sim.packets.taken < sim.packets.come;

	fds[FD_LINK].revents = packets ? POLLIN : 0;
	fds[FD_NEAR].revents =
		fds[FD_NEAR].fd >= 0 && sim.rung ? POLLIN : 0;
	fds[FD_WAKE].revents = sim.woken ? POLLIN : 0;
	fds[FD_BACK].revents = sim.back_at <= sim.now ? POLLIN : 0;
	return packets || fds[FD_NEAR].revents || sim.woken ||
	       fds[FD_BACK].revents;
}

/* Returns when a sleep may end: something arrives, the program acts, or
 * @until. */
static vb_time next_event(vb_time until)
{
	vb_time at = VB_MIN(VB_MIN(until, sim.acts_at), sim.back_at);

	if (sim.packets.come < sim.packets.count)
		at = VB_MIN(at, sim.packets.at[sim.packets.come]);
	if (sim.messages.come < sim.messages.count)
		at = VB_MIN(at, sim.messages.at[sim.messages.come]);
	return at;
}

/* A fake ppoll(). The thread sleeps; its processor needs a moment to run it
 * again. If the program has served everything by then, the thread sleeps on
 * without noticing. */
static int fake_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t,
		      const sigset_t *mask)
{
	vb_time until = VB_NEVER;
	bool ready;

	if (sim.in_program) { /* the next action is later: ends_poll_wait() */
		sim.poll_waits = true;
		return 0;
	}
	if (t)
		until = sim.now + (vb_time)t->tv_sec * VB_SEC +
			(vb_time)t->tv_nsec;
	else if ((fds[FD_LINK].fd < 0 && !vb_wait_has_link(&sim.e)) ||
		 vb_engine_spins(&sim.e) || atomic_load(&sim.e.attentive))
		fail_msg("the thread sleeps for ever, with work left to polls");
	sim.switches += until > sim.now;
	while (!(ready = must_wake(fds)) && sim.now < until &&
	       sim.now < sim.end) {
		vb_time at = VB_MIN(next_event(until), sim.end);

		program_acts(at);
		if (at > sim.now)
			pass(at - sim.now);
		if (!must_wake(fds))
			continue;
		meanwhile(sim.wake_takes);
		sim.switches += !must_wake(fds);
	}
	if (sim.now >= sim.end)
		atomic_store(&sim.e.stop, true);
	sim.wakes++;
	pass(500);
	return ready;
}

static int sim_recv(struct vb_link *l, struct vb_rxq *q)
{
	/* The program may poll while the thread holds the receive lock. */
	meanwhile(300);
	q->count = take(&sim.packets, 16, "a packet");
	return 0;
}

static int sim_fd(const struct vb_link *l)
{
	return SOME_FD;
}

static bool sim_send(struct vb_qp *qp, vb_time now, struct vb_txq *q)
{
	unsigned i = (unsigned)(qp - sim.qp);

	if (sim.due[i] <= sim.now)
		must_be_in_time("a timer", sim.due[i]);
	sim.due[i] = VB_NEVER;
	return false;
}

static vb_time sim_deadline(const struct vb_qp *qp)
{
	return VB_NEVER;
}

static const struct vb_link_ops link_ops = { .recv = sim_recv, .fd = sim_fd };
static struct vb_link sim_link = { &link_ops };
static const struct vb_transport_ops transport = { .send = sim_send,
						   .deadline = sim_deadline };

static void sets_timer(void)
{
	unsigned i = (unsigned)sim_rand(QPS);
	vb_time at = sim.now + sim_rand(3 * VB_MSEC);

	if (!vb_mutex_trylock(&sim.qp[i].drive))
		return;
	if (at < sim.eq[i].timer_at)
		sim.due[i] = at;
	arm_timer(&sim.e, &sim.qp[i], at, sim.now);
	vb_mutex_unlock(&sim.qp[i].drive);
}

static void polls(void)
{
	enum vb_poll_next next = drain_for_program(&sim.e);

	sim.poll_waits = false;
	if (next == POLL_WAITS && vb_poll_wait(&sim.e))
		sim.polls_waited++;
	else if (next != POLL_RETURNS)
		let_others_run(&sim.e);
	sim.polled_at = sim.now;
}

static vb_time wakes_program(const struct arrivals *a)
{
	return a->come < a->count ? VB_MAX(a->at[a->come], sim.now) +
					    sim.wake_takes
				  : VB_NEVER;
}

/* Returns the time at which the sleep of a poll ends, and its thread polls. */
static vb_time ends_poll_wait(void)
{
	vb_time at = sim.now + VB_POLL_WAIT;

	if (sim.packets.taken < sim.packets.come || sim.rung)
		return sim.now + 500;
	return VB_MIN(at, VB_MIN(wakes_program(&sim.packets),
				 wakes_program(&sim.messages)));
}

static void posts(void)
{
	sim.in_program = true;
	sets_timer();
	sim.in_program = false;
}

/* The program waits by the link from now on. */
static void begins_wait(void)
{
	atomic_store(&sim.e.watched, WATCHES_LINK);
	if (!fake_near_sleep(NULL))
		fake_wake(&sim.e);
}

/* The program has its event, and is away for a while. */
static void ends_wait(void)
{
	vb_time lasts = sim_rand(2) ? VB_BACK_SOON : VB_OWED_LASTS;

	if (atomic_load(&sim.e.watched) != WATCHES_LINK)
		return;
	sim.back_at = sim.left_until = sim.now + lasts;
	atomic_store(&sim.e.back.is_set, true);
	atomic_store(&sim.e.watched, WATCHES_NOTHING);
}

/* Returns whether the thread holds no lock. The program and the engine thread
 * are one thread of this test, which cannot wait for a lock that it holds
 * itself. */
static bool holds_nothing(void)
{
	for (unsigned i = 0; i < QPS; i++)
		if (!is_free(&sim.qp[i].drive))
			return false;
	return is_free(&sim.e.rx);
}

/* Returns the time of the program's next action. */
static vb_time waits(void)
{
	const struct arrivals *p = &sim.packets;
	unsigned before = p->taken;

	if (atomic_load(&sim.e.watched) != WATCHES_LINK) {
		begins_wait();
		return sim.now + 500;
	}
	if (p->taken == p->come)
		return VB_MIN(sim.mode_until,
			      p->come < p->count
				      ? VB_MAX(p->at[p->come], sim.now) +
						sim.wake_takes
				      : VB_NEVER);
	if (!holds_nothing())
		return sim.now + 500;
	if (!vb_poll_for_waiter(&sim.e))
		return sim.now + 500;
	sim.waits += p->taken - before;
	sim.polled_at = sim.now;
	ends_wait();
	return sim.now + sim_rand(sim_rand(8) ? 60 * VB_USEC : 4 * VB_MSEC);
}

static void changes_mode(void)
{
	static const vb_time longest[MODES] = { 8 * VB_MSEC, 4 * VB_MSEC,
						5 * VB_MSEC, 4 * VB_MSEC,
						8 * VB_MSEC };

	ends_wait();
	sim.mode = sim.only_spins   ? SPINS
		   : sim.only_waits ? WAITS
				    : (enum mode)sim_rand(MODES);
	sim.mode_until = sim.now + 10 * VB_USEC + sim_rand(longest[sim.mode]);
	sim.slept_at = 0;
	if (sim.mode != SLEEPS)
		return;
	armed(&sim.e, NULL);
	polls();
	sim.slept_at = sim.now;
}

/* Let the program do one action. Returns the time of its next one. */
static vb_time acts(void)
{
	if (sim.now >= sim.mode_until)
		changes_mode();
	if (sim_rand(20) == 0)
		sets_timer();
	if (sim.mode == COMPUTES || sim.mode == SLEEPS)
		return sim.mode_until;
	if (sim.mode == WAITS)
		return waits();
	polls();
	if (sim.poll_waits)
		return ends_poll_wait();
	return sim.now + 100 +
	       sim_rand(sim.mode == SPINS ? VB_USEC : 900 * VB_USEC);
}

static void program_acts(vb_time until)
{
	while (sim.acts_at <= until) {
		if (sim.acts_at > sim.now)
			pass(sim.acts_at - sim.now);
		sim.in_program = true;
		sim.acts_at = acts();
		sim.in_program = false;
	}
}

/* Add arrivals in bursts with pauses; every @apart ns in a burst. */
static void arrive(struct arrivals *a, vb_time apart)
{
	vb_time at = sim.now + sim_rand(VB_MSEC);

	while (a->count < MOST && at < sim.end) {
		a->at[a->count++] = at;
		at += 1 + sim_rand(2 * apart);
		if (sim_rand(200) == 0)
			at += sim_rand(3 * VB_MSEC);
	}
}

static void begin(uint64_t seed)
{
	struct vb_engine *e = &sim.e;

	memset(&sim, 0, sizeof(sim));
	sim.seed = seed;
	sim.now = (vb_time)1 << 40;
	sim.end = sim.now + LASTS;
	sim.wake_takes = 2 * VB_USEC + sim_rand(18 * VB_USEC);
	sim.crowded = sim_rand(3) == 0;
	sim.acts_at = sim.now + sim_rand(VB_MSEC);
	sim.back_at = VB_NEVER;
	/* half of the runs have a fabric's adapter, without any frames */
	atomic_store(&e->fabric_fd, sim_rand(2) ? SOME_FD : -1);
	sim.mode = COMPUTES;
	for (unsigned i = 0; i < QPS; i++) {
		sim.due[i] = VB_NEVER;
		sim.qp[i].adapter = &sim.adapter;
		sim.qp[i].port = &sim.adapter.ports[0];
		sim.qp[i].ops = &transport;
		sim.qp[i].local_at = VB_NEVER;
		sim.qp[i].priv[PRIV_ENGINE] = &sim.eq[i];
		sim.eq[i].qp = &sim.qp[i];
		sim.eq[i].timer_at = VB_NEVER;
		atomic_store(&sim.qp[i].qpn, i + 1);
		vb_mutex_init(&sim.qp[i].drive, RANK_DRIVE);
		vb_timer_init(&sim.eq[i].timer);
	}
	atomic_store(&e->slowdown, 1);
	vb_poll_init(&e->poll, 1);
	e->link = &sim_link;
	/* a pointer that engine code passes on and does not dereference */
	e->near = (struct vb_near *)&sim;
	e->raw_fd = e->stream_fd = -1;
	atomic_store(&e->due, VB_NEVER);
	vb_mutex_init(&e->rx, RANK_RX);
	vb_mutex_init(&e->timer_lock, VB_RANK_LEAF);
	vb_mutex_init(&e->moderation, RANK_MODERATION);
	vb_timers_init(&e->timers);
	vb_timers_init(&e->cq_timers);
}

static void end(void)
{
	struct vb_engine *e = &sim.e;

	while (vb_timers_pop(&e->timers, VB_NEVER - 1))
		;
	vb_timers_fini(&e->timers);
	vb_timers_fini(&e->cq_timers);
}

static void nothing_is_left(const struct arrivals *a, const char *what)
{
	if (a->taken < a->come)
		must_be_in_time(what, a->at[a->taken]);
}

static void run(void)
{
	struct vb_service s = { .e = &sim.e,
				.rejoin_at = VB_NEVER,
				.refresh_at = VB_NEVER };

	vb_thread_init(&s.policy, 1);
	for (unsigned i = 0; i < FD_COUNT; i++)
		s.fds[i].fd = -1;
	loop(&s);
	nothing_is_left(&sim.packets, "a packet");
	nothing_is_left(&sim.messages, "a message");
	for (unsigned i = 0; i < QPS; i++)
		if (sim.due[i] != VB_NEVER)
			must_be_in_time("a timer", VB_MIN(sim.due[i], sim.now));
}

static uint64_t first = 1, last = SEEDS;

static void sim__nothing_waits_for_long(void **state)
{
	for (uint64_t seed = first; seed <= last; seed++) {
		print_message("seed %lu\r", (unsigned long)seed);
		begin(seed);
		arrive(&sim.packets, (VB_USEC / 2) << sim_rand(10));
		/* A lingering thread serves 64 messages in 200 us. */
		arrive(&sim.messages, (4 * VB_USEC) << sim_rand(7));
		run();
		end();
	}
}

/* Without packets or messages only a timer can wake the thread. */
static void sim__no_timer_is_forgotten(void **state)
{
	for (uint64_t seed = first; seed <= last; seed++) {
		print_message("seed %lu\r", (unsigned long)seed);
		begin(seed);
		run();
		end();
	}
}

/* A peer streams messages, and asks the thread to watch the lanes. */
static void sim__peers_call(void **state)
{
	for (uint64_t seed = first; seed <= last; seed++) {
		print_message("seed %lu\r", (unsigned long)seed);
		begin(seed);
		sim.wanted = sim.woken = true;
		arrive(&sim.packets, 50 * VB_USEC);
		arrive(&sim.messages, 5 * VB_USEC);
		run();
		end();
	}
}

/* While a program spins, the engine thread wakes only about once a millisecond,
 * however many packets come. */
static void sim__a_program_that_spins_is_left_alone(void **state)
{
	for (uint64_t seed = first; seed <= last; seed++) {
		print_message("seed %lu\r", (unsigned long)seed);
		begin(seed);
		sim.only_spins = true;
		sim.crowded = false;
		sim.acts_at = sim.now;
		arrive(&sim.packets, 3 * VB_USEC);
		run();
		assert_true(sim.packets.taken > 1000);
		assert_in_range(sim.wakes, 1, 150);
		end();
	}
}

/* The engine thread also wakes that seldom while the program's polls wait
 * because others want its processor. */
static void sim__polls_that_wait_are_left_alone(void **state)
{
	unsigned waited = 0;

	for (uint64_t seed = first; seed <= last; seed++) {
		print_message("seed %lu\r", (unsigned long)seed);
		begin(seed);
		sim.only_spins = sim.crowded = true;
		atomic_store(&sim.e.fabric_fd, -1);
		sim.acts_at = sim.now;
		arrive(&sim.packets, 60 * VB_USEC);
		arrive(&sim.messages, 60 * VB_USEC);
		run();
		waited += sim.polls_waited;
		/* a quarter of the packets, measured over 60 seeds */
		assert_in_range(sim.wakes, 1, sim.packets.taken / 2);
		end();
	}
	assert_in_range(waited, (last - first + 1) * 100, UINT_MAX);
}

/* Packets for a program that waits by the link do not wake the engine thread
 * often either. */
static void sim__a_program_that_waits_is_left_alone(void **state)
{
	for (uint64_t seed = first; seed <= last; seed++) {
		print_message("seed %lu\r", (unsigned long)seed);
		begin(seed);
		sim.only_waits = true;
		sim.acts_at = sim.now;
		arrive(&sim.packets, 30 * VB_USEC);
		run();
		assert_true(sim.waits > 100);
		assert_in_range(sim.wakes, 1, sim.packets.taken);
		end();
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sim__nothing_waits_for_long),
		cmocka_unit_test(sim__no_timer_is_forgotten),
		cmocka_unit_test(sim__peers_call),
		cmocka_unit_test(sim__a_program_that_spins_is_left_alone),
		cmocka_unit_test(sim__polls_that_wait_are_left_alone),
		cmocka_unit_test(sim__a_program_that_waits_is_left_alone),
	};

	if (argc > 1)
		first = last = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		last = strtoull(argv[2], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

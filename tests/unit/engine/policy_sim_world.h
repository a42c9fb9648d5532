/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The world of policy_sim_test.c: virtual time, what arrives, and what the
 * engine's files call there in place of the kernel and of near/. Only that test
 * includes this file.
 */
#ifndef TESTS_POLICY_SIM_WORLD_H
#define TESTS_POLICY_SIM_WORLD_H

#define QPS	4
#define SOME_FD 1000
/* the most arrivals of packets, and the most of messages */
#define MOST 40000

/* The longest time until work is served: a rest, a program that polled just
 * before its end, a nap, and the time of waking, looking and yielding. */
#define MUST_BE_SERVED (VB_REST_MAX + VB_POLL_RECENT + VB_NAP + 400 * VB_USEC)
/* A program that has armed its queue is assumed to be asleep after this time.
 * The thread serves it as soon as it has lingered, or looked at lanes for a
 * turn, and been kept from its processor at the end. */
#define IS_ASLEEP   (100 * VB_USEC)
#define SERVED_SOON (VB_LINGER_TURN + 250 * VB_USEC)

/* arrivals of one kind: packets at the socket, or messages on a lane */
struct arrivals {
	vb_time at[MOST];
	unsigned count, come, taken;
};

enum mode { SPINS, POLLS, COMPUTES, SLEEPS, WAITS, MODES };

static struct {
	uint64_t seed;
	vb_time now, end;
	struct arrivals packets, messages;
	bool asleep, rung, woken, wanted, attends;
	bool in_program, crowded;
	vb_time wake_takes;
	long switches;
	/* number of times that the thread returned from ppoll() */
	unsigned wakes;
	/* what the simulated program does at present */
	enum mode mode;
	bool only_spins, only_waits;
	/* the time of the timer @back; VB_NEVER: it is not set. @left_until: the
	 * last such time. */
	vb_time back_at, left_until;
	unsigned waits; /* packets that a waiting program took */
	bool poll_waits;
	unsigned polls_waited;
	vb_time acts_at, polled_at, mode_until;
	/* time at which the program fell asleep; 0: the program is awake */
	vb_time slept_at;
	/* deadline of each queue pair's timer; VB_NEVER: no timer */
	vb_time due[QPS];
	struct vb_engine e;
	struct vb_adapter adapter;
	struct vb_qp qp[QPS];
	struct vb_engine_qp eq[QPS];
} sim;

static uint64_t sim_rand(uint64_t below)
{
	uint64_t z = sim.seed += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (z ^ (z >> 31)) % below;
}

/* Let due messages arrive on a lane, and due packets on a socket. The peer of
 * a message rings if this program has set "asleep". */
static void messages_come(void)
{
	struct arrivals *m = &sim.messages;

	while (m->come < m->count && m->at[m->come] <= sim.now) {
		m->come++;
		sim.rung |= sim.asleep;
	}
	while (sim.packets.come < sim.packets.count &&
	       sim.packets.at[sim.packets.come] <= sim.now)
		sim.packets.come++;
}

static void pass(vb_time t)
{
	sim.now += t;
	messages_come();
}

static vb_time fake_now(void)
{
	pass(30);
	return sim.now;
}

/* Messages beyond those that one poll processes wait for the program's own
 * later polls only. */
static void must_be_in_time(const char *what, vb_time at)
{
	vb_time since = VB_MAX(at, VB_MIN(sim.polled_at, sim.now)), waited;

	/* For a limited time the thread leaves the link to a program that
	 * waited on it. */
	if (since <= sim.left_until)
		since = VB_MIN(sim.left_until, sim.now);
	waited = sim.now - since;
	if (waited > MUST_BE_SERVED)
		fail_msg("%s waited for %lu us", what,
			 (unsigned long)(waited / VB_USEC));
}

/* Check that packets and messages wake the thread when the program has armed
 * its queue; timers may have been left to polls that do not come, for a
 * millisecond. */
static void must_come_soon(const char *what, vb_time at)
{
	must_be_in_time(what, at);
	at = VB_MAX(at, VB_MIN(sim.left_until, sim.now));
	if (!sim.slept_at || at < sim.slept_at + IS_ASLEEP)
		return;
	if (sim.now - at > SERVED_SOON)
		fail_msg("%s waited for %lu us for a program that sleeps", what,
			 (unsigned long)((sim.now - at) / VB_USEC));
}

static unsigned take(struct arrivals *a, unsigned most, const char *what)
{
	unsigned n = 0;

	while (n < most && a->taken < a->come) {
		must_come_soon(what, a->at[a->taken++]);
		n++;
	}
	return n;
}

static void program_acts(vb_time until);

/* The thread is busy for @takes, and the program runs meanwhile. */
static void meanwhile(vb_time takes)
{
	vb_time until = sim.now + takes;

	if (!sim.in_program)
		program_acts(until);
	if (until > sim.now)
		pass(until - sim.now);
}

static bool is_free(struct vb_mutex *m)
{
	if (!vb_mutex_trylock(m))
		return false;
	vb_mutex_unlock(m);
	return true;
}

static int fake_yield(void)
{
	/* The program's own processor is crowded as well. (A poll that yields
	 * to the holder of the lock rx would wait for it. The program and the
	 * engine thread are one thread of this test, so the poll must not do
	 * that here.) */
	if (sim.in_program && sim.crowded && sim_rand(4) == 0 &&
	    is_free(&sim.e.rx))
		pass(150 * VB_USEC);
	if (!sim.in_program && sim.crowded && sim_rand(4) == 0)
		meanwhile(150 * VB_USEC);
	else
		meanwhile(500);
	return 0;
}

static int fake_usage(int who, struct rusage *use)
{
	use->ru_nvcsw = sim.switches;
	return 0;
}

static ssize_t fake_write(int fd, const void *what, size_t size)
{
	sim.woken = true;
	return (ssize_t)size;
}

static ssize_t fake_read(int fd, void *to, size_t size)
{
	sim.woken = false;
	return (ssize_t)size;
}

static void fake_wake(struct vb_engine *e)
{
	sim.woken = true;
}

static bool fake_near_poll(struct vb_near *n, vb_time now)
{
	pass(50);
	return take(&sim.messages, 64, "a message") > 0;
}

static bool fake_near_sleep(struct vb_near *n)
{
	sim.asleep = true;
	return sim.messages.taken == sim.messages.come;
}

static void fake_near_awake(struct vb_near *n)
{
	sim.asleep = false;
}

static bool fake_near_is_wanted(struct vb_near *n)
{
	bool wanted = sim.wanted;

	sim.wanted = false;
	return wanted;
}

static void fake_near_stand_by(struct vb_near *n, bool yes)
{
	sim.asleep &= !yes;
	sim.attends = yes;
}

static void fake_near_meet(struct vb_near *n, vb_time now)
{
	sim.rung = false;
}

static void fake_dispatch(struct vb_engine *e, vb_time now)
{
	e->rxq.count = 0;
}

static void posts(void);

/* The program runs when the thread releases timer_lock. A program that has not
 * polled for a long time may still post. */
static void VB_UNCHECKED fake_unlock(struct vb_mutex *m) VB_RELEASE(m)
{
	vb_mutex_unlock(m);
	if (m != &sim.e.timer_lock || sim.in_program)
		return;
	meanwhile(200);
	if (sim.now > sim.polled_at + VB_REST_MAX && sim_rand(4) == 0)
		posts();
}

static int fake_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t,
		      const sigset_t *mask);

static void fake_is_late(struct vb_engine *e)
{
	atomic_store(&e->back.is_set, false);
	atomic_store(&e->polls_wait, false);
	sim.back_at = VB_NEVER;
}

static void fake_leaves_link(struct vb_engine *e, vb_time lasts, vb_time now)
{
	sim.back_at = sim.left_until = sim.now + lasts;
	atomic_store(&e->back.is_set, true);
}

static bool fake_hear_rings(struct vb_near *n)
{
	sim.rung = false;
	return true;
}

static int fake_near_fd(const struct vb_near *n)
{
	return SOME_FD;
}

static bool fake_near_sees_off(const struct vb_near *n)
{
	return false;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine thread beside programs that poll, and for peers that stream: with
 * a clock that only the test advances.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "engine/engine_priv.h"
#include "link/netif.h"

#define LOOK_TAKES (1 * VB_USEC)
#define SOME_FD	   1000

static struct {
	vb_time now, yield_takes;
	/* true: a peer has asked the thread to watch the lanes */
	bool wanted;
	/* number of the next looks at the lanes that will find work */
	unsigned finds;
	/* looks at lanes so far; the look at which a program spins */
	unsigned looks, busy;
	unsigned stood_by, went;
	unsigned batches;
	/* context switches of the thread so far, and in its next ppoll() */
	long switches, sleeps;
	struct vb_engine *e;
} fake;

static vb_time fake_now(void)
{
	return fake.now;
}

static int fake_yield(void)
{
	fake.now += fake.yield_takes;
	return 0;
}

static bool fake_poll(struct vb_near *n, vb_time now)
{
	fake.now += LOOK_TAKES;
	if (++fake.looks == fake.busy)
		atomic_fetch_or(&fake.e->program, VB_PROGRAM_SPINS);
	return fake.finds && fake.finds--;
}

static bool fake_is_wanted(struct vb_near *n)
{
	return fake.wanted;
}

static void fake_stand_by(struct vb_near *n, bool yes)
{
	fake.stood_by += yes;
	fake.went += !yes;
}

static void fake_dispatch(struct vb_engine *e, vb_time now)
{
	fake.batches++;
}

static int fake_usage(int who, struct rusage *use)
{
	assert_int_equal(who, RUSAGE_THREAD);
	use->ru_nvcsw = fake.switches;
	return 0;
}

static int fake_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t,
		      const sigset_t *mask)
{
	fake.switches += fake.sleeps;
	return 0;
}

#define ppoll		  fake_ppoll
#define vb_now		  fake_now
#define getrusage	  fake_usage
#define sched_yield	  fake_yield
#define vb_near_poll	  fake_poll
#define vb_near_is_wanted fake_is_wanted
#define vb_near_stand_by  fake_stand_by
#define vb_dispatch	  fake_dispatch
#include "engine/service.c"
#include "engine/wait_priv.h"

static void spins(struct vb_service *s, bool yes)
{
	if (yes)
		atomic_fetch_or(&s->e->program, VB_PROGRAM_SPINS);
	else
		(void)vb_engine_spins_no_more(s->e);
}

/* A fake receive call that returns one frame each time. */
static int recv_one(struct vb_link *l, struct vb_rxq *q)
{
	q->count = 1;
	return 0;
}

static int some_fd(const struct vb_link *l)
{
	return SOME_FD;
}

static const struct vb_link_ops full_ops = { .recv = recv_one, .fd = some_fd };
static struct vb_link full = { &full_ops };

static struct rig {
	struct vb_engine e;
	struct vb_service s;
} rig;

static int set_up(void **state)
{
	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	atomic_store(&rig.e.slowdown, 1);
	rig.e.link = &full;
	rig.s.e = fake.e = &rig.e;
	vb_thread_init(&rig.s.policy, 1);
	fake.now = VB_SEC;
	*state = &rig.s;
	return 0;
}

/* The kernel has put the thread to sleep @times times during one sleep of its
 * own. */
static void slept(struct vb_service *s, long times)
{
	fake.sleeps = times;
	(void)eng_service_sleep(s, fake.now, fake.now);
	vb_thread_will_sleep(&s->policy, vb_engine_program(s->e), fake.now);
	publish(s);
}

/* Each packet wakes the thread inside ppoll(), but ppoll() does not return. */
static void unheard__many_are_a_reason_to_rest(void **state)
{
	struct vb_service *s = *state;

	fake.switches = 1;
	vb_engine_at_work(s->e, fake.now);
	/* this sleep, before the program began to spin, does not count */
	slept(s, 1000);
	spins(s, true);
	/* context switches outside of ppoll() do not count */
	fake.switches += 1000;
	/* the first context switch of a ppoll() does not count */
	slept(s, 1);
	assert_int_equal(s->policy.does, THREAD_WATCHES);
	slept(s, VB_REST_AFTER);
	assert_int_equal(s->policy.does, THREAD_WATCHES);
	assert_int_equal(s->fds[FD_LINK].fd, SOME_FD);
	slept(s, 2);
	assert_int_equal(s->policy.does, THREAD_RESTS);
	assert_int_equal(s->policy.left_until, fake.now + VB_REST_MIN);
	assert_int_equal(s->fds[FD_LINK].fd, -1);
	assert_int_equal(atomic_load(&s->e->thread_does), THREAD_RESTS);
}

/* The thread has packets to serve in between, because the program stops now and
 * then. */
static void unheard__not_in_a_row(void **state)
{
	struct vb_service *s = *state;

	fake.switches = 1;
	spins(s, true);
	for (unsigned i = 0; i < 3; i++) {
		vb_engine_at_work(s->e, fake.now);
		slept(s, VB_REST_AFTER);
		assert_int_equal(s->policy.does, THREAD_WATCHES);
		fake.now += VB_LOOP_LASTS;
		on_packets(s, fake.now);
	}
	assert_true(fake.batches > 0);
}

/* When no program polls, the thread watches the socket without a rest. */
static void unheard__no_program_polls(void **state)
{
	struct vb_service *s = *state;

	fake.switches = 1;
	spins(s, true);
	vb_engine_at_work(s->e, fake.now);
	fake.now += VB_POLL_RECENT;
	slept(s, 100);
	assert_int_equal(s->policy.does, THREAD_WATCHES);
}

/* Which thread handles a timer: the plan reads only once when the program
 * polled last, although the program may poll meanwhile. */
static void timers__whose_they_are(void **state)
{
	struct vb_service *s = *state;
	struct vb_timer t;
	vb_time due = fake.now + 10 * VB_REST_MAX, far = VB_NEVER;

	s->rejoin_at = s->refresh_at = VB_NEVER;
	vb_mutex_init(&s->e->timer_lock, VB_RANK_LEAF);
	vb_timers_init(&s->e->timers);
	vb_timers_init(&s->e->cq_timers);
	vb_timer_init(&t);
	assert_int_equal(vb_timer_set(&s->e->timers, &t, due), 0);
	assert_int_equal(plan_sleep(s, false, far, fake.now), due);
	assert_int_equal(plan_sleep(s, true, far, fake.now),
			 fake.now + VB_REST_MAX);
	assert_int_equal(s->e->sleep_until, fake.now + VB_REST_MAX);
	/* Work that is already due is done by a program that polls without a
	 * result, or else by the thread. */
	assert_int_equal(vb_timer_set(&s->e->timers, &t, fake.now), 0);
	assert_int_equal(plan_sleep(s, true, far, fake.now), fake.now);
	vb_engine_note(s->e, fake.now, PROGRAM_LOOPS);
	assert_int_equal(plan_sleep(s, true, far, fake.now),
			 fake.now + VB_REST_MAX);
	vb_timer_cancel(&s->e->timers, &t);
	vb_timers_fini(&s->e->timers);
	vb_timers_fini(&s->e->cq_timers);
}

/* After a rest that the program has ended, the thread soon checks whether it
 * may rest again. */
static void rested__the_program_has_stopped(void **state)
{
	struct vb_service *s = *state;

	s->policy.does = THREAD_RESTS;
	s->policy.left_at = fake.now;
	s->policy.left_until = fake.now + VB_REST_MAX;
	s->policy.lanes_left = VB_REST_MAX;
	publish(s);
	assert_int_equal(s->fds[FD_LINK].fd, -1);
	on_left_packets(s, fake.now + VB_REST_MAX);
	publish(s);
	assert_int_equal(s->policy.does, THREAD_WATCHES);
	assert_int_equal(s->policy.lanes_left, 0);
	assert_int_equal(s->fds[FD_LINK].fd, SOME_FD);
	assert_true(fake.batches > 0);
}

/* The wake-up of a program that is about to sleep is not lost, even if the rest
 * is continued at that moment. */
static void rested__a_program_calls(void **state)
{
	struct vb_service *s = *state;

	s->policy.does = THREAD_RESTS;
	s->policy.left_at = fake.now;
	s->policy.left_until = fake.now + VB_REST_MIN;
	publish(s);
	assert_false(is_called_back(s));
	vb_engine_note(s->e, fake.now + VB_REST_MIN, PROGRAM_LOOPS);
	atomic_store(&s->e->thread_does, THREAD_WATCHES);
	on_left_packets(s, fake.now + VB_REST_MIN);
	assert_int_equal(s->policy.does, THREAD_RESTS);
	publish(s);
	assert_true(is_called_back(s));
	eng_service_serve(s, fake.now + VB_REST_MIN);
	publish(s);
	assert_int_equal(s->policy.does, THREAD_WATCHES);
	assert_int_equal(s->fds[FD_LINK].fd, SOME_FD);
	assert_int_equal(fake.batches, 0);
}

/* A timer that was left to polls must be found when the polls stop: at the
 * latest when the delayed ACKs are sent, and before the thread plans its
 * sleep. */
static void VB_UNCHECKED attentive__ends_before_the_plan(void **state)
{
	struct vb_service *s = *state;

	assert_true(plan_debts(s, true, fake.now) == VB_NEVER);
	assert_true(atomic_load(&s->e->attentive));
	/* A program that reads the socket itself may leave its ACK delayed. */
	assert_true(vb_mutex_trylock(&s->e->rx));
	assert_int_equal(plan_debts(s, false, fake.now), fake.now + VB_NAP);
	assert_true(atomic_load(&s->e->attentive));
	vb_mutex_unlock(&s->e->rx);
	assert_true(plan_debts(s, false, fake.now) == VB_NEVER);
	assert_false(atomic_load(&s->e->attentive));
}

/* With more threads than processors a program's poll sleeps for the lock, and
 * the thread releases it after a batch. */
static void VB_UNCHECKED drain__leaves_to_who_waits(void **state)
{
	struct vb_service *s = *state;

	assert_int_equal(eng_service_drain_link(s->e), DRAINED_SOME);
	assert_int_equal(fake.batches, VB_DRAIN_BATCHES);
	vb_engine_note(s->e, fake.now, PROGRAM_AWAITS);
	assert_int_equal(eng_service_drain_link(s->e), DRAINED_SOME);
	assert_int_equal(fake.batches, VB_DRAIN_BATCHES + 1);
	assert_true(vb_mutex_trylock(&s->e->rx));
	assert_int_equal(eng_service_drain_link(s->e), DRAINED_BUSY);
	vb_mutex_unlock(&s->e->rx);
}

static void look(struct vb_service *s, bool woken)
{
	if (eng_stand_by(s, woken, fake.now))
		eng_service_turn(s);
}

static void attend__until_nothing_comes(void **state)
{
	struct vb_service *s = *state;
	unsigned turn = VB_STAND_TURN / LOOK_TAKES;

	fake.wanted = true;
	fake.finds = turn + 1;
	look(s, true);
	assert_int_equal(s->policy.does, THREAD_STANDS_BY);
	assert_in_range(fake.looks, turn, turn + VB_STAND_LOOKS);
	/* The thread continues to stand by, although no peer asks again. */
	fake.wanted = false;
	fake.finds = 1;
	look(s, false);
	assert_int_equal(s->policy.does, THREAD_STANDS_BY);
	assert_int_equal(fake.stood_by, 1);
	assert_int_equal(fake.went, 0);
	look(s, false);
	assert_int_equal(s->policy.does, THREAD_WATCHES);
	assert_int_equal(fake.went, 1);
	/* The thread stopped because nothing came, so it may be asked again at
	 * once. */
	fake.wanted = true;
	look(s, true);
	assert_int_equal(fake.stood_by, 2);
}

static void attend__only_who_is_called(void **state)
{
	struct vb_service *s = *state;

	look(s, true);
	fake.wanted = true;
	look(s, false);
	spins(s, true);
	look(s, true);
	spins(s, false);
	atomic_store(&s->e->watched, WATCHES_LANES);
	look(s, true);
	atomic_store(&s->e->watched, WATCHES_NOTHING);
	assert_int_equal(fake.stood_by, 0);
	assert_int_equal(fake.looks, 0);
	look(s, true);
	assert_int_equal(fake.stood_by, 1);
}

static void attend__until_a_program_spins(void **state)
{
	struct vb_service *s = *state;

	fake.wanted = true;
	fake.finds = -1u;
	fake.busy = 3;
	look(s, true);
	assert_int_equal(s->policy.does, THREAD_WATCHES);
	assert_int_equal(fake.looks, VB_STAND_LOOKS);
	assert_int_equal(fake.went, 1);
}

/* Make one turn, at whose end a yield lasts that long. True: the thread
 * continued to stand by. */
static bool disturbed(struct vb_service *s, vb_time yield_takes)
{
	unsigned before = fake.stood_by;

	fake.wanted = true;
	fake.finds = -1u;
	fake.yield_takes = yield_takes;
	look(s, true);
	return fake.stood_by > before;
}

static void attend__somebody_wants_the_processor(void **state)
{
	struct vb_service *s = *state;
	vb_time went, away = VB_PAUSE_MIN;

	assert_true(disturbed(s, VB_STAND_TURN));
	assert_int_equal(s->policy.does, THREAD_WATCHES);
	assert_int_equal(fake.went, 1);
	/* The pause doubles each time the processor is soon needed. */
	for (; away < VB_PAUSE_MAX; away = VB_MIN(2 * away, VB_PAUSE_MAX)) {
		assert_int_equal(s->policy.pause, away);
		went = s->policy.paused_until - away;
		fake.now = s->policy.paused_until - 1;
		assert_false(disturbed(s, VB_STAND_TURN));
		assert_int_equal(s->policy.paused_until - away, went);
		fake.now = s->policy.paused_until;
		assert_true(disturbed(s, VB_STAND_TURN));
	}
	assert_int_equal(s->policy.pause, VB_PAUSE_MAX);
	fake.now = s->policy.paused_until + 2 * VB_PAUSE_RARE;
	assert_true(disturbed(s, VB_STAND_TURN));
	assert_int_equal(s->policy.pause, VB_PAUSE_MIN);
}

/* A short yield ran only an interrupt, and no thread that wants the
 * processor. */
static void attend__a_yield_takes_a_moment(void **state)
{
	struct vb_service *s = *state;

	assert_true(disturbed(s, VB_STAND_TURN - 1));
	assert_int_equal(s->policy.does, THREAD_STANDS_BY);
	assert_int_equal(fake.went, 0);
}

/* Is a packet that wakes the thread served? */
static bool serves_packet(struct vb_service *s)
{
	unsigned before = fake.batches;

	publish(s);
	s->fds[FD_LINK].revents = POLLIN;
	leave_to_waiter(s);
	eng_service_serve(s, fake.now);
	s->fds[FD_LINK].revents = 0;
	return fake.batches > before;
}

static void link__is_left_to_a_thread_that_waits(void **state)
{
	struct vb_service *s = *state;

	assert_true(serves_packet(s));
	assert_int_equal(s->fds[FD_LINK].fd, SOME_FD);
	atomic_store(&s->e->watched, WATCHES_LINK);
	/* the program's thread waits by the link, and was woken by the packet
	 * as well, so it takes the packet */
	assert_false(serves_packet(s));
	assert_int_equal(s->fds[FD_LINK].fd, -1);
	/* only the engine thread serves the lanes meanwhile */
	assert_false(others_serve(s->e));
	/* the program's thread has its event and is away; it most often comes
	 * back soon */
	atomic_store(&s->e->back.is_set, true);
	atomic_store(&s->e->watched, WATCHES_NOTHING);
	assert_false(serves_packet(s));
	assert_int_equal(s->fds[FD_LINK].fd, -1);
	/* the program's thread is late, so the engine thread takes the
	 * packet */
	atomic_store(&s->e->back.is_set, false);
	assert_true(serves_packet(s));
	assert_int_equal(s->fds[FD_LINK].fd, SOME_FD);
	/* a thread that watches the lanes does not watch the link */
	atomic_store(&s->e->watched, WATCHES_LANES);
	assert_true(serves_packet(s));
}

/* A channel has the link, but its program takes no packet. The engine thread
 * leaves it one packet, and then takes the link back. */
static void link__is_taken_back_from_a_channel(void **state)
{
	struct vb_service *s = *state;
	struct vb_engine *e = s->e;
	struct vb_channel ch;

	vb_lend_init(e);
	vb_wait_open(e);
	assert_int_equal(vb_channel_init(&ch), 0);
	atomic_store(&ch.by_link, VB_BY_LINK_MOST);
	atomic_store(&e->watched, WATCHES_LENT);
	e->lend.channel = &ch;
	assert_true(vb_lend_is_lent(e, &ch));
	assert_false(serves_packet(s));
	assert_true(atomic_load(&e->back.is_set));
	assert_false(serves_packet(s));
	assert_true(vb_lend_is_lent(e, &ch));
	/* The time for the program to come is over, and the packet is still
	 * there. */
	atomic_store(&e->back.is_set, false);
	assert_true(serves_packet(s));
	assert_false(vb_lend_is_lent(e, &ch));
	assert_int_equal(atomic_load(&e->watched), WATCHES_NOTHING);
	assert_int_equal(atomic_load(&ch.by_link), 0);
	assert_false(vb_lend_may(&e->lend.policy, fake.now));
	vb_wait_close(e);
	vb_channel_fini(&ch);
	vb_mutex_fini(&e->lend.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(unheard__many_are_a_reason_to_rest,
				       set_up),
		cmocka_unit_test_setup(unheard__not_in_a_row, set_up),
		cmocka_unit_test_setup(unheard__no_program_polls, set_up),
		cmocka_unit_test_setup(timers__whose_they_are, set_up),
		cmocka_unit_test_setup(rested__the_program_has_stopped, set_up),
		cmocka_unit_test_setup(rested__a_program_calls, set_up),
		cmocka_unit_test_setup(attentive__ends_before_the_plan, set_up),
		cmocka_unit_test_setup(drain__leaves_to_who_waits, set_up),
		cmocka_unit_test_setup(attend__until_nothing_comes, set_up),
		cmocka_unit_test_setup(attend__only_who_is_called, set_up),
		cmocka_unit_test_setup(attend__until_a_program_spins, set_up),
		cmocka_unit_test_setup(attend__somebody_wants_the_processor,
				       set_up),
		cmocka_unit_test_setup(attend__a_yield_takes_a_moment, set_up),
		cmocka_unit_test_setup(link__is_left_to_a_thread_that_waits,
				       set_up),
		cmocka_unit_test_setup(link__is_taken_back_from_a_channel,
				       set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the engine thread does beside programs that poll, and for peers that
 * stream: with a clock that moves only when a test says so.
 */
#include <errno.h>
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
	bool wanted;	      /* a peer has asked the thread to stand by */
	unsigned finds;	      /* so many looks at the lanes find something */
	unsigned looks, busy; /* at which look a program begins to spin */
	unsigned stood_by, went;
	unsigned batches;
	long switches;
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
		atomic_store(&fake.e->spinning, true);
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

#define vb_now		  fake_now
#define getrusage	  fake_usage
#define sched_yield	  fake_yield
#define vb_near_poll	  fake_poll
#define vb_near_is_wanted fake_is_wanted
#define vb_near_stand_by  fake_stand_by
#define vb_dispatch	  fake_dispatch
#include "engine/service.c"
#include "engine/service_attend.c"
#include "engine/service_rest.c"

/* There is always one more frame. */
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
	atomic_store(&rig.e.pace, 1);
	rig.e.link = &full;
	rig.s.e = fake.e = &rig.e;
	fake.now = VB_SEC;
	*state = &rig.s;
	return 0;
}

/* A program that polled in vain polls again: the thread believes that for a
 * millisecond while it was right, otherwise for 50 us. */
static void loops__while_trusted(void **state)
{
	struct vb_service *s = *state;

	vb_engine_at_work(s->e, fake.now);
	atomic_store(&s->e->looping, true);
	s->trust = 1;
	assert_true(program_loops(s, fake.now + LOOP_LASTS - 1));
	assert_false(program_loops(s, fake.now + LOOP_LASTS));
	s->trust = 0;
	assert_true(program_loops(s, fake.now + POLL_IS_RECENT - 1));
	assert_false(program_loops(s, fake.now + POLL_IS_RECENT));
}

static void loops__that_found_something(void **state)
{
	struct vb_service *s = *state;

	vb_engine_at_work(s->e, fake.now);
	s->trust = 1;
	assert_true(program_loops(s, fake.now + POLL_IS_RECENT - 1));
	assert_false(program_loops(s, fake.now + POLL_IS_RECENT));
	s->trust = 0;
	assert_false(program_loops(s, fake.now + 1));
}

/* The kernel has put the thread to sleep so many times during one sleep of its
 * own. */
static void slept(struct vb_service *s, long times)
{
	long before = vb_rest_count_sleeps(s);

	fake.switches += times;
	vb_rest_note_sleeps(s, before);
	vb_rest_if_unheard(s, fake.now);
}

/* Each packet wakes the thread inside ppoll(), which does not return. */
static void unheard__many_are_a_reason_to_rest(void **state)
{
	struct vb_service *s = *state;

	s->rest_after = REST_AFTER;
	vb_rest_end(s);
	fake.switches = 1;
	vb_engine_at_work(s->e, fake.now);
	slept(s, 1000); /* before a program began to spin */
	atomic_store(&s->e->spinning, true);
	fake.switches += 1000; /* sleeps for a lock do not count */
	slept(s, 1);	       /* once, by the thread's own will */
	assert_int_equal(s->rest, 0);
	slept(s, REST_AFTER);
	assert_int_equal(s->rest, 0);
	assert_int_equal(s->fds[FD_LINK].fd, SOME_FD);
	slept(s, 2);
	assert_int_equal(s->rest, REST_MIN);
	assert_int_equal(s->fds[FD_LINK].fd, -1);
	assert_true(atomic_load(&s->e->resting));
}

/* The thread has packets to serve in between, of a program that stops now and
 * then. */
static void unheard__not_in_a_row(void **state)
{
	struct vb_service *s = *state;

	fake.switches = 1;
	s->rest_after = REST_AFTER;
	atomic_store(&s->e->spinning, true);
	for (unsigned i = 0; i < 3; i++) {
		vb_engine_at_work(s->e, fake.now);
		slept(s, REST_AFTER);
		assert_int_equal(s->rest, 0);
		fake.now += LOOP_LASTS;
		vb_rest_on_packets(s, fake.now);
	}
	assert_true(fake.batches > 0);
}

/* The thread does not rest when no program polls any more. */
static void unheard__no_program_polls(void **state)
{
	struct vb_service *s = *state;

	fake.switches = 1;
	s->rest_after = REST_AFTER;
	atomic_store(&s->e->spinning, true);
	vb_engine_at_work(s->e, fake.now);
	fake.now += POLL_IS_RECENT;
	slept(s, 100);
	assert_int_equal(s->rest, 0);
}

/* The plan reads only once when the program polled last, though it may poll
 * meanwhile. */
static void timers__whose_they_are(void **state)
{
	struct vb_service *s = *state;
	struct vb_timer t;
	vb_time due = fake.now + 10 * REST_MAX;

	s->rejoin_at = s->refresh_at = VB_NEVER;
	vb_mutex_init(&s->e->timer_lock, VB_RANK_LEAF);
	vb_timers_init(&s->e->timers);
	vb_timers_init(&s->e->cq_timers);
	vb_timer_init(&t);
	assert_int_equal(vb_timer_set(&s->e->timers, &t, due), 0);
	assert_int_equal(plan_sleep(s, false, fake.now), due);
	assert_false(s->e->polls_look);
	assert_int_equal(plan_sleep(s, true, fake.now), fake.now + REST_MAX);
	assert_true(s->e->polls_look);
	assert_int_equal(s->e->sleep_until, fake.now + REST_MAX);
	/* Work that is due already is done by a program that polls in vain, or
	 * else by the thread. */
	assert_int_equal(vb_timer_set(&s->e->timers, &t, fake.now), 0);
	assert_int_equal(plan_sleep(s, true, fake.now), fake.now);
	vb_engine_at_work(s->e, fake.now);
	atomic_store(&s->e->looping, true);
	assert_int_equal(plan_sleep(s, true, fake.now), fake.now + REST_MAX);
	vb_timer_cancel(&s->e->timers, &t);
	vb_timers_fini(&s->e->timers);
	vb_timers_fini(&s->e->cq_timers);
}

/* After a rest that the program has ended, the thread looks soon whether to
 * rest again. */
static void rested__the_program_has_stopped(void **state)
{
	struct vb_service *s = *state;

	s->near_rest = REST_MAX;
	rest(s, REST_MAX, fake.now);
	vb_rest_on_timeout(s, fake.now + POLL_IS_RECENT);
	assert_int_equal(s->rest, 0);
	assert_int_equal(s->near_rest, 0);
	assert_int_equal(s->fds[FD_LINK].fd, SOME_FD);
	assert_true(fake.batches > 0);
}

/* With more threads than processors a program's poll sleeps for the lock, and
 * the thread releases it after a batch. */
static void VB_UNCHECKED drain__leaves_to_who_waits(void **state)
{
	struct vb_service *s = *state;

	assert_int_equal(eng_service_drain_link(s->e), DRAINED_SOME);
	assert_int_equal(fake.batches, DRAIN_BATCHES);
	atomic_store(&s->e->awaited, true);
	assert_int_equal(eng_service_drain_link(s->e), DRAINED_SOME);
	assert_int_equal(fake.batches, DRAIN_BATCHES + 1);
	assert_true(vb_mutex_trylock(&s->e->rx));
	assert_int_equal(eng_service_drain_link(s->e), DRAINED_BUSY);
	vb_mutex_unlock(&s->e->rx);
}

static void attend__until_nothing_comes(void **state)
{
	struct vb_service *s = *state;
	unsigned turn = ATTEND_TURN / LOOK_TAKES;

	fake.wanted = true;
	fake.finds = turn + 1;
	vb_service_attend(s, true, fake.now);
	assert_true(s->attends);
	assert_in_range(fake.looks, turn, turn + ATTEND_LOOKS);
	/* It stands by on, although no peer asks again. */
	fake.wanted = false;
	fake.finds = 1;
	vb_service_attend(s, false, fake.now);
	assert_true(s->attends);
	assert_int_equal(fake.stood_by, 1);
	assert_int_equal(fake.went, 0);
	vb_service_attend(s, false, fake.now);
	assert_false(s->attends);
	assert_int_equal(fake.went, 1);
	/* It stopped because nothing came: it may be asked again at once. */
	fake.wanted = true;
	vb_service_attend(s, true, fake.now);
	assert_int_equal(fake.stood_by, 2);
}

static void attend__only_who_is_called(void **state)
{
	struct vb_service *s = *state;

	vb_service_attend(s, true, fake.now);
	fake.wanted = true;
	vb_service_attend(s, false, fake.now);
	atomic_store(&s->e->spinning, true);
	vb_service_attend(s, true, fake.now);
	atomic_store(&s->e->spinning, false);
	atomic_store(&s->e->watched, true);
	vb_service_attend(s, true, fake.now);
	atomic_store(&s->e->watched, false);
	assert_int_equal(fake.stood_by, 0);
	assert_int_equal(fake.looks, 0);
	vb_service_attend(s, true, fake.now);
	assert_int_equal(fake.stood_by, 1);
}

static void attend__until_a_program_spins(void **state)
{
	struct vb_service *s = *state;

	fake.wanted = true;
	fake.finds = -1u;
	fake.busy = 3;
	vb_service_attend(s, true, fake.now);
	assert_false(s->attends);
	assert_int_equal(fake.looks, ATTEND_LOOKS);
	assert_int_equal(fake.went, 1);
}

/* One turn, at whose end a yield takes that long. True: the thread stood by. */
static bool disturbed(struct vb_service *s, vb_time yield_takes)
{
	unsigned before = fake.stood_by;

	fake.wanted = true;
	fake.finds = -1u;
	fake.yield_takes = yield_takes;
	vb_service_attend(s, true, fake.now);
	return fake.stood_by > before;
}

static void attend__somebody_wants_the_processor(void **state)
{
	struct vb_service *s = *state;
	vb_time went, away = AWAY;

	assert_true(disturbed(s, ATTEND_TURN));
	assert_false(s->attends);
	assert_int_equal(fake.went, 1);
	/* The pause doubles while the thread is soon disturbed again. */
	for (; away < AWAY_MOST; away = VB_MIN(2 * away, AWAY_MOST)) {
		assert_int_equal(s->away, away);
		went = s->away_until - away;
		fake.now = s->away_until - 1;
		assert_false(disturbed(s, ATTEND_TURN));
		assert_int_equal(s->away_until - away, went);
		fake.now = s->away_until;
		assert_true(disturbed(s, ATTEND_TURN));
	}
	assert_int_equal(s->away, AWAY_MOST);
	fake.now = s->away_until + 2 * IS_RARE;
	assert_true(disturbed(s, ATTEND_TURN));
	assert_int_equal(s->away, AWAY);
}

/* A short yield was an interrupt, and no thread that wants the processor. */
static void attend__a_yield_takes_a_moment(void **state)
{
	struct vb_service *s = *state;

	assert_true(disturbed(s, ATTEND_TURN - 1));
	assert_true(s->attends);
	assert_int_equal(fake.went, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(loops__while_trusted, set_up),
		cmocka_unit_test_setup(loops__that_found_something, set_up),
		cmocka_unit_test_setup(unheard__many_are_a_reason_to_rest,
				       set_up),
		cmocka_unit_test_setup(unheard__not_in_a_row, set_up),
		cmocka_unit_test_setup(unheard__no_program_polls, set_up),
		cmocka_unit_test_setup(timers__whose_they_are, set_up),
		cmocka_unit_test_setup(rested__the_program_has_stopped, set_up),
		cmocka_unit_test_setup(drain__leaves_to_who_waits, set_up),
		cmocka_unit_test_setup(attend__until_nothing_comes, set_up),
		cmocka_unit_test_setup(attend__only_who_is_called, set_up),
		cmocka_unit_test_setup(attend__until_a_program_spins, set_up),
		cmocka_unit_test_setup(attend__somebody_wants_the_processor,
				       set_up),
		cmocka_unit_test_setup(attend__a_yield_takes_a_moment, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A program's poll that finds the link's lock taken: with a fake clock, a fake
 * scheduler and a fake second thread. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/lock_order.h"
#include "base/log.h"
#include "base/rand.h"
#include "engine/engine_priv.h"
#include "engine/counters.h"
#include "link/udp.h"

static struct {
	vb_time now, yield_takes;
	unsigned yields, slept, looked, stepped;
	bool steps_much;
	vb_time step_takes;
	struct vb_engine e;
} fake;

static vb_time fake_now(void)
{
	return fake.now;
}

static int fake_yield(void)
{
	fake.yields++;
	fake.now += fake.yield_takes;
	return 0;
}

static enum vb_program does(void)
{
	return vb_program_does(vb_engine_program(&fake.e));
}

/* A fake lock: the thread that holds it learns that a poll waits for it, and
 * releases it. */
static void VB_UNCHECKED fake_lock(struct vb_mutex *m) VB_ACQUIRE(m)
{
	if (vb_mutex_trylock(m))
		return;
	assert_int_equal(does(), PROGRAM_AWAITS);
	fake.slept++;
	vb_mutex_unlock(m);
	assert_true(vb_mutex_trylock(m));
}

/* A fake of vb_drive_due(): one queue pair is due each time. The step may copy
 * much, so another poll can drain the link meanwhile. */
static void VB_UNCHECKED fake_due(struct vb_engine *e, vb_time now,
				  unsigned most)
{
	if (!fake.steps_much) {
		vb_drive_due(e, now, most);
		return;
	}
	assert_true(vb_mutex_trylock(&e->rx));
	vb_mutex_unlock(&e->rx);
	fake.stepped++;
	fake.now += fake.step_takes;
}

#define vb_now	      fake_now
#define vb_drive_due  fake_due
#define sched_yield   fake_yield
#define vb_mutex_lock fake_lock
#include "engine/poll.c"

static int recv_none(struct vb_link *l, struct vb_rxq *q)
{
	fake.looked++;
	q->count = 0;
	return 0;
}

static const struct vb_link_ops quiet_ops = { .recv = recv_none };
static struct vb_link quiet = { &quiet_ops };

/* A fake receive call that returns a packet for no queue pair. */
static int recv_some(struct vb_link *l, struct vb_rxq *q)
{
	q->count = 1;
	q->frames[0] = (struct vb_frame){ .len = 0 };
	return 0;
}

static const struct vb_link_ops busy_ops = { .recv = recv_some };
static struct vb_link busy = { &busy_ops };

/* Begin each test with another thread that receives from the link. */
static int VB_UNCHECKED set_up(void **state)
{
	struct vb_engine *e = &fake.e;

	memset(&fake, 0, sizeof(fake));
	atomic_store(&e->slowdown, 1);
	vb_poll_init(&e->poll, 1);
	e->link = &quiet;
	e->lease.slot = 1;
	atomic_store(&e->due, VB_NEVER);
	fake.now = VB_SEC;
	vb_mutex_init(&e->rx, RANK_RX);
	assert_true(vb_mutex_trylock(&e->rx));
	*state = e;
	return 0;
}

/* The yield was so short that no other thread wants the processor, so the poll
 * may spin. */
static void taken__alone(void **state)
{
	struct vb_engine *e = *state;

	fake.yield_takes = VB_ALONE - 1;
	assert_int_equal(drain_for_program(e), POLL_RETURNS);
	assert_int_equal(fake.yields, 1);
	assert_int_equal(fake.slept, 0);
	assert_int_equal(fake.looked, 0);
	assert_int_equal(does(), PROGRAM_AWAY);
}

static void VB_UNCHECKED taken__others_want_the_processor(void **state)
{
	struct vb_engine *e = *state;

	fake.yield_takes = VB_ALONE;
	(void)drain_for_program(e);
	assert_int_equal(fake.slept, 1);
	assert_int_equal(fake.looked, 1);
	assert_int_equal(does(), PROGRAM_LOOPS);
	assert_true(vb_mutex_trylock(&e->rx));
}

/* While the poll waits, a message from another program of this host arrives, so
 * the poll returns at once. */
static void taken__near_found_something(void **state)
{
	struct vb_engine *e = *state;

	fake.yield_takes = VB_ALONE;
	assert_int_equal(await_turn(e, true, fake.now), POLL_RETURNS);
	assert_int_equal(fake.yields, 0);
	assert_int_equal(fake.slept, 0);
}

/* Timers that are due are stepped without the link's lock, and only one of them
 * if its step takes long. */
static void VB_UNCHECKED due__is_stepped_without_the_lock(void **state)
{
	struct vb_engine *e = *state;

	vb_mutex_unlock(&e->rx);
	fake.steps_much = true;
	atomic_store(&e->due, fake.now);
	(void)drain_for_program(e);
	assert_int_equal(fake.stepped, VB_DUE_A_POLL);
	fake.stepped = 0;
	fake.step_takes = VB_DUE_LASTS + 1;
	(void)drain_for_program(e);
	assert_int_equal(fake.stepped, 1);
	assert_true(vb_mutex_trylock(&e->rx));
}

/* A poll that cannot get the link's lock still counts as a poll, if the poll
 * before it found nothing. */
static void taken__counts_as_a_poll(void **state)
{
	struct vb_engine *e = *state;

	(void)drain_for_program(e);
	assert_int_equal(vb_program_at(vb_engine_program(e)), 0);
	vb_engine_note(e, 0, PROGRAM_LOOPS);
	(void)drain_for_program(e);
	assert_int_equal(vb_program_at(vb_engine_program(e)), fake.now);
}

static void VB_UNCHECKED not_taken(void **state)
{
	struct vb_engine *e = *state;

	vb_mutex_unlock(&e->rx);
	(void)drain_for_program(e);
	assert_int_equal(fake.looked, 1);
	assert_int_equal(fake.yields, 0);
	assert_int_equal(does(), PROGRAM_LOOPS);
	assert_true(vb_mutex_trylock(&e->rx));
}

/* A poll that looks at the timers sets the hint @due, which is correct again
 * afterwards. */
static void VB_UNCHECKED timers__are_looked_at_by_who_waits(void **state)
{
	struct vb_engine *e = *state;

	vb_mutex_unlock(&e->rx);
	atomic_store(&e->due, fake.now + 1);
	(void)drain_for_program(e);
	assert_true(atomic_load(&e->due) == fake.now + 1);
	atomic_store(&e->due, fake.now);
	e->link = &busy;
	(void)drain_for_program(e);
	assert_int_equal(e->strays, 1);
	assert_true(atomic_load(&e->due) == fake.now);
	e->link = &quiet;
	(void)drain_for_program(e);
	assert_true(atomic_load(&e->due) == VB_NEVER);
	assert_true(vb_mutex_trylock(&e->rx));
}

/* Polls follow each other closely, except for a moment in which other threads
 * ran. */
static void VB_UNCHECKED close_polls__but_for_a_yield(void **state)
{
	struct vb_engine *e = *state;

	vb_mutex_unlock(&e->rx);
	vb_engine_note(e, fake.now, PROGRAM_LOOPS);
	e->poll.ended_at = fake.now;
	fake.yield_takes = VB_MSEC;
	let_others_run(e);
	(void)drain_for_program(e);
	assert_int_equal(e->poll.streak, 1);
	/* The polls are not close when the program slept after the yield. */
	let_others_run(e);
	fake.now += VB_POLLS_CLOSE;
	(void)drain_for_program(e);
	assert_int_equal(e->poll.streak, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(taken__alone, set_up),
		cmocka_unit_test_setup(taken__others_want_the_processor,
				       set_up),
		cmocka_unit_test_setup(taken__near_found_something, set_up),
		cmocka_unit_test_setup(taken__counts_as_a_poll, set_up),
		cmocka_unit_test_setup(due__is_stepped_without_the_lock,
				       set_up),
		cmocka_unit_test_setup(not_taken, set_up),
		cmocka_unit_test_setup(timers__are_looked_at_by_who_waits,
				       set_up),
		cmocka_unit_test_setup(close_polls__but_for_a_yield, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

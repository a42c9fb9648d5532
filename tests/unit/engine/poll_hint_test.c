/* SPDX-License-Identifier: BSD-2-Clause */
/* Polls that look for an answer first: with a fake clock, and a stream that
 * answers when the test decides. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine_priv.h"

#define LOOK_TAKES VB_USEC

static struct {
	vb_time now, answer_at, answer_by_other;
	unsigned looks;
	bool receives; /* true: the completion queue has one more completion */
	struct vb_engine e;
	struct vb_qp qp;
	struct vb_engine_qp eq;
	struct vb_cq cq;
} fake;
static struct vb_poll_hint *const hints = &fake.eq.await;

static void came_to_thread(vb_time now);

/* A fake clock that advances with each look, so that looking without a result
 * ends. */
static vb_time fake_now(void)
{
	fake.now += LOOK_TAKES / 2;
	if (fake.now >= fake.answer_by_other)
		came_to_thread(fake.now);
	return fake.now;
}

static struct vb_engine *fake_running(void)
{
	return &fake.e;
}

static struct vb_qp *fake_sender(struct vb_cq *cq)
{
	return fake.receives ? NULL : &fake.qp;
}

static int fake_yield(void)
{
	return 0;
}

static bool fake_drain(struct vb_engine *e, vb_time now)
{
	fake.looks++;
	fake.now += LOOK_TAKES;
	if (now < fake.answer_at)
		return false;
	vb_poll_hint_came(e, hints, now);
	return true;
}

#define vb_now		  fake_now
#define vb_engine_running fake_running
#define vb_stream_drain	  fake_drain
#define vb_cq_sender	  fake_sender
#define sched_yield	  fake_yield
#include "engine/poll_hint.c"

static int set_up(void **state)
{
	memset(&fake, 0, sizeof(fake));
	atomic_store(&fake.e.slowdown, 1);
	fake.qp.priv[PRIV_ENGINE] = &fake.eq;
	fake.now = VB_SEC;
	fake.answer_at = fake.answer_by_other = VB_NEVER;
	/* No engine thread runs: the test's thread is that of the program. */
	*state = &fake.e;
	return 0;
}

static void came_to_thread(vb_time now)
{
	fake.e.thread = pthread_self();
	vb_poll_hint_came(&fake.e, hints, now);
	fake.e.thread = 0;
}

/* The engine's thread received an answer at time @t after the last send. */
static void answered_after(vb_time t)
{
	vb_poll_hint_sent(&fake.e, hints, ++fake.now);
	fake.now += t;
	came_to_thread(fake.now);
}

/* The program posts its next request. */
static void send_next(void)
{
	fake.now++;
	vb_poll_hint_sent(&fake.e, hints, fake.now);
}

static void earn(void)
{
	while (!atomic_load(&hints->looks))
		answered_after(VB_ANSWER_SOON);
}

static void at_first__nothing_is_looked_at(void **state)
{
	vb_engine_poll_hint(&fake.cq);
	assert_int_equal(fake.looks, 0);
}

static void answers_in_a_row(void **state)
{
	for (int i = 0; i < VB_WARY_LEAST - 1; i++)
		answered_after(VB_ANSWER_SOON);
	assert_false(atomic_load(&hints->looks));
	answered_after(VB_ANSWER_SOON);
	assert_true(atomic_load(&hints->looks));
}

static void late_answer__begins_anew(void **state)
{
	for (int i = 0; i < VB_WARY_LEAST - 1; i++)
		answered_after(VB_ANSWER_SOON);
	answered_after(VB_ANSWER_SOON + 1);
	answered_after(VB_ANSWER_SOON);
	assert_false(atomic_load(&hints->looks));
}

static void VB_UNCHECKED answer_comes__is_found_at_once(void **state)
{
	struct vb_engine *e = *state;

	earn();
	send_next();
	fake.answer_at = fake.now + 5 * LOOK_TAKES;
	vb_engine_poll_hint(&fake.cq);
	assert_in_range(fake.looks, 2, 6);
	assert_true(fake.now < fake.answer_at + 2 * LOOK_TAKES);
	assert_true(atomic_load(&hints->looks));
	assert_true(vb_mutex_trylock(&e->rx));
}

static void answer_is_there__nothing_is_looked_at(void **state)
{
	earn();
	send_next();
	fake.now++;
	came_to_thread(fake.now);
	vb_engine_poll_hint(&fake.cq);
	assert_int_equal(fake.looks, 0);
}

static void VB_UNCHECKED in_vain__for_so_long_and_not_again(void **state)
{
	struct vb_engine *e = *state;
	vb_time from;

	earn();
	send_next();
	from = fake.now;
	vb_engine_poll_hint(&fake.cq);
	assert_in_range(fake.now - from, VB_ANSWER_SOON,
			VB_ANSWER_SOON + 2 * LOOK_TAKES);
	assert_false(atomic_load(&hints->looks));
	/* While the program looks, the engine's thread stays away. */
	assert_true(vb_program_at(vb_engine_program(e)) <= fake.now);
	fake.looks = 0;
	vb_engine_poll_hint(&fake.cq);
	assert_int_equal(fake.looks, 0);
}

/* If answers never come soon at a queue pair, its polls look for them less and
 * less often, whatever the program polls in between. */
static void in_vain__wary(void **state)
{
	unsigned answers;

	for (unsigned asked = VB_WARY_LEAST; asked < 4 * VB_WARY_MOST;
	     asked *= 2) {
		for (answers = 0; !atomic_load(&hints->looks); answers++)
			answered_after(VB_ANSWER_SOON);
		assert_int_equal(answers, VB_MIN(asked, VB_WARY_MOST));
		for (unsigned i = 0; i < 10; i++)
			/* Nothing was sent, so no answer is awaited. */
			vb_engine_poll_hint(&fake.cq);
		send_next();
		vb_engine_poll_hint(&fake.cq);
	}
}

/* A completion of a receive is returned before looking at the socket. */
static void received__is_not_waited_with(void **state)
{
	earn();
	send_next();
	fake.receives = true;
	vb_engine_poll_hint(&fake.cq);
	assert_int_equal(fake.looks, 0);
}

/* Bytes that arrive without a request before them do not count as an answer. */
static void unasked__earns_nothing(void **state)
{
	vb_poll_hint_sent(&fake.e, hints, fake.now);
	for (int i = 0; i < 2 * VB_WARY_LEAST; i++)
		came_to_thread(++fake.now);
	assert_false(atomic_load(&hints->looks));
}

static void stream_ends__nothing_is_left(void **state)
{
	struct vb_engine *e = *state;

	earn();
	assert_int_equal(atomic_load(&e->awaiting), 1);
	vb_poll_hint_begin(e, hints);
	vb_poll_hint_begin(e, hints);
	assert_int_equal(atomic_load(&e->awaiting), 0);
	send_next();
	vb_engine_poll_hint(&fake.cq);
	assert_int_equal(fake.looks, 0);
}

/* Another thread reads the streams, and receives the awaited answer. */
static void VB_UNCHECKED taken__another_finds_it(void **state)
{
	struct vb_engine *e = *state;

	earn();
	send_next();
	fake.answer_by_other = fake.now + 3 * LOOK_TAKES;
	assert_true(vb_mutex_trylock(&e->rx));
	vb_engine_poll_hint(&fake.cq);
	assert_int_equal(fake.looks, 0);
	assert_true(fake.now < fake.answer_by_other + 2 * LOOK_TAKES);
	assert_true(atomic_load(&hints->looks));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(at_first__nothing_is_looked_at, set_up),
		cmocka_unit_test_setup(answers_in_a_row, set_up),
		cmocka_unit_test_setup(late_answer__begins_anew, set_up),
		cmocka_unit_test_setup(answer_comes__is_found_at_once, set_up),
		cmocka_unit_test_setup(answer_is_there__nothing_is_looked_at,
				       set_up),
		cmocka_unit_test_setup(in_vain__for_so_long_and_not_again,
				       set_up),
		cmocka_unit_test_setup(in_vain__wary, set_up),
		cmocka_unit_test_setup(received__is_not_waited_with, set_up),
		cmocka_unit_test_setup(unasked__earns_nothing, set_up),
		cmocka_unit_test_setup(stream_ends__nothing_is_left, set_up),
		cmocka_unit_test_setup(taken__another_finds_it, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

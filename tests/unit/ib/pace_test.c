/* SPDX-License-Identifier: BSD-2-Clause */
/* ib/pace: the sender waits for peers that answer, but not for others, and slow
 * senders never wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ib/pace.h"

#define MTU   1024
#define START 0xfffff0u /* first PSN, which wraps after 16 packets */

static struct vb_pace fresh(void)
{
	struct vb_pace p;

	vb_pace_init(&p, START, MTU, 1);
	return p;
}

/* Send until the sender must wait; returns the number of packets. */
static unsigned fill(struct vb_pace *p, vb_time now, unsigned most)
{
	unsigned n = 0;

	while (n < most && vb_pace_may_send(p, now)) {
		vb_pace_sent(p, now);
		n++;
	}
	return n;
}

static void pace__a_window_then_an_answer(void **state)
{
	struct vb_pace p = fresh();
	vb_time now = VB_SEC;

	for (int round = 0; round < 100; round++) {
		assert_int_equal(fill(&p, now, 100000), p.window);
		assert_true(p.held);
		assert_true(vb_pace_deadline(&p) > now);
		/* The peer reports half of the window as arrived. */
		vb_pace_heard(&p, vb_psn_add(p.next, -(p.window / 2) - 1), now);
		assert_int_equal(fill(&p, now, 100000), p.window / 2);
		vb_pace_heard(&p, vb_psn_add(p.next, VB_PSN_MASK), now);
		now += VB_USEC;
	}
	assert_int_equal(p.silences, 0);
}

static void pace__asks_in_every_window(void **state)
{
	struct vb_pace p = fresh();
	unsigned asked = 0;

	for (uint32_t i = 0; i < p.window; i++) {
		asked += vb_pace_asks(&p);
		vb_pace_sent(&p, VB_SEC);
	}
	assert_true(asked >= 2);
}

/* A peer that does not answer delays the sender for a tenth of a second only
 * once. */
static void pace__silence_ends_the_waiting(void **state)
{
	struct vb_pace p = fresh();
	vb_time now = VB_SEC;
	uint32_t before;

	while (fill(&p, now, 100000) < 100000) {
		assert_true(vb_pace_deadline(&p) > now);
		now = vb_pace_deadline(&p);
		assert_true(now < VB_SEC + 100 * VB_MSEC);
	}
	assert_int_equal(vb_pace_deadline(&p), VB_NEVER);
	/* The sender asks now and then, and an answer restores the window. */
	before = p.next;
	while (!vb_pace_asks(&p))
		vb_pace_sent(&p, now);
	assert_true(((p.next - before) & VB_PSN_MASK) < 100000);
	fill(&p, now, 1);
	vb_pace_heard(&p, vb_psn_add(p.next, VB_PSN_MASK), now);
	assert_int_equal(fill(&p, now, 100000), p.window);
}

static void pace__slow_senders_are_not_held(void **state)
{
	struct vb_pace p = fresh();
	vb_time now = VB_SEC;

	for (int i = 0; i < 100000; i++) {
		assert_true(vb_pace_may_send(&p, now));
		vb_pace_sent(&p, now);
		now += 50 * VB_USEC;
	}
}

/* Answers for packets never sent or already settled change nothing. */
static void pace__wrong_answers(void **state)
{
	struct vb_pace p = fresh();
	vb_time now = VB_SEC;

	fill(&p, now, 10);
	vb_pace_heard(&p, vb_psn_add(START, 10), now);
	assert_int_equal(p.heard, START);
	vb_pace_heard(&p, vb_psn_add(START, 4), now);
	assert_int_equal(p.heard, vb_psn_add(START, 5));
	vb_pace_heard(&p, vb_psn_add(START, 2), now);
	vb_pace_heard(&p, vb_psn_add(START, 1u << 23), now);
	assert_int_equal(p.heard, vb_psn_add(START, 5));
}

static void pace__many_share(void **state)
{
	struct vb_pace one = fresh(), p;

	vb_pace_init(&p, 0, MTU, 1000);
	assert_true(p.window < one.window && p.window >= 4);
	assert_true(fill(&p, VB_SEC, 1000) == p.window);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pace__a_window_then_an_answer),
		cmocka_unit_test(pace__asks_in_every_window),
		cmocka_unit_test(pace__silence_ends_the_waiting),
		cmocka_unit_test(pace__slow_senders_are_not_held),
		cmocka_unit_test(pace__wrong_answers),
		cmocka_unit_test(pace__many_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

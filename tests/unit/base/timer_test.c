/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/timer.h"

#define MANY 300

static void timers__pop_in_order_and_not_early(void **state)
{
	struct vb_timers ts;
	struct vb_timer t[3];

	vb_timers_init(&ts);
	assert_true(vb_timers_next(&ts) == VB_NEVER);
	assert_null(vb_timers_pop(&ts, VB_NEVER - 1));
	for (int i = 0; i < 3; i++) {
		vb_timer_init(&t[i]);
		assert_int_equal(vb_timer_set(&ts, &t[i], 30 - 10 * i), 0);
	}
	assert_int_equal(vb_timers_next(&ts), 10);
	assert_null(vb_timers_pop(&ts, 9));
	assert_ptr_equal(vb_timers_pop(&ts, 10), &t[2]);
	assert_true(t[2].at == VB_NEVER);
	assert_null(vb_timers_pop(&ts, 10));
	assert_int_equal(vb_timer_set(&ts, &t[0], 15), 0);
	assert_ptr_equal(vb_timers_pop(&ts, 100), &t[0]);
	assert_int_equal(vb_timer_set(&ts, &t[1], VB_NEVER), 0);
	assert_true(vb_timers_next(&ts) == VB_NEVER);
	vb_timer_cancel(&ts, &t[1]);
	vb_timers_fini(&ts);
}

/* After vb_timers_reserve(), as many timers as were reserved can be set, even
 * if memory is exhausted. */
static void reserve__makes_room_for_so_many(void **state)
{
	static struct vb_timer t[MANY];
	struct vb_timer **heap;
	struct vb_timers ts;

	vb_timers_init(&ts);
	for (int i = 0; i < MANY; i++)
		vb_timer_init(&t[i]);
	assert_int_equal(vb_timer_set(&ts, &t[0], 7), 0);
	assert_int_equal(vb_timers_reserve(&ts, MANY), 0);
	heap = ts.heap;
	for (int i = 1; i < MANY; i++)
		assert_int_equal(vb_timer_set(&ts, &t[i], 8 + (vb_time)i), 0);
	assert_ptr_equal(ts.heap, heap);
	assert_ptr_equal(vb_timers_pop(&ts, 7), &t[0]);
	assert_int_equal(vb_timers_reserve(&ts, 1), 0);
	assert_ptr_equal(ts.heap, heap);
	vb_timers_fini(&ts);
}

static void check_heap(const struct vb_timers *ts)
{
	for (uint32_t i = 0; i < ts->used; i++) {
		assert_int_equal(ts->heap[i]->pos, i);
		assert_true(ts->heap[(i - (i > 0)) / 2]->at <= ts->heap[i]->at);
	}
}

static vb_time earliest(const struct vb_timer *t)
{
	vb_time at = VB_NEVER;

	for (int i = 0; i < MANY; i++)
		at = VB_MIN(at, t[i].at);
	return at;
}

/* Compare the heap's first timer with a linear search for the minimum. */
static void timers__random_moves(void **state)
{
	static struct vb_timer t[MANY];
	struct vb_timers ts;

	srand(3);
	vb_timers_init(&ts);
	for (int i = 0; i < MANY; i++)
		vb_timer_init(&t[i]);
	for (int step = 0; step < 30000; step++) {
		struct vb_timer *one = &t[rand() % MANY];
		vb_time next = vb_timers_next(&ts);

		switch (rand() % 4) {
		case 0:
			vb_timer_cancel(&ts, one);
			assert_true(one->at == VB_NEVER);
			break;
		case 1:
			one = vb_timers_pop(&ts, next);
			assert_true(!one == (next == VB_NEVER));
			break;
		default:
			assert_int_equal(
				vb_timer_set(&ts, one, (vb_time)rand() % 500),
				0);
		}
		check_heap(&ts);
		assert_true(vb_timers_next(&ts) == earliest(t));
	}
	vb_timers_fini(&ts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers__pop_in_order_and_not_early),
		cmocka_unit_test(timers__random_moves),
		cmocka_unit_test(reserve__makes_room_for_so_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

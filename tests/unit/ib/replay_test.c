/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ib/replay.h"

static struct vb_replay r;

static struct vb_answer *add(uint32_t psn, uint32_t count)
{
	struct vb_answer *a;

	assert_true(vb_replay_has_room(&r));
	a = vb_replay_add(&r);
	a->psn = psn;
	a->count = count;
	return a;
}

static void replay__slots_are_rounded_up_as_peers_do(void **state)
{
	static const unsigned want[][2] = { { 0, 0 },	 { 1, 1 },
					    { 3, 4 },	 { 16, 16 },
					    { 17, 32 },	 { 128, 128 },
					    { 255, 128 } };

	for (unsigned i = 0; i < VB_COUNT(want); i++) {
		vb_replay_reset(&r, want[i][0]);
		assert_int_equal(r.slots, want[i][1]);
	}
	vb_replay_reset(&r, 0);
	assert_false(vb_replay_has_room(&r));
}

static void replay__answers_come_out_in_order(void **state)
{
	struct vb_answer *a[3];

	vb_replay_reset(&r, 4);
	assert_null(vb_replay_due(&r));
	for (uint32_t i = 0; i < 3; i++)
		a[i] = add(10 * i, 10);
	for (unsigned i = 0; i < 3; i++) {
		assert_ptr_equal(vb_replay_due(&r), a[i]);
		vb_replay_done(&r);
	}
	assert_null(vb_replay_due(&r));
}

static void replay__finds_by_psn_across_the_wrap(void **state)
{
	struct vb_answer *a, *b;

	vb_replay_reset(&r, 4);
	assert_null(vb_replay_find(&r, 0));
	/* a READ with the PSNs 0xfffffe to 1, across the wrap */
	a = add(0xfffffe, 4);
	b = add(5, 1);
	assert_null(vb_replay_find(&r, 0xfffffd));
	assert_ptr_equal(vb_replay_find(&r, 0xfffffe), a);
	assert_ptr_equal(vb_replay_find(&r, 1), a);
	assert_null(vb_replay_find(&r, 2));
	assert_ptr_equal(vb_replay_find(&r, 5), b);
	assert_null(vb_replay_find(&r, 6));
}

static void replay__no_more_unanswered_than_slots(void **state)
{
	vb_replay_reset(&r, 2);
	add(0, 1);
	add(1, 1);
	assert_false(vb_replay_has_room(&r));
	vb_replay_done(&r);
	assert_true(vb_replay_has_room(&r));
	add(2, 1);
	assert_null(vb_replay_find(&r, 0));
	assert_non_null(vb_replay_find(&r, 1));
}

static void replay__a_repeat_gives_way_to_a_new_request(void **state)
{
	struct vb_answer *b;

	vb_replay_reset(&r, 2);
	add(0, 1);
	b = add(1, 1);
	vb_replay_done(&r);
	vb_replay_done(&r);
	vb_replay_again(&r, vb_replay_find(&r, 0));
	assert_int_equal(vb_replay_due(&r)->due, DUE_AGAIN);
	vb_replay_again(&r, b);
	assert_true(vb_replay_has_room(&r));
	add(2, 1);
	assert_ptr_equal(vb_replay_due(&r), b);
	vb_replay_cancel(&r);
	assert_null(vb_replay_due(&r));
	assert_int_equal(b->due, DUE_NOT);
}

static void replay__a_repeat_goes_before_what_is_later(void **state)
{
	struct vb_answer *a, *c;

	vb_replay_reset(&r, 8);
	a = add(0, 4);
	add(4, 4);
	vb_replay_done(&r);
	vb_replay_done(&r);
	c = add(8, 4);
	vb_replay_again(&r, a);
	assert_ptr_equal(vb_replay_due(&r), a);
	vb_replay_done(&r);
	assert_ptr_equal(vb_replay_due(&r), c);
	/* An answer stays new until it was sent completely, however often it is
	 * requested. */
	vb_replay_again(&r, c);
	assert_int_equal(c->due, DUE_NEW);
}

static void replay__fewer_slots_keep_the_newest(void **state)
{
	vb_replay_reset(&r, 8);
	for (uint32_t i = 0; i < 8; i++)
		add(i, 1);
	vb_replay_resize(&r, 2);
	assert_null(vb_replay_find(&r, 5));
	assert_non_null(vb_replay_find(&r, 6));
	assert_int_equal(vb_replay_due(&r)->psn, 6);
	vb_replay_resize(&r, 16);
	assert_true(vb_replay_has_room(&r));
}

/* The ring is allocated when it is needed, and a larger capacity keeps its
 * entries. */
static void replay__takes_no_memory_before_it_must(void **state)
{
	struct vb_answer *a;

	vb_replay_reset(&r, 2);
	assert_null(r.ring);
	assert_null(vb_replay_find(&r, 1));
	add(1, 1);
	add(2, 1);
	assert_int_equal(r.cap, 2);
	vb_replay_done(&r);
	vb_replay_resize(&r, 16);
	add(3, 1);
	assert_int_equal(r.cap, 16);
	a = vb_replay_find(&r, 2);
	assert_non_null(a);
	assert_int_equal(a->psn, 2);
	assert_ptr_equal(vb_replay_due(&r), a);
	vb_replay_again(&r, vb_replay_find(&r, 1));
	assert_int_equal(vb_replay_due(&r)->psn, 1);
	vb_replay_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replay__slots_are_rounded_up_as_peers_do),
		cmocka_unit_test(replay__answers_come_out_in_order),
		cmocka_unit_test(replay__finds_by_psn_across_the_wrap),
		cmocka_unit_test(replay__no_more_unanswered_than_slots),
		cmocka_unit_test(replay__a_repeat_gives_way_to_a_new_request),
		cmocka_unit_test(replay__a_repeat_goes_before_what_is_later),
		cmocka_unit_test(replay__fewer_slots_keep_the_newest),
		cmocka_unit_test(replay__takes_no_memory_before_it_must),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/flow.h"

static void init__lets_nothing_leave(void **state)
{
	struct vb_fc f = { 0 };

	vb_fc_init(&f, false, 100);
	assert_false(vb_fc_may_send(&f, 1));
	assert_false(vb_fc_is_told(&f));
}

/* End @from sends its flow control packet (credits), and end @to receives
 * it. */
static void pass(struct vb_fc *from, struct vb_fc *to)
{
	struct vb_fc_pkt p;

	vb_fc_tell(from, FC_NORMAL, 3, &p);
	assert_int_equal(p.vl, 3);
	assert_true(vb_fc_hear(to, &p));
}

static void limit__is_what_is_free(void **state)
{
	struct vb_fc a = { 0 }, b = { 0 };

	vb_fc_init(&a, false, 100);
	vb_fc_init(&b, false, 100);
	pass(&b, &a);
	assert_true(vb_fc_is_told(&b));
	assert_true(vb_fc_may_send(&a, 100));
	assert_false(vb_fc_may_send(&a, 101));
	vb_fc_sent(&a, 60);
	assert_true(vb_fc_may_send(&a, 40));
	assert_false(vb_fc_may_send(&a, 41));
	assert_true(vb_fc_take(&b, 60));
	/* refused: the buffer has room for one block less */
	assert_false(vb_fc_take(&b, 41));
	pass(&b, &a);
	assert_false(vb_fc_may_send(&a, 41));
	vb_fc_give(&b, 60);
	pass(&b, &a);
	assert_true(vb_fc_may_send(&a, 100));
}

static void limit__is_half_the_numbers_at_most(void **state)
{
	struct vb_fc a = { 0 }, b = { 0 };

	vb_fc_init(&a, false, 9999);
	vb_fc_init(&b, false, 9999);
	pass(&b, &a);
	assert_true(vb_fc_may_send(&a, 2048));
	assert_false(vb_fc_may_send(&a, 2049));
	vb_fc_init(&a, true, 9999);
	vb_fc_init(&b, true, 9999);
	pass(&b, &a);
	assert_true(vb_fc_may_send(&a, 9999));
	assert_false(vb_fc_may_send(&a, 10000));
}

static void widths__do_not_mix(void **state)
{
	struct vb_fc a = { 0 }, b = { 0 };
	struct vb_fc_pkt p;

	vb_fc_init(&a, false, 100);
	vb_fc_init(&b, true, 100);
	vb_fc_tell(&b, FC_INIT, 0, &p);
	assert_true(p.wide);
	assert_false(vb_fc_hear(&a, &p));
	assert_false(vb_fc_may_send(&a, 1));
}

/* Credits of lost frames come back with the sender's next total. */
static void lost_frames__give_their_credits_back(void **state)
{
	struct vb_fc a = { 0 }, b = { 0 };

	vb_fc_init(&a, false, 100);
	vb_fc_init(&b, false, 100);
	pass(&b, &a);
	vb_fc_sent(&a, 100);
	pass(&b, &a);
	assert_false(vb_fc_may_send(&a, 1));
	/* The flow control packet says that 100 blocks have been sent. */
	pass(&a, &b);
	assert_false(vb_fc_is_told(&b));
	pass(&b, &a);
	assert_true(vb_fc_may_send(&a, 100));
}

static void give__is_heard_of_by_eighths(void **state)
{
	struct vb_fc f = { 0 };
	struct vb_fc_pkt p;

	vb_fc_init(&f, false, 80);
	vb_fc_tell(&f, FC_NORMAL, 0, &p);
	assert_true(vb_fc_take(&f, 40));
	/* 40 blocks arrived and 40 are in use, so the limit stays the same. */
	assert_true(vb_fc_is_told(&f));
	assert_false(vb_fc_give(&f, 9));
	assert_true(vb_fc_give(&f, 1));
}

static void init__keeps_what_is_in_the_buffer(void **state)
{
	struct vb_fc f = { 0 };
	struct vb_fc_pkt p;

	vb_fc_init(&f, false, 100);
	assert_true(vb_fc_take(&f, 70));
	vb_fc_init(&f, false, 100);
	vb_fc_tell(&f, FC_INIT, 0, &p);
	assert_int_equal(p.op, FC_INIT);
	assert_int_equal(p.fctbs, 0);
	assert_int_equal(p.fccl, 30);
}

/* Random frames, losses of frames and of link packets, over many turns of the
 * counters: never an overrun, and all credits come back. */
static void random__never_overruns(void **state)
{
	for (unsigned seed = 1; seed <= 200; seed++) {
		bool wide = seed % 2;
		uint32_t size = 66 + (uint32_t)seed * 37, stored = 0;
		struct vb_fc a = { 0 }, b = { 0 };

		srand(seed);
		vb_fc_init(&a, wide, size);
		vb_fc_init(&b, wide, size);
		for (int i = 0; i < 5000; i++) {
			uint32_t blocks = 1 + (uint32_t)rand() % 66;

			if (vb_fc_may_send(&a, blocks)) {
				vb_fc_sent(&a, blocks);
				if (rand() % 8) {
					assert_true(vb_fc_take(&b, blocks));
					stored += blocks;
				}
			}
			if (stored && rand() % 2) {
				uint32_t n = 1 + (uint32_t)rand() % stored;

				vb_fc_give(&b, n);
				stored -= n;
			}
			if (rand() % 4 == 0)
				pass(&b, &a);
			if (rand() % 4 == 0)
				pass(&a, &b);
		}
		vb_fc_give(&b, stored);
		pass(&a, &b);
		pass(&b, &a);
		assert_true(vb_fc_may_send(&a, VB_MIN(size, 2048u)));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(init__lets_nothing_leave),
		cmocka_unit_test(limit__is_what_is_free),
		cmocka_unit_test(limit__is_half_the_numbers_at_most),
		cmocka_unit_test(widths__do_not_mix),
		cmocka_unit_test(lost_frames__give_their_credits_back),
		cmocka_unit_test(give__is_heard_of_by_eighths),
		cmocka_unit_test(init__keeps_what_is_in_the_buffer),
		cmocka_unit_test(random__never_overruns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* near/split_copy: exactly one side copies a part, and both know which one. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "near/split_copy.h"

#define TURNS 20000

struct both {
	struct vb_offer offer;
	struct vb_split_copy split;
	_Atomic bool stop;
	/* number of parts that the sender has copied */
	_Atomic uint32_t copied;
};

static int set_up(void **state)
{
	struct both *b = aligned_alloc(64, sizeof(*b));

	memset(b, 0, sizeof(*b));
	b->split.offer = &b->offer;
	b->split.world = &vb_near_host;
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static struct vb_copy_part part_of(uint32_t seq)
{
	return (struct vb_copy_part){ .qpn = 7, .seq = seq, .len = ~seq };
}

static bool make(struct both *b, uint32_t seq)
{
	const struct vb_copy_part part = part_of(seq);

	return vb_split_copy_make(&b->split, &part);
}

static void offer__taken_back(void **state)
{
	struct both *b = *state;
	struct vb_copy_part part;
	uint32_t word;

	assert_false(vb_offer_is_there(&b->offer));
	assert_true(make(b, 1));
	assert_true(vb_offer_is_there(&b->offer));
	assert_int_equal(vb_split_copy_end(&b->split), SPLIT_OURS);
	assert_false(vb_offer_is_there(&b->offer));
	assert_false(vb_offer_take(&b->offer, &part, &word));
}

static void offer__taken(void **state)
{
	struct both *b = *state;
	struct vb_copy_part part;
	uint32_t word;

	assert_true(make(b, 5));
	assert_true(vb_offer_take(&b->offer, &part, &word));
	assert_int_equal(part.seq, 5);
	assert_int_equal(part.len, ~5u);
	assert_false(vb_offer_is_there(&b->offer));
	assert_false(vb_offer_end(&b->offer, word, true));
	assert_int_equal(vb_split_copy_end(&b->split), SPLIT_DONE);

	assert_true(make(b, 6));
	assert_true(vb_offer_take(&b->offer, &part, &word));
	assert_false(vb_offer_end(&b->offer, word, false));
	assert_int_equal(vb_split_copy_end(&b->split), SPLIT_OURS);
}

/* A slow sender ends later and learns that it must wake the receiver; meanwhile
 * no further part is offered. */
static void offer__slow_sender(void **state)
{
	struct both *b = *state;
	struct vb_copy_part part;
	uint32_t word;

	assert_true(make(b, 1));
	assert_true(vb_offer_take(&b->offer, &part, &word));
	assert_int_equal(vb_split_copy_end(&b->split), SPLIT_SLOW);
	assert_int_equal(vb_split_copy_look(&b->split), SPLIT_SLOW);
	assert_false(make(b, 2));
	assert_true(vb_offer_end(&b->offer, word, true));
	assert_int_equal(vb_split_copy_look(&b->split), SPLIT_DONE);
	while (!make(b, 3))
		sched_yield();
}

/* The end of an earlier offer does not count as the end of a later one. */
static void offer__numbered(void **state)
{
	struct both *b = *state;
	struct vb_copy_part part;
	uint32_t word;

	assert_true(make(b, 1));
	assert_true(vb_offer_take(&b->offer, &part, &word));
	assert_false(vb_offer_end(&b->offer, word, true));
	assert_int_equal(vb_split_copy_end(&b->split), SPLIT_DONE);
	/* A late end of offer 1 does not end offer 2, and an end of offer 2
	 * after the receiver has dropped it is ignored. */
	assert_true(make(b, 2));
	assert_false(vb_offer_end(&b->offer, word, true));
	assert_true(vb_offer_take(&b->offer, &part, &word));
	vb_split_copy_drop(&b->split);
	assert_false(vb_offer_end(&b->offer, word, true));
	assert_int_equal(vb_split_copy_look(&b->split), SPLIT_OURS);
}

static void offer__invalid_words(void **state)
{
	struct both *b = *state;

	assert_true(make(b, 1));
	for (uint32_t i = 0; i < 64; i++) {
		atomic_store(&b->offer.word, i * 0x9e3779b9u & ~1u);
		assert_int_not_equal(vb_split_copy_end(&b->split), SPLIT_SLOW);
	}
}

static void offer__possible(void **state)
{
	/* NONE, MADE, TAKEN, DONE, FAILED, AWAITED */
	const uint32_t possible =
		1 << 0 | 1 << 1 | 1 << 2 | 1 << 4 | 1 << 6 | 1 << 8;
	struct both *b = *state;

	for (uint32_t i = 0; i < 16; i++) {
		atomic_store(&b->offer.word, 0x70 + i);
		assert_int_equal(vb_offer_is_possible(&b->offer),
				 possible >> i & 1);
	}
}

static void *sender_main(void *arg)
{
	struct both *b = arg;
	struct vb_copy_part part;
	uint32_t word;

	while (!atomic_load(&b->stop)) {
		if (!vb_offer_is_there(&b->offer) ||
		    !vb_offer_take(&b->offer, &part, &word))
			continue;
		assert_int_equal(part.len, ~part.seq);
		atomic_fetch_add(&b->copied, 1);
		(void)!vb_offer_end(&b->offer, word, true);
	}
	return NULL;
}

static void offer__each_part_copied_once(void **state)
{
	struct both *b = *state;
	uint32_t copied = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, sender_main, b), 0);
	for (uint32_t i = 0; i < TURNS; i++) {
		enum vb_split_copy_end end;

		if (!make(b, i))
			continue;
		for (unsigned spin = i % 64; spin; spin--)
			__asm__ volatile("");
		end = vb_split_copy_end(&b->split);
		while (end == SPLIT_SLOW)
			end = vb_split_copy_look(&b->split);
		copied += end == SPLIT_DONE;
		assert_int_equal(atomic_load(&b->copied), copied);
	}
	atomic_store(&b->stop, true);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(offer__taken_back, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(offer__taken, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(offer__slow_sender, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(offer__numbered, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(offer__invalid_words, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(offer__possible, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(offer__each_part_copied_once,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* near/hazard: hazards name the announced keys, and a revoking owner never
 * misses an access. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "near/hazard.h"
#include "tests/support/seeds.h"

static void hazards__name_the_announced_keys(void **state)
{
	struct vb_hazard hazards[VB_HAZARDS] = { 0 }, *a, *b;
	struct vb_announcer us = { .hazards = hazards };

	assert_false(vb_hazards_name(hazards, 0, 0));
	a = vb_hazard_announce(&us, 0xabc, 5);
	b = vb_hazard_announce(&us, 0xdef, 6);
	assert_ptr_not_equal(a, b);
	assert_true(vb_hazards_name(hazards, 0xabc, 0));
	assert_true(vb_hazards_name(hazards, 0xdef, 6));
	assert_true(vb_hazards_name(hazards, 0, 5));
	assert_false(vb_hazards_name(hazards, 0xabc, 6));
	assert_false(vb_hazards_name(hazards, 0x111, 0));
	vb_hazard_withdraw(&us, a);
	assert_false(vb_hazards_name(hazards, 0xabc, 0));
	assert_true(vb_hazards_name(hazards, 0xdef, 0));
	vb_hazard_withdraw(&us, b);
	assert_false(vb_hazards_name(hazards, 0, 0));
}

/* The peer may overwrite this program's hazards, so it must not decide which of
 * them are free. */
static void hazards__overwritten_by_the_peer_are_still_taken(void **state)
{
	struct vb_hazard hazards[VB_HAZARDS], *taken[VB_HAZARDS];
	struct vb_announcer us = { .hazards = hazards };

	for (unsigned round = 0; round < 3; round++) {
		memset(hazards, 0xff, sizeof(hazards));
		for (unsigned i = 0; i < VB_HAZARDS; i++) {
			taken[i] = vb_hazard_announce(&us, 7, 1);
			for (unsigned j = 0; j < i; j++)
				assert_ptr_not_equal(taken[i], taken[j]);
		}
		memset(hazards, 0, sizeof(hazards));
		for (unsigned i = 0; i < VB_HAZARDS; i++)
			vb_hazard_withdraw(&us, taken[i]);
	}
}

/* One thread revokes the key while others use it. No access may happen while
 * the owner has the memory for itself. */
static struct {
	struct vb_hazard hazards[VB_HAZARDS];
	struct vb_announcer us;
	_Atomic uint32_t key;  /* the valid key; 0: it is revoked */
	_Atomic uint32_t ours; /* 1: the owner has the memory for itself */
	/* number of accesses that happened while the owner had the memory */
	_Atomic uint32_t broken;
	_Atomic bool stop;
} meet;

static void *touch(void *arg)
{
	while (!atomic_load(&meet.stop)) {
		struct vb_hazard *hazard = vb_hazard_announce(&meet.us, 7, 1);

		/* The access begins with a valid key and takes a moment. */
		if (atomic_load(&meet.key) == 7)
			for (int i = 0; i < 100; i++)
				if (atomic_load(&meet.ours))
					atomic_fetch_add(&meet.broken, 1);
		vb_hazard_withdraw(&meet.us, hazard);
	}
	return NULL;
}

static void hazards__no_access_after_revocation(void **state)
{
	pthread_t threads[2];

	meet.us.hazards = meet.hazards;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, touch, NULL),
				 0);
	for (unsigned i = 0; i < 20000 / seeds_divisor(); i++) {
		atomic_store(&meet.key, 7);
		if (i % 16 == 0)
			sched_yield();
		atomic_store(&meet.key, 0);
		while (vb_hazards_name(meet.hazards, 7, 0))
			sched_yield();
		atomic_store(&meet.ours, 1);
		/* This is long enough for the other threads to try an
		 * access. */
		for (int turn = 0; turn < 200; turn++)
			(void)atomic_load(&meet.ours);
		atomic_store(&meet.ours, 0);
	}
	atomic_store(&meet.stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&meet.broken), 0);
}

/* All hazards are in use by threads that wait for pages of the peer. One more
 * thread gives up after a limited time. */
static void hazards__all_in_use_are_not_waited_for_without_a_bound(void **state)
{
	struct vb_hazard hazards[VB_HAZARDS] = { 0 };
	struct vb_announcer us = { .hazards = hazards };
	struct vb_hazard *last = NULL;

	for (unsigned i = 0; i < VB_HAZARDS; i++)
		assert_non_null(last = vb_hazard_announce(&us, 7, 1));
	assert_null(vb_hazard_announce(&us, 7, 1));
	vb_hazard_withdraw(&us, last);
	assert_true(vb_hazard_announce(&us, 7, 1) == last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hazards__name_the_announced_keys),
		cmocka_unit_test(
			hazards__overwritten_by_the_peer_are_still_taken),
		cmocka_unit_test(hazards__no_access_after_revocation),
		cmocka_unit_test(
			hazards__all_in_use_are_not_waited_for_without_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* near/hazards: who announced what, and that one of two always sees the other.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "near/hazard.h"

static void cells__name_what_is_announced(void **state)
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

/* The other program writes where we announce: which hazards are ours to take,
 * we do not learn from there. */
static void cells__scribbled_on_are_taken_all_the_same(void **state)
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

/* One takes the key away, one uses it: memory that is no more the other's is
 * never touched. */
static struct {
	struct vb_hazard hazards[VB_HAZARDS];
	struct vb_announcer us;
	_Atomic uint32_t key;	 /* 0: revoked */
	_Atomic uint32_t ours;	 /* the owner has it for itself */
	_Atomic uint32_t broken; /* how often it was touched then */
	_Atomic bool stop;
} meet;

static void *touch(void *arg)
{
	while (!atomic_load(&meet.stop)) {
		struct vb_hazard *hazard = vb_hazard_announce(&meet.us, 7, 1);

		if (atomic_load(&meet.key) == 7 &&
		    atomic_load_explicit(&meet.ours, memory_order_relaxed))
			atomic_fetch_add(&meet.broken, 1);
		vb_hazard_withdraw(&meet.us, hazard);
	}
	return NULL;
}

static void cells__after_revocation_nobody_is_at_it(void **state)
{
	pthread_t threads[2];

	meet.us.hazards = meet.hazards;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, touch, NULL),
				 0);
	for (int i = 0; i < 20000; i++) {
		atomic_store(&meet.key, 7);
		if (i % 16 == 0)
			sched_yield();
		atomic_store(&meet.key, 0);
		while (vb_hazards_name(meet.hazards, 7, 0))
			sched_yield();
		atomic_store_explicit(&meet.ours, 1, memory_order_relaxed);
		atomic_store_explicit(&meet.ours, 0, memory_order_release);
	}
	atomic_store(&meet.stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&meet.broken), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells__name_what_is_announced),
		cmocka_unit_test(cells__scribbled_on_are_taken_all_the_same),
		cmocka_unit_test(cells__after_revocation_nobody_is_at_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

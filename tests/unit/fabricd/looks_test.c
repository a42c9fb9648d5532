/* SPDX-License-Identifier: BSD-2-Clause */
/* fabricd/looks: when the fabric's process spins for a program's answer, in
 * virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fabricd/looks.h"

#define APART	 true
#define TOGETHER false

static void looks__awaits_an_answer_for_a_while(void **state)
{
	struct vb_looks l = { 0 };
	vb_time now = VB_SEC;

	assert_false(vb_looks_on(&l, APART, now));
	vb_looks_gave(&l, now);
	assert_true(vb_looks_on(&l, APART, now));
	assert_true(vb_looks_on(&l, APART, now + VB_LOOKS_ANSWER - 1));
	assert_false(vb_looks_on(&l, APART, now + VB_LOOKS_ANSWER));
	assert_false(vb_looks_on(&l, APART, now));
}

/* If the program that is to answer needs the processor on which this process
 * waits, the process ends the wait. This does not count as a wait without an
 * answer: the next wait may begin at once. */
static void looks__leaves_the_processor_to_the_program(void **state)
{
	struct vb_looks l = { 0 };
	vb_time now = VB_SEC;

	vb_looks_gave(&l, now);
	assert_false(vb_looks_on(&l, TOGETHER, now));
	vb_looks_gave(&l, now);
	assert_true(vb_looks_on(&l, APART, now));
}

/* An answer ends the wait, and the next frame that is delivered begins another
 * one. */
static void looks__goes_on_after_an_answer(void **state)
{
	struct vb_looks l = { 0 };
	vb_time now = VB_SEC;

	for (unsigned i = 0; i < 100; i++) {
		vb_looks_gave(&l, now);
		assert_true(vb_looks_on(&l, APART, now));
		now += VB_LOOKS_ANSWER / 2;
		vb_looks_answered(&l);
		assert_false(vb_looks_on(&l, APART, now));
	}
}

/* Wait at *@now without an answer. Returns how long after that no wait
 * begins. */
static vb_time wait_in_vain(struct vb_looks *l, vb_time *now)
{
	vb_time end;

	vb_looks_gave(l, *now);
	assert_true(vb_looks_on(l, APART, *now));
	end = *now += VB_LOOKS_ANSWER;
	assert_false(vb_looks_on(l, APART, *now));
	for (;; *now += VB_LOOKS_LEAST / 10) {
		vb_looks_gave(l, *now);
		if (vb_looks_on(l, APART, *now))
			return *now - end;
	}
}

/* If a program never answers, the process waits less and less often, so that it
 * takes little time from a program on the same processor. */
static void looks__waits_seldom_where_no_answer_comes(void **state)
{
	struct vb_looks l = { 0 };
	vb_time now = VB_SEC;

	assert_int_equal(wait_in_vain(&l, &now), VB_LOOKS_LEAST);
	assert_int_equal(wait_in_vain(&l, &now), 2 * VB_LOOKS_LEAST);
	for (unsigned i = 0; i < 10; i++)
		wait_in_vain(&l, &now);
	assert_int_equal(wait_in_vain(&l, &now), VB_LOOKS_MOST);
	vb_looks_answered(&l);
	assert_int_equal(wait_in_vain(&l, &now), VB_LOOKS_LEAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks__awaits_an_answer_for_a_while),
		cmocka_unit_test(looks__leaves_the_processor_to_the_program),
		cmocka_unit_test(looks__goes_on_after_an_answer),
		cmocka_unit_test(looks__waits_seldom_where_no_answer_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

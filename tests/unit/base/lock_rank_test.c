/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that takes locks against their rank order aborts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sync.h"

enum { OUTER = 1, INNER };

static struct vb_mutex outer = VB_MUTEX_INITIALIZER(OUTER);
static struct vb_mutex inner = VB_MUTEX_INITIALIZER(INNER);
static struct vb_mutex leaf; /* a mutex of zeros has the rank "leaf" */

static void VB_UNCHECKED take(struct vb_mutex *first, struct vb_mutex *second)
{
	vb_mutex_lock(first);
	vb_mutex_lock(second);
	vb_mutex_unlock(first);
	vb_mutex_unlock(second);
}

static void in_order(void)
{
	take(&outer, &inner);
	take(&inner, &leaf);
	take(&outer, &leaf);
}

static void out_of_order(void)
{
	take(&inner, &outer);
}

static void below_a_leaf(void)
{
	take(&leaf, &inner);
}

static void VB_UNCHECKED only_tried(void)
{
	vb_mutex_lock(&inner);
	if (vb_mutex_trylock(&outer))
		vb_mutex_unlock(&outer);
	vb_mutex_unlock(&inner);
	take(&outer, &inner);
}

static void VB_UNCHECKED waits_with_one(void)
{
	vb_mutex_lock(&inner);
	vb_rank_may_wait(INNER, INNER);
}

static void VB_UNCHECKED waits_with_another(void)
{
	vb_mutex_lock(&outer);
	vb_rank_may_wait(INNER, INNER);
}

static void VB_UNCHECKED needs_what_it_holds(void)
{
	vb_mutex_lock(&outer);
	vb_mutex_lock(&inner);
	vb_mutex_assert_held(&outer);
}

static void VB_UNCHECKED needs_what_it_gave_up(void)
{
	vb_mutex_lock(&outer);
	vb_mutex_lock(&inner);
	vb_mutex_unlock(&outer);
	vb_mutex_assert_held(&outer);
}

static bool aborts(void (*what)(void))
{
	int status = 0;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		close(STDERR_FILENO);
		what();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		return true;
	assert_int_equal(WEXITSTATUS(status), 0);
	return false;
}

static void order__is_held_to(void **state)
{
	assert_false(aborts(in_order));
	assert_true(aborts(out_of_order));
	assert_true(aborts(below_a_leaf));
}

static void order__nothing_is_said_of_what_was_tried(void **state)
{
	assert_false(aborts(only_tried));
}

static void wait__not_with_such_a_lock(void **state)
{
	assert_true(aborts(waits_with_one));
	assert_false(aborts(waits_with_another));
}

static void held__by_this_thread(void **state)
{
	assert_false(aborts(needs_what_it_holds));
	assert_true(aborts(needs_what_it_gave_up));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order__is_held_to),
		cmocka_unit_test(order__nothing_is_said_of_what_was_tried),
		cmocka_unit_test(wait__not_with_such_a_lock),
		cmocka_unit_test(held__by_this_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

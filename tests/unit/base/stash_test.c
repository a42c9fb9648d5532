/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/stash.h"

static struct vb_stash s;

static int empty(void **state)
{
	vb_stash_fini(&s);
	assert_int_equal(s.kept, 0);
	return 0;
}

static void *take(size_t bytes)
{
	void *p = vb_stash_take(&s, bytes);

	assert_non_null(p);
	memset(p, 0x5a, bytes);
	return p;
}

static void stash__gives_out_what_came_back_last(void **state)
{
	void *a = take(4200), *b = take(4300);

	vb_stash_give(&s, a, 4200);
	vb_stash_give(&s, b, 4300);
	assert_ptr_equal(take(4608), b);
	assert_ptr_equal(take(1537), a);
	assert_int_equal(s.kept, 0);
	free(a);
	free(b);
}

static void stash__keeps_sizes_apart(void **state)
{
	void *small = take(1), *large;

	vb_stash_give(&s, small, 1);
	large = take(513);
	assert_ptr_not_equal(large, small);
	vb_stash_give(&s, large, 513);
	assert_ptr_equal(take(512), small);
	assert_ptr_equal(take(1536), large);
	free(small);
	free(large);
}

/* The stash frees a buffer that is larger than the sizes it keeps. */
static void stash__keeps_no_giants(void **state)
{
	vb_stash_give(&s, take(4609), 4609);
	assert_int_equal(s.kept, 0);
}

static void stash__says_what_it_takes(void **state)
{
	assert_int_equal(vb_stash_room(1), 512);
	assert_int_equal(vb_stash_room(512), 512);
	assert_int_equal(vb_stash_room(1537), 4608);
	assert_int_equal(vb_stash_room(4609), 4609);
}

#define MANY (VB_STASH_KEEPS / 4608 + 10)

static void stash__keeps_so_much_and_no_more(void **state)
{
	static void *all[MANY];

	for (unsigned i = 0; i < MANY; i++)
		all[i] = take(4608);
	for (unsigned i = 0; i < MANY; i++)
		vb_stash_give(&s, all[i], 4608);
	assert_true(s.kept <= VB_STASH_KEEPS);
	assert_true(s.kept > VB_STASH_KEEPS - 4608);
	/* When the stash is full, the last buffers returned are freed, and not
	 * the first. */
	assert_ptr_equal(take(4608), all[MANY - 11]);
	free(all[MANY - 11]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(stash__gives_out_what_came_back_last,
					  empty),
		cmocka_unit_test_teardown(stash__keeps_sizes_apart, empty),
		cmocka_unit_test_teardown(stash__keeps_no_giants, empty),
		cmocka_unit_test_teardown(stash__says_what_it_takes, empty),
		cmocka_unit_test_teardown(stash__keeps_so_much_and_no_more,
					  empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the quotas of users, and the reserve for root. */
#include "tests/support/user_has.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static struct vb_users users;

static void user__is_one_as_long_as_referred_to(void **state)
{
	struct vb_user *a = vb_user_enter(&users, 5, false);
	struct vb_user *b = vb_user_enter(&users, 6, false);

	assert_ptr_equal(vb_user_enter(&users, 5, false), a);
	assert_ptr_not_equal(a, b);
	assert_true(vb_user_take(a, VB_QUOTA_SLOTS, 7));
	assert_int_equal(user_has(b, VB_QUOTA_SLOTS), 0);
	vb_user_leave(a);
	assert_int_equal(user_has(a, VB_QUOTA_SLOTS), 7);
	vb_user_leave(a);
	a = vb_user_enter(&users, 5, false);
	assert_int_equal(user_has(a, VB_QUOTA_SLOTS), 0);
	vb_user_leave(b);
	vb_user_leave(a);
	assert_null(users.first);
}

static void user__takes_so_much(void **state)
{
	static const size_t most[VB_QUOTAS] = {
		[VB_QUOTA_SESSIONS] = 320,   [VB_QUOTA_SLOTS] = 128,
		[VB_QUOTA_IDS] = 65536,	     [VB_QUOTA_PORTS] = 16384,
		[VB_QUOTA_BYTES] = 64 << 20,
	};
	struct vb_user *u = vb_user_enter(&users, 5, false);
	struct vb_user *root = vb_user_enter(&users, 0, true);
	char text[120];

	for (enum vb_quota q = 0; q < VB_QUOTAS; q++) {
		assert_false(vb_user_take(u, q, most[q] + 1));
		assert_false(vb_user_take(u, q, SIZE_MAX / 2));
		assert_true(vb_user_take(u, q, most[q]));
		assert_false(vb_user_take(u, q, 1));
		vb_user_give(u, q, 1);
		assert_true(vb_user_take(u, q, 1));
		assert_true(vb_user_take(root, q, most[q] * 4));
		/* A count can be raised above the quota. */
		vb_user_count(u, q, 1);
		assert_false(vb_user_may_have(u, q, 1));
	}
	vb_user_give(u, VB_QUOTA_SLOTS, 1);
	vb_user_word_quota(u, VB_QUOTA_SLOTS, text, sizeof(text));
	assert_string_equal(text, "user 5 has 128 programs with devices here "
				  "already; one user may have 128");
	vb_user_leave(u);
	vb_user_leave(root);
}

/* A person who has many user numbers cannot use up the broker's memory. */
static void user__together_with_all_others(void **state)
{
	static const struct {
		enum vb_quota what;
		size_t one, all;
	} rows[] = {
		{ VB_QUOTA_IDS, 65536, 4 * 65536 },
		{ VB_QUOTA_PORTS, 16384, 4 * 16384 },
		{ VB_QUOTA_BYTES, 64 << 20, 256 << 20 },
	};
	struct vb_user *root = vb_user_enter(&users, 0, true), *u[5];
	char text[120];

	for (unsigned i = 0; i < VB_COUNT(u); i++)
		u[i] = vb_user_enter(&users, 100000 + i, false);
	for (unsigned r = 0; r < VB_COUNT(rows); r++) {
		enum vb_quota what = rows[r].what;

		assert_true(vb_user_take(root, what, rows[r].all));
		for (unsigned i = 0; i < 4; i++)
			assert_true(vb_user_take(u[i], what, rows[r].one));
		assert_int_equal(users.has[what], rows[r].all);
		assert_false(vb_user_take(u[4], what, 1));
		assert_true(vb_user_take(root, what, 1));
		vb_user_word_quota(u[4], what, text, sizeof(text));
		assert_non_null(strstr(text, "users other than root have "));
		vb_user_give(u[0], what, 1);
		assert_true(vb_user_take(u[4], what, 1));
		vb_user_give(u[4], what, 1);
		vb_user_count(u[0], what, 1);
		for (unsigned i = 0; i < 4; i++)
			vb_user_give(u[i], what, rows[r].one);
		assert_int_equal(users.has[what], 0);
	}
	for (unsigned i = 0; i < VB_COUNT(u); i++)
		vb_user_leave(u[i]);
	vb_user_leave(root);
}

static void user__leaves_some_to_root(void **state)
{
	struct vb_user *u = vb_user_enter(&users, 5, false);
	struct vb_user *root = vb_user_enter(&users, 0, true);
	char text[120];

	assert_true(vb_user_may_have_last(u, VB_QUOTA_SLOTS, 17));
	assert_false(vb_user_may_have_last(u, VB_QUOTA_SLOTS, 16));
	assert_true(vb_user_may_have_last(root, VB_QUOTA_SLOTS, 1));
	assert_false(vb_user_may_have_last(root, VB_QUOTA_SLOTS, 0));
	assert_true(vb_user_may_have_last(u, VB_QUOTA_SESSIONS, 65));
	assert_false(vb_user_may_have_last(u, VB_QUOTA_SESSIONS, 64));
	vb_user_word_reserve(VB_QUOTA_SLOTS, text, sizeof(text));
	assert_string_equal(text, "the last 16 programs with devices here are "
				  "kept for root");
	vb_user_leave(u);
	vb_user_leave(root);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(user__is_one_as_long_as_referred_to),
		cmocka_unit_test(user__takes_so_much),
		cmocka_unit_test(user__together_with_all_others),
		cmocka_unit_test(user__leaves_some_to_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

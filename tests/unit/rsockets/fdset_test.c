/* SPDX-License-Identifier: BSD-2-Clause */
/* Conversion of descriptor sets of select(2) to the array of poll(2), and
 * back. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
// cmocka.h needs the headers above
#include <cmocka.h>
#include <errno.h>

#include "base/defs.h"
#include "front/rsockets/fdset.h"

static struct pollfd fds[FD_SETSIZE];

static void test_from_sets(void **state)
{
	fd_set r, w, e;

	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_ZERO(&e);
	FD_SET(0, &r);
	FD_SET(5, &r);
	FD_SET(5, &w);
	FD_SET(FD_SETSIZE - 1, &e);
	assert_int_equal(rs_from_fdsets(FD_SETSIZE, &r, &w, &e, fds), 3);
	assert_int_equal(fds[0].fd, 0);
	assert_int_equal(fds[0].events, POLLIN);
	assert_int_equal(fds[1].fd, 5);
	assert_int_equal(fds[1].events, POLLIN | POLLOUT);
	assert_int_equal(fds[2].fd, FD_SETSIZE - 1);
	assert_int_equal(fds[2].events, POLLPRI);
	/* Only descriptors below 5 are taken from the sets. */
	assert_int_equal(rs_from_fdsets(5, &r, &w, &e, fds), 1);
	assert_int_equal(rs_from_fdsets(FD_SETSIZE, NULL, NULL, NULL, fds), 0);
}

/* In which fd sets a descriptor stays, for each result of poll(). */
static void test_to_sets(void **state)
{
	static const struct {
		short revents;
		bool r, w, e;
	} cases[] = {
		{ 0, 0, 0, 0 },	      { POLLIN, 1, 0, 0 },
		{ POLLOUT, 0, 1, 0 }, { POLLPRI, 0, 0, 1 },
		{ POLLHUP, 1, 0, 0 }, { POLLERR, 1, 1, 0 },
	};

	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		const struct pollfd p = { .fd = 5,
					  .revents = cases[i].revents };
		fd_set r, w, e;

		FD_ZERO(&r);
		FD_ZERO(&w);
		FD_ZERO(&e);
		FD_SET(5, &r);
		FD_SET(5, &w);
		FD_SET(5, &e);
		assert_int_equal(rs_to_fdsets(&p, 1, &r, &w, &e),
				 cases[i].r + cases[i].w + cases[i].e);
		assert_int_equal(!!FD_ISSET(5, &r), cases[i].r);
		assert_int_equal(!!FD_ISSET(5, &w), cases[i].w);
		assert_int_equal(!!FD_ISSET(5, &e), cases[i].e);
	}
}

static void test_only_what_was_asked(void **state)
{
	const struct pollfd p = { .fd = 5, .revents = POLLIN | POLLOUT };
	fd_set r;

	FD_ZERO(&r);
	FD_SET(5, &r);
	assert_int_equal(rs_to_fdsets(&p, 1, &r, NULL, NULL), 1);
	FD_ZERO(&r);
	assert_int_equal(rs_to_fdsets(&p, 1, &r, NULL, NULL), 0);
	assert_false(FD_ISSET(5, &r));
}

static void test_bad_descriptor(void **state)
{
	const struct pollfd p = { .fd = 5, .revents = POLLNVAL };

	errno = 0;
	assert_int_equal(rs_to_fdsets(&p, 1, NULL, NULL, NULL), -1);
	assert_int_equal(errno, EBADF);
}

static void test_timeout(void **state)
{
	static const struct {
		struct timeval t;
		int ms;
	} cases[] = {
		{ { 0, 0 }, 0 },	 { { 0, 1 }, 1 },
		{ { 0, 1000 }, 1 },	 { { 0, 1001 }, 2 },
		{ { 2, 500000 }, 2500 }, { { INT32_MAX, 0 }, INT32_MAX },
	};

	assert_int_equal(rs_select_timeout(NULL), -1);
	for (unsigned i = 0; i < VB_COUNT(cases); i++)
		assert_int_equal(rs_select_timeout(&cases[i].t), cases[i].ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_from_sets),
		cmocka_unit_test(test_to_sets),
		cmocka_unit_test(test_only_what_was_asked),
		cmocka_unit_test(test_bad_descriptor),
		cmocka_unit_test(test_timeout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

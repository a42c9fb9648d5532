/* SPDX-License-Identifier: BSD-2-Clause */
/* Errands: calls that may never return, and are therefore made in threads of
 * their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/errand.h"

static _Atomic long thrown;

static long read_byte(const void *args)
{
	char byte = 0;

	return read(*(const int *)args, &byte, 1) == 1 ? byte : -1;
}

static void throw_away(long result)
{
	atomic_store(&thrown, result);
}

static const struct vb_errand_kind reading = { read_byte, throw_away };

static bool await_end(struct vb_errands *all)
{
	struct pollfd ended = { vb_errands_fd(all), POLLIN, 0 };

	return poll(&ended, 1, 20000) == 1;
}

static void errand__ends_when_its_call_returns(void **state)
{
	struct vb_errands *all = vb_errands_create();
	struct vb_errand *e;
	long result = 0;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	e = vb_errand_start(all, &reading, &fds[0], sizeof(fds[0]));
	assert_non_null(e);
	assert_false(vb_errand_end(e, &result));
	assert_int_equal(write(fds[1], "a", 1), 1);
	assert_true(await_end(all));
	vb_errands_hear(all);
	assert_true(vb_errand_end(e, &result));
	assert_int_equal(result, 'a');
	vb_errands_release(all);
	close(fds[0]);
	close(fds[1]);
}

/* The owner of the errand ends before the errand does. */
static void errand__outlives_its_owner(void **state)
{
	struct vb_errands *all = vb_errands_create();
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	vb_errand_drop(vb_errand_start(all, &reading, &fds[0], sizeof(fds[0])));
	vb_errands_release(all);
	assert_int_equal(write(fds[1], "b", 1), 1);
	for (unsigned i = 0; i < 20000 && atomic_load(&thrown) != 'b'; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&thrown), 'b');
	close(fds[0]);
	close(fds[1]);
}

static void errand__so_many_may_wait(void **state)
{
	struct vb_errands *all = vb_errands_create();
	struct vb_errand *e[VB_ERRANDS_MOST];
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	for (unsigned i = 0; i < VB_ERRANDS_MOST; i++) {
		e[i] = vb_errand_start(all, &reading, &fds[0], sizeof(fds[0]));
		assert_non_null(e[i]);
	}
	assert_int_equal(vb_errands_under_way(all), VB_ERRANDS_MOST);
	assert_null(vb_errand_start(all, &reading, &fds[0], sizeof(fds[0])));
	for (unsigned i = 0; i < VB_ERRANDS_MOST; i++)
		vb_errand_drop(e[i]);
	close(fds[1]);
	for (unsigned i = 0; i < 20000 && vb_errands_under_way(all); i++)
		usleep(1000);
	assert_int_equal(vb_errands_under_way(all), 0);
	vb_errands_release(all);
	close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errand__ends_when_its_call_returns),
		cmocka_unit_test(errand__outlives_its_owner),
		cmocka_unit_test(errand__so_many_may_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing past RLIMIT_FSIZE returns an error, and raises no SIGXFSZ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file_limit.h"

#define LIMIT 100

static int set_up(void **state)
{
	struct rlimit limit = { LIMIT, RLIM_INFINITY };
	static int fd;

	fd = memfd_create("test", MFD_CLOEXEC);
	*state = &fd;
	return fd < 0 || setrlimit(RLIMIT_FSIZE, &limit) ? -1 : 0;
}

static int tear_down(void **state)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	close(*(int *)*state);
	return setrlimit(RLIMIT_FSIZE, &limit);
}

static void may_have__up_to_the_limit(void **state)
{
	assert_true(vb_file_may_have(LIMIT));
	assert_false(vb_file_may_have(LIMIT + 1));
}

static void write__past_the_limit(void **state)
{
	int fd = *(int *)*state;
	sigset_t pending;

	assert_int_equal(vb_file_write(fd, "12345678", 8, LIMIT - 4), 4);
	assert_int_equal(vb_file_write(fd, "12345678", 8, LIMIT), -1);
	assert_int_equal(errno, EFBIG);
	assert_int_equal(vb_file_write(fd, "1", 1, -1), 1);
	assert_int_equal(lseek(fd, LIMIT, SEEK_SET), LIMIT);
	assert_int_equal(vb_file_write(fd, "1", 1, -1), -1);
	assert_int_equal(errno, EFBIG);
	sigpending(&pending);
	assert_false(sigismember(&pending, SIGXFSZ));
}

/* A SIGXFSZ that was pending for the program stays pending. */
static void write__leaves_the_programs_signal(void **state)
{
	int fd = *(int *)*state, sig;
	sigset_t set, pending;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGXFSZ);
	assert_int_equal(vb_file_write(fd, "1", 1, LIMIT), -1);
	sigpending(&pending);
	assert_true(sigismember(&pending, SIGXFSZ));
	sigwait(&set, &sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(may_have__up_to_the_limit),
		TEST(write__past_the_limit),
		TEST(write__leaves_the_programs_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

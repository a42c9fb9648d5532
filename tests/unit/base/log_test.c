/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"

/* Returns what a child process with VERBENA_LOG=@setting writes to descriptor
 * 2. */
static size_t child_says(const char *setting, char *text, size_t room)
{
	size_t used = 0;
	int fds[2];
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		char wide[3000];

		dup2(fds[1], 2);
		if (setting)
			setenv("VERBENA_LOG", setting, 1);
		else
			unsetenv("VERBENA_LOG");
		memset(wide, 'x', sizeof(wide) - 1);
		wide[sizeof(wide) - 1] = 0;
		errno = 42;
		vb_log(LOG_ERROR, "qp 0x%x: broken", 0x12u);
		vb_log(LOG_WARN, "w");
		vb_log(LOG_INFO, "i");
		vb_log(LOG_DEBUG, "%s", wide);
		_exit(errno == 42 ? 0 : 1);
	}
	close(fds[1]);
	while ((got = read(fds[0], text + used, room - 1 - used)) > 0)
		used += (size_t)got;
	text[used] = 0;
	close(fds[0]);
	assert_int_equal(waitpid(pid, &fds[0], 0), pid);
	assert_int_equal(fds[0], 0);
	return used;
}

#define ERROR_LINE "verbena: qp 0x12: broken\n"
#define WARN_LINE  "verbena: w\n"
#define INFO_LINE  "verbena: i\n"

static void log__levels(void **state)
{
	char text[4096];

	assert_int_equal(child_says("quiet", text, sizeof(text)), 0);
	assert_int_equal(child_says("off", text, sizeof(text)), 0);
	child_says("error", text, sizeof(text));
	assert_string_equal(text, ERROR_LINE);
	child_says("warn", text, sizeof(text));
	assert_string_equal(text, ERROR_LINE WARN_LINE);
	child_says("info", text, sizeof(text));
	assert_string_equal(text, ERROR_LINE WARN_LINE INFO_LINE);
}

static void log__unset_or_nonsense_is_warn(void **state)
{
	char text[4096];

	child_says(NULL, text, sizeof(text));
	assert_string_equal(text, ERROR_LINE WARN_LINE);
	child_says("loud", text, sizeof(text));
	assert_string_equal(text, "verbena: VERBENA_LOG=loud is none of off, "
				  "error, warn, info and debug; using "
				  "warn\n" ERROR_LINE WARN_LINE);
	child_says("", text, sizeof(text));
	assert_string_equal(text, ERROR_LINE WARN_LINE);
}

static void log__long_line_is_cut_and_still_ends(void **state)
{
	char text[8192];
	size_t len = child_says("debug", text, sizeof(text));
	const char *wide = strstr(text, "verbena: xxx");

	assert_non_null(wide);
	assert_int_equal(text[len - 1], '\n');
	assert_in_range(strlen(wide), 1000, 1024);
	assert_ptr_equal(strchr(wide, '\n'), text + len - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log__levels),
		cmocka_unit_test(log__unset_or_nonsense_is_warn),
		cmocka_unit_test(log__long_line_is_cut_and_still_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

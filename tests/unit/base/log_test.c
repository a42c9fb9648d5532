/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "tests/support/child_says.h"

static void tell_all_levels(void)
{
	char wide[3000];

	memset(wide, 'x', sizeof(wide) - 1);
	wide[sizeof(wide) - 1] = 0;
	vb_log(LOG_ERROR, "qp 0x%x: broken", 0x12u);
	vb_log(LOG_WARN, "w");
	vb_log(LOG_INFO, "i");
	vb_log(LOG_DEBUG, "%s", wide);
}

#define ERROR_LINE "verbena: qp 0x12: broken\n"
#define WARN_LINE  "verbena: w\n"
#define INFO_LINE  "verbena: i\n"

static void log__levels(void **state)
{
	char text[4096];

	assert_int_equal(
		child_says(tell_all_levels, "quiet", text, sizeof(text)), 0);
	assert_int_equal(child_says(tell_all_levels, "off", text, sizeof(text)),
			 0);
	child_says(tell_all_levels, "error", text, sizeof(text));
	assert_string_equal(text, ERROR_LINE);
	child_says(tell_all_levels, "warn", text, sizeof(text));
	assert_string_equal(text, ERROR_LINE WARN_LINE);
	child_says(tell_all_levels, "info", text, sizeof(text));
	assert_string_equal(text, ERROR_LINE WARN_LINE INFO_LINE);
}

static void log__unset_or_nonsense_is_warn(void **state)
{
	char text[4096];

	child_says(tell_all_levels, NULL, text, sizeof(text));
	assert_string_equal(text, ERROR_LINE WARN_LINE);
	child_says(tell_all_levels, "loud", text, sizeof(text));
	assert_string_equal(text, "verbena: VERBENA_LOG=loud is none of off, "
				  "error, warn, info and debug; using "
				  "warn\n" ERROR_LINE WARN_LINE);
	child_says(tell_all_levels, "", text, sizeof(text));
	assert_string_equal(text, ERROR_LINE WARN_LINE);
}

static void log__long_line_is_cut_and_still_ends(void **state)
{
	char text[8192];
	size_t len = child_says(tell_all_levels, "debug", text, sizeof(text));
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

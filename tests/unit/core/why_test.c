/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of causes of errors, and how often each cause is reported. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "core/why.h"
#include "tests/support/child_says.h"

static void tell_often(void)
{
	for (int i = 0; i < 1000; i++)
		vb_why(WHY_RNR, 7, "qp 0x7: %s", "no receive");
}

static void tell_each(void)
{
	vb_why(WHY_RNR, 7, "qp 0x7: a");
	vb_why(WHY_RNR, 8, "qp 0x8: a");
	vb_why(WHY_PSN, 7, "qp 0x7: b");
	vb_why(WHY_RNR, 7, "qp 0x7: a");
}

/* Report one cause for more objects than the table of counts can hold. */
static void tell_many(void)
{
	for (unsigned i = 0; i < 100000; i++)
		vb_why(WHY_RNR, i * 64, "qp %u: a", i);
}

static void tell_nothing(void)
{
	vb_why(WHY_NONE, 1, "x");
	vb_why((enum vb_why)9999, 1, "x");
}

static void refuse_silently(void)
{
	vb_why_refused("vb_front_create_x", EINVAL);
	vb_why_refused("rdma_x", ENOMEM);
}

/* Refuse calls for reasons that are not reported: EAGAIN and EINTR, features
 * that the device lacks, and what was reported already. */
static void refuse_what_is_known(void)
{
	vb_why_refused("ibv_x", EAGAIN);
	vb_why_refused("ibv_x", EINTR);
	vb_why_refused("ibv_x", EOPNOTSUPP);
	vb_why_quietly("pd 1: no %s", "feature");
	vb_why_refused("ibv_x", EINVAL);
	vb_log(LOG_ERROR, "said");
	vb_why_refused("ibv_x", EINVAL);
	vb_why(WHY_LIMIT, 1, "pd 1: told");
	vb_why_refused("ibv_x", EINVAL);
}

/* A cause that was reported replaces the general report of the refusal behind
 * it, and not that of the next refusal. */
static void refuse_twice(void)
{
	vb_why(WHY_LIMIT, 1, "pd 1: told");
	vb_why_refused("ibv_x", EINVAL);
	vb_why_refused("_ibv_y", EINVAL);
}

/* Returns how many lines a child process that calls @tell writes to standard
 * error. */
static int lines_of(void (*tell)(void), const char *level, char *text,
		    size_t room)
{
	int lines = 0;

	(void)child_says(tell, level, text, room);
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		lines++;
	return lines;
}

static void why__thousand_are_four_lines(void **state)
{
	char text[1 << 16];

	assert_int_equal(lines_of(tell_often, "warn", text, sizeof(text)), 4);
	assert_non_null(strstr(text, "verbena: qp 0x7: no receive; let the"));
	assert_non_null(strstr(text, "[204 RNR]\n"));
	assert_non_null(strstr(text, "no receive (1000 times so far); "));
}

static void why__each_object_and_cause_has_its_own(void **state)
{
	char text[1 << 16];

	assert_int_equal(lines_of(tell_each, "warn", text, sizeof(text)), 3);
}

static void why__many_objects_share_a_count(void **state)
{
	static char text[1 << 18];
	int lines = lines_of(tell_many, "warn", text, sizeof(text));

	assert_in_range(lines, 10, 600);
}

static void why__off_tells_nothing(void **state)
{
	char text[1 << 12];

	assert_int_equal(lines_of(tell_each, "off", text, sizeof(text)), 0);
	assert_int_equal(lines_of(tell_each, "error", text, sizeof(text)), 0);
	assert_int_equal(lines_of(tell_nothing, "warn", text, sizeof(text)), 0);
}

static void why__no_refusal_is_silent(void **state)
{
	char text[1 << 12];

	assert_int_equal(lines_of(refuse_silently, "warn", text, sizeof(text)),
			 2);
	assert_non_null(strstr(text, "verbena: ibv_create_x is refused: Inv"));
	assert_non_null(strstr(text, "[327 REFUSED]\n"));
	assert_non_null(strstr(text, "verbena: rdma_x is refused: Cannot al"));
	assert_non_null(strstr(text, "[320 LIMIT]\n"));
}

static void why__no_refusal_is_told_twice(void **state)
{
	char text[1 << 12];

	assert_int_equal(
		lines_of(refuse_what_is_known, "warn", text, sizeof(text)), 2);
	assert_int_equal(
		lines_of(refuse_what_is_known, "info", text, sizeof(text)), 4);
	assert_non_null(strstr(text, "verbena: ibv_x is refused: Operation"));
	assert_non_null(strstr(text, "verbena: pd 1: no feature\n"));
	assert_int_equal(lines_of(refuse_twice, "warn", text, sizeof(text)), 2);
	assert_non_null(strstr(text, "verbena: ibv_y is refused: Inv"));
}

static void why__rows_are_sentences(void **state)
{
	unsigned rows = 0;

	for (unsigned code = 0; code < 1000; code++) {
		const struct vb_why_row *r = vb_why_row(code);

		if (!r)
			continue;
		rows++;
		assert_int_equal(r->code, code);
		assert_true(strlen(r->name) >= 2 && strlen(r->remedy) > 10);
		assert_int_equal(r->meaning[strlen(r->meaning) - 1], '.');
	}
	assert_true(rows > 60);
	assert_null(vb_why_row(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(why__thousand_are_four_lines),
		cmocka_unit_test(why__each_object_and_cause_has_its_own),
		cmocka_unit_test(why__many_objects_share_a_count),
		cmocka_unit_test(why__off_tells_nothing),
		cmocka_unit_test(why__no_refusal_is_silent),
		cmocka_unit_test(why__no_refusal_is_told_twice),
		cmocka_unit_test(why__rows_are_sentences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

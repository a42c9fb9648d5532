/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing of the variable VERBENA_IWARP. */
#include "tests/unit/rdmacm/fake.h"

#include <stdlib.h>

#include "front/rdmacm/iw.h"

static struct vb_mpa_offer offer_of(const char *text)
{
	if (text)
		setenv("VERBENA_IWARP", text, 1);
	else
		unsetenv("VERBENA_IWARP");
	return iw_offer();
}

static void check(const char *text, unsigned revision, bool crc, bool markers,
		  unsigned rtr)
{
	const struct vb_mpa_offer o = offer_of(text);

	assert_int_equal(o.revision, revision);
	assert_int_equal(o.crc, crc);
	assert_int_equal(o.markers, markers);
	assert_int_equal(o.rtr, rtr);
}

static void usual__without_words(void **state)
{
	const struct vb_mpa_offer u = vb_mpa_usual;

	assert_true(u.crc);
	assert_false(u.markers);
	check(NULL, u.revision, u.crc, u.markers, u.rtr);
	check("", u.revision, u.crc, u.markers, u.rtr);
	check(",,", u.revision, u.crc, u.markers, u.rtr);
}

static void each_word__changes_one_thing(void **state)
{
	const struct vb_mpa_offer u = vb_mpa_usual;

	check("no-crc", u.revision, false, u.markers, u.rtr);
	check("markers", u.revision, u.crc, true, u.rtr);
	check("revision-1", 1, u.crc, u.markers, RTR_NONE);
	check("no-rtr", u.revision, u.crc, u.markers, RTR_NONE);
	check("rtr-send", u.revision, u.crc, u.markers, RTR_SEND);
	check("rtr-write", u.revision, u.crc, u.markers, RTR_WRITE);
	check("rtr-read", u.revision, u.crc, u.markers, RTR_READ);
}

static void several_words__the_last_wins(void **state)
{
	check("no-crc,markers,rtr-send,rtr-read", vb_mpa_usual.revision, false,
	      true, RTR_READ);
}

static void unknown_words__are_skipped(void **state)
{
	const struct vb_mpa_offer u = vb_mpa_usual;

	check("no-cr,no-crcs,MARKERS", u.revision, u.crc, u.markers, u.rtr);
	check("what,no-crc", u.revision, false, u.markers, u.rtr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual__without_words),
		cmocka_unit_test(each_word__changes_one_thing),
		cmocka_unit_test(several_words__the_last_wins),
		cmocka_unit_test(unknown_words__are_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/tm.h"

static const uint8_t bytes[VB_RNDV_BYTES] = {
	/* bytes 1 to 3 are reserved, and reading ignores them */
	1,    9,    9,	  9,	0x11, 0x22, 0x33, 0x44, 1,    2,    3,
	4,    5,    6,	  7,	8,    0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6,
	0xa7, 0xa8, 0xb1, 0xb2, 0xb3, 0xb4, 0xc1, 0xc2, 0xc3, 0xc4,
};

static void get__where_they_are(void **state)
{
	struct vb_tmh t;
	struct vb_rvh r;

	assert_true(vb_tmh_get(bytes, VB_TMH_BYTES, &t));
	assert_int_equal(t.op, TM_OP_RNDV);
	assert_int_equal(t.app_ctx, 0x11223344);
	assert_int_equal(t.tag, 0x0102030405060708);
	assert_true(vb_rvh_get(bytes, VB_RNDV_BYTES, &r));
	assert_int_equal(r.va, 0xa1a2a3a4a5a6a7a8);
	assert_int_equal(r.rkey, 0xb1b2b3b4);
	assert_int_equal(r.length, 0xc1c2c3c4);
}

static void get__too_short(void **state)
{
	struct vb_tmh t;
	struct vb_rvh r;

	for (size_t len = 0; len < VB_TMH_BYTES; len++)
		assert_false(vb_tmh_get(bytes, len, &t));
	for (size_t len = 0; len < VB_RNDV_BYTES; len++)
		assert_false(vb_rvh_get(bytes, len, &r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get__where_they_are),
		cmocka_unit_test(get__too_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

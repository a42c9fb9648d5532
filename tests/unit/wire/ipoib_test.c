/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "wire/ipoib.h"

static const struct vb_ipoib answer = {
	.op = IPOIB_ASK,
	.version = VB_IPOIB_VERSION,
	.port = 1,
	.pkey = 0x8001,
	.error = -EHOSTUNREACH,
	.mtu = 2044,
	.qpn = 0xabcdef,
	.guid = 0x0200ca0000000301,
	.ip = { { 1, 2, 3, [15] = 4 } },
	.gid = { { 0xfe, 0x80, [15] = 9 } },
};

static void message__is_read_as_it_was_written(void **state)
{
	uint8_t bytes[VB_IPOIB_BYTES];
	struct vb_ipoib m;

	assert_int_equal(vb_ipoib_put(bytes, &answer), VB_IPOIB_BYTES);
	assert_true(vb_ipoib_get(bytes, sizeof(bytes), &m));
	assert_int_equal(m.op, IPOIB_ASK);
	assert_int_equal(m.port, 1);
	assert_int_equal(m.pkey, 0x8001);
	assert_int_equal(m.error, -EHOSTUNREACH);
	assert_int_equal(m.mtu, 2044);
	assert_int_equal(m.qpn, 0xabcdef);
	assert_true(m.guid == answer.guid);
	assert_true(vb_gid_equal(&m.ip, &answer.ip));
	assert_true(vb_gid_equal(&m.gid, &answer.gid));
}

static void message__that_is_wrong_is_refused(void **state)
{
	uint8_t bytes[VB_IPOIB_BYTES + 1] = { 0 };
	struct vb_ipoib m, wrong[] = { answer, answer, answer, answer };

	vb_ipoib_put(bytes, &answer);
	assert_false(vb_ipoib_get(bytes, VB_IPOIB_BYTES - 1, &m));
	assert_false(vb_ipoib_get(bytes, VB_IPOIB_BYTES + 1, &m));
	assert_false(vb_ipoib_get(bytes, 0, &m));
	wrong[0].op = 0;
	wrong[1].op = IPOIB_ASK + 1;
	wrong[2].version++;
	wrong[3].error = 1;
	for (unsigned i = 0; i < VB_COUNT(wrong); i++) {
		vb_ipoib_put(bytes, &wrong[i]);
		assert_false(vb_ipoib_get(bytes, VB_IPOIB_BYTES, &m));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message__is_read_as_it_was_written),
		cmocka_unit_test(message__that_is_wrong_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

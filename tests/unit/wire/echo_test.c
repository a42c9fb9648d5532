/* SPDX-License-Identifier: BSD-2-Clause */
/* The payload of echoes: what is written is read, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "wire/echo.h"

static const struct vb_echo ask = { .kind = ECHO_ASK,
				    .token = 0x1122334455667788ull,
				    .number = 7,
				    .bytes = 40,
				    .mtu = 1500 };
static uint8_t bytes[VB_ECHO_MOST + 4];

static void put__is_read_again(void **state)
{
	struct vb_echo e;

	memset(bytes, 0xff, sizeof(bytes));
	vb_echo_put(bytes, 64, &ask);
	assert_true(vb_echo_get(bytes, 64, &e));
	assert_memory_equal(&e.token, &ask.token, sizeof(e.token));
	assert_int_equal(e.kind, ECHO_ASK);
	assert_int_equal(e.number, 7);
	assert_int_equal(e.bytes, 40);
	assert_int_equal(e.mtu, 1500);
	assert_int_equal(bytes[63], 0);
	assert_int_equal(bytes[64], 0xff);
}

static void get__takes_no_question_for_a_longer_answer(void **state)
{
	struct vb_echo longer = ask, e;

	longer.bytes = 64;
	vb_echo_put(bytes, 64, &longer);
	assert_true(vb_echo_get(bytes, 64, &e));
	longer.bytes = 65;
	vb_echo_put(bytes, 64, &longer);
	assert_false(vb_echo_get(bytes, 64, &e));
	longer.bytes = VB_ECHO_BYTES - 1;
	vb_echo_put(bytes, 64, &longer);
	assert_false(vb_echo_get(bytes, 64, &e));
}

static void get__takes_nothing_else(void **state)
{
	struct vb_echo e;

	vb_echo_put(bytes, sizeof(bytes), &ask);
	assert_false(vb_echo_get(bytes, VB_ECHO_BYTES - 1, &e));
	assert_false(vb_echo_get(bytes, VB_ECHO_MOST + 1, &e));
	assert_true(vb_echo_get(bytes, VB_ECHO_MOST, &e));
	for (unsigned i = 0; i < 8; i++) {
		bytes[i] ^= 0x40;
		assert_false(vb_echo_get(bytes, 64, &e));
		bytes[i] ^= 0x40;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put__is_read_again),
		cmocka_unit_test(get__takes_no_question_for_a_longer_answer),
		cmocka_unit_test(get__takes_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

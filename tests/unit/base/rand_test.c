/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/rand.h"

static void rand32__uses_every_bit_and_keeps_errno(void **state)
{
	uint32_t ones = 0, zeros = 0;

	errno = 77;
	for (int i = 0; i < 200; i++) {
		uint32_t v = vb_rand32();

		ones |= v;
		zeros |= ~v;
	}
	assert_int_equal(ones, UINT32_MAX);
	assert_int_equal(zeros, UINT32_MAX);
	assert_int_equal(errno, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rand32__uses_every_bit_and_keeps_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/crc.h"

/* The expected CRC-32, computed bit by bit from the polynomial. */
static uint32_t slow_crc32(uint32_t crc, const uint8_t *p, size_t len)
{
	crc = ~crc;
	while (len--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return ~crc;
}

static void fill(uint8_t *p, size_t len, unsigned seed)
{
	srand(seed);
	while (len--)
		*p++ = (uint8_t)rand();
}

static void crc32__the_check_value(void **state)
{
	assert_int_equal(vb_crc32(0, "123456789", 9), 0xcbf43926);
	assert_int_equal(vb_crc32(0, "", 0), 0);
}

static void crc32__every_length_in_two_parts(void **state)
{
	uint8_t bytes[300];

	fill(bytes, sizeof(bytes), 1);
	for (size_t len = 0; len <= sizeof(bytes); len++) {
		uint32_t slow = slow_crc32(0, bytes, len);
		size_t half = len / 3;

		assert_int_equal(vb_crc32(0, bytes, len), slow);
		assert_int_equal(vb_crc32(vb_crc32(0, bytes, half),
					  bytes + half, len - half),
				 slow);
	}
}

static void check_folded(const uint8_t *bytes, size_t len)
{
	uint32_t slow = slow_crc32(0x12345678, bytes, len);

	assert_int_equal(vb_crc32_folded(0x12345678, bytes, len), slow);
}

static void folded__every_length_at_every_alignment(void **state)
{
	uint8_t *bytes = malloc(9000);

	fill(bytes, 9000, 2);
	for (size_t len = 0; len <= 400; len++)
		for (size_t at = 0; at < 8; at++)
			check_folded(bytes + at, len);
	for (size_t len = 4000; len < 4130; len++)
		check_folded(bytes, len);
	check_folded(bytes, 9000);
	free(bytes);
}

/* Try every d by brute force, for a message with @tail bytes behind the
 * field. */
static void solve_every_d(size_t tail)
{
	static uint8_t bytes[8192];
	size_t len = 10 + 2 + tail;
	uint32_t crc, zero;
	uint16_t d;

	fill(bytes, len, (unsigned)tail);
	crc = vb_crc32(0, bytes, len);
	for (uint32_t want = 0; want < 65536; want++) {
		uint32_t diff;

		bytes[10] ^= want >> 8;
		bytes[11] ^= want & 0xff;
		diff = vb_crc32(0, bytes, len) ^ crc;
		bytes[10] ^= want >> 8;
		bytes[11] ^= want & 0xff;
		assert_int_equal(vb_crc32_diff16((uint16_t)want, tail), diff);
		assert_true(vb_crc32_solve16(diff, tail, &d));
		assert_int_equal(d, want);
	}
	zero = vb_crc32_diff16(0, tail);
	assert_int_equal(zero, 0);
}

static void solve16__every_d_at_some_tails(void **state)
{
	static const size_t tails[] = { 0, 1, 22, 34, 60, 255, 256, 290 };

	for (size_t i = 0; i < VB_COUNT(tails); i++)
		solve_every_d(tails[i]);
}

static void solve16__some_d_at_every_tail(void **state)
{
	uint16_t d;

	for (size_t tail = 0; tail < 70000; tail++) {
		uint16_t want = (uint16_t)(tail * 40503 + 1);
		uint32_t diff = vb_crc32_diff16(want, tail);

		assert_true(vb_crc32_solve16(diff, tail, &d));
		assert_int_equal(d, want);
	}
}

/* The difference of two CRCs behind a field changes with each further zero byte
 * as the CRC register itself does. */
static void diff16__agrees_with_appended_zeros(void **state)
{
	static const uint8_t zeros[5000];
	const uint8_t field[2] = { 0x12, 0x34 };
	const uint8_t none[2] = { 0, 0 };
	uint32_t a = vb_crc32(0, field, 2), b = vb_crc32(0, none, 2);

	for (size_t tail = 0; tail < sizeof(zeros); tail += 7)
		assert_int_equal(vb_crc32(a, zeros, tail) ^
					 vb_crc32(b, zeros, tail),
				 vb_crc32_diff16(0x1234, tail));
}

static void solve16__refuses_what_no_d_explains(void **state)
{
	unsigned solved = 0;
	uint16_t d = 0xbeef;

	/* No change of a 16-bit field explains a single flipped bit
	 * elsewhere. */
	for (unsigned bit = 0; bit < 16; bit++)
		assert_false(vb_crc32_solve16(
			vb_crc32_diff16((uint16_t)(1u << bit), 500), 502, &d));
	assert_int_equal(d, 0xbeef);

	/* Changing 16 bits explains one in 65536 random differences. */
	srand(7);
	for (int i = 0; i < 65536; i++)
		solved += vb_crc32_solve16(
			((uint32_t)rand() << 16) ^ (uint32_t)rand(), 1000, &d);
	assert_true(solved <= 10);
}

/* The test vectors of RFC 3720 B.4 for CRC32C. */
static void crc32c__vectors(void **state)
{
	uint8_t bytes[32];

	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(vb_crc32c(0, bytes, 32), 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(vb_crc32c(0, bytes, 32), 0x62a8ab43);
	for (unsigned i = 0; i < 32; i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(vb_crc32c(0, bytes, 32), 0x46dd794e);
	assert_int_equal(vb_crc32c(0, "123456789", 9), 0xe3069283);
	/* A computation can be continued behind any byte, also at an unaligned
	 * one. */
	for (unsigned n = 0; n <= 32; n++)
		assert_int_equal(
			vb_crc32c(vb_crc32c(0, bytes, n), bytes + n, 32 - n),
			0x46dd794e);
}

static void crc32c__ways_agree(void **state)
{
	uint8_t bytes[600];

	fill(bytes, sizeof(bytes), 3);
	for (size_t len = 0; len <= 590; len++)
		for (size_t at = 0; at < 8; at++) {
			uint32_t crc = vb_crc32c(0x1234567, bytes + at, len);

			assert_int_equal(
				vb_crc32c_plain(0x1234567, bytes + at, len),
				crc);
			assert_int_equal(
				vb_crc32c_table(0x1234567, bytes + at, len),
				crc);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc32c__ways_agree),
		cmocka_unit_test(crc32c__vectors),
		cmocka_unit_test(crc32__the_check_value),
		cmocka_unit_test(crc32__every_length_in_two_parts),
		cmocka_unit_test(folded__every_length_at_every_alignment),
		cmocka_unit_test(solve16__every_d_at_some_tails),
		cmocka_unit_test(solve16__some_d_at_every_tail),
		cmocka_unit_test(diff16__agrees_with_appended_zeros),
		cmocka_unit_test(solve16__refuses_what_no_d_explains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

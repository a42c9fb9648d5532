/* SPDX-License-Identifier: BSD-2-Clause */
/* iwarp/marker: where markers are, what they point to, and their removal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/crc.h"
#include "iwarp/stream.h"

#define STREAM (64 * 1024)

static uint8_t stream[STREAM + VB_IW_FPDU_MAX], plain[VB_IW_FPDU_MAX];

static uint32_t make(uint8_t *at, uint32_t ulpdu)
{
	for (uint32_t i = 0; i < ulpdu; i++)
		at[VB_MPA_LEN_BYTES + i] = (uint8_t)(i * 7 + 3);
	return vb_mpa_seal(at, ulpdu, false);
}

/* Counted from the beginning of the stream there is a marker every 512 bytes,
 * and each points to a length field. */
static void marker__each_512_bytes_of_the_stream(void **state)
{
	static const uint32_t lengths[] = {
		18, 100, 502, 494, 490, 498, 506, 510, 1440, 3, 0, 1, 5000, 496
	};
	uint32_t begins[4096], fpdus = 0, end = 0, at = 0;
	bool is_begin;

	for (unsigned i = 0; at < STREAM; i++) {
		uint32_t ulpdu = lengths[i % VB_COUNT(lengths)];
		uint32_t since = at % VB_MPA_MARKER_INTERVAL;
		uint32_t len = make(stream + at, ulpdu);

		begins[fpdus++] = since ? at : at + VB_MPA_MARKER_BYTES;
		assert_int_equal(vb_mark(stream + at, since, len, true),
				 vb_marked_bytes(since, len));
		at += vb_marked_bytes(since, len);
		end = at;
	}
	for (at = 0; at < end; at += VB_MPA_MARKER_INTERVAL) {
		uint32_t back = (uint32_t)vb_load_be(stream + at + 2, 2);
		uint32_t begin = back ? at - back : at + VB_MPA_MARKER_BYTES;

		assert_int_equal(vb_load_be(stream + at, 2), 0);
		assert_int_equal(back % 4, 0);
		is_begin = false;
		for (uint32_t i = 0; i < fpdus; i++)
			is_begin |= begins[i] == begin;
		assert_true(is_begin);
	}
}

/* RFC 5044, figure 5: an FPDU that begins 0x24 bytes before a marker; the
 * marker says 0x24. */
static void marker__points_at_the_length(void **state)
{
	uint32_t len = make(plain, 100);

	assert_int_equal(vb_mark(plain, 512 - 0x24, len, true), len + 4);
	assert_int_equal(vb_load_be(plain + 0x24, 4), 0x24);
	len = make(plain, 600);
	assert_int_equal(vb_mark(plain, 0, len, true), len + 8);
	assert_int_equal(vb_load_be(plain, 4), 0);
	assert_int_equal(vb_load_be(plain + 4, 2), 600);
	assert_int_equal(vb_load_be(plain + 512, 4), 508);
}

static void marker__between_pad_and_crc(void **state)
{
	/* 98 bytes of ULPDU and 2 of length: 100 bytes before the CRC */
	uint32_t len = make(plain, 98);

	assert_int_equal(vb_mark(plain, 412, len, true), len + 4);
	assert_int_equal(vb_load_be(plain + 100, 4), 100);
	assert_int_equal(vb_load_le32(plain + 104), vb_crc32c(0, plain, 104));
	/* A marker directly behind the CRC counts to the next FPDU. */
	assert_int_equal(vb_marked_bytes(412 - 4, len), len);
}

static void marker__comes_out_again(void **state)
{
	for (uint32_t since = 0; since < 512; since += 4)
		for (uint32_t ulpdu = 0; ulpdu < 2200; ulpdu += 61) {
			uint32_t len = make(plain, ulpdu);
			uint32_t total;

			memcpy(stream, plain, len);
			total = vb_mark(stream, since, len, true);
			assert_int_equal(vb_load_le32(stream + total - 4),
					 vb_crc32c(0, stream, total - 4));
			assert_true(vb_unmark(stream, since, len));
			assert_memory_equal(stream, plain, len - 4);
		}
}

static void marker__that_points_elsewhere(void **state)
{
	uint32_t len = make(plain, 600);

	vb_mark(plain, 100, len, true);
	plain[412 + 3] ^= 4;
	assert_false(vb_unmark(plain, 100, len));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marker__each_512_bytes_of_the_stream),
		cmocka_unit_test(marker__points_at_the_length),
		cmocka_unit_test(marker__between_pad_and_crc),
		cmocka_unit_test(marker__comes_out_again),
		cmocka_unit_test(marker__that_points_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

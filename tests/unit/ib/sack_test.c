/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "ib/sack.h"

static struct vb_sack r;

static void sack__wants_what_is_missing_once(void **state)
{
	/* SACK bits that say: PSNs 11 and 14 have come */
	const uint8_t bits[] = { 0x90 };

	vb_sack_reset(&r, 10);
	vb_sack_told(&r, 10, bits, sizeof(bits), 20);
	assert_true(r.due);
	assert_int_equal(r.held, 2);
	assert_int_equal(r.top, 15);
	assert_true(vb_sack_wants(&r, 10));
	assert_false(vb_sack_wants(&r, 11));
	assert_true(vb_sack_wants(&r, 12));
	vb_sack_sent(&r, 10, 20);
	vb_sack_sent(&r, 12, 20);
	vb_sack_told(&r, 10, bits, sizeof(bits), 20);
	assert_false(vb_sack_wants(&r, 10));
	assert_true(vb_sack_wants(&r, 13));
}

/* A packet that was sent after a retransmission has arrived, but the
 * retransmission has not. */
static void sack__a_lost_repeat_is_sent_again(void **state)
{
	const uint8_t first[] = { 0x80 }, later[] = { 0x80, 0x20 };

	vb_sack_reset(&r, 10);
	vb_sack_told(&r, 10, first, sizeof(first), 15);
	vb_sack_sent(&r, 10, 15);
	vb_sack_told(&r, 10, first, sizeof(first), 25);
	assert_false(vb_sack_wants(&r, 10));
	/* SACK bit of PSN 21 is set */
	vb_sack_told(&r, 10, later, sizeof(later), 25);
	assert_true(vb_sack_wants(&r, 10));
}

/* The first retransmission is known to be lost; the second was sent after the
 * packet that proves it, and may be on its way. */
static void sack__a_later_repeat_has_more_time(void **state)
{
	/* SACK bits that say: PSNs 11, 13 and 14 have come */
	uint8_t bits[] = { 0xb0, 0, 0, 0 };

	vb_sack_reset(&r, 10);
	vb_sack_told(&r, 10, (const uint8_t[]){ 0x80 }, 1, 15);
	vb_sack_sent(&r, 10, 15);
	vb_sack_told(&r, 10, bits, sizeof(bits), 20);
	assert_true(vb_sack_wants(&r, 12));
	vb_sack_sent(&r, 12, 20);
	bits[0] |= 0x08; /* set the SACK bit of PSN 15 */
	vb_sack_told(&r, 10, bits, sizeof(bits), 25);
	assert_true(vb_sack_wants(&r, 10));
	assert_false(vb_sack_wants(&r, 12));
	vb_sack_sent(&r, 10, 25);
	bits[1] |= 0x20; /* set the SACK bit of PSN 21 */
	vb_sack_told(&r, 10, bits, sizeof(bits), 30);
	assert_false(vb_sack_wants(&r, 10));
	assert_true(vb_sack_wants(&r, 12));
}

static void sack__forgets_what_is_acknowledged(void **state)
{
	const uint8_t bits[] = { 0xff, 0xff };

	vb_sack_reset(&r, 0xfffffa);
	vb_sack_told(&r, 0xfffffa, bits, sizeof(bits), 40);
	assert_int_equal(r.held, 16);
	vb_sack_acked(&r, 2);
	assert_int_equal(r.held, 9);
	assert_int_equal(r.from, 2);
	vb_sack_acked(&r, 11);
	assert_int_equal(r.held, 0);
	assert_true(vb_sack_wants(&r, 0xfffffb + VB_OOO_PSNS));
	for (unsigned i = 0; i < VB_OOO_PSNS / 64; i++)
		assert_true((r.has[i] | r.again[0][i] | r.again[1][i]) == 0);
}

/* A peer may lie: packets that were never sent do not count as received. */
static void sack__believes_within_bounds(void **state)
{
	uint8_t bits[4096];

	memset(bits, 0xff, sizeof(bits));
	vb_sack_reset(&r, 10);
	vb_sack_told(&r, 10, bits, sizeof(bits), 15);
	assert_int_equal(r.held, 4);
	assert_int_equal(r.top, 15);
	vb_sack_told(&r, 10, bits, sizeof(bits), 10 + 4096);
	assert_int_equal(r.held, VB_OOO_PSNS - 1);
	vb_sack_told(&r, 10, bits, 0, 10 + 4096);
	assert_int_equal(r.held, VB_OOO_PSNS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sack__wants_what_is_missing_once),
		cmocka_unit_test(sack__a_lost_repeat_is_sent_again),
		cmocka_unit_test(sack__a_later_repeat_has_more_time),
		cmocka_unit_test(sack__forgets_what_is_acknowledged),
		cmocka_unit_test(sack__believes_within_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

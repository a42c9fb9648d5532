/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>

#include "wire/mad_frame.h"

static struct vb_mad_frame example(bool global)
{
	struct vb_mad_frame f = {
		.vl = 3,
		.sl = 5,
		.slid = 0x1234,
		.dlid = 0x5678,
		.pkey = 0x8001,
		.sqpn = 0x123456,
		.dqpn = 1,
		.psn = 0x765432,
		.qkey = VB_GSI_QKEY,
	};

	f.global = global;
	if (global) {
		f.tclass = 0x9a;
		f.flow_label = 0xbcdef;
		f.hop_limit = 64;
		for (uint8_t i = 0; i < 16; i++) {
			f.sgid.raw[i] = i;
			f.dgid.raw[i] = i + 100;
		}
	}
	return f;
}

static void frame__what_is_put_is_got(void **state)
{
	for (int global = 0; global < 2; global++) {
		struct vb_mad_frame f = example(global), g;
		uint8_t bytes[VB_MAD_FRAME_MAX], mad[VB_MAD_BYTES];
		const uint8_t *got;
		size_t len;

		for (unsigned i = 0; i < VB_MAD_BYTES; i++)
			mad[i] = (uint8_t)i;
		len = vb_mad_frame_put(bytes, &f, mad);
		assert_int_equal(len, global ? VB_MAD_FRAME_MAX
					     : VB_MAD_FRAME_MAX - 40);
		assert_int_equal(vb_mad_frame_get(bytes, len, &g, &got),
				 MAD_FRAME_GOOD);
		assert_memory_equal(&f, &g, sizeof(f));
		assert_memory_equal(got, mad, sizeof(mad));
	}
}

static void frame__each_bit_counts_but_those_that_may_change(void **state)
{
	for (int global = 0; global < 2; global++) {
		struct vb_mad_frame f = example(global), g;
		uint8_t bytes[VB_MAD_FRAME_MAX], mad[VB_MAD_BYTES] = { 0 };
		const uint8_t *got;
		size_t len = vb_mad_frame_put(bytes, &f, mad);
		unsigned spared = 0;

		for (size_t bit = 0; bit < len * 8; bit++) {
			bytes[bit / 8] ^= 0x80 >> bit % 8;
			spared += vb_mad_frame_get(bytes, len, &g, &got) ==
				  MAD_FRAME_GOOD;
			bytes[bit / 8] ^= 0x80 >> bit % 8;
		}
		/* The ICRC leaves out the VL and BTH's reserved byte. With a
		 * GRH it leaves out also the LRH except LVer, LNH and length,
		 * and traffic class, flow label and hop limit. */
		assert_int_equal(spared,
				 global ? 64 - 4 - 2 - 11 + 8 + 28 + 8 : 4 + 8);
	}
}

static void frame__short_ones_are_refused(void **state)
{
	for (int global = 0; global < 2; global++) {
		struct vb_mad_frame f = example(global), g;
		uint8_t bytes[VB_MAD_FRAME_MAX], mad[VB_MAD_BYTES] = { 0 };
		size_t len = vb_mad_frame_put(bytes, &f, mad);

		for (size_t cut = 0; cut < len; cut++) {
			uint8_t *exact = malloc(cut ? cut : 1);
			const uint8_t *got;

			memcpy(exact, bytes, cut);
			/* let the LRH's packet length fit the frame */
			if (cut >= 6)
				exact[5] = (uint8_t)(cut / 4);
			assert_int_not_equal(
				vb_mad_frame_get(exact, cut, &g, &got),
				MAD_FRAME_GOOD);
			free(exact);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame__what_is_put_is_got),
		cmocka_unit_test(
			frame__each_bit_counts_but_those_that_may_change),
		cmocka_unit_test(frame__short_ones_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

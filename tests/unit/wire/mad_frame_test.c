/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "wire/mad_frame.h"

/* The two sample packets of IBA 7.8.3: LRH to pad, then the ICRC. */
static void icrc__of_the_sample_packets(void **state)
{
	static const uint8_t packet[] = {
		0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1, 0xb3, 0x00,
		0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d,
		0x40, 0x02, 0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00,
		0x0e, 0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4,
		0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00,
	};
	static const uint8_t local[] = { 0x70, 0x12, 0x37, 0x5c,
					 0x00, 0x0e, 0x17, 0xd2 };
	/* The LRH is masked as a whole but for LNH; the rest as it is sent. */
	static const uint8_t global[] = {
		0x00, 0x03, 0x00, 0x00, 0, 0, 0, 0,    0x60, 0, 0, 0,
		0x00, 0x32, 0x00, 0x00, 0, 0, 0, 0,    0,    0, 1, 0x25,
		0,    0,    0,	  0,	0, 0, 0, 0x26, 0,    0, 0, 0,
		0,    0,    1,	  0x17, 0, 0, 0, 0,    0,    0, 0, 0x96,
	};
	static const uint8_t local_crc[] = { 0x96, 0x25, 0xb7, 0x5a };
	static const uint8_t global_crc[] = { 0x14, 0x93, 0xec, 0x46 };
	uint8_t bytes[128], crc[4];

	memcpy(bytes, local, sizeof(local));
	memcpy(bytes + sizeof(local), packet, sizeof(packet));
	vb_store_le32(crc, vb_ib_icrc(bytes, sizeof(local) + sizeof(packet)));
	assert_memory_equal(crc, local_crc, sizeof(crc));
	memcpy(bytes, global, sizeof(global));
	memcpy(bytes + sizeof(global), packet, sizeof(packet));
	vb_store_le32(crc, vb_ib_icrc(bytes, sizeof(global) + sizeof(packet)));
	assert_memory_equal(crc, global_crc, sizeof(crc));
}

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
		/* VL and BTH's reserved byte; with a GRH also the LRH but for
		 * LNH and length, traffic class, flow label, hop limit. */
		assert_int_equal(spared,
				 global ? 64 - 2 - 11 + 8 + 28 + 8 : 4 + 8);
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
			if (cut >= 6) /* a length that agrees, too */
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
		cmocka_unit_test(icrc__of_the_sample_packets),
		cmocka_unit_test(frame__what_is_put_is_got),
		cmocka_unit_test(
			frame__each_bit_counts_but_those_that_may_change),
		cmocka_unit_test(frame__short_ones_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

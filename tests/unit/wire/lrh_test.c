/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "wire/grh.h"
#include "wire/ib_hdr.h"
#include "wire/lrh.h"

static size_t unhex(const char *hex, uint8_t *bytes)
{
	size_t n = 0;
	unsigned v;

	while (sscanf(hex, " %2x", &v) == 1) {
		bytes[n++] = (uint8_t)v;
		hex += strspn(hex, " ") + 2;
	}
	return n;
}

/* The example packet of the InfiniBand specification, LRH to ICRC. */
static const char sample[] =
	"7012375C000E17D2 0A2024870087B1B3000DEC2A 01710A1C015D400238F27A05"
	"0000000E BB884D85FD5CFBA4728BC0690ED40000 9625B75A";

static void lrh__the_fields_of_the_sample(void **state)
{
	uint8_t bytes[64], again[VB_LRH_BYTES];
	struct vb_lrh h;
	size_t len = unhex(sample, bytes);

	vb_lrh_get(bytes, &h);
	assert_int_equal(h.vl, 7);
	assert_int_equal(h.version, 0);
	assert_int_equal(h.sl, 1);
	assert_int_equal(h.lnh, LNH_LOCAL);
	assert_int_equal(h.dlid, 0x375c);
	assert_int_equal(h.slid, 0x17d2);
	assert_int_equal(h.words * 4, len);
	assert_int_equal(vb_lrh_check(&h, len, 256), LRH_GOOD);
	assert_ptr_equal(vb_lrh_bth(bytes, &h), bytes + 8);
	vb_lrh_put(again, &h);
	assert_memory_equal(again, bytes, VB_LRH_BYTES);
	vb_lrh_set_vl(bytes, 3);
	assert_int_equal(bytes[0], 0x30);
}

static void icrc__of_the_sample_on_any_vl(void **state)
{
	uint8_t bytes[64];
	size_t len = unhex(sample, bytes);

	for (unsigned vl = 0; vl < 16; vl++) {
		vb_lrh_set_vl(bytes, vl);
		/* FECN and BECN in the BTH, which the ICRC does not cover */
		bytes[8 + 4] = (uint8_t)(vl << 4);
		assert_true(vb_lrh_icrc_good(bytes, len));
	}
	bytes[1] ^= 0x10; /* change the SL, which the ICRC covers */
	assert_false(vb_lrh_icrc_good(bytes, len));
}

/* The example packet behind a GRH: with any LRH, traffic class, flow label and
 * hop limit. */
static void icrc__of_the_global_sample(void **state)
{
	uint8_t bytes[128];
	size_t len = unhex("7013375C001817D2 6012345600321B40"
			   "0000000000000125 0000000000000026"
			   "0000000000000117 0000000000000096"
			   "0A2024870087B1B3000DEC2A 01710A1C015D400238F27A05"
			   "0000000E BB884D85FD5CFBA4728BC0690ED40000 1493EC46",
			   bytes);
	struct vb_lrh h;

	vb_lrh_get(bytes, &h);
	assert_int_equal(vb_lrh_check(&h, len, 256), LRH_GOOD);
	assert_ptr_equal(vb_lrh_bth(bytes, &h), bytes + 48);
	/* The test vector of the specification has next header 0 in the GRH. */
	bytes[8 + 6] = 0;
	assert_true(vb_lrh_icrc_good(bytes, len));
	bytes[0] = 0x55;
	bytes[2] = 0x77;
	bytes[9] ^= 0xff;
	bytes[8 + 7] ^= 0xff;
	assert_true(vb_lrh_icrc_good(bytes, len));
	bytes[8 + 39] ^= 1;
	assert_false(vb_lrh_icrc_good(bytes, len));
	vb_lrh_put_icrc(bytes, len);
	assert_true(vb_lrh_icrc_good(bytes, len));
}

/* Another process may change a frame in shared memory after vb_lrh_check(): the
 * ICRC reads no byte behind the frame, whatever the LNH says by then. */
static void icrc__of_a_frame_that_became_too_short(void **state)
{
	for (size_t len = VB_LRH_BYTES + VB_BTH_BYTES + VB_ICRC_BYTES;
	     len < VB_LRH_BYTES + VB_GRH_BYTES + VB_BTH_BYTES + VB_ICRC_BYTES;
	     len += 4) {
		uint8_t *bytes = calloc(1, len);

		assert_non_null(bytes);
		bytes[1] = LNH_GLOBAL;
		assert_false(vb_lrh_icrc_good(bytes, len));
		free(bytes);
	}
}

/* The definition, one bit at a time: divide by x^16 + x^12 + x^3 + x + 1, the
 * first 16 bits inverted, the lowest bit of each byte first. */
static uint16_t vcrc_by_division(const uint8_t *bytes, size_t len)
{
	/* polynomial division: bit 15 is the coefficient of x^15 */
	uint32_t rest = 0xffff;
	uint16_t crc = 0;

	for (size_t i = 0; i < len * 8; i++) {
		uint32_t in = bytes[i / 8] >> (i % 8) & 1;

		rest = rest << 1 ^ in << 16;
		if (rest & 0x10000)
			rest ^= 0x1100b;
	}
	for (int i = 0; i < 16; i++)
		crc |= (uint16_t)((rest >> (15 - i) & 1) << i);
	return (uint16_t)~crc;
}

static void vcrc__agrees_with_the_definition(void **state)
{
	uint8_t bytes[100];

	srand(1);
	for (size_t len = 0; len <= sizeof(bytes); len++) {
		for (size_t i = 0; i < len; i++)
			bytes[i] = (uint8_t)rand();
		assert_int_equal(vb_vcrc(bytes, len),
				 vcrc_by_division(bytes, len));
	}
}

/* The VCRC of a frame with its own VCRC is a constant. */
static void vcrc__leaves_one_residue(void **state)
{
	uint8_t bytes[66], other[10] = { 1, 2, 3, 4 };
	size_t len = unhex(sample, bytes);
	uint16_t crc = vb_vcrc(bytes, len), small = vb_vcrc(other, 8);

	bytes[len] = (uint8_t)crc;
	bytes[len + 1] = (uint8_t)(crc >> 8);
	other[8] = (uint8_t)small;
	other[9] = (uint8_t)(small >> 8);
	assert_int_equal(vb_vcrc(bytes, len + 2), vb_vcrc(other, 10));
	bytes[5] ^= 4;
	assert_int_not_equal(vb_vcrc(bytes, len + 2), vb_vcrc(other, 10));
}

static void check__what_no_port_takes(void **state)
{
	static const struct {
		struct vb_lrh h;
		size_t len;
		unsigned mtu;
		enum vb_lrh_verdict want;
	} cases[] = {
		{ { .lnh = LNH_LOCAL, .words = 6 }, 24, 256, LRH_GOOD },
		{ { .lnh = LNH_LOCAL, .words = 5 }, 20, 256, LRH_SHORT },
		{ { .lnh = LNH_GLOBAL, .words = 16 }, 64, 256, LRH_GOOD },
		{ { .lnh = LNH_GLOBAL, .words = 15 }, 60, 256, LRH_SHORT },
		{ { .lnh = LNH_RAW, .words = 3 }, 12, 256, LRH_GOOD },
		{ { .lnh = LNH_RAW, .words = 2 }, 8, 256, LRH_SHORT },
		{ { .lnh = LNH_IP, .words = 12 }, 48, 256, LRH_GOOD },
		{ { .lnh = LNH_IP, .words = 11 }, 44, 256, LRH_SHORT },
		{ { .lnh = LNH_LOCAL, .words = 6, .version = 1 },
		  24,
		  256,
		  LRH_VERSION },
		{ { .lnh = LNH_LOCAL, .words = 7 }, 24, 256, LRH_LENGTH },
		{ { .lnh = LNH_LOCAL, .words = 6 }, 25, 256, LRH_LENGTH },
		{ { .lnh = LNH_LOCAL, .words = 95 }, 380, 256, LRH_GOOD },
		{ { .lnh = LNH_LOCAL, .words = 96 }, 384, 256, LRH_LONG },
		{ { .lnh = LNH_LOCAL, .words = 1055 }, 4220, 4096, LRH_GOOD },
		{ { .lnh = LNH_LOCAL, .words = 1056 }, 4224, 4096, LRH_LONG },
	};

	for (size_t i = 0; i < VB_COUNT(cases); i++)
		assert_int_equal(
			vb_lrh_check(&cases[i].h, cases[i].len, cases[i].mtu),
			cases[i].want);
}

static void blocks__count_the_vcrc(void **state)
{
	assert_int_equal(vb_lrh_blocks(24), 1);
	assert_int_equal(vb_lrh_blocks(60), 1);
	assert_int_equal(vb_lrh_blocks(64), 2);
	assert_int_equal(vb_lrh_blocks(4220), 66);
}

static void flow__every_field_of_both_forms(void **state)
{
	static const struct vb_fc_pkt pkts[] = {
		{ FC_NORMAL, 0, false, 0, 0 },
		{ FC_INIT, 14, false, 0xabc, 0xdef },
		{ FC_NORMAL, 7, false, 0xfff, 0x800 },
		{ FC_INIT, 3, true, 0xabcdef, 0x123456 },
	};
	uint8_t bytes[VB_FC_WIDE_BYTES];
	struct vb_fc_pkt got;

	for (size_t i = 0; i < VB_COUNT(pkts); i++) {
		size_t len = vb_fc_put(bytes, &pkts[i]);

		assert_int_equal(len, pkts[i].wide ? 10 : 6);
		assert_int_equal(vb_fc_get(bytes, len, &got), FC_GOOD);
		assert_int_equal(got.op, pkts[i].op);
		assert_int_equal(got.vl, pkts[i].vl);
		assert_int_equal(got.wide, pkts[i].wide);
		assert_int_equal(got.fctbs, pkts[i].fctbs);
		assert_int_equal(got.fccl, pkts[i].fccl);
	}
	vb_fc_put(bytes, &pkts[1]);
	assert_memory_equal(bytes, "\x1a\xbc\xed\xef", 4);
}

static void flow__any_burst_of_16_bits_is_found(void **state)
{
	struct vb_fc_pkt p = { FC_NORMAL, 2, false, 0x123, 0x456 }, got;
	uint8_t bytes[VB_FC_WIDE_BYTES];
	size_t len = vb_fc_put(bytes, &p);

	for (unsigned at = 0; at <= len * 8 - 16; at++)
		for (unsigned burst = 1; burst < 0x10000; burst += 2) {
			for (unsigned i = 0; i < 16; i++)
				bytes[(at + i) / 8] ^= (burst >> i & 1)
						       << (at + i) % 8;
			assert_int_equal(vb_fc_get(bytes, len, &got), FC_CRC);
			vb_fc_put(bytes, &p);
		}
}

static void flow__what_no_port_takes(void **state)
{
	struct vb_fc_pkt p = { 2, 0 }, vl15 = { FC_NORMAL, 15 }, got;
	uint8_t bytes[VB_FC_WIDE_BYTES];

	assert_int_equal(vb_fc_get(bytes, vb_fc_put(bytes, &p), &got), FC_OP);
	assert_int_equal(vb_fc_get(bytes, vb_fc_put(bytes, &vl15), &got),
			 FC_OP);
	assert_int_equal(vb_fc_get(bytes, 5, &got), FC_CRC);
	assert_int_equal(vb_fc_get(bytes, 0, &got), FC_CRC);
	/* Op 8, of a link packet with more bytes, in a packet of 6 bytes. */
	p.op = 8;
	assert_int_equal(vb_fc_get(bytes, vb_fc_put(bytes, &p), &got), FC_OP);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lrh__the_fields_of_the_sample),
		cmocka_unit_test(icrc__of_the_sample_on_any_vl),
		cmocka_unit_test(icrc__of_the_global_sample),
		cmocka_unit_test(icrc__of_a_frame_that_became_too_short),
		cmocka_unit_test(vcrc__agrees_with_the_definition),
		cmocka_unit_test(vcrc__leaves_one_residue),
		cmocka_unit_test(check__what_no_port_takes),
		cmocka_unit_test(blocks__count_the_vcrc),
		cmocka_unit_test(flow__every_field_of_both_forms),
		cmocka_unit_test(flow__any_burst_of_16_bits_is_found),
		cmocka_unit_test(flow__what_no_port_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/arb.h"

#define A (1u << 0)
#define B (1u << 1)
#define C (1u << 2)

static struct vb_fab_port port;
static struct vb_arb arb;

static void begin(uint8_t limit)
{
	memset(&port, 0, sizeof(port));
	memset(&arb, 0, sizeof(arb));
	port.arb_high_cap = port.arb_low_cap = 8;
	port.high_limit = limit;
}

static void entry(struct vb_fab_vlarb *table, unsigned i, uint8_t vl,
		  uint8_t weight)
{
	table[i] = (struct vb_fab_vlarb){ vl, weight };
}

/* Send @frames frames of @bytes from lanes that always have some; count them by
 * lane. */
static void saturate(uint16_t able, unsigned frames, const size_t bytes[16],
		     uint64_t sent[16])
{
	memset(sent, 0, 16 * sizeof(*sent));
	for (unsigned i = 0; i < frames; i++) {
		int vl = vb_arb_pick(&arb, &port, able);

		assert_true(vl >= 0 && (able >> vl & 1));
		vb_arb_sent(&arb, bytes[vl]);
		sent[vl] += bytes[vl];
	}
}

static void pick__has_nothing(void **state)
{
	begin(0);
	entry(port.arb_low, 0, 0, 1);
	assert_int_equal(vb_arb_pick(&arb, &port, 0), VB_ARB_NONE);
	/* VL15 is in no arbitration table, so it is never picked. */
	assert_int_equal(vb_arb_pick(&arb, &port, 1u << 15), VB_ARB_NONE);
}

/* The shares of bytes follow the weights within 2 %, whatever the frames are.
 */
static void low__shares_by_weight(void **state)
{
	static const size_t sizes[][2] = {
		{ 4144, 4144 }, { 64, 64 }, { 256, 4144 }, { 4144, 300 }
	};
	static const uint8_t weights[][2] = {
		{ 1, 1 }, { 1, 2 }, { 3, 1 }, { 64, 192 }, { 255, 1 }
	};

	for (size_t s = 0; s < VB_COUNT(sizes); s++)
		for (size_t w = 0; w < VB_COUNT(weights); w++) {
			size_t bytes[16] = { sizes[s][0], sizes[s][1] };
			double want = (double)weights[w][0] / weights[w][1];
			uint64_t sent[16];
			double got;

			begin(0);
			entry(port.arb_low, 2, 0, weights[w][0]);
			entry(port.arb_low, 5, 1, weights[w][1]);
			saturate(A | B, 200000, bytes, sent);
			/* Shares of VLs in units of 64 bytes. */
			got = (double)sent[0] / bytes[0] *
			      ((bytes[0] + 63) / 64) /
			      ((double)sent[1] / bytes[1] *
			       ((bytes[1] + 63) / 64));
			assert_true(got > want * 0.98 && got < want * 1.02);
		}
}

static void low__an_idle_lane_leaves_its_share(void **state)
{
	size_t bytes[16] = { 1000, 1000, 1000 };
	uint64_t sent[16];

	begin(0);
	for (uint8_t vl = 0; vl < 3; vl++)
		entry(port.arb_low, vl, vl, 10);
	saturate(A | C, 1000, bytes, sent);
	assert_int_equal(sent[1], 0);
	assert_int_equal(sent[0], sent[2]);
	/* A VL that had nothing to send gets no larger share later. */
	saturate(A | B | C, 3000, bytes, sent);
	assert_in_range(sent[1], 990000, 1010000);
}

/* A VL that sent while no other VL had frames does not get a smaller share
 * later. */
static void low__who_was_alone_owes_nothing(void **state)
{
	size_t bytes[16] = { 4144, 4144 };
	uint64_t sent[16];

	begin(0);
	entry(port.arb_low, 0, 0, 1);
	entry(port.arb_low, 1, 1, 1);
	saturate(A, 1000, bytes, sent);
	saturate(A | B, 4, bytes, sent);
	assert_int_equal(sent[0], sent[1]);
}

static void high__goes_first(void **state)
{
	size_t bytes[16] = { 4096, 4096 };
	uint64_t sent[16];

	begin(255);
	entry(port.arb_high, 0, 1, 1);
	entry(port.arb_low, 0, 0, 255);
	saturate(A | B, 1000, bytes, sent);
	assert_int_equal(sent[0], 0);
	saturate(A, 10, bytes, sent);
	assert_int_equal(sent[0], 40960);
}

/* After VLHighLimit times 4 KiB one frame of the low table is sent. */
static void high__up_to_its_limit(void **state)
{
	static const struct {
		uint8_t limit;
		/* 4096-byte frames of the high table for each low one */
		unsigned high;
	} cases[] = { { 0, 1 }, { 1, 1 }, { 3, 3 }, { 10, 10 }, { 254, 254 } };

	for (size_t i = 0; i < VB_COUNT(cases); i++) {
		size_t bytes[16] = { 4096, 4096 };
		uint64_t sent[16];

		begin(cases[i].limit);
		entry(port.arb_high, 0, 1, 7);
		entry(port.arb_low, 0, 0, 7);
		saturate(A | B, 10 * (cases[i].high + 1), bytes, sent);
		assert_int_equal(sent[0], 10 * 4096);
		assert_int_equal(sent[1], 10 * 4096 * cases[i].high);
	}
}

static void tables__with_nonsense_still_send(void **state)
{
	size_t bytes[16];
	uint64_t sent[16];

	for (int i = 0; i < 16; i++)
		bytes[i] = 4220;
	for (unsigned seed = 1; seed < 300; seed++) {
		begin((uint8_t)rand());
		srand(seed);
		for (unsigned i = 0; i < 64; i++) {
			entry(port.arb_high, i, (uint8_t)rand(),
			      rand() % 3 ? 0 : (uint8_t)rand());
			entry(port.arb_low, i, (uint8_t)rand(),
			      rand() % 3 ? 0 : 1);
		}
		port.arb_high_cap = (uint8_t)rand();
		port.arb_low_cap = rand() % 2 ? 0 : (uint8_t)rand();
		saturate((uint16_t)(1 | (rand() & 0x7fff)), 200, bytes, sent);
	}
}

static void unlisted__goes_when_no_other_can(void **state)
{
	begin(0);
	entry(port.arb_low, 0, 0, 1);
	assert_int_equal(vb_arb_pick(&arb, &port, A | C), 0);
	vb_arb_sent(&arb, 64);
	assert_int_equal(vb_arb_pick(&arb, &port, C), 2);
	vb_arb_sent(&arb, 64);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(pick__has_nothing),
		cmocka_unit_test(low__shares_by_weight),
		cmocka_unit_test(low__an_idle_lane_leaves_its_share),
		cmocka_unit_test(low__who_was_alone_owes_nothing),
		cmocka_unit_test(high__goes_first),
		cmocka_unit_test(high__up_to_its_limit),
		cmocka_unit_test(tables__with_nonsense_still_send),
		cmocka_unit_test(unlisted__goes_when_no_other_can),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* How RoCEv1 frames are read, field by field and bit by bit. */
#include "link/roce1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/unit/link/roce1_frames.h"

static enum vb_roce1_verdict read_one(const uint8_t *frame, uint32_t len,
				      struct vb_frame *f)
{
	/* a buffer of exactly this length, so that a sanitizer detects a read
	 * behind it */
	uint8_t *exact = malloc(len ? len : 1);
	enum vb_roce1_verdict v;

	memcpy(exact, frame, len);
	v = vb_roce1_read(exact, len, 7, f);
	free(exact);
	return v;
}

static void read__every_field(void **state)
{
	uint8_t bytes[FRAME];
	struct vb_frame f;

	make_frame(bytes, DQPN);
	assert_int_equal(vb_roce1_read(bytes, FRAME, 7, &f), ROCE1_GOOD);
	assert_ptr_equal(f.bytes, bytes + 54);
	assert_int_equal(f.len, LEN);
	assert_ptr_equal(f.src, bytes + 22);
	assert_ptr_equal(f.dst, bytes + 38);
	assert_ptr_equal(f.mac, bytes + 6);
	assert_true(f.v1);
	assert_int_equal(f.tclass, 0xa0);
	assert_int_equal(f.flow_label, 0xabcde);
	assert_int_equal(f.ttl, 33);
	assert_int_equal(f.if_ip_id, -1);
	assert_int_equal(f.ifindex, 7);
	assert_int_equal(f.dlid, 0);
}

/* A frame may be followed by bytes: the padding of a short frame, or others. */
static void read__padding(void **state)
{
	uint8_t bytes[FRAME + 64];
	struct vb_frame f;

	for (uint32_t pad = 0; pad <= 64; pad++) {
		make_frame(bytes, DQPN);
		memset(bytes + FRAME, 0xa5, 64);
		assert_int_equal(read_one(bytes, FRAME + pad, &f), ROCE1_GOOD);
		assert_int_equal(f.len, LEN);
	}
}

static void read__wrong_lengths(void **state)
{
	uint8_t bytes[FRAME];
	struct vb_frame f;

	make_frame(bytes, DQPN);
	for (uint32_t len = 0; len < FRAME; len++)
		assert_int_equal(read_one(bytes, len, &f), ROCE1_MALFORMED);
	for (uint32_t says = 0; says <= UINT16_MAX; says++) {
		enum vb_roce1_verdict v;

		vb_store_be(bytes + 18, says, 2);
		v = read_one(bytes, FRAME, &f);
		if (says < 16 || says % 4 || says > LEN + 4)
			assert_int_equal(v, ROCE1_MALFORMED);
		else
			assert_int_equal(v, says == LEN + 4 ? ROCE1_GOOD
							    : ROCE1_ICRC);
	}
}

static void read__headers_of_something_else(void **state)
{
	static const struct {
		uint8_t at, value;
	} rows[] = {
		{ 12, 0x08 }, { 13, 0x00 }, /* EtherType */
		{ 14, 0x4a }, { 14, 0x7a }, /* IPVer */
		{ 20, 0x11 }, { 20, 0x00 }, /* next header: UDP, raw */
		{ 0, 0x33 },		    /* a group's MAC address */
		{ 38, 0xff },		    /* a group's GID */
		{ 22, 0xff },		    /* a group as the source */
	};
	uint8_t bytes[FRAME];
	struct vb_frame f;

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		make_frame(bytes, DQPN);
		bytes[rows[i].at] = rows[i].value;
		seal(bytes, FRAME);
		assert_int_equal(read_one(bytes, FRAME, &f), ROCE1_MALFORMED);
	}
}

/* The ICRC detects damage in all fields but those that routers may change. */
static void read__each_bit_of_damage(void **state)
{
	uint8_t bytes[FRAME];
	struct vb_frame f;

	for (uint32_t bit = 14 * 8; bit < FRAME * 8; bit++) {
		uint32_t at = bit / 8;
		bool free_bits = at == 15 || at == 16 || at == 17 || at == 21 ||
				 at == 58 || (at == 14 && bit % 8 < 4);
		enum vb_roce1_verdict v;

		make_frame(bytes, DQPN);
		bytes[at] ^= (uint8_t)(1 << bit % 8);
		v = read_one(bytes, FRAME, &f);
		if (free_bits)
			assert_int_equal(v, ROCE1_GOOD);
		else
			assert_int_not_equal(v, ROCE1_GOOD);
	}
}

/* A GRH whose last 20 bytes look like an IPv4 header with a right checksum is
 * read as a GRH. */
static void read__addresses_like_an_ipv4_header(void **state)
{
	uint8_t bytes[FRAME];
	uint32_t sum = 0;
	struct vb_frame f;

	make_frame(bytes, DQPN);
	bytes[14 + 20] = 0x45;
	memset(bytes + 14 + 38, 0, 2);
	for (int i = 20; i < 40; i += 2)
		sum += (uint32_t)vb_load_be(bytes + 14 + i, 2);
	sum = (sum & 0xffff) + (sum >> 16);
	vb_store_be(bytes + 14 + 38, ~sum & 0xffff, 2);
	seal(bytes, FRAME);
	assert_int_equal(read_one(bytes, FRAME, &f), ROCE1_GOOD);
}

static void read__loopback_says_the_interface(void **state)
{
	uint8_t bytes[FRAME];
	struct vb_frame f;

	make_frame(bytes, DQPN);
	memset(bytes, 0, 6);
	vb_store_be(bytes + 6, 0x020000012345, 6);
	assert_int_equal(vb_roce1_read(bytes, FRAME, 1, &f), ROCE1_GOOD);
	assert_int_equal(f.ifindex, 0x12345);
	assert_null(f.mac);
	bytes[7] = 1;
	assert_int_equal(vb_roce1_read(bytes, FRAME, 1, &f), ROCE1_MALFORMED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__every_field),
		cmocka_unit_test(read__padding),
		cmocka_unit_test(read__wrong_lengths),
		cmocka_unit_test(read__headers_of_something_else),
		cmocka_unit_test(read__each_bit_of_damage),
		cmocka_unit_test(read__addresses_like_an_ipv4_header),
		cmocka_unit_test(read__loopback_says_the_interface),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "base/crc.h"
#include "tests/support/icrc.h"
#include "wire/ib_hdr.h"
#include "wire/icrc.h"

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

/* A RoCEv2 congestion notification packet that hardware sent. */
static const char cnp[] =
	"45c2003c718c4000401191610a0011010a001201 000012b700280000 "
	"8100ffff4000011800000000 00000000000000000000000000000000";

static void definition__a_packet_from_hardware(void **state)
{
	static const uint8_t want[4] = { 0x82, 0xfd, 0x00, 0x2a };
	uint8_t ip[128], stored[4];
	size_t len = unhex(cnp, ip);

	assert_int_equal(len, 20 + 8 + 12 + 16);
	vb_store_le32(stored, icrc_of_ip(ip, len));
	assert_memory_equal(stored, want, 4);
}

static void check__a_packet_from_hardware(void **state)
{
	struct vb_icrc_path path = { .src_port = 0, .dst_port = 4791 };
	struct vb_icrc_prefix p;
	uint16_t ip_id = 0;
	uint8_t ip[128];
	size_t len = unhex(cnp, ip);

	unhex("82fd002a", ip + len);
	path.src = vb_gid_from_ipv4(ip + 12);
	path.dst = vb_gid_from_ipv4(ip + 16);
	vb_icrc_prefix_init(&p, &path, (uint32_t)len - 28);
	assert_int_equal(vb_icrc_check(&p, ip + 28, 0, &ip_id),
			 ICRC_GOOD_IF_ID);
	assert_int_equal(ip_id, 0x718c);
	ip[40] ^= 1;
	assert_int_equal(vb_icrc_check(&p, ip + 28, 0, &ip_id), ICRC_BAD);
}

/* The vectors of the InfiniBand specification, whose CRC is the ICRC with other
 * masks. */
static void crc__vectors_of_infiniband(void **state)
{
	/* A RoCE packet: BTH, RETH, 14 bytes of payload and 2 of pad. */
	static const char packet[] =
		"0A2024870087B1B3000DEC2A 01710A1C015D400238F27A05 0000000E"
		"BB884D85FD5CFBA4728BC0690ED40000";
	static const uint8_t local[4] = { 0x96, 0x25, 0xb7, 0x5a };
	static const uint8_t global[4] = { 0x14, 0x93, 0xec, 0x46 };
	uint8_t bytes[128], stored[4], want[4];
	struct vb_icrc_prefix p;
	size_t head, len;

	/* The LRH in front, its VL replaced by ones as the ICRC requires. */
	head = unhex("F012375C000E17D2", bytes);
	len = head + unhex(packet, bytes + head);
	bytes[head + 4] = 0xff;
	vb_store_le32(stored, vb_crc32(0, bytes, len));
	assert_memory_equal(stored, local, 4);

	head = unhex("FFFFFFFFFFFFFFFF 6FFFFFFF 0032 00 FF"
		     "0000000000000125 0000000000000026"
		     "0000000000000117 0000000000000096",
		     bytes);
	len = head + unhex(packet, bytes + head);
	bytes[head + 4] = 0xff;
	vb_store_le32(stored, vb_crc32(0, bytes, len));
	assert_memory_equal(stored, global, 4);

	/* As RoCEv1 has the packet, whose masks are these: PayLen ends with the
	 * ICRC, and the next header is a BTH. */
	bytes[13] = 0x30;
	bytes[14] = 0x1b;
	vb_store_le32(want, vb_crc32(0, bytes, len));
	vb_icrc_prefix_grh(&p, (const void *)(bytes + 16),
			   (const void *)(bytes + 32), (uint32_t)(len - head));
	bytes[head + 4] = 0;
	vb_store_le32(stored, vb_icrc(&p, bytes + head, 0));
	assert_memory_equal(stored, want, 4);
}

struct packet {
	uint8_t ip[48 + 4200 + 4];
	size_t ip_bytes, len; /* @len: bytes from BTH to pad */
	struct vb_icrc_path path;
};

static uint8_t *bth_of(struct packet *k)
{
	return k->ip + k->ip_bytes + 8;
}

/* Make a random RoCEv2 packet with IP headers as a kernel sends them. */
static void make_packet(struct packet *k, bool v4, size_t len, uint16_t id,
			uint16_t flags)
{
	size_t udp = v4 ? 20 : 40;

	k->ip_bytes = udp;
	k->len = len;
	for (size_t i = 0; i < sizeof(k->ip); i++)
		k->ip[i] = (uint8_t)(rand() >> 8);
	if (v4) {
		k->ip[0] = 0x45;
		vb_store_be(k->ip + 2, 28 + len + 4, 2);
		vb_store_be(k->ip + 4, id, 2);
		vb_store_be(k->ip + 6, flags, 2);
		k->ip[9] = 17;
		k->path.src = vb_gid_from_ipv4(k->ip + 12);
		k->path.dst = vb_gid_from_ipv4(k->ip + 16);
	} else {
		k->ip[0] = 0x60 | (k->ip[0] & 0x0f);
		vb_store_be(k->ip + 4, 8 + len + 4, 2);
		k->ip[6] = 17;
		/* 0x20: the IPv6 addresses are not IPv4-mapped. */
		k->ip[8] = k->ip[24] = 0x20;
		memcpy(k->path.src.raw, k->ip + 8, 16);
		memcpy(k->path.dst.raw, k->ip + 24, 16);
	}
	k->path.src_port = (uint16_t)vb_load_be(k->ip + udp, 2);
	k->path.dst_port = (uint16_t)vb_load_be(k->ip + udp + 2, 2);
	vb_store_be(k->ip + udp + 4, 8 + len + 4, 2);
	vb_store_le32(bth_of(k) + len, icrc_of_ip(k->ip, udp + 8 + len));
}

#define DF 0x4000

static size_t random_len(void)
{
	return 12 + 4 * (size_t)(rand() % 1040);
}

static void icrc__agrees_with_the_definition(void **state)
{
	static struct packet k;
	struct vb_icrc_prefix p;

	for (int i = 0; i < 400; i++) {
		unsigned id = (unsigned)i % 64;

		make_packet(&k, i & 1, random_len(), (uint16_t)id, DF);
		vb_icrc_prefix_init(&p, &k.path, (uint32_t)k.len);
		assert_int_equal(vb_icrc(&p, bth_of(&k), id),
				 vb_load_le32(bth_of(&k) + k.len));
	}
}

static void check__ipv4_guessed(void **state)
{
	static struct packet k;
	struct vb_icrc_prefix p;
	uint16_t ip_id = 0xdead;

	for (unsigned id = 0; id < 64; id++) {
		make_packet(&k, true, random_len(), (uint16_t)id, DF);
		vb_icrc_prefix_init(&p, &k.path, (uint32_t)k.len);
		assert_int_equal(vb_icrc_check(&p, bth_of(&k), id, &ip_id),
				 ICRC_GOOD);
		assert_int_equal(ip_id, 0xdead);
	}
}

static void check__ipv4_solved(void **state)
{
	static struct packet k;
	struct vb_icrc_prefix p;
	uint16_t ip_id;

	for (unsigned i = 0; i < 2000; i++) {
		uint16_t id = (uint16_t)(rand() >> 5), df = i & 1 ? DF : 0;
		unsigned guess = (unsigned)rand() % 64;

		if (df && id == guess)
			continue;
		make_packet(&k, true, 12 + 4 * (size_t)(rand() % 64), id, df);
		vb_icrc_prefix_init(&p, &k.path, (uint32_t)k.len);
		assert_int_equal(vb_icrc_check(&p, bth_of(&k), guess, &ip_id),
				 ICRC_GOOD_IF_ID);
		assert_int_equal(ip_id, id);
	}
}

/* DF is clear and the guess is right: the verdict is still only "good if". */
static void check__ipv4_without_df(void **state)
{
	static struct packet k;
	struct vb_icrc_prefix p;
	uint16_t ip_id = 0xdead;

	make_packet(&k, true, 40, 5, 0);
	vb_icrc_prefix_init(&p, &k.path, (uint32_t)k.len);
	assert_int_equal(vb_icrc_check(&p, bth_of(&k), 5, &ip_id),
			 ICRC_GOOD_IF_ID);
	assert_int_equal(ip_id, 5);
}

static void check__congestion_marks_do_not_count(void **state)
{
	static struct packet k;
	struct vb_icrc_prefix p;
	uint16_t ip_id;

	make_packet(&k, true, 100, 0, DF);
	vb_icrc_prefix_init(&p, &k.path, (uint32_t)k.len);
	bth_of(&k)[4] ^= 0xff;
	assert_int_equal(vb_icrc_check(&p, bth_of(&k), 0, &ip_id), ICRC_GOOD);
}

/* Up to three flipped bits are at most taken for an Identification that was not
 * sent, with probability 2^-15; on IPv6 never. */
static void check__damage(void **state)
{
	static struct packet k;
	struct vb_icrc_prefix p;
	unsigned mistaken = 0;
	uint16_t ip_id;

	for (int i = 0; i < 4000; i++) {
		bool v4 = i & 1;
		size_t at;

		make_packet(&k, v4, 12 + 4 * (size_t)(rand() % 30), 0, DF);
		vb_icrc_prefix_init(&p, &k.path, (uint32_t)k.len);
		do
			at = (size_t)rand() % (k.len + 4);
		while (at == 4);
		bth_of(&k)[at] ^= 1 << rand() % 8;
		switch (vb_icrc_check(&p, bth_of(&k), 0, &ip_id)) {
		case ICRC_GOOD:
			fail();
			break;
		case ICRC_GOOD_IF_ID:
			assert_true(v4);
			mistaken++;
			break;
		case ICRC_BAD:
			break;
		}
	}
	assert_in_range(mistaken, 0, 3);
}

static void check__too_short_for_a_bth(void **state)
{
	static struct packet k;
	struct vb_icrc_prefix p;
	uint16_t ip_id;

	make_packet(&k, true, 8, 0, DF);
	vb_icrc_prefix_init(&p, &k.path, 8);
	assert_int_equal(vb_icrc_check(&p, bth_of(&k), 0, &ip_id), ICRC_BAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(definition__a_packet_from_hardware),
		cmocka_unit_test(check__a_packet_from_hardware),
		cmocka_unit_test(crc__vectors_of_infiniband),
		cmocka_unit_test(icrc__agrees_with_the_definition),
		cmocka_unit_test(check__ipv4_guessed),
		cmocka_unit_test(check__ipv4_solved),
		cmocka_unit_test(check__ipv4_without_df),
		cmocka_unit_test(check__congestion_marks_do_not_count),
		cmocka_unit_test(check__damage),
		cmocka_unit_test(check__too_short_for_a_bth),
	};

	srand(13);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

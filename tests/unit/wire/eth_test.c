/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of frames: every layer, and every length that a frame may be cut to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "wire/eth.h"

#define MACS	 1, 0x50, 0x56, 0x19, 0x20, 0xa7, 0x24, 0x8a, 7, 0xa5, 0x28, 0xc8
#define V6(last) 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last

/* clang-format off */
static const uint8_t udp4[] = {
	MACS, 0x08, 0x00,
	0x45, 0xb8, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2,
	0x04, 0xd2, 0x16, 0x2e, 0, 8, 0, 0,
};
static const uint8_t tcp4_tagged_twice[] = {
	MACS, 0x88, 0xa8, 0xac, 0x0c, 0x81, 0x00, 0, 5, 0x08, 0x00,
	0x46, 0, 0, 44, 0, 0, 0, 0, 7, 6, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2,
	1, 1, 1, 1, /* 4 bytes of IPv4 options, as the IHL is 6 */
	0x04, 0xd2, 0x16, 0x2e, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0,
	0, 0,
};
static const uint8_t tcp6_behind_options[] = {
	MACS, 0x86, 0xdd,
	0x6b, 0x8a, 0xbc, 0xde, 0, 12, 0, 9, V6(1), V6(2),
	/* IPv6 hop-by-hop header, which names TCP as the next header */
	6, 0, 1, 4, 0, 0, 0, 0,
	0x04, 0xd2, 0x16, 0x2e,
};
/* clang-format on */

static struct vb_eth_key key_of(const void *frame, size_t len)
{
	struct vb_eth_key key;
	uint8_t *exact = malloc(len ? len : 1);

	/* Copy the frame to memory of its exact size, so that a sanitizer
	 * detects a read past the end. */
	memcpy(exact, frame, len);
	vb_eth_key_get(exact, len, &key);
	free(exact);
	return key;
}

static void key__udp_over_ipv4(void **state)
{
	struct vb_eth_key k = key_of(udp4, sizeof(udp4));

	assert_int_equal(k.layers, LAYER_ETH | LAYER_IPV4 | LAYER_UDP);
	assert_memory_equal(k.dst, udp4, 6);
	assert_memory_equal(k.src, udp4 + 6, 6);
	assert_memory_equal(k.ether_type, "\x08\x00", 2);
	assert_memory_equal(k.sip, "\1\1\1\1\0\0", 6);
	assert_memory_equal(k.dip, "\2\2\2\2\0\0", 6);
	assert_memory_equal(k.sport, "\x04\xd2", 2);
	assert_memory_equal(k.dport, "\x16\x2e", 2);
	assert_int_equal(k.proto, 17);
	assert_int_equal(k.tos, 0xb8);
	assert_int_equal(k.ttl, 64);
	assert_int_equal(k.ip_flags, VB_IPV4_DF);
}

static void key__tags_and_options(void **state)
{
	struct vb_eth_key k =
		key_of(tcp4_tagged_twice, sizeof(tcp4_tagged_twice));

	assert_int_equal(k.layers,
			 LAYER_ETH | LAYER_VLAN | LAYER_IPV4 | LAYER_TCP);
	assert_memory_equal(k.vlan_tag, "\xac\x0c", 2);
	assert_memory_equal(k.ether_type, "\x08\x00", 2);
	assert_memory_equal(k.sport, "\x04\xd2", 2);
}

static void key__ipv6_extension(void **state)
{
	struct vb_eth_key k =
		key_of(tcp6_behind_options, sizeof(tcp6_behind_options));

	assert_int_equal(k.layers, LAYER_ETH | LAYER_IPV6 | LAYER_TCP);
	assert_memory_equal(k.flow_label, "\0\x0a\xbc\xde", 4);
	assert_int_equal(k.tos, 0xb8);
	assert_int_equal(k.proto, 0);
	assert_int_equal(k.ttl, 9);
	assert_int_equal(k.dip[15], 2);
	assert_memory_equal(k.dport, "\x16\x2e", 2);
}

/* Only the first fragment of a datagram has its ports (RFC 791). */
static void key__fragment_has_no_ports(void **state)
{
	uint8_t later[sizeof(udp4)];
	struct vb_eth_key k;

	memcpy(later, udp4, sizeof(later));
	later[14 + 7] = 1;
	k = key_of(later, sizeof(later));
	assert_int_equal(k.layers, LAYER_ETH | LAYER_IPV4);
	assert_int_equal(k.sport[0] | k.sport[1], 0);
}

static void key__headers_that_lie(void **state)
{
	uint8_t f[sizeof(udp4)];

	memcpy(f, udp4, sizeof(f));
	/* IHL 4: an IPv4 header of 16 bytes, which is too short */
	f[14] = 0x44;
	assert_int_equal(key_of(f, sizeof(f)).layers, LAYER_ETH);
	/* IHL 15: an IPv4 header of 60 bytes, more than the frame has */
	f[14] = 0x4f;
	assert_int_equal(key_of(f, sizeof(f)).layers, LAYER_ETH | LAYER_IPV4);
	f[14] = 0x65;
	assert_int_equal(key_of(f, sizeof(f)).layers, LAYER_ETH);
}

static void key__every_truncation(void **state)
{
	static const struct {
		const uint8_t *frame;
		size_t len;
	} frames[] = {
		{ udp4, sizeof(udp4) },
		{ tcp4_tagged_twice, sizeof(tcp4_tagged_twice) },
		{ tcp6_behind_options, sizeof(tcp6_behind_options) },
	};

	for (size_t i = 0; i < VB_COUNT(frames); i++) {
		uint16_t before = 0;

		for (size_t len = 0; len <= frames[i].len; len++) {
			uint16_t now = key_of(frames[i].frame, len).layers;

			/* More bytes never take a known layer away. */
			assert_int_equal(now & before, before);
			before = now;
		}
	}
}

static void key__random_bytes(void **state)
{
	uint8_t f[128];

	srand(7);
	for (unsigned i = 0; i < 20000; i++) {
		size_t len = (size_t)rand() % sizeof(f);

		for (size_t b = 0; b < len; b++)
			f[b] = (uint8_t)rand();
		/* Half of the random frames get a known EtherType. */
		if (len > 14 && i % 2) {
			f[12] = i % 4 == 1 ? 0x08 : 0x86;
			f[13] = i % 4 == 1 ? 0x00 : 0xdd;
			f[14] = (uint8_t)(i % 4 == 1 ? 0x40 | (f[14] & 15)
						     : 0x60);
		}
		(void)key_of(f, len);
	}
}

static void matches__only_under_the_mask(void **state)
{
	struct vb_eth_key k = key_of(udp4, sizeof(udp4)), value = { 0 },
			  mask = { 0 };

	assert_true(vb_eth_key_matches(&k, &value, &mask));
	mask.dport[1] = 0xff;
	assert_false(vb_eth_key_matches(&k, &value, &mask));
	value.dport[1] = 0x2e;
	value.dport[0] = 0x77; /* a port byte that the mask leaves out */
	assert_true(vb_eth_key_matches(&k, &value, &mask));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key__udp_over_ipv4),
		cmocka_unit_test(key__tags_and_options),
		cmocka_unit_test(key__ipv6_extension),
		cmocka_unit_test(key__fragment_has_no_ports),
		cmocka_unit_test(key__headers_that_lie),
		cmocka_unit_test(key__every_truncation),
		cmocka_unit_test(key__random_bytes),
		cmocka_unit_test(matches__only_under_the_mask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

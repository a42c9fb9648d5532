/* SPDX-License-Identifier: BSD-2-Clause */
/* A RoCEv1 frame by definition, written a second time for the tests. */
#ifndef TESTS_UNIT_LINK_ROCE1_FRAMES_H
#define TESTS_UNIT_LINK_ROCE1_FRAMES_H

#include <arpa/inet.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/gid.h"

#define SLOT	5
#define DQPN	(SLOT << 15 | 0x123)
#define PAYLOAD 24
#define LEN	(12 + PAYLOAD) /* BTH to pad */
#define FRAME	(14 + 40 + LEN + 4)

static const uint8_t own_mac[6] = { 2, 0, 0, 0, 0, 1 };
static const uint8_t peer_mac[6] = { 2, 0, 0, 0, 0, 2 };

static inline struct vb_gid gid(const char *text)
{
	struct vb_gid g;
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1)
		return vb_gid_from_ipv4(v4);
	assert_int_equal(inet_pton(AF_INET6, text, g.raw), 1);
	return g;
}

/* CRC-32 bit by bit, as IEEE 802.3 defines it. */
static inline uint32_t slow_crc(const uint8_t *p, size_t len)
{
	uint32_t crc = 0xffffffff;

	while (len--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (0xedb88320 & (0 - (crc & 1)));
	}
	return ~crc;
}

/* The ICRC of a frame without VLAN tag, as Annex A16 defines it. */
static inline uint32_t slow_icrc(const uint8_t *frame, size_t len)
{
	uint8_t copy[8 + 8192];

	memset(copy, 0xff, 8);
	memcpy(copy + 8, frame + 14, len - 14);
	copy[8] |= 0x0f;	   /* traffic class */
	memset(copy + 9, 0xff, 3); /* traffic class, flow label */
	copy[8 + 7] = 0xff;	   /* hop limit */
	copy[8 + 40 + 4] = 0xff;   /* BTH: congestion marks */
	return slow_crc(copy, 8 + len - 14 - 4);
}

static inline void seal(uint8_t *frame, size_t len)
{
	vb_store_le32(frame + len - 4, slow_icrc(frame, len));
}

/* A good frame from the peer to this host. */
static inline void make_frame(uint8_t *f, uint32_t dqpn)
{
	const struct vb_gid src = gid("192.0.2.2"), dst = gid("192.0.2.1");

	memset(f, 0, FRAME);
	memcpy(f, own_mac, 6);
	memcpy(f + 6, peer_mac, 6);
	vb_store_be(f + 12, 0x8915, 2);
	vb_store_be(f + 14, 0x6a0abcde, 4);
	vb_store_be(f + 18, LEN + 4, 2);
	f[20] = 0x1b;
	f[21] = 33;
	memcpy(f + 22, src.raw, 16);
	memcpy(f + 38, dst.raw, 16);
	f[54] = 0x04; /* RC SEND ONLY */
	vb_store_be(f + 58, dqpn, 4);
	seal(f, FRAME);
}

#endif

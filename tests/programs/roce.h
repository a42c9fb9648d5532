/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Computes the invariant CRC of a whole IP packet, independently of
 * wire/icrc.c, so that the tests do not share that file's errors.
 */
#ifndef TESTS_PROGRAMS_ROCE_H
#define TESTS_PROGRAMS_ROCE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ROCE_PORT 4791

static inline uint32_t roce_crc32(uint32_t crc, const uint8_t *bytes,
				  size_t len)
{
	static uint32_t table[256];

	if (!table[1])
		for (uint32_t i = 0; i < 256; i++) {
			table[i] = i;
			for (int bit = 0; bit < 8; bit++)
				table[i] = table[i] >> 1 ^
					   (table[i] & 1 ? 0xedb88320 : 0);
		}
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *bytes++) & 0xff];
	return crc;
}

/*
 * Returns the ICRC of @packet: IPv4 (without options) or IPv6, with its UDP and
 * BTH; @len: all its bytes without the ICRC. Fields that routers change count
 * as ones (Annex A17).
 */
static inline uint32_t roce_icrc(const uint8_t *packet, size_t len)
{
	static const uint8_t ones[8] = {
		255, 255, 255, 255, 255, 255, 255, 255
	};
	size_t ip = packet[0] >> 4 == 4 ? 20 : 40;
	uint8_t head[40 + 8 + 12];
	uint32_t crc;

	memcpy(head, packet, ip + 20);
	if (ip == 20) {
		head[1] = 0xff;		    /* ICRC masks type of service */
		head[8] = 0xff;		    /* ICRC masks time to live */
		head[10] = head[11] = 0xff; /* ICRC masks header checksum */
	} else {
		head[0] |= 0x0f; /* ICRC masks traffic class */
		head[1] = head[2] = head[3] = 0xff; /* ICRC masks flow label */
		head[7] = 0xff;			    /* ICRC masks hop limit */
	}
	head[ip + 6] = head[ip + 7] = 0xff; /* ICRC masks UDP checksum */
	head[ip + 8 + 4] = 0xff;	    /* ICRC masks FECN and BECN */
	crc = roce_crc32(0xffffffff, ones, 8);
	crc = roce_crc32(crc, head, ip + 20);
	return ~roce_crc32(crc, packet + ip + 20, len - ip - 20);
}

#endif

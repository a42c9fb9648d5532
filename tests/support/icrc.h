/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Computes the ICRC of a whole packet by its definition (IBA 7.8.1, Annex A17),
 * bit by bit and field by field. It shares no code with wire/icrc.c, which it
 * tests.
 */
#ifndef TESTS_SUPPORT_ICRC_H
#define TESTS_SUPPORT_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the ICRC. @ip: @len bytes, from the IP header (IPv4 without options,
 * or IPv6) through the pad. */
static inline uint32_t icrc_of_ip(const uint8_t *ip, size_t len)
{
	bool v4 = ip[0] >> 4 == 4;
	size_t udp = v4 ? 20 : 40, bth = udp + 8;
	uint32_t crc = 0xdebb20e3;

	for (size_t i = 0; i < len; i++) {
		uint8_t byte = ip[i];

		if (v4 && (i == 1 || i == 8 || i == 10 || i == 11))
			byte = 0xff;
		if (!v4 && i == 0)
			byte |= 0x0f;
		if (!v4 && ((i >= 1 && i <= 3) || i == 7))
			byte = 0xff;
		if (i == udp + 6 || i == udp + 7 || i == bth + 4)
			byte = 0xff;
		crc ^= byte;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return ~crc;
}

#endif

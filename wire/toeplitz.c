/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/toeplitz.h"

#include "base/bytes.h"

/* For each bit of the input that is set, XOR 32 bits of the key into the hash;
 * these begin in the key at the position of the bit in the input. */
uint32_t vb_toeplitz(const uint8_t key[VB_TOEPLITZ_KEY_BYTES],
		     const uint8_t *data, size_t len)
{
	uint32_t window = (uint32_t)vb_load_be(key, 4), hash = 0;

	for (size_t i = 0; i < len; i++) {
		for (unsigned bit = 0x80, next = 0x80; bit; bit >>= 1) {
			if (data[i] & bit)
				hash ^= window;
			window = window << 1 | !!(key[i + 4] & next);
			next >>= 1;
		}
	}
	return hash;
}

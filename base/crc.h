/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-32 (IEEE 802.3), and the algebra that undoes unknown bytes in it; CRC-32C
 * (Castagnoli). */
#ifndef BASE_CRC_H
#define BASE_CRC_H

#include "base/defs.h"

/* Continue @crc (0 to begin) over @len bytes; zlib's crc32() convention. */
uint32_t vb_crc32(uint32_t crc, const void *bytes, size_t len);

/* The same by shifts and exclusive-ors alone: how the other does it where the
 * processor has no instruction that multiplies polynomials. */
uint32_t vb_crc32_folded(uint32_t crc, const void *bytes, size_t len);

/* The same for CRC-32C, as iSCSI and iWARP have it. */
uint32_t vb_crc32c(uint32_t crc, const void *bytes, size_t len);

/*
 * CRC-32 is linear: when a 16-bit field, @tail bytes before the end of the
 * covered bytes counted from the field's end, changes by exclusive-or of d
 * (big-endian), the CRC changes by a value that depends on d and @tail only.
 * Given that @diff of the CRC, find d. False when no 16-bit d explains it.
 */
bool vb_crc32_solve16(uint32_t diff, size_t tail, uint16_t *d);

/* The other way: that change of the CRC, for a known @d. */
uint32_t vb_crc32_diff16(uint16_t d, size_t tail);

#endif

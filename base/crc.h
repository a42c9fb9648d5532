/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-32 (IEEE 802.3) and CRC-32C (Castagnoli), and the algebra that solves
 * CRC-32 for unknown bytes. */
#ifndef BASE_CRC_H
#define BASE_CRC_H

#include "base/defs.h"

/* Continue @crc (0 to begin) over @len bytes, by the convention of zlib's
 * crc32(). */
uint32_t vb_crc32(uint32_t crc, const void *bytes, size_t len);

/* Computes vb_crc32() only by shifts and exclusive-ors; vb_crc32() uses this
 * function where the processor has no instruction that multiplies
 * polynomials. */
uint32_t vb_crc32_folded(uint32_t crc, const void *bytes, size_t len);

/* Continue a CRC-32C, which MPA uses (RFC 5044), over @len bytes; arguments as
 * of vb_crc32(). */
uint32_t vb_crc32c(uint32_t crc, const void *bytes, size_t len);

/* Compute vb_crc32c() without ISA-L: the first uses the processor's instruction
 * where there is one, and the second only a table. */
uint32_t vb_crc32c_plain(uint32_t crc, const void *bytes, size_t len);
uint32_t vb_crc32c_table(uint32_t crc, const void *bytes, size_t len);

/*
 * CRC-32 is linear: when a 16-bit field changes by exclusive-or of d
 * (big-endian), the CRC changes by a value that depends only on d and on @tail,
 * the number of covered bytes behind the field. Given @diff, the change of the
 * CRC, find d. False: no 16-bit d explains it.
 */
bool vb_crc32_solve16(uint32_t diff, size_t tail, uint16_t *d);

/* The inverse of vb_crc32_solve16(): returns how the CRC changes when the field
 * changes by @d. */
uint32_t vb_crc32_diff16(uint16_t d, size_t tail);

#endif

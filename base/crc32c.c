/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-32C: by ISA-L, or in builds without ISA-L (-Disal=disabled) by the
 * processor's instruction or a table. */
#include "base/crc.h"

#include <pthread.h>

#include "base/bytes.h"

#ifdef VB_ISAL

#include <isa-l/crc.h>

/* ISA-L takes the length as an int, does not write to its non-const argument,
 * and leaves both inversions to its caller. */
#define CRC32C_PIECE (1u << 30)

uint32_t vb_crc32c(uint32_t crc, const void *bytes, size_t len)
{
	unsigned char *at = (unsigned char *)(uintptr_t)bytes;
	uint32_t r = ~crc;

	for (; len > CRC32C_PIECE; len -= CRC32C_PIECE, at += CRC32C_PIECE)
		r = crc32_iscsi(at, (int)CRC32C_PIECE, r);
	return ~crc32_iscsi(at, (int)len, r);
}

#else

uint32_t vb_crc32c(uint32_t crc, const void *bytes, size_t len)
{
	return vb_crc32c_plain(crc, bytes, len);
}

#endif

#define POLY 0x82f63b78u /* the polynomial, with its bits reflected */

static uint32_t table[256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
	for (uint32_t i = 0; i < VB_COUNT(table); i++) {
		uint32_t r = i;

		for (int bit = 0; bit < 8; bit++)
			r = r >> 1 ^ (POLY & (0u - (r & 1)));
		table[i] = r;
	}
}

uint32_t vb_crc32c_table(uint32_t crc, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	uint32_t r = ~crc;

	pthread_once(&table_once, fill_table);
	for (; len; len--, at++)
		r = r >> 8 ^ table[(r ^ *at) & 0xff];
	return ~r;
}

#if defined(__x86_64__)

#define WITH_INSTRUCTION __attribute__((target("sse4.2")))
#define ADD_64(r, v)	 ((uint32_t)__builtin_ia32_crc32di(r, v))
#define ADD_8(r, v)	 __builtin_ia32_crc32qi(r, v)

static bool has_instruction(void)
{
	return __builtin_cpu_supports("sse4.2");
}

#elif defined(__aarch64__)

#include <arm_acle.h>
#include <sys/auxv.h>

#define WITH_INSTRUCTION __attribute__((target("+crc")))
#define ADD_64(r, v)	 __crc32cd(r, v)
#define ADD_8(r, v)	 __crc32cb(r, v)

static bool has_instruction(void)
{
	return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

#endif

#ifdef WITH_INSTRUCTION

WITH_INSTRUCTION
static uint32_t crc32c_by_instruction(uint32_t crc, const uint8_t *at,
				      size_t len)
{
	uint32_t r = ~crc;

	for (; len >= 8; len -= 8, at += 8)
		r = ADD_64(r, vb_load_le64(at));
	for (; len; len--, at++)
		r = ADD_8(r, *at);
	return ~r;
}

uint32_t vb_crc32c_plain(uint32_t crc, const void *bytes, size_t len)
{
	if (has_instruction())
		return crc32c_by_instruction(crc, bytes, len);
	return vb_crc32c_table(crc, bytes, len);
}

#else

uint32_t vb_crc32c_plain(uint32_t crc, const void *bytes, size_t len)
{
	return vb_crc32c_table(crc, bytes, len);
}

#endif

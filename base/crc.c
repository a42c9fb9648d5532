/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32 by libdeflate, and arithmetic on its remainders.
 *
 * A remainder is a polynomial over GF(2) modulo P, of degree below 32, with
 * the coefficient of x^31 in bit 0 ("reflected"). A byte appended to a
 * message multiplies by x^8; a field that ends @tail bytes before the end
 * therefore contributes field(x) * x^32 * x^(8 * tail), and multiplying by
 * the inverse power brings the field back.
 */
#include "base/crc.h"

#include <libdeflate.h>
#include <pthread.h>
#include <string.h>

#include "base/bytes.h"

#define POLY	0xedb88320u
#define ONE	0x80000000u /* the polynomial x^0, with its bits reflected */
#define X_POW_8 0x00800000u
/* bytes of a CRC-32, which appends x^32 to its message */
#define CRC_BYTES 4
/* the order of x: P is primitive, so x^(2^32 - 1) = 1 */
#define ORDER 0xffffffffu

/* Two tables of powers: @of[k][n] is x^(8 * n * 256^k), or that power of
 * x^-8. */
struct powers {
	uint32_t of[4][256];
};

static struct powers forward, backward;
static pthread_once_t powers_once = PTHREAD_ONCE_INIT;

static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (int i = 0; i < 32; i++) {
		product ^= b & (0u - (a >> 31));
		a <<= 1;
		b = b >> 1 ^ (POLY & (0u - (b & 1)));
	}
	return product;
}

static void fill_powers(struct powers *p, uint32_t step)
{
	for (int k = 0; k < 4; k++) {
		p->of[k][0] = ONE;
		for (int n = 1; n < 256; n++)
			p->of[k][n] = multiply(p->of[k][n - 1], step);
		step = multiply(p->of[k][255], step);
	}
}

/* x^-8 = (x^8)^(ORDER - 1), and ORDER - 1 has every bit set but the last. */
static void fill_all_powers(void)
{
	uint32_t inverse = ONE, square = X_POW_8;

	for (int i = 1; i < 32; i++) {
		square = multiply(square, square);
		inverse = multiply(inverse, square);
	}
	fill_powers(&forward, X_POW_8);
	fill_powers(&backward, inverse);
}

static uint32_t shift(const struct powers *p, uint32_t v, uint64_t bytes)
{
	pthread_once(&powers_once, fill_all_powers);
	bytes %= ORDER;
	for (int k = 0; bytes; k++, bytes >>= 8)
		if (bytes & 0xff)
			v = multiply(p->of[k][bytes & 0xff], v);
	return v;
}

/*
 * Fold the word at @at into later words. Since x^300 + x^155 + x^117 + x^89 + 1
 * is a multiple of P, the CRC stays the same if a word is removed from a
 * message and is added (XOR) 145, 183, 211 and 300 bits behind its place. @w0
 * is the sum of all words that were added to the word at @at before; the sums
 * for later words are updated. Afterwards *@w0 is the sum for the fifth word
 * behind @at, to which no other word was added yet.
 */
#define FOLD_WORDS 5
#define FOLD_BYTES (FOLD_WORDS * sizeof(uint64_t))

static inline void fold(const uint8_t *at, uint64_t *w0, uint64_t *w2,
			uint64_t *w3, uint64_t *w4)
{
	uint64_t v = vb_load_le64(at) ^ *w0;

	*w2 ^= v << 17 ^ v << 55;
	*w3 ^= v >> 47 ^ v >> 9 ^ v << 19;
	*w4 ^= v >> 45 ^ v << 44;
	*w0 = v >> 20;
}

/* XOR the folded @words onto the last @len bytes of the message at @at, and
 * return the CRC of these bytes. @len is at least FOLD_BYTES and less than 2 *
 * FOLD_BYTES. */
static uint32_t fold_end(const uint64_t *words, const uint8_t *at, size_t len)
{
	uint8_t end[2 * FOLD_BYTES];

	memcpy(end, at, len);
	for (unsigned i = 0; i < FOLD_WORDS; i++) {
		uint8_t *to = end + i * sizeof(*words);

		vb_store_le64(to, vb_load_le64(to) ^ words[i]);
	}
	return libdeflate_crc32(~0u, end, len);
}

uint32_t vb_crc32_folded(uint32_t crc, const void *bytes, size_t len)
{
	uint64_t w[FOLD_WORDS] = { ~crc };
	const uint8_t *at = bytes;

	if (len < 2 * FOLD_BYTES)
		return libdeflate_crc32(crc, bytes, len);
	for (; len >= 2 * FOLD_BYTES; at += FOLD_BYTES, len -= FOLD_BYTES) {
		fold(at, &w[0], &w[2], &w[3], &w[4]);
		fold(at + 8, &w[1], &w[3], &w[4], &w[0]);
		fold(at + 16, &w[2], &w[4], &w[0], &w[1]);
		fold(at + 24, &w[3], &w[0], &w[1], &w[2]);
		fold(at + 32, &w[4], &w[1], &w[2], &w[3]);
	}
	return fold_end(w, at, len);
}

/* Has the processor an instruction that multiplies polynomials? Without it, or
 * if a hypervisor hides it, libdeflate would look up a table for every byte. */
static bool multiplies(void)
{
#ifdef __x86_64__
	return __builtin_cpu_supports("pclmul");
#else
	return true;
#endif
}

uint32_t vb_crc32(uint32_t crc, const void *bytes, size_t len)
{
	if (VB_UNLIKELY(!multiplies()))
		return vb_crc32_folded(crc, bytes, len);
	return libdeflate_crc32(crc, bytes, len);
}

/* @d is a change of a big-endian 16-bit field. The CRC covers the field's high
 * byte first, and in each byte the lowest bit first. */
uint32_t vb_crc32_diff16(uint16_t d, size_t tail)
{
	return shift(&forward, (uint32_t)__builtin_bswap16(d) << 16,
		     (uint64_t)tail + CRC_BYTES);
}

bool vb_crc32_solve16(uint32_t diff, size_t tail, uint16_t *d)
{
	uint32_t field = shift(&backward, diff, (uint64_t)tail + CRC_BYTES);

	if (field & 0xffff)
		return false;
	*d = __builtin_bswap16((uint16_t)(field >> 16));
	return true;
}

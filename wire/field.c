/* SPDX-License-Identifier: BSD-2-Clause */
/* Moves bit fields of bytes to and from the members of a struct. */
#include "wire/field.h"

#include <string.h>

uint64_t vb_bits_load(const uint8_t *bytes, unsigned bit, unsigned bits)
{
	uint64_t v = 0;

	while (bits > 0) {
		unsigned left = 8 - bit % 8;
		unsigned take = VB_MIN(left, bits);
		unsigned part = bytes[bit / 8] >> (left - take);

		v = v << take | (part & (0xffu >> (8 - take)));
		bit += take;
		bits -= take;
	}
	return v;
}

void vb_bits_store(uint8_t *bytes, unsigned bit, unsigned bits, uint64_t v)
{
	while (bits > 0) {
		unsigned left = 8 - bit % 8;
		unsigned take = VB_MIN(left, bits);
		unsigned mask = (0xffu >> (8 - take)) << (left - take);
		unsigned part = (unsigned)(v >> (bits - take)) << (left - take);

		bytes[bit / 8] =
			(uint8_t)((bytes[bit / 8] & ~mask) | (part & mask));
		bit += take;
		bits -= take;
	}
}

static uint64_t load_member(const void *s, const struct vb_field *f)
{
	const char *at = (const char *)s + f->at;
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	switch (f->bytes) {
	case 1:
		return *(const uint8_t *)at;
	case 2:
		memcpy(&v2, at, sizeof(v2));
		return v2;
	case 4:
		memcpy(&v4, at, sizeof(v4));
		return v4;
	default:
		memcpy(&v8, at, sizeof(v8));
		return v8;
	}
}

static void store_member(void *s, const struct vb_field *f, uint64_t v)
{
	char *at = (char *)s + f->at;
	uint32_t v4 = (uint32_t)v;
	uint16_t v2 = (uint16_t)v;

	switch (f->bytes) {
	case 1:
		*(uint8_t *)at = (uint8_t)v;
		break;
	case 2:
		memcpy(at, &v2, sizeof(v2));
		break;
	case 4:
		memcpy(at, &v4, sizeof(v4));
		break;
	default:
		memcpy(at, &v, sizeof(v));
		break;
	}
}

void vb_fields_get(const struct vb_field *table, unsigned count,
		   const uint8_t *from, void *to)
{
	for (const struct vb_field *f = table; f < table + count; f++)
		store_member(to, f, vb_bits_load(from, f->bit, f->bits));
}

void vb_fields_put(const struct vb_field *table, unsigned count, uint8_t *to,
		   const void *from)
{
	for (const struct vb_field *f = table; f < table + count; f++)
		vb_bits_store(to, f->bit, f->bits, load_member(from, f));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of bit fields: management attributes have dozens of fields that follow
 * no rule but the specification's drawing, so a row says where each one lies in
 * the bytes and in a struct of host-order integers.
 */
#ifndef WIRE_FIELD_H
#define WIRE_FIELD_H

#include "base/defs.h"

struct vb_field {
	uint16_t bit;  /* of the first byte's highest bit; counted downward */
	uint8_t bits;  /* 1..64 */
	uint8_t bytes; /* of the struct's member: 1, 2, 4 or 8 */
	uint16_t at;   /* of the member in the struct */
};

/* The field of @bits bits that begins @bit bits below the highest bit of byte
 * @byte, and is the member @member of struct @type. */
#define VB_FIELD(type, member, byte, bit, bits)                                \
	{                                                                      \
		(byte) * 8 + (bit), (bits),                                    \
			sizeof(((struct type *)0)->member),                    \
			offsetof(struct type, member)                          \
	}

/* Read the @count fields of @table from @from into the struct @to, whose other
 * bytes stay. @from has all bytes that the table names. */
void vb_fields_get(const struct vb_field *table, unsigned count,
		   const uint8_t *from, void *to);
/* Write these fields from the struct to bytes. Bits of @to that the table does
 * not name stay; a value loses the bits for which its field has no room. */
void vb_fields_put(const struct vb_field *table, unsigned count, uint8_t *to,
		   const void *from);

/* Read or write one field without a table: @bits bits (1..64) that begin @bit
 * bits below the highest of the first byte. */
uint64_t vb_bits_load(const uint8_t *bytes, unsigned bit, unsigned bits);
void vb_bits_store(uint8_t *bytes, unsigned bit, unsigned bits, uint64_t v);

#endif

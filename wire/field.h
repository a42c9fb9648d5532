/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of bit fields. Management attributes have dozens of fields whose
 * places follow only the drawing in the specification, so a row of a table says
 * where a field is in the bytes and in a struct of host-order integers.
 */
#ifndef WIRE_FIELD_H
#define WIRE_FIELD_H

#include "base/defs.h"

struct vb_field {
	/* position of the field's first bit, counted from the highest bit of
	 * the first byte */
	uint16_t bit;
	uint8_t bits;  /* width of the field, 1..64 bits */
	uint8_t bytes; /* width of the struct's member: 1, 2, 4 or 8 bytes */
	uint16_t at;   /* offset of the member in the struct */
};

/* A row for the field of @bits bits that begins @bit bits below the highest bit
 * of byte @byte, and is the member @member of struct @type. */
#define VB_FIELD(type, member, byte, bit, bits)                                \
	{                                                                      \
		(byte) * 8 + (bit), (bits),                                    \
			sizeof(((struct type *)0)->member),                    \
			offsetof(struct type, member)                          \
	}

/* Read the @count fields of @table from the bytes @from into the struct @to,
 * whose other bytes do not change. @from has all bytes that the table names. */
void vb_fields_get(const struct vb_field *table, unsigned count,
		   const uint8_t *from, void *to);
/* Write the @count fields of @table from the struct @from to the bytes @to.
 * Bits that the table does not name do not change; a value that is too large
 * for its field loses its high bits. */
void vb_fields_put(const struct vb_field *table, unsigned count, uint8_t *to,
		   const void *from);

/* Read or write one field without a table: @bits bits (1..64) that begin @bit
 * bits below the highest bit of the first byte. */
uint64_t vb_bits_load(const uint8_t *bytes, unsigned bit, unsigned bits);
void vb_bits_store(uint8_t *bytes, unsigned bit, unsigned bits, uint64_t v);

#endif

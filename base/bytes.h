/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes numbers in a given byte order; no other file converts byte
 * order. The reader is sticky: after it has run out of bytes, every read fails,
 * so a parser tests for errors once, after the last field.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <endian.h>
#include <string.h>

#include "base/defs.h"

struct vb_reader {
	const uint8_t *at, *end;
	bool overrun;
};

static inline struct vb_reader vb_reader(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	return (struct vb_reader){ p, p + len, false };
}

static inline size_t vb_reader_left(const struct vb_reader *r)
{
	return (size_t)(r->end - r->at);
}

/* Returns the next @len bytes and advances past them. NULL: the reader has
 * fewer bytes, and all later reads fail. */
static inline const uint8_t *vb_take(struct vb_reader *r, size_t len)
{
	const uint8_t *p = r->at;

	if (vb_reader_left(r) < len) {
		r->overrun = true;
		r->at = r->end;
		return NULL;
	}
	r->at += len;
	return p;
}

/* Returns a big-endian number of @bytes bytes. The constants 4 and 8 are
 * separate cases of one instruction each, which compilers do not make of the
 * loop. */
static inline uint64_t vb_load_be(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;
	uint32_t half;

	if (bytes == sizeof(v)) {
		memcpy(&v, p, sizeof(v));
		return be64toh(v);
	}
	if (bytes == sizeof(half)) {
		memcpy(&half, p, sizeof(half));
		return be32toh(half);
	}
	for (unsigned i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

static inline void vb_store_be(uint8_t *p, uint64_t v, unsigned bytes)
{
	uint32_t half = htobe32((uint32_t)v);

	if (bytes == sizeof(v)) {
		v = htobe64(v);
		memcpy(p, &v, sizeof(v));
		return;
	}
	if (bytes == sizeof(half)) {
		memcpy(p, &half, sizeof(half));
		return;
	}
	for (unsigned i = bytes; i-- > 0; v >>= 8)
		p[i] = (uint8_t)v;
}

static inline uint64_t vb_get_be(struct vb_reader *r, unsigned bytes)
{
	const uint8_t *p = vb_take(r, bytes);

	return p ? vb_load_be(p, bytes) : 0;
}

static inline uint8_t vb_get_u8(struct vb_reader *r)
{
	return (uint8_t)vb_get_be(r, 1);
}

static inline uint16_t vb_get_be16(struct vb_reader *r)
{
	return (uint16_t)vb_get_be(r, 2);
}

static inline uint32_t vb_get_be24(struct vb_reader *r)
{
	return (uint32_t)vb_get_be(r, 3);
}

static inline uint32_t vb_get_be32(struct vb_reader *r)
{
	return (uint32_t)vb_get_be(r, 4);
}

static inline uint64_t vb_get_be64(struct vb_reader *r)
{
	return vb_get_be(r, 8);
}

/* The writer checks no bounds: its caller provides room for the longest
 * header. */
struct vb_writer {
	uint8_t *at;
};

static inline void vb_put_be(struct vb_writer *w, uint64_t v, unsigned bytes)
{
	vb_store_be(w->at, v, bytes);
	w->at += bytes;
}

static inline void vb_store_le32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static inline uint32_t vb_load_le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static inline void vb_store_le64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

static inline uint64_t vb_load_le64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

#endif

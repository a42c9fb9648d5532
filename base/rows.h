/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table that holds its objects itself, one after the other, for all its life:
 * it only grows, and what is in it never moves. To look one up takes no lock
 * and, when there are millions, one cache line that is nowhere near: the
 * object's own. For objects whose memory is recycled in place; where objects
 * come and go, see base/idtab.h.
 */
#ifndef BASE_ROWS_H
#define BASE_ROWS_H

#include <stdatomic.h>

#include "base/defs.h"

#define VB_ROWS_CHUNK_BITS 14

struct vb_rows {
	uint32_t most;
	uint32_t size; /* of one */
	_Atomic uint32_t count;
	_Atomic(uint8_t *) chunks[];
};

/* At most @most objects of @size bytes, a multiple of a cache line. NULL: no
 * memory. */
struct vb_rows *vb_rows_create(uint32_t most, uint32_t size);
void vb_rows_destroy(struct vb_rows *t);

/* One more, all zeros, at the next index, beginning with 0. One caller at a
 * time. -ENOSPC: there are as many as may be; -ENOMEM. */
VB_MUST_CHECK int vb_rows_add(struct vb_rows *t, uint32_t *index, void **obj);

/* Any @index, in range or not, in any thread; NULL when nothing is there. */
static inline void *vb_rows_get(const struct vb_rows *t, uint32_t index)
{
	uint8_t *chunk;

	/* Acquire: pairs with the release in vb_rows_add(), after which the
	 * chunk is there. */
	if (index >= atomic_load_explicit(&t->count, memory_order_acquire))
		return NULL;
	chunk = atomic_load_explicit(&t->chunks[index >> VB_ROWS_CHUNK_BITS],
				     memory_order_relaxed);
	return chunk +
	       (size_t)(index & ((1u << VB_ROWS_CHUNK_BITS) - 1)) * t->size;
}

static inline uint32_t vb_rows_count(const struct vb_rows *t)
{
	return atomic_load_explicit(&t->count, memory_order_relaxed);
}

#endif

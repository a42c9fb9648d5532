/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table that contains its objects themselves, one after the other. The table
 * only grows, and an object never moves. A lookup takes no lock, and touches
 * only one distant cache line, the object's own, however many objects there
 * exist. Use it for objects whose memory their owner recycles in place, and
 * base/idtab.h for objects that are allocated and freed.
 */
#ifndef BASE_ROWS_H
#define BASE_ROWS_H

#include <stdatomic.h>

#include "base/defs.h"

#define VB_ROWS_CHUNK_BITS 14

struct vb_rows {
	uint32_t most;
	uint32_t size; /* size of one object in bytes */
	_Atomic uint32_t count;
	_Atomic(uint8_t *) chunks[];
};

/* Create a table of at most @most objects of @size bytes, which is a multiple
 * of a cache line. NULL: no memory. */
struct vb_rows *vb_rows_create(uint32_t most, uint32_t size);
void vb_rows_destroy(struct vb_rows *t);

/* Add an object, all zeros, at the next index, beginning with 0. Only one
 * thread may add at a time. 0; -ENOSPC: the table has @most objects;
 * -ENOMEM. */
VB_MUST_CHECK int vb_rows_add(struct vb_rows *t, uint32_t *index, void **obj);

/* Returns the object at @index, which may be out of range; NULL: the table has
 * no such object. Any thread may call this. */
static inline void *vb_rows_get(const struct vb_rows *t, uint32_t index)
{
	uint8_t *chunk;

	/* Acquire: pairs with the release in vb_rows_add(), before which the
	 * chunk was stored. */
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

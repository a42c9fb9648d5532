/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the memory of queues comes from: the heap, or an allocator of the
 * program (a parent domain's). */
#ifndef CORE_MEMORY_H
#define CORE_MEMORY_H

#include <stdatomic.h>
#include <stdlib.h>

#include "base/defs.h"

#define VB_MEMORY_ALIGN 64 /* alignment in bytes: a cache line */

struct vb_memory {
	/* @take returns @bytes bytes at a multiple of VB_MEMORY_ALIGN; NULL:
	 * out of memory; VB_MEMORY_DEFAULT: the caller shall use the heap. */
	void *(*take)(struct vb_memory *m, size_t bytes);
	void (*give)(struct vb_memory *m, void *at);
	/* number of blocks that are allocated and not yet freed */
	_Atomic uint32_t refs;
};
#define VB_MEMORY_DEFAULT ((void *)-1)

/* Allocate @count * @size bytes from @*m, or from the heap if *@m is NULL. Sets
 * *@m to NULL when the allocator returns VB_MEMORY_DEFAULT and the heap serves.
 * Only the heap zeroes the block. */
static inline void *vb_memory_take(struct vb_memory **m, uint32_t count,
				   size_t size)
{
	void *at = *m ? (*m)->take(*m, count * size) : VB_MEMORY_DEFAULT;

	if (at == VB_MEMORY_DEFAULT) {
		*m = NULL;
		return calloc(count, size);
	}
	if (at)
		atomic_fetch_add(&(*m)->refs, 1);
	return at;
}

static inline void vb_memory_give(struct vb_memory *m, void *at)
{
	if (!m || !at) {
		free(at);
		return;
	}
	m->give(m, at);
	atomic_fetch_sub(&m->refs, 1);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the memory of queues comes from: the program may have its own idea. */
#ifndef CORE_MEMORY_H
#define CORE_MEMORY_H

#include <stdatomic.h>
#include <stdlib.h>

#include "base/defs.h"

#define VB_MEMORY_ALIGN 64 /* a cache line */

struct vb_memory {
	/* @bytes at a multiple of VB_MEMORY_ALIGN; NULL: there is none;
	 * VB_MEMORY_DEFAULT: take the heap's. */
	void *(*take)(struct vb_memory *m, size_t bytes);
	void (*give)(struct vb_memory *m, void *at);
	_Atomic uint32_t refs; /* blocks taken and not given back */
};
#define VB_MEMORY_DEFAULT ((void *)-1)

/* NULL in *@m is the heap, and what the heap gave makes it so. Not zeroed but
 * by the heap. */
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

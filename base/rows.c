/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps objects in chunks of pages; the kernel provides a page when a thread
 * first touches it. */
#include "base/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define CHUNK_ROWS (1u << VB_ROWS_CHUNK_BITS)

static uint32_t chunks(const struct vb_rows *t)
{
	return (vb_rows_count(t) + CHUNK_ROWS - 1) / CHUNK_ROWS;
}

static size_t chunk_bytes(const struct vb_rows *t)
{
	return (size_t)t->size * CHUNK_ROWS;
}

struct vb_rows *vb_rows_create(uint32_t most, uint32_t size)
{
	size_t root = ((size_t)most + CHUNK_ROWS - 1) / CHUNK_ROWS;
	struct vb_rows *t = calloc(1, sizeof(*t) + root * sizeof(t->chunks[0]));

	if (!t)
		return NULL;
	t->most = most;
	t->size = size;
	return t;
}

void vb_rows_destroy(struct vb_rows *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < chunks(t); i++)
		munmap(atomic_load_explicit(&t->chunks[i],
					    memory_order_relaxed),
		       chunk_bytes(t));
	free(t);
}

static int add_chunk(struct vb_rows *t, uint32_t nth)
{
	void *chunk = mmap(NULL, chunk_bytes(t), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (chunk == MAP_FAILED)
		return -ENOMEM;
	/* With many objects, the TLB miss of a page costs as much as the miss
	 * of the cache line, so use huge pages. The first chunk has none: a
	 * program with few objects need not pay for a huge page. */
	if (nth > 0)
		(void)madvise(chunk, chunk_bytes(t), MADV_HUGEPAGE);
	atomic_store_explicit(&t->chunks[nth], chunk, memory_order_relaxed);
	return 0;
}

int vb_rows_add(struct vb_rows *t, uint32_t *index, void **obj)
{
	uint32_t i = vb_rows_count(t);
	int rc = 0;

	if (i == t->most)
		return -ENOSPC;
	if (i % CHUNK_ROWS == 0)
		rc = add_chunk(t, i / CHUNK_ROWS);
	if (rc)
		return rc;
	/* Release: a thread that sees the new count also sees the chunk. */
	atomic_store_explicit(&t->count, i + 1, memory_order_release);
	*index = i;
	*obj = vb_rows_get(t, i);
	return 0;
}

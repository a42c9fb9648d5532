/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps idle buffers in lists, one for each size. The buffer that was freed
 * last is used first, because it is in the cache. */
#include "base/stash.h"

#include <stdlib.h>

struct vb_stashed {
	struct vb_stashed *next;
};

/* Sizes for packets of the usual path MTUs with their bookkeeping. Larger
 * buffers come from the C library directly. */
static const size_t sizes[] = { 512, 1536, 4608 };
_Static_assert(VB_COUNT(sizes) == VB_STASH_SIZES, "a list for each");

static unsigned list_for(size_t bytes)
{
	unsigned i = 0;

	while (i < VB_STASH_SIZES && bytes > sizes[i])
		i++;
	return i;
}

size_t vb_stash_room(size_t bytes)
{
	unsigned i = list_for(bytes);

	return i < VB_STASH_SIZES ? sizes[i] : bytes;
}

void *vb_stash_take(struct vb_stash *s, size_t bytes)
{
	unsigned i = list_for(bytes);
	struct vb_stashed *p;

	if (i == VB_STASH_SIZES)
		return malloc(bytes);
	vb_mutex_lock(&s->lock);
	p = s->idle[i];
	if (p) {
		s->idle[i] = p->next;
		s->kept -= sizes[i];
	}
	vb_mutex_unlock(&s->lock);
	return p ? p : malloc(sizes[i]);
}

void vb_stash_give(struct vb_stash *s, void *p, size_t bytes)
{
	unsigned i = list_for(bytes);
	struct vb_stashed *b = p;
	bool keep;

	if (i == VB_STASH_SIZES) {
		free(p);
		return;
	}
	vb_mutex_lock(&s->lock);
	keep = s->kept + sizes[i] <= VB_STASH_KEEPS;
	if (keep) {
		b->next = s->idle[i];
		s->idle[i] = b;
		s->kept += sizes[i];
	}
	vb_mutex_unlock(&s->lock);
	if (!keep)
		free(p);
}

void vb_stash_fini(struct vb_stash *s)
{
	for (unsigned i = 0; i < VB_STASH_SIZES; i++) {
		struct vb_stashed *p, *next;

		for (p = s->idle[i]; p; p = next) {
			next = p->next;
			free(p);
		}
		s->idle[i] = NULL;
	}
	s->kept = 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers that come and go by the hundred, many times a second. The C library
 * gives back to the kernel what is free at the end of its memory; to have it
 * again costs a page fault for each page, 10 us in some virtual machines,
 * which is longer than a packet takes otherwise. So what is given back is kept
 * here for the next who wants as much, up to a bound. Zeros are an empty one.
 */
#ifndef BASE_STASH_H
#define BASE_STASH_H

#include <stddef.h>

#include "base/sync.h"

#define VB_STASH_SIZES 3
#define VB_STASH_KEEPS (8u << 20) /* bytes, at most */

struct vb_stashed;
struct vb_stash {
	struct vb_mutex lock;
	struct vb_stashed *idle[VB_STASH_SIZES];
	size_t kept; /* bytes, in idle */
};

/* @bytes of memory, not zeroed. NULL: there is none. */
void *vb_stash_take(struct vb_stash *s, size_t bytes);
/* So many bytes that many take. */
size_t vb_stash_room(size_t bytes);
/* With as many @bytes as it was taken with. */
void vb_stash_give(struct vb_stash *s, void *p, size_t bytes);
/* What is kept goes back. */
void vb_stash_fini(struct vb_stash *s);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stash of buffers that a caller allocates and frees by the hundred, many
 * times a second. The C library returns free memory at the end of its heap to
 * the kernel; getting it again costs a page fault for each page, 10 us in some
 * virtual machines, which is longer than the other work on a packet. So the
 * stash keeps freed buffers for the next use, VB_STASH_KEEPS bytes at most. All
 * zeros is an empty stash.
 */
#ifndef BASE_STASH_H
#define BASE_STASH_H

#include <stddef.h>

#include "base/sync.h"

#define VB_STASH_SIZES 3
#define VB_STASH_KEEPS (8u << 20) /* the most bytes that a stash keeps */

struct vb_stashed;
struct vb_stash {
	struct vb_mutex lock;
	struct vb_stashed *idle[VB_STASH_SIZES];
	size_t kept; /* bytes of the buffers in @idle */
};

/* Allocate a buffer of @bytes bytes, not zeroed. NULL: no memory. */
void *vb_stash_take(struct vb_stash *s, size_t bytes);
/* Returns the usable size of a buffer that was allocated with @bytes. */
size_t vb_stash_room(size_t bytes);
/* Return a buffer to the stash; @bytes as in vb_stash_take(). */
void vb_stash_give(struct vb_stash *s, void *p, size_t bytes);
/* Free all buffers that the stash keeps. */
void vb_stash_fini(struct vb_stash *s);

#endif

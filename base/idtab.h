/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table from small numbers to objects, such as queue pair numbers or memory
 * keys.
 *
 * vb_idtab_get() takes no lock and may run in any thread at any time, also
 * during add and del. The object that it returns may be deleted a moment later.
 * Therefore objects in a table are recycled and not freed while the table lives
 * ("type-stable"), and a reader checks, under the object's own lock or
 * reference, that it still is the one that was asked for.
 */
#ifndef BASE_IDTAB_H
#define BASE_IDTAB_H

#include "base/defs.h"

struct vb_idtab;

/*
 * Indices run from 0 to @count - 1 (@count <= 2^24). They are handed out from
 * @first on and then around; a freed index is the last one to be used again.
 * Memory grows with the highest index used. NULL: no memory.
 */
struct vb_idtab *vb_idtab_create(uint32_t count, uint32_t first);
void vb_idtab_destroy(struct vb_idtab *t);

/* Give @obj (not NULL) an index. 0; -ENOSPC: all are taken; -ENOMEM. */
VB_MUST_CHECK int vb_idtab_add(struct vb_idtab *t, void *obj, uint32_t *index);

/* The object at @index, which may be out of range; NULL when there is none. */
void *vb_idtab_get(const struct vb_idtab *t, uint32_t index);

void vb_idtab_del(struct vb_idtab *t, uint32_t index);
uint32_t vb_idtab_used(const struct vb_idtab *t);

#endif

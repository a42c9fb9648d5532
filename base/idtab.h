/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table from small numbers to objects, such as queue pair numbers or memory
 * keys.
 *
 * vb_idtab_get() takes no lock; any thread may call it at any time, also during
 * add and del. Another thread can delete the object that it returned a moment
 * later. Therefore owners recycle objects of a table and do not free them while
 * the table lives ("type-stable"), and a reader checks, under the object's own
 * lock or reference, that the object still is the one that it asked for.
 */
#ifndef BASE_IDTAB_H
#define BASE_IDTAB_H

#include "base/defs.h"

struct vb_idtab;

/*
 * Indices run from 0 to @count - 1 (@count <= 2^24). vb_idtab_add() hands them
 * out from @first on and then around; it uses a freed index again only after
 * all others that are free. Memory grows with the highest index used. NULL: no
 * memory.
 */
struct vb_idtab *vb_idtab_create(uint32_t count, uint32_t first);
void vb_idtab_destroy(struct vb_idtab *t);

/* Give @obj (not NULL) an index. 0; -ENOSPC: all are taken; -ENOMEM. */
VB_MUST_CHECK int vb_idtab_add(struct vb_idtab *t, void *obj, uint32_t *index);

/* Returns the object at @index, which may be out of range; NULL: there is
 * none. */
void *vb_idtab_get(const struct vb_idtab *t, uint32_t index);

void vb_idtab_del(struct vb_idtab *t, uint32_t index);
uint32_t vb_idtab_used(const struct vb_idtab *t);

#endif

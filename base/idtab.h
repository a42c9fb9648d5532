/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table from small numbers to objects, such as queue pair numbers or memory
 * keys.
 *
 * vb_idtab_get() uses no lock; any thread may call it at any time, also
 * during vb_idtab_add() and vb_idtab_del(). Another thread can delete the
 * returned object a moment later. Therefore owners recycle objects of a table
 * and do not free them while the table lives ("type-stable"), and a reader
 * checks, under the object's own lock or reference, that the object still is
 * the one that it asked for.
 */
#ifndef BASE_IDTAB_H
#define BASE_IDTAB_H

#include "base/defs.h"

struct vb_idtab;

/*
 * Create a table. Indices are 0 to @count - 1 (@count <= 2^24). vb_idtab_add()
 * assigns them in ascending order from @first on, and after the last one from
 * 0; it assigns a freed index again only after all other free ones. Memory
 * grows with the highest index used. NULL: no memory.
 */
struct vb_idtab *vb_idtab_create(uint32_t count, uint32_t first);
void vb_idtab_destroy(struct vb_idtab *t);

/* Assign an index to @obj (not NULL). 0; -ENOSPC: all indices are in use;
 * -ENOMEM. */
VB_MUST_CHECK int vb_idtab_add(struct vb_idtab *t, void *obj, uint32_t *index);

/* Returns the object at @index, which may be out of range; NULL: no object has
 * this index. */
void *vb_idtab_get(const struct vb_idtab *t, uint32_t index);

void vb_idtab_del(struct vb_idtab *t, uint32_t index);
uint32_t vb_idtab_used(const struct vb_idtab *t);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings of files that another process can truncate. An access to a page that
 * the file has no more raises SIGBUS, which would end the program; with a spare
 * page in its place, the access reads zeros, or writes what only this process
 * sees.
 */
#ifndef BASE_SPARE_H
#define BASE_SPARE_H

#include "base/defs.h"

/* From now on, when an access to the mapping of @len bytes at @at raises
 * SIGBUS, put spare pages in the mapping's place. The mapping begins at a page.
 * The handler is that of base/guard.h. 0; -ENOSPC: there are too many such
 * mappings; or another -errno. */
VB_MUST_CHECK int vb_spare_add(void *at, size_t len);
/* The caller calls this before it unmaps the mapping at @at, for which it has
 * called vb_spare_add(). */
void vb_spare_drop(void *at);
/* If @fault lies in a mapping of vb_spare_add(), put spare pages in the
 * mapping's place and return true. Only for the handler of SIGBUS; keeps
 * errno. */
bool vb_spare_fill(const void *fault);

#endif

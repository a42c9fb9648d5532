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

/* From now on fill the mapping of @len bytes at @at, a page's first, with spare
 * pages when it raises SIGBUS. The handler is that of base/guard.h. 0; -ENOSPC:
 * there are too many such mappings; or another -errno. */
VB_MUST_CHECK int vb_spare_add(void *at, size_t len);
/* The caller is about to unmap what vb_spare_add() was called for. */
void vb_spare_drop(void *at);
/* Does @fault lie in such a mapping, which has spare pages now? Only for the
 * handler of SIGBUS; keeps errno. */
bool vb_spare_fill(const void *fault);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that two programs map. It is sealed against shrinking, so that reading
 * it never faults. It uses only the pages that are touched. A forked child does
 * not have the mapping.
 */
#ifndef BASE_SHM_H
#define BASE_SHM_H

#include "base/defs.h"

/* Create @bytes of zeroed shared memory. The caller owns *@fd and the mapping
 * *@at. -EFBIG: RLIMIT_FSIZE forbids it; other -errno. */
VB_MUST_CHECK int vb_shm_create(const char *name, size_t bytes, int *fd,
				void **at);
/* Make a second descriptor of the memory of @fd, read-only, for peers. The
 * caller owns both descriptors. 0 or -errno. */
VB_MUST_CHECK int vb_shm_share_readable(int fd, int *readable);
/* Map memory that another program sent as @fd, which the caller still owns.
 * -EPROTO: the memory is not sealed against shrinking, is of huge pages, or has
 * fewer than @bytes bytes; other -errno. */
VB_MUST_CHECK int vb_shm_map(int fd, size_t bytes, bool writable, void **at);
/* Unmap memory that one of the functions above mapped; @bytes is the length
 * that was mapped. */
void vb_shm_unmap(void *at, size_t bytes);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that two programs map. It cannot be made smaller, so that reading it
 * never faults; it costs only the pages that are touched; and a forked child
 * does not have it.
 */
#ifndef NEAR_SHM_H
#define NEAR_SHM_H

#include "base/defs.h"

/* A descriptor and its mapping. -errno. */
VB_MUST_CHECK int vb_shm_create(const char *name, size_t bytes, int *fd,
				void **at);
/* A descriptor for others, who may only read; @fd stays open. -errno. */
VB_MUST_CHECK int vb_shm_share_readable(int fd, int *readable);
/* Map what another program sent. -EPROTO: it is not what vb_shm_create()
 * makes, or smaller. */
VB_MUST_CHECK int vb_shm_map(int fd, size_t bytes, bool writable, void **at);
void vb_shm_unmap(void *at, size_t bytes);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Scatter/gather lists: gather bytes into a packet, place bytes of a packet. */
#ifndef CORE_SGE_H
#define CORE_SGE_H

#include "core/mr.h"

/* Copy @len bytes that begin @offset bytes into the list to @dst. The caller
 * guarantees that the list covers offset + len. Entries of length 0 are skipped
 * without a look at their key. FAULT_NONE, FAULT_LKEY or FAULT_LOCAL_MEMORY. */
enum vb_fault vb_sge_gather(struct vb_pd *pd, const struct vb_sge *sge,
			    unsigned count, uint64_t offset, void *dst,
			    uint32_t len);
/* The same way copy @len bytes from @src to the list's memory, whose keys must
 * have ACCESS_LOCAL_WRITE. */
enum vb_fault vb_sge_place(struct vb_pd *pd, const struct vb_sge *sge,
			   unsigned count, uint64_t offset, const void *src,
			   uint32_t len);

/* Do the keys of all entries permit the rights @need? Does not check whether
 * the pages exist. */
bool vb_sge_is_allowed(const struct vb_pd *pd, const struct vb_sge *sge,
		       unsigned count, uint32_t need);

/* The sum of the lengths, bytes; may exceed 2^32. */
uint64_t vb_sge_total(const struct vb_sge *sge, unsigned count);

#endif

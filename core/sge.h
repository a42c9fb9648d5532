/* SPDX-License-Identifier: BSD-2-Clause */
/* Scatter/gather lists: copying their bytes into a packet, and bytes of a
 * packet to their memory. */
#ifndef CORE_SGE_H
#define CORE_SGE_H

#include "core/mr.h"

/* Copy @len bytes of the list to @dst, beginning at byte @offset of the list.
 * The caller guarantees that the list covers @offset + @len bytes. Entries of
 * length 0 are skipped without a check of their key. FAULT_NONE, FAULT_LKEY or
 * FAULT_LOCAL_MEMORY. */
enum vb_fault vb_sge_gather(struct vb_pd *pd, const struct vb_sge *sge,
			    unsigned count, uint64_t offset, void *dst,
			    uint32_t len);
/* Copy @len bytes from @src into the memory of the list, beginning at byte
 * @offset of the list. The list's keys must have ACCESS_LOCAL_WRITE. Conditions
 * and results as of vb_sge_gather(). */
enum vb_fault vb_sge_place(struct vb_pd *pd, const struct vb_sge *sge,
			   unsigned count, uint64_t offset, const void *src,
			   uint32_t len);

/* Do the keys of all entries permit the rights @need? This function does not
 * check whether the pages exist. */
bool vb_sge_is_allowed(const struct vb_pd *pd, const struct vb_sge *sge,
		       unsigned count, uint32_t need);

/* Returns the sum of the entries' lengths in bytes, which may exceed 2^32. */
uint64_t vb_sge_total(const struct vb_sge *sge, unsigned count);

#endif

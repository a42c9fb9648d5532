/* SPDX-License-Identifier: BSD-2-Clause */
/* Scatter/gather lists: gather into a packet, place from a packet. */
#ifndef CORE_SGE_H
#define CORE_SGE_H

#include "core/mr.h"

/*
 * Copy @len bytes that begin @offset bytes into the list. The list covers
 * offset + len (the caller knows its total). An entry of length 0 is skipped
 * and its key not looked at. FAULT_LKEY or FAULT_LOCAL_MEMORY.
 */
enum vb_fault vb_sge_gather(struct vb_pd *pd, const struct vb_sge *sge,
			    unsigned count, uint64_t offset, void *dst,
			    uint32_t len);
/* The same towards the program's memory; needs ACCESS_LOCAL_WRITE. */
enum vb_fault vb_sge_place(struct vb_pd *pd, const struct vb_sge *sge,
			   unsigned count, uint64_t offset, const void *src,
			   uint32_t len);

/* Sum of lengths; may pass 2^32. */
/* Do the keys of the whole list open what they name? Checks no memory. */
bool vb_sge_is_allowed(const struct vb_pd *pd, const struct vb_sge *sge,
		       unsigned count, uint32_t need);

uint64_t vb_sge_total(const struct vb_sge *sge, unsigned count);

#endif

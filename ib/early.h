/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that came before their turn, kept until it comes: what selective
 * repeat needs of a receiver. They are taken out in the order of PSNs and
 * then go the way of every packet, so that nothing is judged or placed out of
 * order: programs that spin on the last byte of a message rely on it.
 */
#ifndef IB_EARLY_H
#define IB_EARLY_H

#include "core/adapter.h"
#include "wire/ib_hdr.h"

/* PSNs ahead that are kept; a power of two. */
#define VB_EARLY_PSNS  512u
#define VB_EARLY_BYTES (VB_EARLY_PSNS / 8)

struct vb_early_pkt {
	struct vb_ib_pkt pkt; /* its payload is what follows */
	uint8_t payload[];
};

struct vb_early {
	struct vb_early_pkt **slots; /* by PSN; NULL: never needed any */
	uint32_t count;
};

/* False: no room, or no memory, for @pkt. One that is there stays. */
bool vb_early_keep(struct vb_adapter *a, struct vb_early *e,
		   const struct vb_ib_pkt *pkt);
/* The packet at @psn, or NULL; vb_early_free() is the caller's. */
struct vb_early_pkt *vb_early_take(struct vb_early *e, uint32_t psn);
void vb_early_free(struct vb_adapter *a, struct vb_early_pkt *p);
/* How many PSNs from @psn on are missing before one is there; 0: none is. */
uint32_t vb_early_gap(const struct vb_early *e, uint32_t psn);
/* Which PSNs after @psn are there: the first in the highest bit. Returns how
 * many bytes say so, of VB_EARLY_BYTES. */
uint32_t vb_early_map(const struct vb_early *e, uint32_t psn, uint8_t *bits);
void vb_early_clear(struct vb_adapter *a, struct vb_early *e);

#endif

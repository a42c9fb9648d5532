/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that came before their turn, kept until it comes: what selective
 * repeat needs of a receiver. They are taken out in the order of PSNs and
 * then go the way of every packet, so that nothing is judged or placed out of
 * order: programs that spin on the last byte of a message rely on it.
 */
#ifndef IB_OUT_OF_ORDER_H
#define IB_OUT_OF_ORDER_H

#include "core/adapter.h"
#include "wire/ib_hdr.h"

/* PSNs ahead that are kept; a power of two. */
#define VB_OOO_PSNS  512u
#define VB_OOO_BYTES (VB_OOO_PSNS / 8)

struct vb_ooo_pkt {
	struct vb_ib_pkt pkt; /* its payload is what follows */
	uint8_t payload[];
};

struct vb_ooo {
	struct vb_ooo_pkt **slots; /* by PSN; NULL: never needed any */
	uint32_t count;
};

/* False: no room, or no memory, for @pkt. One that is there stays. */
bool vb_ooo_keep(struct vb_adapter *a, struct vb_ooo *e,
		 const struct vb_ib_pkt *pkt);
/* The packet at @psn, or NULL; vb_ooo_free() is the caller's. */
struct vb_ooo_pkt *vb_ooo_take(struct vb_ooo *e, uint32_t psn);
void vb_ooo_free(struct vb_adapter *a, struct vb_ooo_pkt *p);
/* How many PSNs from @psn on are missing before one is there; 0: none is. */
uint32_t vb_ooo_gap(const struct vb_ooo *e, uint32_t psn);
/* Which PSNs after @psn are there: the first in the highest bit. Returns how
 * many bytes say so, of VB_OOO_BYTES. */
uint32_t vb_ooo_map(const struct vb_ooo *e, uint32_t psn, uint8_t *bits);
void vb_ooo_clear(struct vb_adapter *a, struct vb_ooo *e);

#endif

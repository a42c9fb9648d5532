/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver's half of selective repeat: it keeps packets that arrive before
 * their turn. It hands them out in the order of PSNs, and they are then handled
 * like every packet, so no packet is checked or placed out of order: programs
 * that spin on the last byte of a message rely on that. */
#ifndef IB_OUT_OF_ORDER_H
#define IB_OUT_OF_ORDER_H

#include "core/adapter.h"
#include "wire/ib_hdr.h"

/* Packets are kept up to this many PSNs ahead; a power of two. */
#define VB_OOO_PSNS  512u
#define VB_OOO_BYTES (VB_OOO_PSNS / 8)

struct vb_ooo_pkt {
	/* the packet; its payload pointer points behind this struct */
	struct vb_ib_pkt pkt;
	uint8_t payload[];
};

struct vb_ooo {
	/* slots indexed by PSN; NULL: no packet was ever kept */
	struct vb_ooo_pkt **slots;
	uint32_t count;
};

/* Keep a copy of @pkt; an earlier packet with its PSN stays. False: the queue
 * pair or the adapter already keeps too many bytes, or memory is exhausted. */
bool vb_ooo_keep(struct vb_adapter *a, struct vb_ooo *e,
		 const struct vb_ib_pkt *pkt);
/* Remove and return the packet with PSN @psn, or NULL. The caller frees the
 * packet with vb_ooo_free(). */
struct vb_ooo_pkt *vb_ooo_take(struct vb_ooo *e, uint32_t psn);
void vb_ooo_free(struct vb_adapter *a, struct vb_ooo_pkt *p);
/* Returns the number of missing packets from PSN @psn up to the first one kept;
 * 0: none is kept. */
uint32_t vb_ooo_gap(const struct vb_ooo *e, uint32_t psn);
/* Write to @bits which of the PSNs after @psn are kept, one bit each; the first
 * PSN is the highest bit of the first byte. Returns the bytes used, at most
 * VB_OOO_BYTES. */
uint32_t vb_ooo_map(const struct vb_ooo *e, uint32_t psn, uint8_t *bits);
/* Free every kept packet, and the table of slots. */
void vb_ooo_clear(struct vb_adapter *a, struct vb_ooo *e);

#endif

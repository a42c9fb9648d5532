/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester's half of selective repeat: which packets the peer has although
 * earlier ones are missing, and which missing ones the requester has sent
 * again. */
#ifndef IB_SACK_H
#define IB_SACK_H

#include "ib/out_of_order.h"

struct vb_sack {
	/* one bit for each PSN from @from to @top - 1: the peer has the
	 * packet */
	uint64_t has[VB_OOO_PSNS / 64];
	uint32_t held; /* number of bits that are set in @has */
	uint32_t from,
		/* @top: PSN behind the last one that the peer has, or @from */
		top;
	/* Packets sent again, in two sets: an earlier and a later one. When the
	 * last packet of set i was sent, all PSNs before round[i] had been sent
	 * already. So if the peer has a PSN at or after round[i], and a packet
	 * of set i is still missing, that packet is lost again; a lower PSN
	 * proves nothing. */
	uint64_t again[2][VB_OOO_PSNS / 64];
	uint32_t round[2];
	bool due; /* a missing packet may have to be sent again */
};

/* Helpers of the next two functions: vb_sack_forget() clears the bitmaps,
 * vb_sack_advance() moves @from to @una. */
void vb_sack_forget(struct vb_sack *r);
void vb_sack_acked_some(struct vb_sack *r, uint32_t una);

/* Start over: the peer has everything before @una, and nothing is known about
 * later packets. */
static inline void vb_sack_reset(struct vb_sack *r, uint32_t una)
{
	if (VB_UNLIKELY(r->top != r->from))
		vb_sack_forget(r);
	r->held = 0;
	r->from = r->top = r->round[0] = r->round[1] = una;
	r->due = false;
}

/* The peer has acknowledged everything before @una. Inline, for connections
 * without losses. */
static inline void vb_sack_acked(struct vb_sack *r, uint32_t una)
{
	if (VB_LIKELY(vb_psn_diff(una, r->top) >= 0))
		vb_sack_reset(r, una);
	else
		vb_sack_acked_some(r, una);
}
/* A NAK has come: the peer lacks @psn, and @bits (made by vb_ooo_map(), @bytes
 * long) says which later packets it has. @next is the first PSN never sent. */
void vb_sack_told(struct vb_sack *r, uint32_t psn, const uint8_t *bits,
		  uint32_t bytes, uint32_t next);
/* Returns the number of packets that the peer lacks before the last one it
 * has. */
uint32_t vb_sack_missing(const struct vb_sack *r);
/* Makes all missing packets due to be sent again: a timer has expired. */
void vb_sack_restart(struct vb_sack *r);
/* Is the packet with PSN @psn missing, and not sent again since it was
 * reported? */
bool vb_sack_wants(const struct vb_sack *r, uint32_t psn);
/* The requester has sent the packet with PSN @psn again. @next is the first PSN
 * never sent. */
void vb_sack_sent(struct vb_sack *r, uint32_t psn, uint32_t next);

#endif

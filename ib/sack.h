/* SPDX-License-Identifier: BSD-2-Clause */
/* Selective repeat, the requester's half: which packets the peer has although
 * earlier ones are missing, and which missing ones were sent again. */
#ifndef IB_SACK_H
#define IB_SACK_H

#include "ib/out_of_order.h"

struct vb_sack {
	uint64_t has[VB_OOO_PSNS / 64]; /* a bit for each PSN in [from, top) */
	uint32_t held;			/* bits set in @has */
	uint32_t from,
		top; /* the first PSN missing; behind the last one present */
	/* Retransmissions in order of time: an earlier and a later set. All
	 * PSNs before round[i] had been sent when the last packet of set i was.
	 * Once the peer has a PSN at or after round[i], a packet of set i that
	 * is still missing is lost again; a PSN before it proves nothing. */
	uint64_t again[2][VB_OOO_PSNS / 64];
	uint32_t round[2];
	bool due; /* a packet may have to be sent again */
};

/* Of the two functions below: clear the bitmaps; advance @from to @una. */
void vb_sack_forget(struct vb_sack *r);
void vb_sack_acked_some(struct vb_sack *r, uint32_t una);

/* The peer has everything before @una; nothing else is known. */
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
/* A NAK: the peer lacks @psn, and @bits (made by vb_ooo_map(), @bytes long) say
 * which later ones it has. @next is the first PSN never sent. */
void vb_sack_told(struct vb_sack *r, uint32_t psn, const uint8_t *bits,
		  uint32_t bytes, uint32_t next);
/* How many PSNs the peer lacks before the last one it has. */
uint32_t vb_sack_missing(const struct vb_sack *r);
/* A timer expired: send again all that is missing. */
void vb_sack_restart(struct vb_sack *r);
/* Is @psn to be sent again now? */
bool vb_sack_wants(const struct vb_sack *r, uint32_t psn);
/* @psn was sent again. @next is the first PSN never sent. */
void vb_sack_sent(struct vb_sack *r, uint32_t psn, uint32_t next);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selective repeat, the requester's half: which packets a peer has that does
 * not have all before them, and which of the missing were sent again.
 */
#ifndef IB_SACK_H
#define IB_SACK_H

#include "ib/out_of_order.h"

struct vb_sack {
	uint64_t has[VB_OOO_PSNS / 64]; /* by PSN, from <= PSN < top */
	uint32_t held;			/* bits in @has */
	uint32_t from, top; /* the first it lacks; after the last it has */
	/*
	 * Repeats, in the order of time: those before, and those of late.
	 * PSNs before @round had been sent when the last of them was: once the
	 * peer has one that was sent later, a repeat that it still lacks is
	 * lost, too. Of one that was sent meanwhile that says nothing.
	 */
	uint64_t again[2][VB_OOO_PSNS / 64];
	uint32_t round[2];
	bool due; /* there may be something to send again */
};

/* The peer has everything before @una, and nothing else is known. */
void vb_sack_reset(struct vb_sack *r, uint32_t una);
/* The peer has everything before @una. */
void vb_sack_acked(struct vb_sack *r, uint32_t una);
/* The peer waits for @psn, and has of those after it what @bits say (as
 * vb_ooo_map() makes them); @next was never sent. */
void vb_sack_told(struct vb_sack *r, uint32_t psn, const uint8_t *bits,
		  uint32_t bytes, uint32_t next);
/* How many the peer lacks of those before the last it has. */
uint32_t vb_sack_missing(const struct vb_sack *r);
/* Silence: what is missing goes out once more. */
void vb_sack_restart(struct vb_sack *r);
/* Is @psn to be sent again now? */
bool vb_sack_wants(const struct vb_sack *r, uint32_t psn);
/* It was; @next was never sent. */
void vb_sack_sent(struct vb_sack *r, uint32_t psn, uint32_t next);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hazard pointers. A thread that is about to access another program's memory
 * names the key that it uses in a hazard, a word that both programs map; then
 * it checks that the key is valid, accesses the memory, and clears the hazard.
 * A program that revokes a key first marks the key invalid and then looks for
 * hazards that name it. All these steps are sequentially consistent, so at
 * least one of two that race sees the other: either the accessing thread finds
 * the key invalid, or the owner finds the hazard and waits.
 */
#ifndef NEAR_HAZARD_H
#define NEAR_HAZARD_H

#include <stdatomic.h>

#include "base/defs.h"

/* At most so many threads of one program access a peer's memory at a time. */
#define VB_HAZARDS 8

struct vb_hazard {
	_Atomic uint64_t what; /* key << 32 | QPN; 0: none is named */
} __attribute__((aligned(64)));

/* The hazards of one program. The peer can write to them, too, so which of them
 * are taken is kept in the program's own memory. */
struct vb_announcer {
	struct vb_hazard *hazards; /* VB_HAZARDS of them, in the lane */
	_Atomic uint32_t taken;	   /* one bit for each hazard */
};

/* Name @key, to be used through the peer's queue pair @qpn (0: none). Returns
 * the hazard, for vb_hazard_withdraw(). Does not wait for the peer; while all
 * hazards are taken it yields to the threads of this program that use them. */
struct vb_hazard *vb_hazard_announce(struct vb_announcer *a, uint32_t key,
				     uint32_t qpn);
/* Clear @hazard: the access is over. */
void vb_hazard_withdraw(struct vb_announcer *a, struct vb_hazard *hazard);

/* Does any hazard name @key (0: any key) together with @qpn (0: any)? */
bool vb_hazards_name(const struct vb_hazard hazards[VB_HAZARDS], uint32_t key,
		     uint32_t qpn);

#endif

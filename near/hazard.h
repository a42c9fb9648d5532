/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hazard pointers. A thread that is about to access another program's memory
 * names the key that it uses in a hazard, a word that both programs map; then
 * it checks that the key is valid, accesses the memory, and clears the hazard.
 * A program that revokes a key first marks the key invalid and then looks for
 * hazards that name it. All these steps are sequentially consistent, so of two
 * threads that race at least one sees the other: either the accessing thread
 * finds the key invalid, or the owner finds the hazard and waits.
 */
#ifndef NEAR_HAZARD_H
#define NEAR_HAZARD_H

#include <stdatomic.h>

#include "base/defs.h"

/* The most threads of one program that can access a peer's memory at a time. */
#define VB_HAZARDS 8

struct vb_hazard {
	_Atomic uint64_t what; /* key << 32 | QPN; 0: the hazard names no key */
} __attribute__((aligned(64)));

/* The hazards of one program. The peer can write to them as well, so the record
 * of which hazards are in use is in the program's own memory. */
struct vb_announcer {
	/* VB_HAZARDS hazards, in the lane's memory */
	struct vb_hazard *hazards;
	/* mask of the hazards in use, one bit for each */
	_Atomic uint32_t taken;
};

/* Set a hazard that names @key, which is to be used through the peer's queue
 * pair @qpn (0: none). Returns the hazard, for vb_hazard_withdraw(). NULL:
 * all hazards have been in use by other threads of this program for some
 * milliseconds, although this call has yielded to them. */
struct vb_hazard *vb_hazard_announce(struct vb_announcer *a, uint32_t key,
				     uint32_t qpn);
/* Clear @hazard: the access is over. */
void vb_hazard_withdraw(struct vb_announcer *a, struct vb_hazard *hazard);

/* Does any hazard name @key (0: any key) together with queue pair @qpn (0:
 * any)? */
bool vb_hazards_name(const struct vb_hazard hazards[VB_HAZARDS], uint32_t key,
		     uint32_t qpn);

#endif

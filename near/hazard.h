/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who touches another program's memory says so first, in a hazard that both
 * map, then asks whether it may, touches, and takes the word back. Who takes a
 * key away says so first, then looks at the hazards. All four are sequentially
 * consistent: of two that meet, one at least sees the other.
 */
#ifndef NEAR_HAZARD_H
#define NEAR_HAZARD_H

#include <stdatomic.h>

#include "base/defs.h"

#define VB_HAZARDS 8 /* threads of one program that are at it at a time */

struct vb_hazard {
	_Atomic uint64_t what; /* key << 32 | QPN; 0: free */
} __attribute__((aligned(64)));

/* Cells where this program announces. The other program can write there, too;
 * which of them are taken is known here only. */
struct vb_announcer {
	struct vb_hazard *hazards; /* VB_HAZARDS of them, in shared memory */
	_Atomic uint32_t taken;	   /* a bit for each */
};

/* Announce @key, to be used by way of the other's queue pair @qpn. Waits for
 * threads of this program only, while all hazards are taken. */
struct vb_hazard *vb_hazard_announce(struct vb_announcer *a, uint32_t key,
				     uint32_t qpn);
void vb_hazard_withdraw(struct vb_announcer *a, struct vb_hazard *hazard);

/* Is anybody at @key (0: any), by way of @qpn (0: any)? */
bool vb_hazards_name(const struct vb_hazard hazards[VB_HAZARDS], uint32_t key,
		     uint32_t qpn);

#endif

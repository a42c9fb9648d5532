/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who touches another program's memory says so first, in a cell that both
 * map, then asks whether it may, touches, and takes the word back. Who takes a
 * key away says so first, then looks at the cells. All four are sequentially
 * consistent: of two that meet, one at least sees the other.
 */
#ifndef NEAR_CELLS_H
#define NEAR_CELLS_H

#include <stdatomic.h>

#include "base/defs.h"

#define VB_CELLS 8 /* threads of one program that are at it at a time */

struct vb_cell {
	_Atomic uint64_t what; /* key << 32 | QPN; 0: free */
} __attribute__((aligned(64)));

/* Cells where this program announces. The other program can write there, too;
 * which of them are taken is known here only. */
struct vb_announcer {
	struct vb_cell *cells;	/* VB_CELLS of them, in shared memory */
	_Atomic uint32_t taken; /* a bit for each */
};

/* Announce @key, to be used by way of the other's queue pair @qpn. Waits for
 * threads of this program only, while all cells are taken. */
struct vb_cell *vb_cell_take(struct vb_announcer *a, uint32_t key,
			     uint32_t qpn);
void vb_cell_give(struct vb_announcer *a, struct vb_cell *cell);

/* Is anybody at @key (0: any), by way of @qpn (0: any)? */
bool vb_cells_name(const struct vb_cell cells[VB_CELLS], uint32_t key,
		   uint32_t qpn);

#endif

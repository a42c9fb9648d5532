/* SPDX-License-Identifier: BSD-2-Clause */
/* Announced accesses. */
#include "near/cells.h"

#include <sched.h>

static uint64_t word(uint32_t key, uint32_t qpn)
{
	return (uint64_t)key << 32 | qpn;
}

struct vb_cell *vb_cell_take(struct vb_cell cells[VB_CELLS], uint32_t key,
			     uint32_t qpn)
{
	for (unsigned i = 0;; i++) {
		struct vb_cell *cell = &cells[i % VB_CELLS];
		uint64_t none = 0;

		if (atomic_compare_exchange_strong(&cell->what, &none,
						   word(key, qpn)))
			return cell;
		/* More threads than cells: each is through in a moment. */
		if (i % VB_CELLS == VB_CELLS - 1)
			sched_yield();
	}
}

void vb_cell_turn(struct vb_cell *cell, uint32_t key, uint32_t qpn)
{
	atomic_store(&cell->what, word(key, qpn));
}

void vb_cell_give(struct vb_cell *cell)
{
	/* Release: the access is over for whoever sees this. */
	atomic_store_explicit(&cell->what, 0, memory_order_release);
}

bool vb_cells_name(const struct vb_cell cells[VB_CELLS], uint32_t key,
		   uint32_t qpn)
{
	for (unsigned i = 0; i < VB_CELLS; i++) {
		uint64_t what = atomic_load(&cells[i].what);

		if (what && (key == 0 || what >> 32 == key) &&
		    (qpn == 0 || (uint32_t)what == qpn))
			return true;
	}
	return false;
}

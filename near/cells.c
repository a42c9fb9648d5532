/* SPDX-License-Identifier: BSD-2-Clause */
/* Announced accesses. */
#include "near/cells.h"

#include <sched.h>

static uint64_t word(uint32_t key, uint32_t qpn)
{
	return (uint64_t)key << 32 | qpn;
}

static bool take_bit(_Atomic uint32_t *taken, unsigned i)
{
	return !(atomic_fetch_or(taken, 1u << i) & 1u << i);
}

/* Which one: hardly ever more than one thread is at it. */
static unsigned take_one(_Atomic uint32_t *taken)
{
	for (unsigned i = 0;; i = (i + 1) % VB_CELLS) {
		if (take_bit(taken, i))
			return i;
		/* More threads than cells: each is through in a moment. */
		if (i == VB_CELLS - 1)
			sched_yield();
	}
}

struct vb_cell *vb_cell_take(struct vb_announcer *a, uint32_t key, uint32_t qpn)
{
	struct vb_cell *cell = &a->cells[take_one(&a->taken)];

	/* Sequentially consistent: before what follows is looked at. */
	atomic_store(&cell->what, word(key, qpn));
	return cell;
}

void vb_cell_give(struct vb_announcer *a, struct vb_cell *cell)
{
	/* Release: the access is over for whoever sees this. */
	atomic_store_explicit(&cell->what, 0, memory_order_release);
	atomic_fetch_and_explicit(&a->taken, ~(1u << (cell - a->cells)),
				  memory_order_release);
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

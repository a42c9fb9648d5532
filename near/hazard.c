/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets and clears hazard pointers. */
#include "near/hazard.h"

#include <sched.h>

#include "base/clock.h"

#define WAIT_MOST (5 * VB_MSEC)
/* The clock is read after so many yields. */
#define YIELDS 64

static uint64_t word(uint32_t key, uint32_t qpn)
{
	return (uint64_t)key << 32 | qpn;
}

static bool take_bit(_Atomic uint32_t *taken, unsigned i)
{
	return !(atomic_fetch_or(taken, 1u << i) & 1u << i);
}

/* Find a free hazard and reserve it. The first one is most often free, because
 * mostly one thread at a time accesses a peer. If there are more threads than
 * hazards, wait, since a hazard is free again within microseconds. But a thread
 * that waits for a page of the peer keeps its hazard, so the wait has an end;
 * the caller holds the lock of a queue pair. Returns VB_HAZARDS then. */
static unsigned near_hazard_take_one(_Atomic uint32_t *taken)
{
	vb_time since = 0, now = 0;

	for (unsigned turn = 0; now - since <= WAIT_MOST; turn++) {
		for (unsigned i = 0; i < VB_HAZARDS; i++)
			if (take_bit(taken, i))
				return i;
		sched_yield();
		if (turn % YIELDS == 0)
			now = vb_clock_read();
		if (!since)
			since = now;
	}
	return VB_HAZARDS;
}

struct vb_hazard *vb_hazard_announce(struct vb_announcer *a, uint32_t key,
				     uint32_t qpn)
{
	unsigned i = near_hazard_take_one(&a->taken);
	struct vb_hazard *hazard = &a->hazards[i];

	if (VB_UNLIKELY(i == VB_HAZARDS))
		return NULL;
	/* Sequentially consistent: the hazard is visible before the caller
	 * checks the key. */
	atomic_store(&hazard->what, word(key, qpn));
	return hazard;
}

void vb_hazard_withdraw(struct vb_announcer *a, struct vb_hazard *hazard)
{
	/* Release: a thread that reads the cleared hazard sees the access as
	 * completed. */
	atomic_store_explicit(&hazard->what, 0, memory_order_release);
	atomic_fetch_and_explicit(&a->taken, ~(1u << (hazard - a->hazards)),
				  memory_order_release);
}

bool vb_hazards_name(const struct vb_hazard hazards[VB_HAZARDS], uint32_t key,
		     uint32_t qpn)
{
	for (unsigned i = 0; i < VB_HAZARDS; i++) {
		uint64_t what = atomic_load(&hazards[i].what);

		if (what && (key == 0 || what >> 32 == key) &&
		    (qpn == 0 || (uint32_t)what == qpn))
			return true;
	}
	return false;
}

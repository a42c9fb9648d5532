/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters slow congested flows down, and let them recover (annex A10). */
#include "fabric/cc.h"

#define TIMER_UNIT_NS 1024
/* a table entry has a shift of 2 bits and a multiplier of 14 bits */
#define SHIFT_BITS 14

static uint16_t lowest(const struct vb_fab_cc_sl *s,
		       const struct vb_fab_cc *set)
{
	return VB_MIN(s->min, set->limit);
}

/* Lower the index by one for each timer period that has passed. The timer runs
 * while the index is above the lowest. */
static void shrink(struct vb_cc *c, const struct vb_fab_cc *set,
		   const struct vb_fab_cc_sl *s, vb_time now)
{
	vb_time period = (vb_time)s->timer * TIMER_UNIT_NS;
	uint16_t least = lowest(s, set);
	vb_time steps;

	if (c->index <= least) {
		c->index = least;
		c->timer = now + period;
		return;
	}
	if (!period || now < c->timer)
		return;
	steps = (now - c->timer) / period + 1;
	c->index = steps < (vb_time)(c->index - least)
			   ? (uint16_t)(c->index - steps)
			   : least;
	c->timer += steps * period;
}

void vb_cc_notify(struct vb_cc *c, const struct vb_fab_cc *set, unsigned sl,
		  vb_time now)
{
	const struct vb_fab_cc_sl *s = &set->sl[sl];
	uint32_t next;

	if (!(set->control_map >> sl & 1))
		return;
	shrink(c, set, s, now);
	next = c->index + s->increase;
	c->index = (uint16_t)VB_MIN(next, set->limit);
}

bool vb_cc_is_calm(struct vb_cc *c, const struct vb_fab_cc *set, unsigned sl,
		   vb_time now)
{
	shrink(c, set, &set->sl[sl], now);
	return c->index == lowest(&set->sl[sl], set);
}

vb_time vb_cc_gap(struct vb_cc *c, const struct vb_fab_cc *set, unsigned sl,
		  vb_time frame_ns, vb_time now)
{
	uint16_t entry;

	if (!(set->control_map >> sl & 1))
		return 0;
	shrink(c, set, &set->sl[sl], now);
	entry = set->cct[VB_MIN(c->index, VB_FAB_CCT - 1)];
	return frame_ns * (entry & ((1u << SHIFT_BITS) - 1)) >>
	       (entry >> SHIFT_BITS);
}

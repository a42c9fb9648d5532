/* SPDX-License-Identifier: BSD-2-Clause */
/* What the peer has, and what was sent again: a bit a packet. */
#include "ib/repair.h"

#include <string.h>

static bool get(const uint64_t *map, uint32_t psn)
{
	return map[psn % VB_EARLY_PSNS / 64] >> psn % 64 & 1;
}

static void set(uint64_t *map, uint32_t psn)
{
	map[psn % VB_EARLY_PSNS / 64] |= 1ull << psn % 64;
}

static void unset(uint64_t *map, uint32_t psn)
{
	map[psn % VB_EARLY_PSNS / 64] &= ~(1ull << psn % 64);
}

void vb_repair_reset(struct vb_repair *r, uint32_t una)
{
	if (r->top != r->from) {
		memset(r->has, 0, sizeof(r->has));
		memset(r->again, 0, sizeof(r->again));
	}
	r->held = 0;
	r->from = r->top = r->round[0] = r->round[1] = una;
	r->due = false;
}

void vb_repair_acked(struct vb_repair *r, uint32_t una)
{
	if (vb_psn_diff(una, r->top) >= 0) {
		vb_repair_reset(r, una);
		return;
	}
	for (; vb_psn_diff(una, r->from) > 0;
	     r->from = vb_psn_add(r->from, 1)) {
		r->held -= get(r->has, r->from);
		unset(r->has, r->from);
		unset(r->again[0], r->from);
		unset(r->again[1], r->from);
	}
}

static void note(struct vb_repair *r, uint32_t psn)
{
	if (!get(r->has, psn))
		r->held++;
	set(r->has, psn);
	if (vb_psn_diff(psn, r->top) >= 0)
		r->top = vb_psn_add(psn, 1);
}

/* The older repeats have had their time. */
static void turn(struct vb_repair *r)
{
	memcpy(r->again[0], r->again[1], sizeof(r->again[0]));
	memset(r->again[1], 0, sizeof(r->again[1]));
	r->round[0] = r->round[1];
	r->round[1] = r->top;
}

void vb_repair_told(struct vb_repair *r, uint32_t psn, const uint8_t *bits,
		    uint32_t bytes, uint32_t next)
{
	uint32_t known = (next - psn) & VB_PSN_MASK;

	if (vb_psn_diff(psn, r->from) < 0)
		return; /* overtaken by a later one */
	vb_repair_acked(r, psn);
	/* What was never sent, nobody can have. */
	known = VB_MIN(VB_MIN(known, VB_EARLY_PSNS), bytes * 8 + 1);
	for (uint32_t i = 1; i < known; i++)
		if (bits[(i - 1) / 8] & 0x80 >> (i - 1) % 8)
			note(r, vb_psn_add(psn, i));
	for (int i = 0; i < 2 && vb_psn_diff(r->top, r->round[0]) > 0; i++)
		turn(r);
	r->due = true;
}

uint32_t vb_repair_missing(const struct vb_repair *r)
{
	return ((r->top - r->from) & VB_PSN_MASK) - r->held;
}

void vb_repair_restart(struct vb_repair *r)
{
	if (r->top == r->from)
		return;
	memset(r->again, 0, sizeof(r->again));
	r->round[0] = r->round[1] = r->top;
	r->due = true;
}

bool vb_repair_wants(const struct vb_repair *r, uint32_t psn)
{
	return !get(r->has, psn) && !get(r->again[0], psn) &&
	       !get(r->again[1], psn);
}

void vb_repair_sent(struct vb_repair *r, uint32_t psn, uint32_t next)
{
	set(r->again[1], psn);
	r->round[1] = next;
}

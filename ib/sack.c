/* SPDX-License-Identifier: BSD-2-Clause */
/* Bitmaps by PSN: which packets the peer has, and which were sent again. */
#include "ib/sack.h"

#include <string.h>

static bool ib_get(const uint64_t *map, uint32_t psn)
{
	return map[psn % VB_OOO_PSNS / 64] >> psn % 64 & 1;
}

static void set(uint64_t *map, uint32_t psn)
{
	map[psn % VB_OOO_PSNS / 64] |= 1ull << psn % 64;
}

static void unset(uint64_t *map, uint32_t psn)
{
	map[psn % VB_OOO_PSNS / 64] &= ~(1ull << psn % 64);
}

void vb_sack_forget(struct vb_sack *r)
{
	memset(r->has, 0, sizeof(r->has));
	memset(r->again, 0, sizeof(r->again));
}

void vb_sack_acked_some(struct vb_sack *r, uint32_t una)
{
	for (; vb_psn_diff(una, r->from) > 0;
	     r->from = vb_psn_add(r->from, 1)) {
		r->held -= ib_get(r->has, r->from);
		unset(r->has, r->from);
		unset(r->again[0], r->from);
		unset(r->again[1], r->from);
	}
}

static void ib_note(struct vb_sack *r, uint32_t psn)
{
	if (!ib_get(r->has, psn))
		r->held++;
	set(r->has, psn);
	if (vb_psn_diff(psn, r->top) >= 0)
		r->top = vb_psn_add(psn, 1);
}

/* The peer has had time to report the earlier set, so the packets of that set
 * that it lacks may be sent again: the later set becomes the earlier one. */
static void turn(struct vb_sack *r)
{
	memcpy(r->again[0], r->again[1], sizeof(r->again[0]));
	memset(r->again[1], 0, sizeof(r->again[1]));
	r->round[0] = r->round[1];
	r->round[1] = r->top;
}

void vb_sack_told(struct vb_sack *r, uint32_t psn, const uint8_t *bits,
		  uint32_t bytes, uint32_t next)
{
	uint32_t known = (next - psn) & VB_PSN_MASK;

	if (vb_psn_diff(psn, r->from) < 0)
		return; /* This NAK was overtaken by a later one. */
	vb_sack_acked(r, psn);
	/* Ignore the bits of packets that were never sent. */
	known = VB_MIN(VB_MIN(known, VB_OOO_PSNS), bytes * 8 + 1);
	for (uint32_t i = 1; i < known; i++)
		if (bits[(i - 1) / 8] & 0x80 >> (i - 1) % 8)
			ib_note(r, vb_psn_add(psn, i));
	for (int i = 0; i < 2 && vb_psn_diff(r->top, r->round[0]) > 0; i++)
		turn(r);
	r->due = true;
}

uint32_t vb_sack_missing(const struct vb_sack *r)
{
	return ((r->top - r->from) & VB_PSN_MASK) - r->held;
}

void vb_sack_restart(struct vb_sack *r)
{
	if (r->top == r->from)
		return;
	memset(r->again, 0, sizeof(r->again));
	r->round[0] = r->round[1] = r->top;
	r->due = true;
}

bool vb_sack_wants(const struct vb_sack *r, uint32_t psn)
{
	return !ib_get(r->has, psn) && !ib_get(r->again[0], psn) &&
	       !ib_get(r->again[1], psn);
}

void vb_sack_sent(struct vb_sack *r, uint32_t psn, uint32_t next)
{
	set(r->again[1], psn);
	r->round[1] = next;
}

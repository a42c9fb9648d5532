/* SPDX-License-Identifier: BSD-2-Clause */
/* Weighted arbitration between virtual lanes. */
#include "fabric/arb.h"

#define UNIT	   64
#define LIMIT_UNIT 4096
#define LIMIT_NONE 255
/* lowest balance of an entry, in blocks of 64 bytes: no frame has that many */
#define DEBT_MOST  (-256)
#define SENT_MOST  (1u << 30)
#define DATA_LANES 0x7fffu

/* Is the virtual lane of the table entry @e one of the mask @able? */
static bool is_able(const struct vb_fab_vlarb *e, uint16_t able)
{
	return e->weight && e->vl < VB_FAB_VLS && (able >> e->vl & 1);
}

/* True if an entry of the table has a virtual lane of the mask @able. */
static bool has_any(const struct vb_fab_vlarb *e, unsigned entries,
		    uint16_t able)
{
	for (unsigned i = 0; i < entries; i++)
		if (is_able(&e[i], able))
			return true;
	return false;
}

/* Give the turn to the next entry of the table. @gives_up: the lane of the
 * present entry cannot send, so the entry loses the weight that it has left,
 * but keeps a debt. */
static void pass(struct vb_arb_table *t, unsigned entries, bool gives_up)
{
	if (gives_up && t->left[t->at] > 0)
		t->left[t->at] = 0;
	t->at = (uint8_t)((t->at + 1) % entries);
	t->open = false;
}

/* Does what take_turn() does, for @able with a single lane. No other lane can
 * use the turns in between, so the rounds in which the lane pays its debt are
 * counted at once. */
static int take_turn_alone(struct vb_arb_table *t, const struct vb_fab_vlarb *e,
			   unsigned entries, uint16_t able)
{
	while (!is_able(&e[t->at], able))
		pass(t, entries, true);
	if (t->left[t->at] <= 0) {
		int rounds = -t->left[t->at] / e[t->at].weight + 1;

		t->left[t->at] =
			(int16_t)(t->left[t->at] + rounds * e[t->at].weight);
	}
	t->open = true;
	return e[t->at].vl;
}

/* Returns the virtual lane that sends next. The caller has checked that the
 * table has a lane of @able. The loop ends, because each round adds an entry's
 * weight to its balance, and debts are bounded. */
static int take_turn(struct vb_arb_table *t, const struct vb_fab_vlarb *e,
		     unsigned entries, uint16_t able)
{
	if (t->at >= entries)
		t->at = 0;
	if ((able & (able - 1)) == 0)
		return take_turn_alone(t, e, entries, able);
	for (;;) {
		if (!is_able(&e[t->at], able)) {
			pass(t, entries, true);
			continue;
		}
		if (!t->open) {
			t->left[t->at] = (int16_t)(VB_MIN(t->left[t->at], 0) +
						   e[t->at].weight);
			t->open = true;
		}
		if (t->left[t->at] > 0)
			return e[t->at].vl;
		pass(t, entries, false);
	}
}

static bool high_has_right(const struct vb_arb *a, const struct vb_fab_port *p)
{
	uint32_t limit = (uint32_t)p->high_limit * LIMIT_UNIT;

	/* A High-Limit of 0 lets one high-priority frame pass (IBA 7.6.9.2). */
	return p->high_limit == LIMIT_NONE || a->high_sent < VB_MAX(limit, 1u);
}

static unsigned entries_of(uint8_t cap)
{
	return VB_MIN(cap, VB_FAB_VLARB_MAX);
}

int vb_arb_pick(struct vb_arb *a, const struct vb_fab_port *p, uint16_t able)
{
	unsigned highs = entries_of(p->arb_high_cap);
	unsigned lows = entries_of(p->arb_low_cap);
	bool high, low;

	able &= DATA_LANES;
	a->chosen = NULL;
	if (!able)
		return VB_ARB_NONE;
	high = has_any(p->arb_high, highs, able);
	low = has_any(p->arb_low, lows, able);
	if (high && (!low || high_has_right(a, p))) {
		a->chosen = &a->high;
		return take_turn(&a->high, p->arb_high, highs, able);
	}
	if (low) {
		a->chosen = &a->low;
		return take_turn(&a->low, p->arb_low, lows, able);
	}
	return __builtin_ctz(able);
}

void vb_arb_sent(struct vb_arb *a, size_t bytes)
{
	struct vb_arb_table *t = a->chosen;
	int left;

	if (t == &a->high)
		a->high_sent =
			VB_MIN(a->high_sent + (uint32_t)bytes, SENT_MOST);
	else
		a->high_sent = 0;
	if (!t)
		return;
	left = t->left[t->at] - (int)((bytes + UNIT - 1) / UNIT);
	t->left[t->at] = (int16_t)VB_MAX(left, DEBT_MOST);
}

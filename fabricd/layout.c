/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses where the nodes of a picture are: the switches in tiers, in a circle
 * or in a grid, and each adapter beside the first switch to which it is linked.
 * Distances are in units of the SVG picture. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "fabricd/draw.h"

#define PITCH 24.f /* distance between the middles of two adapters */
/* most adapters of a switch that are drawn side by side */
#define ROW	    6
#define GAP	    20.f /* distance between the adapters of two switches */
#define TIER	    150.f
#define MARGIN	    60.f
#define NO_RANK	    0xff
#define NOBODY	    UINT32_MAX
#define CIRCLE_MOST 40 /* most switches that are drawn in a circle */

struct plan {
	const struct vb_fabricd *f;
	struct layout *l;
	uint32_t nodes, switches;
	/* by index of a switch: the number of links on the shortest way to an
	 * adapter */
	uint8_t *rank;
	/* by index of an adapter: the switch beside which it is drawn; NOBODY:
	 * it has no link to a switch */
	uint32_t *owner;
	/* by index of a switch: the number of adapters beside it */
	uint32_t *owned;
	/* the most adapters that are drawn beside one switch */
	uint32_t most;
	uint8_t tiers;
};

static const struct vb_topo_node *node_at(const struct plan *p, uint32_t i)
{
	return &p->f->topo->nodes[i];
}

static bool is_switch(const struct plan *p, uint32_t i)
{
	return node_at(p, i)->kind == FAB_SWITCH;
}

static void find_owners(struct plan *p)
{
	for (uint32_t i = 0; i < p->nodes; i++) {
		const struct vb_topo_node *n = node_at(p, i);

		p->owner[i] = NOBODY;
		p->rank[i] = NO_RANK;
		p->switches += is_switch(p, i);
		for (unsigned k = 1; k <= n->ports && !is_switch(p, i); k++)
			if (n->port[k].linked &&
			    is_switch(p, n->port[k].peer)) {
				p->owner[i] = n->port[k].peer;
				break;
			}
	}
	for (uint32_t i = 0; i < p->nodes; i++) {
		uint32_t s = p->owner[i];

		if (s == NOBODY)
			continue;
		p->rank[s] = p->tiers = 1;
		p->owned[s]++;
		p->most = VB_MAX(p->most, p->owned[s]);
	}
}

/* Give the rank @from + 1 to the switches without a rank that are linked to a
 * switch of rank @from. False: there are none. */
static bool rank_next(struct plan *p, uint8_t from)
{
	bool any = false;

	for (uint32_t i = 0; i < p->nodes; i++) {
		const struct vb_topo_node *n = node_at(p, i);

		for (unsigned k = 1; p->rank[i] == from && k <= n->ports; k++) {
			uint32_t peer = n->port[k].peer;

			if (!n->port[k].linked || !is_switch(p, peer) ||
			    p->rank[peer] != NO_RANK)
				continue;
			p->rank[peer] = (uint8_t)(from + 1);
			any = true;
		}
	}
	return any;
}

/* True if all links between switches join neighbouring tiers. */
static bool is_tiered(const struct plan *p)
{
	for (uint32_t i = 0; i < p->nodes; i++) {
		const struct vb_topo_node *n = node_at(p, i);

		if (!is_switch(p, i))
			continue;
		if (p->rank[i] == NO_RANK)
			return false;
		for (unsigned k = 1; k <= n->ports; k++) {
			uint32_t peer = n->port[k].peer;

			if (n->port[k].linked && is_switch(p, peer) &&
			    abs(p->rank[i] - p->rank[peer]) != 1)
				return false;
		}
	}
	return true;
}

/* Returns the width of the adapters below switch @i. */
static float width_of(const struct plan *p, uint32_t i)
{
	uint32_t side = VB_MAX(VB_MIN(p->owned[i], (uint32_t)ROW), 3u);

	return (float)side * PITCH + GAP;
}

static void place_tiers(struct plan *p)
{
	float bottom = MARGIN + TIER * (float)(p->tiers - 1), x = MARGIN;

	for (uint32_t i = 0; i < p->nodes; i++) {
		if (!is_switch(p, i) || p->rank[i] != 1)
			continue;
		p->l->spot[i] = (struct spot){ x + width_of(p, i) / 2, bottom };
		x += width_of(p, i);
	}
	for (unsigned t = 2; t <= p->tiers; t++) {
		float y = bottom - TIER * (float)(t - 1);
		unsigned count = 0, at = 0;

		for (uint32_t i = 0; i < p->nodes; i++)
			count += is_switch(p, i) && p->rank[i] == t;
		x = VB_MAX(x, MARGIN + (float)count * 3 * PITCH);
		for (uint32_t i = 0; i < p->nodes; i++)
			if (is_switch(p, i) && p->rank[i] == t)
				p->l->spot[i] = (struct spot){
					MARGIN + (x - MARGIN) *
							 ((float)at++ + .5f) /
							 (float)count,
					y
				};
	}
	p->l->width = x + MARGIN;
}

static void place_grid(struct plan *p)
{
	unsigned columns = (unsigned)ceilf(sqrtf((float)p->switches)), at = 0;
	float wide = ROW * PITCH + 3 * GAP;
	float high = 100.f + PITCH * (float)((p->most + ROW - 1) / ROW);

	for (uint32_t i = 0; i < p->nodes; i++) {
		if (!is_switch(p, i))
			continue;
		p->l->spot[i] = (struct spot){
			MARGIN + wide * ((float)(at % columns) + .5f),
			MARGIN + high * (float)(at / columns)
		};
		at++;
	}
	p->l->width = 2 * MARGIN + wide * (float)columns;
}

static void place_circle(struct plan *p)
{
	float around = (float)p->switches * (ROW * PITCH + GAP);
	float radius = p->switches > 1 ? VB_MAX(120.f, around / 6.2832f) : 0;
	float out = 60.f + PITCH * (float)((p->most + ROW - 1) / ROW);
	float middle = MARGIN + radius + out;
	unsigned at = 0;

	for (uint32_t i = 0; i < p->nodes; i++) {
		float turn = 6.2832f * (float)at / (float)p->switches - 3.1416f;

		if (!is_switch(p, i))
			continue;
		p->l->spot[i] = (struct spot){ middle + radius * cosf(turn),
					       middle + radius * sinf(turn) };
		at++;
	}
	p->l->width = 2 * middle;
}

/* Place the adapters: in rows below their switch, or, if the switches are in a
 * circle, outside of the circle. */
static void place_adapters(struct plan *p, bool circle)
{
	uint32_t *next = calloc(p->nodes, sizeof(*next));
	uint32_t alone = 0;

	for (uint32_t i = 0; next && i < p->nodes; i++) {
		uint32_t s = p->owner[i], k, side;
		float across, down, turn = 1.5708f, middle = p->l->width / 2;

		if (is_switch(p, i))
			continue;
		if (s == NOBODY) {
			p->l->spot[i] = (struct spot){
				MARGIN + PITCH * (float)(alone % 40),
				20.f + PITCH * (float)(alone / 40)
			};
			alone++;
			continue;
		}
		k = next[s]++;
		side = VB_MIN(p->owned[s], (uint32_t)ROW);
		across = ((float)(k % ROW) - (float)(side - 1) / 2) * PITCH;
		down = 60.f + PITCH * (float)(k / ROW);
		if (circle && p->switches > 1)
			turn = atan2f(p->l->spot[s].y - middle,
				      p->l->spot[s].x - middle);
		p->l->spot[i] =
			(struct spot){ p->l->spot[s].x + down * cosf(turn) +
					       across * sinf(turn),
				       p->l->spot[s].y + down * sinf(turn) -
					       across * cosf(turn) };
	}
	p->l->height = 0;
	for (uint32_t i = 0; i < p->nodes; i++) {
		p->l->height = VB_MAX(p->l->height, p->l->spot[i].y + MARGIN);
		p->l->width = VB_MAX(p->l->width, p->l->spot[i].x + MARGIN);
	}
	free(next);
}

static void place_nodes(struct plan *p)
{
	bool circle = false;

	find_owners(p);
	while (p->tiers && p->tiers < NO_RANK - 1 && rank_next(p, p->tiers))
		p->tiers++;
	if (p->tiers && is_tiered(p))
		place_tiers(p);
	else if (p->switches <= CIRCLE_MOST && p->switches) {
		place_circle(p);
		circle = true;
	} else if (p->switches)
		place_grid(p);
	place_adapters(p, circle);
}

int vb_fabricd_layout(const struct vb_fabricd *f, struct layout *l)
{
	struct plan p = { .f = f, .l = l, .nodes = f->topo->count };
	int rc = -ENOMEM;

	l->width = l->height = 2 * MARGIN;
	l->spot = calloc(p.nodes, sizeof(*l->spot));
	p.rank = calloc(p.nodes, sizeof(*p.rank));
	p.owner = calloc(p.nodes, sizeof(*p.owner));
	p.owned = calloc(p.nodes, sizeof(*p.owned));
	if (l->spot && p.rank && p.owner && p.owned) {
		place_nodes(&p);
		rc = 0;
	}
	free(p.rank);
	free(p.owner);
	free(p.owned);
	return rc;
}

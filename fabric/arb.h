/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which virtual lane sends next (IBA 7.6.9). VL15 goes before all others, and
 * is not decided here. The data lanes share the link by two tables of (lane,
 * weight): the high one first, until it has sent VLHighLimit units of 4 KiB
 * while a lane of the low one waited; then one frame by the low one.
 *
 * In each table entries take turns. An entry sends while it has weight left, in
 * units of 64 bytes, and so its last frame may go beyond its weight; what it
 * took too much is missing at its next turn, so that shares follow the weights
 * whatever the frames' sizes. A lane without a frame or without credits loses
 * its turn, and keeps nothing for later.
 */
#ifndef FABRIC_ARB_H
#define FABRIC_ARB_H

#include "fabric/node.h"

struct vb_arb_table {
	uint8_t at;			/* the entry whose turn it is */
	bool open;			/* it has begun its turn */
	int16_t left[VB_FAB_VLARB_MAX]; /* units of 64 bytes; below 0 a debt */
};

struct vb_arb {
	struct vb_arb_table high, low;
	uint32_t high_sent; /* bytes since the low table had a chance */
	struct vb_arb_table *chosen;
};

#define VB_ARB_NONE (-1)

/*
 * Choose a lane out of @able, a mask of those that have a frame that may leave
 * and credits for it. Lanes that no table lists go when no listed one can, the
 * lowest first. VB_ARB_NONE: @able has no data lane.
 */
int vb_arb_pick(struct vb_arb *a, const struct vb_fab_port *p, uint16_t able);

/* The chosen lane sent a frame of @bytes. */
void vb_arb_sent(struct vb_arb *a, size_t bytes);

#endif

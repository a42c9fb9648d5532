/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which virtual lane of a port sends next (IBA 7.6.9). The caller serves VL15
 * before all others. The data lanes share the link by two tables of (lane,
 * weight): the high one first, until it has sent VLHighLimit units of 4 KiB
 * while a lane of the low one waited; then the low one sends one frame.
 *
 * In each table entries take turns. An entry sends while it has weight left, in
 * units of 64 bytes. Its last frame may take more than is left; this debt is
 * subtracted at the entry's next turn, so that shares follow the weights
 * whatever the frames' sizes. An entry whose lane has no frame or no credits
 * loses its turn and the weight that it has left.
 */
#ifndef FABRIC_ARB_H
#define FABRIC_ARB_H

#include "fabric/node.h"

struct vb_arb_table {
	uint8_t at; /* the table entry whose turn it is */
	bool open;  /* entry @at has been given its weight for this turn */
	/* the weight that each entry has left, in units of 64 bytes; a negative
	 * value is a debt */
	int16_t left[VB_FAB_VLARB_MAX];
};

struct vb_arb {
	struct vb_arb_table high, low;
	/* bytes that the high table has sent since the low table last had a
	 * chance */
	uint32_t high_sent;
	struct vb_arb_table *chosen;
};

#define VB_ARB_NONE (-1)

/*
 * Choose a lane from @able, a mask of the lanes that have credits and a frame
 * that may leave. Lanes that no table lists send when no listed one can, the
 * lowest first. VB_ARB_NONE: @able has no data lane.
 */
int vb_arb_pick(struct vb_arb *a, const struct vb_fab_port *p, uint16_t able);

/* The caller has sent a frame of @bytes from the lane that vb_arb_pick() chose:
 * subtract the bytes from the weight of that lane's entry. */
void vb_arb_sent(struct vb_arb *a, size_t bytes);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a port does with a frame that comes in, and where a switch sends it: the
 * checks of IBA 7.7 and 18.2.5 as pure functions of the node's tables. Nothing
 * here queues or counts; the caller counts what is in the verdict.
 */
#ifndef FABRIC_SWITCH_H
#define FABRIC_SWITCH_H

#include "fabric/node.h"
#include "wire/lrh.h"

/* A frame, LRH to ICRC, with its header read. */
struct vb_fab_view {
	const uint8_t *bytes;
	size_t len;
	struct vb_lrh lrh;
};

/* Why a frame goes no further: a row of a table says what counts it. */
enum vb_fab_drop {
	DROP_NOT,
	DROP_MALFORMED, /* length, version, next header, receiver's MTU */
	DROP_LANE,	/* its VL is not operational */
	DROP_STATE,	/* the port takes no data in this state */
	DROP_PKEY_IN,
	DROP_RAW_IN,
	DROP_NO_ROUTE,
	DROP_LOOP,
	DROP_SL, /* SL2VL gives no lane */
	/* These are the output port's. */
	DROP_PKEY_OUT,
	DROP_RAW_OUT,
	DROP_INACTIVE,
	DROP_MTU,
	DROPS
};

/* What counts a drop; FAB_COUNTERS: nothing more. */
struct vb_fab_drop_row {
	enum vb_fab_counter count, detail;
};
extern const struct vb_fab_drop_row vb_fab_drops[DROPS];

/* The checks at a link's end, of switches and adapters. */
enum vb_fab_drop vb_fab_check_in(const struct vb_fab_node *node, uint8_t port,
				 const struct vb_fab_view *v);

/* Where to: the ports as a mask, with bit 0 for the switch itself. */
struct vb_fab_route {
	enum vb_fab_drop drop; /* unless DROP_NOT there are no ports */
	bool mcast;
	uint8_t port; /* the port, if not mcast */
	struct vb_fab_mcast mask;
};

/*
 * The output of a frame that came in at @in (0: from the switch's own port 0).
 * Multicast masks lack @in.
 */
void vb_fab_route(const struct vb_fab_node *node, uint8_t in,
		  const struct vb_fab_view *v, struct vb_fab_route *r);

/*
 * May a frame from port @in leave by the external port @out, and on which lane?
 * *@vl is set when this returns DROP_NOT.
 */
enum vb_fab_drop vb_fab_check_out(const struct vb_fab_node *node, uint8_t in,
				  uint8_t out, const struct vb_fab_view *v,
				  uint8_t *vl);

/* Do two P_Keys match (IBA 10.9.3)? */
static inline bool vb_fab_pkeys_match(uint16_t a, uint16_t b)
{
	return ((a ^ b) & 0x7fff) == 0 && (a & 0x7fff) && ((a | b) & 0x8000);
}

#endif

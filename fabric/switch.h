/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a port does with a frame that comes in, and where a switch sends it: the
 * checks of IBA 7.7 and 18.2.5 as pure functions of the node's tables. They
 * queue and count nothing: the caller does, as the result says.
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

/* Why a port drops a frame; struct vb_fab_drop_row says which counters grow. */
enum vb_fab_drop {
	DROP_NOT,
	DROP_MALFORMED, /* length, version, next header, receiver's MTU */
	DROP_LANE,	/* its VL is not operational */
	DROP_STATE,	/* in its state the port takes no data */
	DROP_PKEY_IN,
	DROP_RAW_IN,
	DROP_NO_ROUTE,
	DROP_LOOP,
	DROP_SL, /* SL2VL gives no lane */
	/* The output port finds these: */
	DROP_PKEY_OUT,
	DROP_RAW_OUT,
	DROP_INACTIVE,
	DROP_MTU,
	DROPS
};

/* The counters that grow with a drop; FAB_COUNTERS: no detail counter does. */
struct vb_fab_drop_row {
	enum vb_fab_counter count, detail;
};
extern const struct vb_fab_drop_row vb_fab_drops[DROPS];

/* What a port of a switch or adapter checks of each frame that comes in. */
enum vb_fab_drop vb_fab_check_in(const struct vb_fab_node *node, uint8_t port,
				 const struct vb_fab_view *v);

/* The ports by which a frame leaves: @port, or the mask of a multicast frame,
 * in which bit 0 is the switch itself. */
struct vb_fab_route {
	enum vb_fab_drop drop; /* if not DROP_NOT, there is no port */
	bool mcast;
	uint8_t port; /* the port, if not mcast */
	struct vb_fab_mcast mask;
};

/*
 * Where a switch sends the frame that came in at @in (0: its own port 0 sends
 * it). The mask of a multicast frame never has @in.
 */
void vb_fab_route(const struct vb_fab_node *node, uint8_t in,
		  const struct vb_fab_view *v, struct vb_fab_route *r);

/*
 * May a frame from port @in leave by the external port @out, and on which lane?
 * Sets *@vl to the lane when it returns DROP_NOT.
 */
enum vb_fab_drop vb_fab_check_out(const struct vb_fab_node *node, uint8_t in,
				  uint8_t out, const struct vb_fab_view *v,
				  uint8_t *vl);

#endif

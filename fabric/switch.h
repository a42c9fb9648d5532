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
	/* the length, version or next header is wrong, or the frame exceeds the
	 * MTU */
	DROP_MALFORMED,
	DROP_LANE,  /* the VL of the frame is not operational */
	DROP_STATE, /* the port's state does not let data pass */
	DROP_PKEY_IN,
	DROP_RAW_IN,
	DROP_NO_ROUTE,
	DROP_LOOP,
	DROP_SL, /* SL2VL maps the frame's SL to no usable VL */
	/* A router finds the errors below (fabric/router.h). */
	DROP_NO_GRH, /* the frame is raw, or for a LID that this port lacks */
	DROP_GRH,    /* version, length or next header of the GRH is wrong */
	/* a GID is link-local or of a group, which stay in their subnet */
	DROP_SCOPE,
	DROP_HOP_LIMIT, /* the frame may pass no further router */
	DROP_NO_PREFIX, /* no port leads to the subnet of the DGID */
	DROP_NO_PATH,	/* the next subnet has no path to the DGID */
	DROP_UNASKED,	/* too many frames wait for answers about paths */
	/* The checks of the output port find the errors below. */
	DROP_PKEY_OUT,
	DROP_RAW_OUT,
	DROP_INACTIVE,
	DROP_MTU,
	DROPS
};

/* The counters that grow when a port drops a frame. FAB_COUNTERS in a field: no
 * detail counter grows. */
struct vb_fab_drop_row {
	enum vb_fab_counter count, detail;
	/* name of the reason for the drop, in text and JSON output */
	const char *name;
};
extern const struct vb_fab_drop_row vb_fab_drops[DROPS];

/* Check a frame that comes in at a port of a switch or adapter: length,
 * version, VL, port state, P_Key and raw frames. */
enum vb_fab_drop vb_fab_check_in(const struct vb_fab_node *node, uint8_t port,
				 const struct vb_fab_view *v);

/* The ports by which a frame leaves: @port, or the mask of a multicast frame,
 * in which bit 0 is the switch itself. */
struct vb_fab_route {
	/* why the switch drops the frame; DROP_NOT: @port or @mask says where
	 * it goes */
	enum vb_fab_drop drop;
	bool mcast;
	uint8_t port; /* the output port, if the frame is not multicast */
	struct vb_fab_mcast mask;
};

/*
 * Find the ports by which a switch sends the frame that came in at @in (0: its
 * own port 0 sends it). The mask of a multicast frame never has @in.
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

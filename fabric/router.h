/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a router does with a frame that comes in (IBA 8.3): whether the frame
 * is for the router itself, and by which port it leaves into another subnet.
 * Pure functions of the node's fields, like those of fabric/switch.h. The next
 * hop in that subnet is in fabric/hops.h.
 */
#ifndef FABRIC_ROUTER_H
#define FABRIC_ROUTER_H

#include "fabric/net.h"
#include "fabric/switch.h"

#define VB_FAB_PREFIXES 64 /* most routes of a router in a topology file */

/* Frames to GIDs of @prefix leave by @port. */
struct vb_fab_prefix {
	uint64_t prefix;
	bool any; /* this route is for every prefix that no other route names */
	uint8_t port;
};

struct vb_fab_router {
	/* routes to subnets to which no port of the router is linked; those to
	 * its own subnets follow from the ports' GidPrefix */
	struct vb_fab_prefix route[VB_FAB_PREFIXES];
	unsigned routes;
	/* time between a frame's last byte in and its first byte out */
	uint32_t latency_ns;
	uint64_t routed; /* frames that were forwarded */
	/* frames that were dropped, indexed by the reason */
	uint64_t dropped[DROPS];
	/* the next hops (fabric/hops.c); NULL: no frame was forwarded yet */
	struct vb_fab_hops *hops;
};

/* Where a frame goes that came in at a router. */
struct vb_fab_way {
	enum vb_fab_drop drop; /* DROP_NOT, or why the frame is dropped */
	bool here;	       /* the frame is for the router itself */
	/* if @here is false: the port by which the frame leaves */
	uint8_t port;
	struct vb_gid dgid;
};

/* Decide about a frame that vb_fab_check_in() has accepted at @in. */
void vb_fab_router_way(const struct vb_fab_node *node, uint8_t in,
		       const struct vb_fab_view *v, struct vb_fab_way *w);

/* May the frame leave by @out on the path @path, and on which lane? Sets *@vl
 * to the lane when it returns DROP_NOT. */
enum vb_fab_drop vb_fab_router_out(const struct vb_fab_node *node, uint8_t out,
				   const struct vb_fab_path *path,
				   const struct vb_fab_view *v, uint8_t *vl);

/* Rewrite the headers of a frame of @bytes for the path @path by @out: a new
 * LRH, and one less of the hop limit. The ICRC covers neither. */
void vb_fab_router_rewrite(const struct vb_fab_node *node, uint8_t out,
			   const struct vb_fab_path *path, uint8_t *bytes);

#endif

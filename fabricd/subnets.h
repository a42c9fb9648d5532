/* SPDX-License-Identifier: BSD-2-Clause */
/* The subnets of a topology: what its routers separate. */
#ifndef FABRICD_SUBNETS_H
#define FABRICD_SUBNETS_H

#include "fabricd/topology.h"

/* most subnets that --sm gives managers to */
#define VB_SUBNETS_MOST 16
/* The subnet prefix of the first subnet; each further one has the next number.
 * It is site-local, since routers forward no link-local GIDs. */
#define VB_SUBNETS_PREFIX 0xfec0000000000001u

struct vb_subnets {
	const struct vb_topo *topo;
	/* by index of a node: its subnet, 1..@count; 0: the node is a router */
	uint8_t *of;
	unsigned count;
	bool routed; /* there is a router; else the topology is one subnet */
};

/* Find the subnets of @t; vb_subnets_free() frees @s in any case. Returns 0;
 * -EINVAL and @error: there are too many; -ENOMEM. */
VB_MUST_CHECK int vb_subnets_find(const struct vb_topo *t, struct vb_subnets *s,
				  char error[VB_TOPO_ERROR]);
void vb_subnets_free(struct vb_subnets *s);

/* Returns the node for a subnet manager of @subnet: the first switch, or else
 * the first adapter with an id that a list of places can contain. NULL: there
 * is no such node. */
const struct vb_topo_node *vb_subnets_manager(const struct vb_subnets *s,
					      unsigned subnet);

/* Write opensm's prefix routes for @subnet: by which of its routers' ports the
 * GIDs of other subnets are reached. */
void vb_subnets_put_routes(const struct vb_subnets *s, unsigned subnet,
			   FILE *to);

#endif

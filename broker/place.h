/* SPDX-License-Identifier: BSD-2-Clause */
/* Which addresses a program may bind a port of rdma_cm to: the host's, and any
 * address. What Linux says of others is EADDRNOTAVAIL. */
#ifndef BROKER_PLACE_H
#define BROKER_PLACE_H

#include "link/netif.h"

/* What was so when addresses changed last. Zeros to begin with. */
struct vb_places {
	struct vb_netif_watch *watch; /* NULL: none is to be had */
	/* The routes said yes of it last; zero: of none. Programs ask of the
	 * same again and again. */
	struct vb_gid known;
	uint32_t known_ifindex;
	/* The interfaces; asked only where the routes do not know. */
	bool listed;
	struct vb_netif *list;
	unsigned count;
};

void vb_places_fini(struct vb_places *p);
/* @ifindex: of a link-local one, 0 where that is not known. */
bool vb_places_has(struct vb_places *p, const struct vb_gid *gid,
		   uint32_t ifindex);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Which addresses a program may bind a port of rdma_cm to: the host's, and any
 * address. What Linux says of others is EADDRNOTAVAIL. */
#ifndef BROKER_LOCAL_ADDR_H
#define BROKER_LOCAL_ADDR_H

#include "link/netif.h"

/* What was so when addresses changed last. Zeros to begin with. */
struct vb_local_addrs {
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

void vb_local_addrs_fini(struct vb_local_addrs *p);
/* @ifindex: of a link-local one, 0 where that is not known. */
bool vb_local_addrs_has(struct vb_local_addrs *p, const struct vb_gid *gid,
			uint32_t ifindex);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses to which a program can bind a port of librdmacm: those of the
 * host, and the wildcard. For others Linux fails with EADDRNOTAVAIL. */
#ifndef BROKER_LOCAL_ADDR_H
#define BROKER_LOCAL_ADDR_H

#include "link/netif.h"

/* What the broker has learned since addresses last changed. It begins as
 * zeros. */
struct vb_local_addrs {
	struct vb_netif_watch *watch; /* NULL: the kernel offers none */
	/* The last address that the routes called local; zero: none. It is kept
	 * because programs ask about the same address many times. */
	struct vb_gid known;
	uint32_t known_ifindex;
	/* The interfaces, listed when the routes know no answer. */
	bool listed;
	struct vb_netif *list;
	unsigned count;
};

void vb_local_addrs_fini(struct vb_local_addrs *p);
/* Whether @gid is an address of this host, or the wildcard. @ifindex is the
 * interface of a link-local address; 0: not known. */
bool vb_local_addrs_has(struct vb_local_addrs *p, const struct vb_gid *gid,
			uint32_t ifindex);

#endif

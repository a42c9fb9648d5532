/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses to which a program can bind a port of librdmacm: those of the
 * host, and the wildcard. For others Linux fails with EADDRNOTAVAIL. */
#ifndef BROKER_LOCAL_ADDR_H
#define BROKER_LOCAL_ADDR_H

#include "link/netif.h"

/* Addresses found since addresses last changed; all zeros at first. */
struct vb_local_addrs {
	/* reports changes of addresses; NULL: the kernel does not */
	struct vb_netif_watch *watch;
	/* The last address that the routes called local; zero: none. It is
	 * stored because programs ask about one address many times. */
	struct vb_gid known;
	uint32_t known_ifindex;
	/* The interfaces, listed when the routes do not have an address. */
	bool listed;
	struct vb_netif *list;
	unsigned count;
};

void vb_local_addrs_fini(struct vb_local_addrs *p);
/* Returns whether @gid is an address of this host, or the wildcard. @ifindex is
 * the interface of a link-local address; 0: not known. */
bool vb_local_addrs_has(struct vb_local_addrs *p, const struct vb_gid *gid,
			uint32_t ifindex);

#endif

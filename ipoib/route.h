/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the next hop of a packet in the kernel's routing table, since the
 * kernel hands packets to a TUN without saying their next hop. */
#ifndef IPOIB_ROUTE_H
#define IPOIB_ROUTE_H

#include "wire/gid.h"

/* the most next hops that are cached; a change of a route empties the cache */
#define ROUTE_CACHE 256

struct nl_sock;

struct routes {
	struct nl_sock *nl;
	unsigned ifindex; /* index of the interface */
	/* random key of the hash that chooses an address's entry of @cache, so
	 * that no sender can choose addresses that share one */
	uint64_t seed;
	struct route {
		/* @via: next hop to @ip; both zero: the entry is free */
		struct vb_gid ip, via;
	} cache[ROUTE_CACHE];
};

/* Open the netlink socket. @name: the interface's. 0 or -errno. */
int route_open(struct routes *r, const char *name, uint64_t seed);
void route_close(struct routes *r);
/* Returns the next hop to @ip by the interface: a gateway, or @ip itself. It
 * stays valid until the next call. */
const struct vb_gid *route_next_hop(struct routes *r, const struct vb_gid *ip);
/* Forget what is remembered, because routes have changed. */
void route_forget(struct routes *r);

#endif

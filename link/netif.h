/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the host's interfaces and addresses, by rtnetlink (libnl). */
#ifndef LINK_NETIF_H
#define LINK_NETIF_H

#include "wire/gid.h"

struct vb_netif {
	char name[16];
	uint32_t ifindex;
	uint8_t mac[6];
	uint32_t mtu;	/* the MTU in bytes */
	uint32_t mbits; /* link speed in Mbit/s; 0: unknown */
	bool up, loopback;
	/* The interface carries IP over InfiniBand (IPoIB): it is the user of
	 * an RDMA adapter, and no adapter is made of it. */
	bool infiniband;
	unsigned count;
	/* The usable addresses: IPv4, and IPv6 unless tentative or failed; in
	 * the kernel's order, IPv4 first. */
	struct vb_gid *addresses;
};

/* List all interfaces, loopback last. The caller frees *@list with
 * vb_netif_free(). Blocks until the kernel has answered. 0 or -errno. */
VB_MUST_CHECK int vb_netif_list(struct vb_netif **list, unsigned *count);
void vb_netif_free(struct vb_netif *list, unsigned count);

/* A watch tells when interfaces or addresses may have changed.
 * vb_netif_watch_open() returns 0, or -errno where netlink is denied; the
 * descriptor is readable after a change. */
struct vb_netif_watch;
VB_MUST_CHECK int vb_netif_watch_open(struct vb_netif_watch **w);
int vb_netif_watch_fd(const struct vb_netif_watch *w);
/* Read and drop the notifications that have arrived. True: something may have
 * changed, so the caller lists the interfaces again. */
bool vb_netif_watch_drain(struct vb_netif_watch *w);
void vb_netif_watch_close(struct vb_netif_watch *w);

#endif

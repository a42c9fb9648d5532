/* SPDX-License-Identifier: BSD-2-Clause */
/* The host's interfaces and addresses, by rtnetlink (libnl). */
#ifndef LINK_NETIF_H
#define LINK_NETIF_H

#include "wire/gid.h"

struct vb_netif {
	char name[16];
	uint32_t ifindex;
	uint8_t mac[6];
	uint32_t mtu;	/* bytes */
	uint32_t mbits; /* link speed; 0 unknown */
	bool up, loopback;
	unsigned count;
	struct vb_gid *addresses; /* usable ones: IPv4, and IPv6 that are not
				   * tentative or failed; kernel's order,
				   * IPv4 first */
};

/* All interfaces, loopback last. Free with vb_netif_free(). -errno. */
VB_MUST_CHECK int vb_netif_list(struct vb_netif **list, unsigned *count);
void vb_netif_free(struct vb_netif *list, unsigned count);

/* Tells when interfaces or addresses may have changed. */
struct vb_netif_watch;
VB_MUST_CHECK int vb_netif_watch_open(struct vb_netif_watch **w);
int vb_netif_watch_fd(const struct vb_netif_watch *w);
/* Drain; true: something changed, list again. */
bool vb_netif_watch_drain(struct vb_netif_watch *w);
void vb_netif_watch_close(struct vb_netif_watch *w);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two ways of listing interfaces share. */
#ifndef LINK_NETIF_PRIV_H
#define LINK_NETIF_PRIV_H

#include "link/netif.h"

/* Add @gid unless it is there already. -ENOMEM. */
VB_MUST_CHECK int vb_netif_add_address(struct vb_netif *n,
				       const struct vb_gid *gid);

/* The speed of an interface in Mbit/s; needs no privilege. 0: the driver does
 * not know. */
uint32_t vb_netif_mbits(const char *name);

/* nl_connect() to NETLINK_ROUTE, without taking libnl's lock. Returns libnl's
 * error codes. */
struct nl_sock;
VB_MUST_CHECK int vb_netif_connect(struct nl_sock *nl);

/* Like vb_netif_list(), by ioctl and /proc, for hosts that deny netlink sockets
 * (a systemd unit's RestrictAddressFamilies, a seccomp filter). */
VB_MUST_CHECK int vb_netif_list_by_ioctl(struct vb_netif **list,
					 unsigned *count);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The two ways of listing interfaces, and what they share. */
#ifndef LINK_NETIF_PRIV_H
#define LINK_NETIF_PRIV_H

#include "link/netif.h"

/* Add @gid unless it is there already. -ENOMEM. */
VB_MUST_CHECK int vb_netif_add_address(struct vb_netif *n,
				       const struct vb_gid *gid);

/* Any user may ask; 0 where a driver does not know. */
uint32_t vb_netif_mbits(const char *name);

/* nl_connect() to NETLINK_ROUTE, without libnl's lock. Its errors. */
struct nl_sock;
VB_MUST_CHECK int vb_netif_connect(struct nl_sock *nl);

/* Like vb_netif_list(), where netlink sockets are denied (a systemd unit's
 * RestrictAddressFamilies, a seccomp filter): by ioctl and /proc. */
VB_MUST_CHECK int vb_netif_list_by_ioctl(struct vb_netif **list,
					 unsigned *count);

#endif

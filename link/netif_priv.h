/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two ways of listing interfaces (netlink, ioctl) share. */
#ifndef LINK_NETIF_PRIV_H
#define LINK_NETIF_PRIV_H

#include "link/netif.h"

/* Add @gid to the addresses of @n, unless @gid is among them already. 0 or
 * -ENOMEM. */
VB_MUST_CHECK int vb_netif_add_address(struct vb_netif *n,
				       const struct vb_gid *gid);

/* Returns the speed of an interface in Mbit/s; needs no privilege. 0: the
 * driver does not report a speed. */
uint32_t vb_netif_mbits(const char *name);

/* Connect to NETLINK_ROUTE like nl_connect(), but without libnl's lock. Returns
 * libnl's error codes. */
struct nl_sock;
VB_MUST_CHECK int vb_netif_connect(struct nl_sock *nl);

/* Does what vb_netif_list() does, by ioctl and /proc, for hosts that deny
 * netlink sockets (a systemd unit's RestrictAddressFamilies, a seccomp
 * filter). */
VB_MUST_CHECK int vb_netif_list_by_ioctl(struct vb_netif **list,
					 unsigned *count);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces and addresses from rtnetlink, which needs no privilege. */
#include "link/netif_priv.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/log.h"

#define DRAIN_BYTES 4096

struct vb_netif_watch {
	struct nl_sock *nl;
};

static int errno_of(int nl_error)
{
	switch (-nl_error) {
	case NLE_NOMEM:
		return -ENOMEM;
	case NLE_PERM:
	case NLE_NOACCESS:
		return -EPERM;
	case NLE_AF_NOSUPPORT:
		return -EAFNOSUPPORT;
	default:
		return -EIO;
	}
}

static int open_netlink(struct nl_sock **nl)
{
	int rc;

	*nl = nl_socket_alloc();
	if (!*nl)
		return -ENOMEM;
	rc = nl_connect(*nl, NETLINK_ROUTE);
	if (rc == 0)
		return 0;
	nl_socket_free(*nl);
	vb_log(LOG_INFO, "netif: netlink: %s", nl_geterror(rc));
	return errno_of(rc);
}

static void read_mac(struct vb_netif *n, struct rtnl_link *link)
{
	struct nl_addr *mac = rtnl_link_get_addr(link);

	if (mac && nl_addr_get_len(mac) == sizeof(n->mac))
		memcpy(n->mac, nl_addr_get_binary_addr(mac), sizeof(n->mac));
}

static void read_link(struct vb_netif *n, struct rtnl_link *link)
{
	unsigned flags = rtnl_link_get_flags(link);
	const char *name = rtnl_link_get_name(link);

	memset(n, 0, sizeof(*n));
	if (name)
		memcpy(n->name, name, strnlen(name, sizeof(n->name) - 1));
	n->ifindex = (uint32_t)rtnl_link_get_ifindex(link);
	n->mtu = rtnl_link_get_mtu(link);
	n->loopback = flags & IFF_LOOPBACK;
	/* Running is the carrier, which loopback always has. */
	n->up = flags & IFF_UP && (n->loopback || flags & IFF_RUNNING);
	n->mbits = vb_netif_mbits(n->name);
	read_mac(n, link);
}

static bool is_usable(struct rtnl_addr *a)
{
	unsigned flags = rtnl_addr_get_flags(a);

	if (flags & IFA_F_DADFAILED)
		return false;
	return !(flags & IFA_F_TENTATIVE) || flags & IFA_F_OPTIMISTIC;
}

static bool read_gid(struct rtnl_addr *a, int family, struct vb_gid *gid)
{
	struct nl_addr *local = rtnl_addr_get_local(a);
	const uint8_t *raw;

	if (!local || nl_addr_get_family(local) != family)
		return false;
	raw = nl_addr_get_binary_addr(local);
	if (family == AF_INET && nl_addr_get_len(local) == 4) {
		*gid = vb_gid_from_ipv4(raw);
		return true;
	}
	if (family != AF_INET6 || nl_addr_get_len(local) != 16)
		return false;
	memcpy(gid->raw, raw, 16);
	return true;
}

static int read_addresses(struct vb_netif *n, struct nl_cache *addrs,
			  int family)
{
	struct nl_object *o;
	struct vb_gid gid;
	int rc = 0;

	for (o = nl_cache_get_first(addrs); o && !rc;
	     o = nl_cache_get_next(o)) {
		struct rtnl_addr *a = (struct rtnl_addr *)o; /* libnl's way */

		if ((uint32_t)rtnl_addr_get_ifindex(a) == n->ifindex &&
		    is_usable(a) && read_gid(a, family, &gid))
			rc = vb_netif_add_address(n, &gid);
	}
	return rc;
}

/* One pass takes the loopback interface, the other the rest. */
static int read_links(struct vb_netif *list, unsigned *count,
		      struct nl_cache *links, struct nl_cache *addrs,
		      bool loopback)
{
	int rc = 0;

	for (struct nl_object *o = nl_cache_get_first(links); o && !rc;
	     o = nl_cache_get_next(o)) {
		struct rtnl_link *link = (struct rtnl_link *)o;
		struct vb_netif *n = &list[*count];

		if (!!(rtnl_link_get_flags(link) & IFF_LOOPBACK) != loopback)
			continue;
		read_link(n, link);
		++*count;
		rc = read_addresses(n, addrs, AF_INET);
		if (rc == 0)
			rc = read_addresses(n, addrs, AF_INET6);
	}
	return rc;
}

static int build_list(struct nl_cache *links, struct nl_cache *addrs,
		      struct vb_netif **list, unsigned *count)
{
	int room = nl_cache_nitems(links), rc;
	struct vb_netif *l;
	unsigned used = 0;

	l = calloc((size_t)room + 1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	rc = read_links(l, &used, links, addrs, false);
	if (rc == 0)
		rc = read_links(l, &used, links, addrs, true);
	if (rc) {
		vb_netif_free(l, used);
		return rc;
	}
	*list = l;
	*count = used;
	return 0;
}

static int list_by_netlink(struct nl_sock *nl, struct vb_netif **list,
			   unsigned *count)
{
	struct nl_cache *links, *addrs;
	int rc = rtnl_link_alloc_cache(nl, AF_UNSPEC, &links);

	if (rc < 0)
		return errno_of(rc);
	rc = rtnl_addr_alloc_cache(nl, &addrs);
	if (rc < 0) {
		nl_cache_free(links);
		return errno_of(rc);
	}
	rc = build_list(links, addrs, list, count);
	nl_cache_free(addrs);
	nl_cache_free(links);
	return rc;
}

int vb_netif_list(struct vb_netif **list, unsigned *count)
{
	struct nl_sock *nl;
	int rc = open_netlink(&nl);

	if (rc)
		return vb_netif_list_by_ioctl(list, count);
	rc = list_by_netlink(nl, list, count);
	nl_socket_free(nl);
	return rc;
}

/* The same address with two prefix lengths is one GID. */
static bool has_address(const struct vb_netif *n, const struct vb_gid *gid)
{
	for (unsigned i = 0; i < n->count; i++)
		if (vb_gid_equal(&n->addresses[i], gid))
			return true;
	return false;
}

int vb_netif_add_address(struct vb_netif *n, const struct vb_gid *gid)
{
	struct vb_gid *more;

	if (has_address(n, gid))
		return 0;
	more = realloc(n->addresses, (n->count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	more[n->count++] = *gid;
	n->addresses = more;
	return 0;
}

void vb_netif_free(struct vb_netif *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		free(list[i].addresses);
	free(list);
}

int vb_netif_watch_open(struct vb_netif_watch **w)
{
	struct vb_netif_watch *watch = calloc(1, sizeof(*watch));
	int rc;

	if (!watch)
		return -ENOMEM;
	rc = open_netlink(&watch->nl);
	if (rc) {
		free(watch);
		return rc;
	}
	rc = nl_socket_add_memberships(watch->nl, RTNLGRP_LINK,
				       RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
				       0);
	if (rc < 0) {
		vb_netif_watch_close(watch);
		return errno_of(rc);
	}
	*w = watch;
	return 0;
}

int vb_netif_watch_fd(const struct vb_netif_watch *w)
{
	return nl_socket_get_fd(w->nl);
}

/* What the messages say is not read: they may have been lost (ENOBUFS), and
 * the list is short. */
bool vb_netif_watch_drain(struct vb_netif_watch *w)
{
	uint8_t bytes[DRAIN_BYTES];
	bool changed = false;

	for (;;) {
		if (recv(vb_netif_watch_fd(w), bytes, sizeof(bytes),
			 MSG_DONTWAIT | MSG_TRUNC) >= 0 ||
		    errno == ENOBUFS)
			changed = true;
		else if (errno != EINTR)
			return changed;
	}
}

void vb_netif_watch_close(struct vb_netif_watch *w)
{
	nl_socket_free(w->nl);
	free(w);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads interfaces and addresses by rtnetlink, which needs no privilege. */
#include "link/netif_priv.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/netlink_mark.h"
#include "base/rand.h"

#define DRAIN_BYTES 4096
#define PORT_TRIES  16
/* most tries to read a list that changes while it is read */
#define DUMP_TRIES 16

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

/*
 * Connect @nl to NETLINK_ROUTE. nl_connect() would pick a free port under a
 * lock of libnl, which a child of fork can find held for ever by a thread that
 * exists only in the parent. So this function chooses the port, at random and
 * odd; other users of netlink use process IDs or, as the kernel does, negative
 * numbers.
 */
int vb_netif_connect(struct nl_sock *nl)
{
	int rc = -NLE_EXIST;

	for (int i = 0; i < PORT_TRIES && rc == -NLE_EXIST; i++) {
		nl_socket_set_local_port(nl, vb_rand32() | 1);
		rc = nl_connect(nl, NETLINK_ROUTE);
	}
	if (rc == 0)
		vb_netlink_mark(nl_socket_get_fd(nl));
	return rc;
}

static int open_netlink(struct nl_sock **nl)
{
	int rc;

	*nl = nl_socket_alloc();
	if (!*nl)
		return -ENOMEM;
	rc = vb_netif_connect(*nl);
	if (rc == 0)
		return 0;
	nl_socket_free(*nl);
	vb_log(LOG_INFO, "netif: no netlink here: %s", nl_geterror(rc));
	return errno_of(rc);
}

/*
 * This file parses the answers itself: libnl's caches would take a lock of the
 * whole process, which a child of fork can find held (vb_netif_connect()).
 */

struct listing {
	struct vb_netif *links;
	unsigned count;
	int rc;
};

static void read_link(struct vb_netif *n, struct nlmsghdr *h)
{
	const struct ifinfomsg *info = nlmsg_data(h);
	struct nlattr *name, *mtu, *mac;

	name = nlmsg_find_attr(h, sizeof(*info), IFLA_IFNAME);
	mtu = nlmsg_find_attr(h, sizeof(*info), IFLA_MTU);
	mac = nlmsg_find_attr(h, sizeof(*info), IFLA_ADDRESS);
	if (name)
		nla_strlcpy(n->name, name, sizeof(n->name));
	n->ifindex = (uint32_t)info->ifi_index;
	n->mtu = mtu && nla_len(mtu) >= (int)sizeof(uint32_t) ? nla_get_u32(mtu)
							      : 0;
	n->loopback = info->ifi_flags & IFF_LOOPBACK;
	n->infiniband = info->ifi_type == ARPHRD_INFINIBAND;
	/* IFF_RUNNING means that the interface has a carrier, which loopback
	 * always has. */
	n->up = info->ifi_flags & IFF_UP &&
		(n->loopback || info->ifi_flags & IFF_RUNNING);
	n->mbits = vb_netif_mbits(n->name);
	if (mac && nla_len(mac) == sizeof(n->mac))
		memcpy(n->mac, nla_data(mac), sizeof(n->mac));
}

static int take_link(struct nl_msg *m, void *arg)
{
	struct listing *l = arg;
	struct nlmsghdr *h = nlmsg_hdr(m);
	struct vb_netif *more;

	if (h->nlmsg_type != RTM_NEWLINK ||
	    !nlmsg_valid_hdr(h, sizeof(struct ifinfomsg)))
		return NL_OK;
	more = reallocarray(l->links, l->count + 1, sizeof(*more));
	if (!more) {
		l->rc = -ENOMEM;
		return NL_OK;
	}
	l->links = more;
	more += l->count++;
	*more = (struct vb_netif){ 0 };
	read_link(more, h);
	return NL_OK;
}

static bool is_usable(struct nlmsghdr *h)
{
	const struct ifaddrmsg *a = nlmsg_data(h);
	struct nlattr *more = nlmsg_find_attr(h, sizeof(*a), IFA_FLAGS);
	uint32_t flags = a->ifa_flags;

	if (more && nla_len(more) >= (int)sizeof(flags))
		flags = nla_get_u32(more);
	if (flags & IFA_F_DADFAILED)
		return false;
	return !(flags & IFA_F_TENTATIVE) || flags & IFA_F_OPTIMISTIC;
}

/* IFA_LOCAL is the interface's own address; on a point-to-point interface
 * IFA_ADDRESS is the peer's. */
static bool read_gid(struct nlmsghdr *h, struct vb_gid *gid)
{
	const struct ifaddrmsg *a = nlmsg_data(h);
	struct nlattr *local = nlmsg_find_attr(h, sizeof(*a), IFA_LOCAL);

	if (!local)
		local = nlmsg_find_attr(h, sizeof(*a), IFA_ADDRESS);
	if (local && a->ifa_family == AF_INET && nla_len(local) == 4) {
		*gid = vb_gid_from_ipv4(nla_data(local));
		return true;
	}
	if (!local || a->ifa_family != AF_INET6 || nla_len(local) != 16)
		return false;
	memcpy(gid->raw, nla_data(local), 16);
	return true;
}

static int take_address(struct nl_msg *m, void *arg)
{
	struct listing *l = arg;
	struct nlmsghdr *h = nlmsg_hdr(m);
	const struct ifaddrmsg *a = nlmsg_data(h);
	struct vb_gid gid;
	unsigned i = 0;

	if (h->nlmsg_type != RTM_NEWADDR || !nlmsg_valid_hdr(h, sizeof(*a)) ||
	    !is_usable(h) || !read_gid(h, &gid))
		return NL_OK;
	while (i < l->count && l->links[i].ifindex != a->ifa_index)
		i++;
	if (i < l->count && vb_netif_add_address(&l->links[i], &gid))
		l->rc = -ENOMEM;
	return NL_OK;
}

/* Call @take for each message of the answer. -NLE_DUMP_INTR: the list changed
 * meanwhile. */
static int ask_all(struct nl_sock *nl, int type, int family,
		   nl_recvmsg_msg_cb_t take, struct listing *l)
{
	struct ifinfomsg all = { .ifi_family = (unsigned char)family };
	int rc = nl_send_simple(nl, type, NLM_F_DUMP, &all, sizeof(all));

	if (rc >= 0)
		rc = nl_socket_modify_cb(nl, NL_CB_VALID, NL_CB_CUSTOM, take,
					 l);
	return rc < 0 ? rc : nl_recvmsgs_default(nl);
}

static int link_ask(struct nl_sock *nl, struct listing *l)
{
	int rc = ask_all(nl, RTM_GETLINK, AF_UNSPEC, take_link, l);

	if (rc >= 0)
		rc = ask_all(nl, RTM_GETADDR, AF_INET, take_address, l);
	if (rc >= 0)
		rc = ask_all(nl, RTM_GETADDR, AF_INET6, take_address, l);
	return rc;
}

/* Sort the listing: loopback last, the other interfaces in the kernel's
 * order. */
static int put_in_order(struct listing *l)
{
	struct vb_netif *sorted = calloc((size_t)l->count + 1, sizeof(*sorted));
	unsigned at = 0;

	if (!sorted)
		return -ENOMEM;
	for (int loopback = 0; loopback < 2; loopback++)
		for (unsigned i = 0; i < l->count; i++)
			if (l->links[i].loopback == loopback)
				sorted[at++] = l->links[i];
	free(l->links);
	l->links = sorted;
	return 0;
}

static int list_by_netlink(struct nl_sock *nl, struct vb_netif **list,
			   unsigned *count)
{
	struct listing l;
	int rc, tries = 0;

	do {
		l = (struct listing){ 0 };
		rc = link_ask(nl, &l);
		if (rc < 0)
			l.rc = errno_of(rc);
		if (l.rc == 0)
			l.rc = put_in_order(&l);
		if (l.rc)
			vb_netif_free(l.links, l.count);
	} while (rc == -NLE_DUMP_INTR && ++tries < DUMP_TRIES);
	*list = l.links;
	*count = l.count;
	return l.rc;
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

/* Does interface @n already have this address? An address with two prefix
 * lengths counts as one GID. */
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

/* Drop the messages unread: the kernel may have lost some (ENOBUFS), so the
 * caller lists everything anew. */
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

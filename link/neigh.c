/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads routes and neighbours by rtnetlink, which needs no privilege. */
#include "link/neigh.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/route/neighbour.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "link/netif_priv.h"

/* The time limit for resolving a neighbour: the kernel sends three requests, a
 * second apart. */
#define TRIES  150
#define TRY_MS 20

/* The discard service (RFC 863): a host drops the datagrams that arrive at this
 * port. */
#define DISCARD_PORT 9

struct search {
	const struct vb_neigh_from *from;
	struct nl_sock *nl;
	struct vb_gid hop; /* the next hop: the target itself or a gateway */
	uint32_t ifindex;  /* index of the interface that leads to @hop */
	bool local;	   /* the target is this host */
};

static int family_of(const struct vb_gid *gid)
{
	return vb_gid_is_ipv4(gid) ? AF_INET : AF_INET6;
}

static size_t length_of(const struct vb_gid *gid)
{
	return vb_gid_is_ipv4(gid) ? 4 : 16;
}

/* Returns the IP address in a GID: its last 4 or 16 bytes. */
static const uint8_t *address_of(const struct vb_gid *gid)
{
	return gid->raw + sizeof(gid->raw) - length_of(gid);
}

/* Ask for the route to @to. With RTM_F_FIB_MATCH the kernel returns the route
 * as it is in the table; otherwise it makes up a route where there is none,
 * because RTA_OIF names an interface. */
static int ask_route(struct search *s, const struct vb_gid *to)
{
	struct rtmsg rt = { .rtm_family = (uint8_t)family_of(to),
			    .rtm_dst_len = (uint8_t)(8 * length_of(to)),
			    .rtm_flags = RTM_F_FIB_MATCH };
	struct nl_msg *m = nlmsg_alloc_simple(RTM_GETROUTE, NLM_F_REQUEST);
	int rc = -ENOMEM;

	if (!m)
		return rc;
	if (nlmsg_append(m, &rt, sizeof(rt), NLMSG_ALIGNTO) == 0 &&
	    nla_put(m, RTA_DST, (int)length_of(to), address_of(to)) == 0 &&
	    nla_put_u32(m, RTA_OIF, s->from->ifindex) == 0)
		rc = nl_send_auto(s->nl, m) < 0 ? -EIO : 0;
	nlmsg_free(m);
	return rc;
}

static int take_route(struct search *s, struct rtnl_route *route)
{
	struct rtnl_nexthop *hop = rtnl_route_nexthop_n(route, 0);
	struct nl_addr *gateway = hop ? rtnl_route_nh_get_gateway(hop) : NULL;

	s->local = rtnl_route_get_type(route) == RTN_LOCAL;
	if (s->local)
		return 0;
	if (!hop || rtnl_route_get_type(route) != RTN_UNICAST)
		return -EHOSTUNREACH;
	s->ifindex = (uint32_t)rtnl_route_nh_get_ifindex(hop);
	if (gateway && nl_addr_get_len(gateway) == 4)
		s->hop = vb_gid_from_ipv4(nl_addr_get_binary_addr(gateway));
	else if (gateway && nl_addr_get_len(gateway) == 16)
		memcpy(s->hop.raw, nl_addr_get_binary_addr(gateway), 16);
	return 0;
}

/* An error of the kernel, such as ENETUNREACH, means that there is no route. */
static int find_hop(struct search *s, const struct vb_gid *to)
{
	struct rtnl_route *route;
	struct sockaddr_nl who;
	unsigned char *reply = NULL;
	int rc = ask_route(s, to);

	s->hop = *to;
	s->ifindex = s->from->ifindex;
	if (rc)
		return rc;
	if (nl_recv(s->nl, &who, &reply, NULL) <= 0)
		return -EIO;
	rc = -EHOSTUNREACH;
	if (((struct nlmsghdr *)reply)->nlmsg_type == RTM_NEWROUTE &&
	    rtnl_route_parse((struct nlmsghdr *)reply, &route) == 0) {
		rc = take_route(s, route);
		rtnl_route_put(route);
	}
	free(reply);
	return rc;
}

/* Read a neighbour's MAC address. -EAGAIN: the kernel does not know it yet;
 * -EHOSTUNREACH: the neighbour did not answer. */
static int read_entry(struct rtnl_neigh *n, uint8_t mac[6])
{
	const int valid = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE |
			  NUD_PROBE | NUD_STALE | NUD_DELAY;
	struct nl_addr *address = rtnl_neigh_get_lladdr(n);

	if (rtnl_neigh_get_state(n) & NUD_FAILED)
		return -EHOSTUNREACH;
	if (!(rtnl_neigh_get_state(n) & valid) || !address ||
	    nl_addr_get_len(address) != 6)
		return -EAGAIN;
	memcpy(mac, nl_addr_get_binary_addr(address), 6);
	return 0;
}

static int look_up(struct search *s, uint8_t mac[6])
{
	struct nl_addr *to = nl_addr_build(
		family_of(&s->hop), address_of(&s->hop), length_of(&s->hop));
	struct nl_cache *cache = NULL;
	struct rtnl_neigh *n = NULL;
	int rc = -EAGAIN;

	if (!to)
		return -ENOMEM;
	if (rtnl_neigh_alloc_cache(s->nl, &cache) < 0)
		rc = -EIO;
	else
		n = rtnl_neigh_get(cache, (int)s->ifindex, to);
	if (n) {
		rc = read_entry(n, mac);
		rtnl_neigh_put(n);
	}
	if (cache)
		nl_cache_free(cache);
	nl_addr_put(to);
	return rc;
}

/* Make the kernel resolve the neighbour, by sending an empty datagram to it. */
static void give_cause(const struct search *s)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET,
				  .sin_port = htons(DISCARD_PORT) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons(DISCARD_PORT),
				   .sin6_scope_id = s->ifindex };
	bool is_v4 = vb_gid_is_ipv4(&s->hop);
	char name[IF_NAMESIZE] = "";
	int fd = socket(family_of(&s->hop), SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	memcpy(&v4.sin_addr, address_of(&s->hop), 4);
	memcpy(&v6.sin6_addr, s->hop.raw, 16);
	/* Old kernels demand a privilege for SO_BINDTODEVICE. A failure is
	 * ignored, because the routing table alone most often leads to the same
	 * interface. */
	if (if_indextoname(s->ifindex, name))
		(void)setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name,
				 sizeof(name));
	if (sendto(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL,
		   is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6,
		   is_v4 ? sizeof(v4) : sizeof(v6)) < 0)
		vb_log(LOG_DEBUG, "neigh: cannot probe a neighbour: %s",
		       strerror(errno));
	close(fd);
}

static int find_mac(struct search *s, uint8_t mac[6])
{
	const struct timespec pause = { .tv_nsec = TRY_MS * 1000000L };
	int rc = look_up(s, mac);

	/* An earlier failed resolution may be out of date: make the kernel
	 * resolve the neighbour again. */
	if (rc != -EAGAIN && rc != -EHOSTUNREACH)
		return rc;
	give_cause(s);
	if (s->from->no_wait)
		return -EAGAIN;
	for (unsigned i = 0; i < TRIES; i++) {
		rc = look_up(s, mac);
		if (rc != -EAGAIN)
			return rc;
		nanosleep(&pause, NULL);
	}
	return -EHOSTUNREACH;
}

/* Maps a multicast group to its Ethernet address (RFC 1112 6.4, RFC 2464 7). */
void vb_neigh_group(const struct vb_gid *to, uint8_t mac[6])
{
	if (vb_gid_is_ipv4(to)) {
		memcpy(mac, (const uint8_t[]){ 0x01, 0x00, 0x5e }, 3);
		memcpy(mac + 3, to->raw + 13, 3);
		mac[3] &= 0x7f;
		return;
	}
	memset(mac, 0x33, 2);
	memcpy(mac + 2, to->raw + 12, 4);
}

/* Read the EtherType and the number of a VLAN from its IFLA_INFO_DATA. */
static void take_tag(struct nlattr *data, struct vb_neigh_port *p)
{
	struct nlattr *id =
		nla_find(nla_data(data), nla_len(data), IFLA_VLAN_ID);
	struct nlattr *tpid =
		nla_find(nla_data(data), nla_len(data), IFLA_VLAN_PROTOCOL);

	if (id && nla_len(id) >= (int)sizeof(p->vlan))
		p->vlan = nla_get_u16(id);
	if (tpid && nla_len(tpid) >= (int)sizeof(p->tpid))
		p->tpid = ntohs(nla_get_u16(tpid));
}

/* Read the kernel's description of an interface to @arg. This function parses
 * it without libnl: in a child of fork, libnl's lock may be held for ever
 * (link/netif.c). */
static int note_port(struct nl_msg *m, void *arg)
{
	struct nlmsghdr *h = nlmsg_hdr(m);
	struct nlattr *info, *kind, *data, *mac, *below;
	struct vb_neigh_port *p = arg;

	mac = nlmsg_find_attr(h, sizeof(struct ifinfomsg), IFLA_ADDRESS);
	if (mac && nla_len(mac) == sizeof(p->mac))
		memcpy(p->mac, nla_data(mac), sizeof(p->mac));
	info = nlmsg_find_attr(h, sizeof(struct ifinfomsg), IFLA_LINKINFO);
	kind = info ? nla_find(nla_data(info), nla_len(info), IFLA_INFO_KIND)
		    : NULL;
	data = info ? nla_find(nla_data(info), nla_len(info), IFLA_INFO_DATA)
		    : NULL;
	if (!kind || !data || nla_strcmp(kind, "vlan") != 0)
		return NL_OK;
	take_tag(data, p);
	below = nlmsg_find_attr(h, sizeof(struct ifinfomsg), IFLA_LINK);
	/* If the interface below is in another network namespace, its index
	 * names another interface in this one. */
	if (below && nla_len(below) >= (int)sizeof(p->below) &&
	    !nlmsg_find_attr(h, sizeof(struct ifinfomsg), IFLA_LINK_NETNSID))
		p->below = nla_get_u32(below);
	return NL_OK;
}

static int find_port(struct nl_sock *nl, uint32_t ifindex,
		     struct vb_neigh_port *p)
{
	struct ifinfomsg which = { .ifi_index = (int)ifindex };
	int rc;

	*p = (struct vb_neigh_port){ .vlan = VB_NO_VLAN, .tpid = ETH_P_8021Q };
	rc = nl_send_simple(nl, RTM_GETLINK, 0, &which, sizeof(which));
	if (rc >= 0)
		rc = nl_socket_modify_cb(nl, NL_CB_VALID, NL_CB_CUSTOM,
					 note_port, p);
	if (rc >= 0)
		rc = nl_recvmsgs_default(nl);
	return rc < 0 ? -ENODEV : 0;
}

static int find_vlan(struct search *s, uint16_t *vlan)
{
	struct vb_neigh_port p;
	int rc = find_port(s->nl, s->ifindex, &p);

	*vlan = p.vlan;
	return rc;
}

static int search(struct search *s, const struct vb_gid *to, uint8_t mac[6],
		  uint16_t *vlan)
{
	int rc;

	s->ifindex = s->from->ifindex;
	if (vb_gid_is_multicast(to)) {
		vb_neigh_group(to, mac);
		return find_vlan(s, vlan);
	}
	rc = find_hop(s, to);
	if (rc)
		return rc;
	if (s->from->no_router && !vb_gid_equal(&s->hop, to))
		return -ENETUNREACH;
	if (s->local)
		memcpy(mac, s->from->mac, 6);
	else
		rc = find_mac(s, mac);
	return rc ? rc : find_vlan(s, vlan);
}

/* Open a netlink socket. Each request here gets one message as its answer,
 * without an acknowledgement behind it. */
static int open_routing(struct nl_sock **nl)
{
	*nl = nl_socket_alloc();
	if (!*nl)
		return -ENOMEM;
	nl_socket_disable_auto_ack(*nl);
	if (vb_netif_connect(*nl) == 0)
		return 0;
	nl_socket_free(*nl);
	return -EIO;
}

int vb_neigh_resolve(const struct vb_neigh_from *from, const struct vb_gid *to,
		     uint8_t mac[6], uint16_t *vlan)
{
	struct search s = { .from = from };
	int rc = open_routing(&s.nl);

	if (rc)
		return rc;
	rc = search(&s, to, mac, vlan);
	nl_socket_free(s.nl);
	return rc;
}

int vb_neigh_port(uint32_t ifindex, struct vb_neigh_port *port)
{
	struct nl_sock *nl;
	int rc = open_routing(&nl);

	if (rc)
		return rc;
	rc = find_port(nl, ifindex, port);
	nl_socket_free(nl);
	return rc;
}

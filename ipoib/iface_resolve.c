/* SPDX-License-Identifier: BSD-2-Clause */
/* ARP and neighbour discovery on the fabric: asks for neighbours' addresses,
 * answers requests for the interface's own ones, and learns from the messages
 * of neighbours. */
#include <string.h>

#include "ipoib/iface_priv.h"

static struct vb_ipoib_hw own_hw(const struct iface *f)
{
	return (struct vb_ipoib_hw){ .qpn = f->port.qp->qp_num,
				     .gid = f->port.gid,
				     .flags =
					     f->cm.listener ? IPOIB_HW_RC : 0 };
}

static void send_to_all(struct iface *f, const uint8_t *frame, size_t len)
{
	struct vb_gid all = vb_ip_broadcast();
	struct vb_gid mgid = vb_ip_mgid(&all, f->pkey);

	if (f->groups)
		vb_groups_send(f->groups, &mgid, frame, len, f->now);
}

/* --- ARP --- */

static size_t make_arp(uint8_t frame[VB_IPOIB_HEADER + VB_ARP_BYTES],
		       const struct vb_arp *arp)
{
	vb_ipoib_header_put(frame, IPOIB_ARP);
	return VB_IPOIB_HEADER + vb_arp_put(frame + VB_IPOIB_HEADER, arp);
}

static void ask_by_arp(struct iface *f, const struct vb_gid *from,
		       const struct vb_gid *ip)
{
	const struct vb_arp arp = { .from_hw = own_hw(f),
				    .from_ip = *from,
				    .to_ip = *ip };
	uint8_t frame[VB_IPOIB_HEADER + VB_ARP_BYTES];

	send_to_all(f, frame, make_arp(frame, &arp));
}

/* Answer an ARP request. A host that probes whether an address is free has no
 * address itself, so nothing can be sent to it alone: the answer goes to the
 * broadcast group (RFC 5227). */
static void answer_arp(struct iface *f, const struct vb_arp *asked)
{
	const uint8_t zero[4] = { 0 };
	struct vb_gid nobody = vb_gid_from_ipv4(zero);
	const struct vb_arp arp = { .reply = true,
				    .from_hw = own_hw(f),
				    .from_ip = asked->to_ip,
				    .to_hw = asked->from_hw,
				    .to_ip = asked->from_ip };
	uint8_t frame[VB_IPOIB_HEADER + VB_ARP_BYTES];
	size_t len = make_arp(frame, &arp);

	if (vb_gid_equal(&asked->from_ip, &nobody))
		send_to_all(f, frame, len);
	else
		vb_nbrs_send(f->nbrs, &asked->from_ip, frame, len, f->now);
}

/* May @ip be a neighbour's address? */
static bool may_be_neighbour(const struct iface *f, const struct vb_gid *ip)
{
	return !vb_gid_is_zero(ip) && !vb_gid_is_multicast(ip) &&
	       !vb_gid_is_loopback(ip) && !vb_ip_nets_have(&f->tun.nets, ip) &&
	       !vb_ip_nets_broadcast(&f->tun.nets, ip) &&
	       !(vb_gid_is_ipv4(ip) && ip->raw[12] == 0);
}

void iface_take_arp(struct iface *f, const uint8_t *bytes, size_t len)
{
	struct vb_arp arp;
	bool mine;

	if (!vb_arp_get(bytes, len, &arp) || arp.link != LINK_INFINIBAND)
		return;
	mine = vb_ip_nets_have(&f->tun.nets, &arp.to_ip);
	if (may_be_neighbour(f, &arp.from_ip))
		vb_nbrs_learn(f->nbrs, &arp.from_ip, &arp.from_hw,
			      arp.reply && mine, !arp.reply && mine, f->now);
	if (mine && !arp.reply)
		answer_arp(f, &arp);
}

/* --- neighbour discovery --- */

static size_t make_nd(uint8_t frame[VB_IPOIB_HEADER + VB_ND_BYTES],
		      const struct vb_nd *nd)
{
	vb_ipoib_header_put(frame, IPOIB_IPV6);
	return VB_IPOIB_HEADER + vb_nd_put(frame + VB_IPOIB_HEADER, nd);
}

static void send_nd_to_group(struct iface *f, const struct vb_nd *nd)
{
	uint8_t frame[VB_IPOIB_HEADER + VB_ND_BYTES];
	struct vb_gid mgid = vb_ip_mgid(&nd->dst, f->pkey);
	size_t len = make_nd(frame, nd);

	if (f->groups)
		vb_groups_send(f->groups, &mgid, frame, len, f->now);
}

static const struct vb_gid all_nodes = { { 0xff, 0x02, [15] = 1 } };

static void answer_nd(struct iface *f, const struct vb_nd *asked)
{
	struct vb_nd nd = { .advertise = true,
			    .solicited = true,
			    .override = true,
			    .src = asked->target,
			    .dst = asked->src,
			    .target = asked->target,
			    .has_hw = true,
			    .hw = own_hw(f) };
	uint8_t frame[VB_IPOIB_HEADER + VB_ND_BYTES];

	if (may_be_neighbour(f, &asked->src)) {
		vb_nbrs_send(f->nbrs, &asked->src, frame, make_nd(frame, &nd),
			     f->now);
		return;
	}
	/* The host that asks has no address yet, so the answer goes to all
	 * nodes (RFC 4861, 7.2.4). */
	nd.solicited = false;
	nd.dst = all_nodes;
	send_nd_to_group(f, &nd);
}

void iface_take_nd(struct iface *f, const struct vb_ip *ip)
{
	const struct vb_gid *told;
	struct vb_nd nd;
	bool mine;

	if (!vb_nd_get(ip, &nd))
		return;
	mine = vb_ip_nets_have(&f->tun.nets, &nd.target);
	told = nd.advertise ? &nd.target : &nd.src;
	if (nd.has_hw && nd.link == LINK_INFINIBAND &&
	    may_be_neighbour(f, told))
		vb_nbrs_learn(f->nbrs, told, &nd.hw,
			      nd.advertise && nd.solicited,
			      !nd.advertise && mine, f->now);
	if (mine && !nd.advertise)
		answer_nd(f, &nd);
}

/* --- requests and announcements --- */

void iface_ask(struct iface *f, const struct vb_gid *ip)
{
	const struct vb_gid *from = vb_ip_nets_source(&f->tun.nets, ip);
	struct vb_nd nd = { .target = *ip, .has_hw = true };

	if (!from || !f->port.started)
		return;
	if (vb_gid_is_ipv4(ip)) {
		ask_by_arp(f, from, ip);
		return;
	}
	nd.src = *from;
	nd.dst = vb_ip_solicited_node(ip);
	nd.hw = own_hw(f);
	send_nd_to_group(f, &nd);
}

/* An IPv4 address is announced as RFC 5227, 2.3 says, an IPv6 address by an
 * unsolicited advertisement (RFC 4861, 7.2.6). */
void iface_announce(struct iface *f)
{
	for (unsigned i = 0; i < f->tun.nets.count && f->port.started; i++) {
		const struct vb_gid *ip = &f->tun.nets.list[i].ip;
		const struct vb_nd nd = { .advertise = true,
					  .override = true,
					  .src = *ip,
					  .dst = all_nodes,
					  .target = *ip,
					  .has_hw = true,
					  .hw = own_hw(f) };

		if (vb_gid_is_ipv4(ip))
			ask_by_arp(f, ip, ip);
		else
			send_nd_to_group(f, &nd);
	}
}

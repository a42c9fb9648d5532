/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes the messages that resolve addresses: ARP, and IPv6 neighbour
 * discovery. */
#include "ipoib/packet_priv.h"

#define ARP_REQUEST 1
#define ARP_REPLY   2

#define ND_BODY	       24 /* from the type to the target address */
#define OPT_SOURCE     1
#define OPT_TARGET     2
#define FLAG_ROUTER    0x80
#define FLAG_SOLICITED 0x40
#define FLAG_OVERRIDE  0x20

/* What differs between kinds of links. */
static const struct {
	uint16_t arp_type; /* ARP's number of the link (RFC 826, RFC 4391) */
	uint8_t hw_bytes;  /* bytes of a link-layer address */
	/* bytes of the neighbour discovery option with a link-layer address:
	 * type, length, address, padding */
	uint8_t option_bytes;
} links[] = {
	[LINK_INFINIBAND] = { 32, VB_IPOIB_HW, 24 },
	[LINK_ETHERNET] = { 1, VB_MAC_BYTES, 8 },
};

static const uint8_t all_zero[VB_IPOIB_HW];

static void put_hw(struct vb_writer *w, enum vb_link link,
		   const struct vb_ipoib_hw *hw)
{
	if (link == LINK_INFINIBAND) {
		ipoib_hw_put(w, hw);
		return;
	}
	memcpy(w->at, hw->gid.raw, VB_MAC_BYTES);
	w->at += VB_MAC_BYTES;
}

static void get_hw(const uint8_t *bytes, enum vb_link link,
		   struct vb_ipoib_hw *hw)
{
	if (link == LINK_INFINIBAND)
		ipoib_hw_get(bytes, hw);
	else
		*hw = vb_hw_of_mac(bytes);
}

static void put_ipv4(struct vb_writer *w, const struct vb_gid *ip)
{
	memcpy(w->at, ip->raw + 12, 4);
	w->at += 4;
}

/* A request does not know its target's link-layer address (RFC 4391, 9.1.2). */
size_t vb_arp_put(uint8_t bytes[VB_ARP_BYTES], const struct vb_arp *arp)
{
	uint8_t hw_bytes = links[arp->link].hw_bytes;
	struct vb_writer w = { bytes };

	vb_put_be(&w, links[arp->link].arp_type, 2);
	vb_put_be(&w, IPOIB_IPV4, 2);
	vb_put_be(&w, hw_bytes, 1);
	vb_put_be(&w, 4, 1);
	vb_put_be(&w, arp->reply ? ARP_REPLY : ARP_REQUEST, 2);
	put_hw(&w, arp->link, &arp->from_hw);
	put_ipv4(&w, &arp->from_ip);
	if (arp->reply) {
		put_hw(&w, arp->link, &arp->to_hw);
	} else {
		memcpy(w.at, all_zero, hw_bytes);
		w.at += hw_bytes;
	}
	put_ipv4(&w, &arp->to_ip);
	return (size_t)(w.at - bytes);
}

/* Read an ARP packet's hardware type and length of hardware addresses. False:
 * they belong to neither InfiniBand nor Ethernet, or the packet is too short
 * for such addresses. */
static bool arp_get_link(const uint8_t *bytes, size_t len, enum vb_link *link)
{
	for (unsigned i = 0; i < VB_COUNT(links); i++) {
		if (vb_load_be(bytes, 2) != links[i].arp_type ||
		    bytes[4] != links[i].hw_bytes)
			continue;
		*link = (enum vb_link)i;
		return len >= 8 + 2 * (links[i].hw_bytes + 4u);
	}
	return false;
}

bool vb_arp_get(const uint8_t *bytes, size_t len, struct vb_arp *arp)
{
	const uint8_t *from = bytes + 8, *to;
	unsigned op;

	if (len < VB_ARP_ETH_BYTES || !arp_get_link(bytes, len, &arp->link) ||
	    vb_load_be(bytes + 2, 2) != IPOIB_IPV4 || bytes[5] != 4)
		return false;
	op = (unsigned)vb_load_be(bytes + 6, 2);
	if (op != ARP_REQUEST && op != ARP_REPLY)
		return false;
	to = from + links[arp->link].hw_bytes + 4;
	arp->reply = op == ARP_REPLY;
	get_hw(from, arp->link, &arp->from_hw);
	arp->from_ip = vb_gid_from_ipv4(to - 4);
	get_hw(to, arp->link, &arp->to_hw);
	arp->to_ip = vb_gid_from_ipv4(to + links[arp->link].hw_bytes);
	return true;
}

struct vb_gid vb_ip_solicited_node(const struct vb_gid *ip)
{
	struct vb_gid group = { { 0xff, 0x02, [11] = 1, [12] = 0xff } };

	memcpy(group.raw + 13, ip->raw + 13, 3);
	return group;
}

static size_t nd_put_body(uint8_t *body, const struct vb_nd *nd)
{
	size_t option = links[nd->link].option_bytes;
	struct vb_writer w = { body };
	uint8_t flags = 0;

	if (nd->advertise)
		flags = (nd->router ? FLAG_ROUTER : 0) |
			(nd->solicited ? FLAG_SOLICITED : 0) |
			(nd->override ? FLAG_OVERRIDE : 0);
	vb_put_be(&w, nd->advertise ? ICMPV6_ADVERTISE : ICMPV6_SOLICIT, 1);
	vb_put_be(&w, 0, 3); /* code, checksum */
	vb_put_be(&w, flags, 1);
	vb_put_be(&w, 0, 3);
	memcpy(w.at, nd->target.raw, 16);
	w.at += 16;
	if (!nd->has_hw)
		return ND_BODY;
	vb_put_be(&w, nd->advertise ? OPT_TARGET : OPT_SOURCE, 1);
	memset(w.at, 0, option - 1);
	vb_put_be(&w, option / 8, 1);
	put_hw(&w, nd->link, &nd->hw);
	return ND_BODY + option;
}

size_t vb_nd_put(uint8_t bytes[VB_ND_BYTES], const struct vb_nd *nd)
{
	uint8_t *body = bytes + IPV6_BYTES;
	size_t len = nd_put_body(body, nd);
	struct vb_writer w = { bytes };
	uint32_t sum;

	vb_put_be(&w, 6u << 28, 4);
	vb_put_be(&w, len, 2);
	vb_put_be(&w, PROTO_ICMPV6, 1);
	vb_put_be(&w, ND_HOPS, 1);
	memcpy(w.at, nd->src.raw, 16);
	memcpy(w.at + 16, nd->dst.raw, 16);
	sum = ipoib_sum(ipoib_pseudo_sum(&nd->src, &nd->dst, len), body, len);
	vb_store_be(body + 2, ~sum & 0xffff, 2);
	return IPV6_BYTES + len;
}

/* Returns the link for which an option with a link-layer address has @bytes
 * bytes; LINKS_NONE: no link. */
#define LINKS_NONE VB_COUNT(links)
static unsigned link_of_option(size_t bytes)
{
	unsigned i = 0;

	while (i < LINKS_NONE && links[i].option_bytes != bytes)
		i++;
	return i;
}

/* Read the options. Each has its length in units of 8 bytes, and no option has
 * length 0 (RFC 4861, 4.6). */
static bool get_options(struct vb_reader *r, struct vb_nd *nd)
{
	uint8_t wanted = nd->advertise ? OPT_TARGET : OPT_SOURCE;

	while (vb_reader_left(r) > 0) {
		const uint8_t *head = vb_take(r, 2), *rest;
		unsigned link;

		if (!head || head[1] == 0)
			return false;
		rest = vb_take(r, head[1] * 8u - 2);
		if (!rest)
			return false;
		link = link_of_option(head[1] * 8u);
		if (head[0] != wanted || link == LINKS_NONE)
			continue;
		nd->has_hw = true;
		nd->link = (enum vb_link)link;
		get_hw(rest, nd->link, &nd->hw);
	}
	return true;
}

bool vb_nd_get(const struct vb_ip *ip, struct vb_nd *nd)
{
	struct vb_reader r = vb_reader(ip->body, ip->body_bytes);
	const uint8_t *body = vb_take(&r, ND_BODY);

	*nd = (struct vb_nd){ .advertise = ip->kind == IP_ADVERTISE,
			      .src = ip->src,
			      .dst = ip->dst };
	if (!body || body[1] != 0)
		return false;
	if (nd->advertise) {
		nd->router = body[4] & FLAG_ROUTER;
		nd->solicited = body[4] & FLAG_SOLICITED;
		nd->override = body[4] & FLAG_OVERRIDE;
	}
	memcpy(nd->target.raw, body + 8, 16);
	return !vb_gid_is_multicast(&nd->target) &&
	       !vb_gid_is_ipv4(&nd->target) && get_options(&r, nd);
}

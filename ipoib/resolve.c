/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes the messages that resolve addresses: ARP, and IPv6 neighbour
 * discovery. */
#include "ipoib/packet_priv.h"

#define ARP_HW_INFINIBAND 32
#define ARP_REQUEST	  1
#define ARP_REPLY	  2

#define ND_BODY	   24 /* type to target */
#define OPT_SOURCE 1
#define OPT_TARGET 2
/* the option with a link-layer address: type, length, 20 bytes, padding */
#define OPT_BYTES 24

#define FLAG_SOLICITED 0x40
#define FLAG_OVERRIDE  0x20

static const uint8_t all_zero[VB_IPOIB_HW];

static void put_ipv4(struct vb_writer *w, const struct vb_gid *ip)
{
	memcpy(w->at, ip->raw + 12, 4);
	w->at += 4;
}

/* A request does not know its target's link-layer address (RFC 4391, 9.1.2). */
void vb_arp_put(uint8_t bytes[VB_ARP_BYTES], const struct vb_arp *arp)
{
	struct vb_writer w = { bytes };

	vb_put_be(&w, ARP_HW_INFINIBAND, 2);
	vb_put_be(&w, IPOIB_IPV4, 2);
	vb_put_be(&w, VB_IPOIB_HW, 1);
	vb_put_be(&w, 4, 1);
	vb_put_be(&w, arp->reply ? ARP_REPLY : ARP_REQUEST, 2);
	ipoib_hw_put(&w, &arp->from_hw);
	put_ipv4(&w, &arp->from_ip);
	if (arp->reply) {
		ipoib_hw_put(&w, &arp->to_hw);
	} else {
		memcpy(w.at, all_zero, sizeof(all_zero));
		w.at += sizeof(all_zero);
	}
	put_ipv4(&w, &arp->to_ip);
}

bool vb_arp_get(const uint8_t *bytes, size_t len, struct vb_arp *arp)
{
	struct vb_reader r = vb_reader(bytes, len);
	unsigned op;

	if (len < VB_ARP_BYTES || vb_get_be16(&r) != ARP_HW_INFINIBAND ||
	    vb_get_be16(&r) != IPOIB_IPV4 || vb_get_u8(&r) != VB_IPOIB_HW ||
	    vb_get_u8(&r) != 4)
		return false;
	op = vb_get_be16(&r);
	if (op != ARP_REQUEST && op != ARP_REPLY)
		return false;
	arp->reply = op == ARP_REPLY;
	ipoib_hw_get(r.at, &arp->from_hw);
	arp->from_ip = vb_gid_from_ipv4(r.at + VB_IPOIB_HW);
	ipoib_hw_get(r.at + VB_IPOIB_HW + 4, &arp->to_hw);
	arp->to_ip = vb_gid_from_ipv4(r.at + 2 * VB_IPOIB_HW + 4);
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
	struct vb_writer w = { body };
	uint8_t flags = 0;

	if (nd->advertise)
		flags = (nd->solicited ? FLAG_SOLICITED : 0) |
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
	vb_put_be(&w, OPT_BYTES / 8, 1);
	ipoib_hw_put(&w, &nd->hw);
	vb_put_be(&w, 0, 2);
	return ND_BODY + OPT_BYTES;
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

/* Each option has its length in units of 8 bytes, which is never 0 (RFC 4861,
 * 4.6). */
static bool get_options(struct vb_reader *r, struct vb_nd *nd)
{
	uint8_t wanted = nd->advertise ? OPT_TARGET : OPT_SOURCE;

	while (vb_reader_left(r) > 0) {
		const uint8_t *head = vb_take(r, 2), *rest;

		if (!head || head[1] == 0)
			return false;
		rest = vb_take(r, head[1] * 8u - 2);
		if (!rest)
			return false;
		if (head[0] != wanted || head[1] != OPT_BYTES / 8)
			continue;
		nd->has_hw = true;
		ipoib_hw_get(rest, &nd->hw);
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
		nd->solicited = body[4] & FLAG_SOLICITED;
		nd->override = body[4] & FLAG_OVERRIDE;
	}
	memcpy(nd->target.raw, body + 8, 16);
	return !vb_gid_is_multicast(&nd->target) &&
	       !vb_gid_is_ipv4(&nd->target) && get_options(&r, nd);
}

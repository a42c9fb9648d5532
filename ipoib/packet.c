/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads IP packets as far as IPoIB must know them, and the header and
 * link-layer addresses of IPoIB. ARP and neighbour discovery are in resolve.c.
 */
#include "ipoib/packet.h"

#include "base/bytes.h"
#include "ipoib/packet_priv.h"

#define IPV4_BYTES	 20
#define PROTO_IGMP	 2
#define PROTO_HOP_BY_HOP 0
/* flags (transient) and scope (link-local) of an MGID, 4 bits each */
#define MGID_SCOPE     0x12
#define SIGNATURE_IPV4 0x401b
#define SIGNATURE_IPV6 0x601b
#define FULL_MEMBER    0x8000

void vb_ipoib_header_put(uint8_t bytes[VB_IPOIB_HEADER],
			 enum vb_ipoib_type type)
{
	vb_store_be(bytes, (uint32_t)type << 16, VB_IPOIB_HEADER);
}

unsigned vb_ipoib_header_get(const uint8_t *bytes, size_t len)
{
	return len < VB_IPOIB_HEADER ? 0 : (unsigned)vb_load_be(bytes, 2);
}

void ipoib_hw_put(struct vb_writer *w, const struct vb_ipoib_hw *hw)
{
	vb_put_be(w, hw->flags, 1);
	vb_put_be(w, hw->qpn & 0xffffff, 3);
	memcpy(w->at, hw->gid.raw, 16);
	w->at += 16;
}

void ipoib_hw_get(const uint8_t bytes[VB_IPOIB_HW], struct vb_ipoib_hw *hw)
{
	hw->flags = bytes[0];
	hw->qpn = (uint32_t)vb_load_be(bytes + 1, 3);
	memcpy(hw->gid.raw, bytes + 4, 16);
}

struct vb_ipoib_hw vb_hw_of_mac(const uint8_t mac[VB_MAC_BYTES])
{
	struct vb_ipoib_hw hw = { .qpn = (uint32_t)vb_load_be(mac + 3, 3) };

	memcpy(hw.gid.raw, mac, VB_MAC_BYTES);
	return hw;
}

/* The checksum of RFC 1071 is the sum of 16-bit words, with the carries added.
 */
uint32_t ipoib_sum(uint32_t sum, const uint8_t *bytes, size_t len)
{
	uint64_t total = sum;

	for (size_t i = 0; i + 1 < len; i += 2)
		total += vb_load_be(bytes + i, 2);
	if (len & 1)
		total += (uint32_t)bytes[len - 1] << 8;
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return (uint32_t)total;
}

/* The pseudo header has addresses, length and protocol (RFC 8200, 8.1). */
uint32_t ipoib_pseudo_sum(const struct vb_gid *src, const struct vb_gid *dst,
			  size_t len)
{
	uint8_t tail[8] = { [7] = PROTO_ICMPV6 };
	uint32_t sum = ipoib_sum(0, src->raw, 16);

	vb_store_be(tail, len, 4);
	sum = ipoib_sum(sum, dst->raw, 16);
	return ipoib_sum(sum, tail, sizeof(tail));
}

static bool get_ipv4(const uint8_t *p, size_t len, struct vb_ip *ip)
{
	size_t head, total;

	if (len < IPV4_BYTES)
		return false;
	head = (p[0] & 0x0fu) * 4;
	total = vb_load_be(p + 2, 2);
	if (head < IPV4_BYTES || total < head || total > len)
		return false;
	ip->type = IPOIB_IPV4;
	ip->src = vb_gid_from_ipv4(p + 12);
	ip->dst = vb_gid_from_ipv4(p + 16);
	/* a fragment does not contain the whole message, so it is not parsed */
	if (p[9] == PROTO_IGMP && !(vb_load_be(p + 6, 2) & 0x3fff)) {
		ip->kind = IP_REPORT;
		ip->body = p + head;
		ip->body_bytes = total - head;
	}
	return true;
}

static enum vb_ip_kind kind_of_icmpv6(uint8_t type)
{
	switch (type) {
	case ICMPV6_SOLICIT:
		return IP_SOLICIT;
	case ICMPV6_ADVERTISE:
		return IP_ADVERTISE;
	case ICMPV6_MLD_REPORT:
	case ICMPV6_MLD_DONE:
	case ICMPV6_MLD2_REPORT:
		return IP_REPORT;
	default:
		return IP_PLAIN;
	}
}

/* Neighbour discovery demands a hop limit that only a neighbour can have sent
 * (RFC 4861, 7.1); MLD demands 1 (RFC 3810, 5). */
static bool has_right_hops(enum vb_ip_kind kind, uint8_t hops)
{
	return hops == (kind == IP_REPORT ? 1 : ND_HOPS);
}

static void get_icmpv6(const uint8_t *body, size_t len, uint8_t hops,
		       struct vb_ip *ip)
{
	enum vb_ip_kind kind = len < 4 ? IP_PLAIN : kind_of_icmpv6(body[0]);

	if (kind == IP_PLAIN || !has_right_hops(kind, hops))
		return;
	if (ipoib_sum(ipoib_pseudo_sum(&ip->src, &ip->dst, len), body, len) !=
	    0xffff)
		return;
	ip->kind = kind;
	ip->body = body;
	ip->body_bytes = len;
}

static bool packet_get_ipv6(const uint8_t *p, size_t len, struct vb_ip *ip)
{
	struct vb_reader r;
	const uint8_t *option;
	uint8_t next;

	if (len < IPV6_BYTES || vb_load_be(p + 4, 2) > len - IPV6_BYTES)
		return false;
	ip->type = IPOIB_IPV6;
	memcpy(ip->src.raw, p + 8, 16);
	memcpy(ip->dst.raw, p + 24, 16);
	/* The project writes IPv4 addresses as such mapped ones. No host may
	 * send them in IPv6 packets (RFC 4291, 2.5.5.2), so a packet with one
	 * is refused. */
	if (vb_gid_is_ipv4(&ip->src) || vb_gid_is_ipv4(&ip->dst))
		return false;
	r = vb_reader(p + IPV6_BYTES, vb_load_be(p + 4, 2));
	next = p[6];
	/* MLD messages have a Hop-by-Hop header with the Router Alert option
	 * before them (RFC 3810, 5). */
	if (next == PROTO_HOP_BY_HOP) {
		option = vb_take(&r, 8);
		if (!option || !vb_take(&r, option[1] * 8u))
			return true;
		next = option[0];
	}
	if (next == PROTO_ICMPV6)
		get_icmpv6(r.at, vb_reader_left(&r), p[7], ip);
	return true;
}

bool vb_ip_get(const uint8_t *packet, size_t len, struct vb_ip *ip)
{
	*ip = (struct vb_ip){ .kind = IP_PLAIN };
	switch (len ? packet[0] >> 4 : 0) {
	case 4:
		return get_ipv4(packet, len, ip);
	case 6:
		return packet_get_ipv6(packet, len, ip);
	default:
		return false;
	}
}

struct vb_gid vb_ip_broadcast(void)
{
	static const uint8_t all[4] = { 0xff, 0xff, 0xff, 0xff };

	return vb_gid_from_ipv4(all);
}

/* The GID of an IPv4 group contains the low 28 bits of the group's address;
 * that of the broadcast group all 32 bits of 255.255.255.255. The GID of an
 * IPv6 group contains the low 80 bits of the group's address. */
struct vb_gid vb_ip_mgid(const struct vb_gid *ip, uint16_t pkey)
{
	struct vb_gid mgid = { { 0xff, MGID_SCOPE } };
	struct vb_gid all = vb_ip_broadcast();

	vb_store_be(mgid.raw + 4, pkey | FULL_MEMBER, 2);
	if (!vb_gid_is_ipv4(ip)) {
		vb_store_be(mgid.raw + 2, SIGNATURE_IPV6, 2);
		memcpy(mgid.raw + 6, ip->raw + 6, 10);
		return mgid;
	}
	vb_store_be(mgid.raw + 2, SIGNATURE_IPV4, 2);
	memcpy(mgid.raw + 12, ip->raw + 12, 4);
	if (!vb_gid_equal(ip, &all))
		mgid.raw[12] &= 0x0f;
	return mgid;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the ICMP message about a packet that is too long for its next link. */
#include "ipoib/packet_priv.h"

#define IPV4_BYTES   20
#define ICMP_HEAD    8
#define PROTO_ICMP   1
#define HOPS	     64
#define UNREACHABLE  3 /* ICMP's type, with the code of the next line */
#define NEEDS_PIECES 4
#define TOO_BIG	     2 /* ICMPv6's type */
/* the longest messages (RFC 1812, 4.3.2.3; RFC 4443, 3.2) */
#define IPV4_MOST 576
#define IPV6_MOST 1280

/* ICMP's types above 3 that are no errors (RFC 1122, 3.2.2) */
static bool is_icmp_error(uint8_t type)
{
	return type == UNREACHABLE || type == 4 || type == 5 || type == 11 ||
	       type == 12;
}

/* No error is sent about an error, about a fragment but the first, or about a
 * packet to a group or from nobody (RFC 1122, 3.2.2). */
static bool has_answer_ipv4(const uint8_t *p, size_t len)
{
	size_t head = (p[0] & 0x0fu) * 4;

	return p[16] < 224 && p[12] != 0 && p[12] < 224 &&
	       !(vb_load_be(p + 6, 2) & 0x1fff) &&
	       !(p[9] == PROTO_ICMP && len > head && is_icmp_error(p[head]));
}

/* Only a message without extension headers is recognized as an error, which are
 * the types below 128 (RFC 4443, 2.4). */
static bool has_answer_ipv6(const uint8_t *p, size_t len)
{
	return p[24] != 0xff && p[8] != 0xff &&
	       !(p[6] == PROTO_ICMPV6 && len > IPV6_BYTES &&
		 p[IPV6_BYTES] < 128);
}

static size_t too_long_ipv4(uint8_t *bytes, const uint8_t *packet, size_t len,
			    unsigned mtu)
{
	size_t quoted = VB_MIN(len, (size_t)IPV4_MOST - IPV4_BYTES - ICMP_HEAD);
	size_t total = IPV4_BYTES + ICMP_HEAD + quoted;
	struct vb_writer w = { bytes };
	uint8_t *icmp = bytes + IPV4_BYTES;

	memset(bytes, 0, IPV4_BYTES + ICMP_HEAD);
	vb_put_be(&w, 0x4500, 2);
	vb_put_be(&w, total, 2);
	vb_put_be(&w, 0, 4);
	vb_put_be(&w, HOPS, 1);
	vb_put_be(&w, PROTO_ICMP, 1);
	memcpy(bytes + 12, packet + 16, 4);
	memcpy(bytes + 16, packet + 12, 4);
	vb_store_be(bytes + 10, ~ipoib_sum(0, bytes, IPV4_BYTES) & 0xffff, 2);
	icmp[0] = UNREACHABLE;
	icmp[1] = NEEDS_PIECES;
	vb_store_be(icmp + 6, mtu, 2);
	memcpy(icmp + ICMP_HEAD, packet, quoted);
	vb_store_be(icmp + 2, ~ipoib_sum(0, icmp, ICMP_HEAD + quoted) & 0xffff,
		    2);
	return total;
}

static size_t too_long_ipv6(uint8_t *bytes, const uint8_t *packet, size_t len,
			    unsigned mtu)
{
	size_t quoted = VB_MIN(len, (size_t)IPV6_MOST - IPV6_BYTES - ICMP_HEAD);
	struct vb_writer w = { bytes };
	uint8_t *icmp = bytes + IPV6_BYTES;
	struct vb_gid src, dst;
	uint32_t sum;

	memcpy(dst.raw, packet + 8, 16);
	memcpy(src.raw, packet + 24, 16);
	vb_put_be(&w, 6u << 28, 4);
	vb_put_be(&w, ICMP_HEAD + quoted, 2);
	vb_put_be(&w, PROTO_ICMPV6, 1);
	vb_put_be(&w, HOPS, 1);
	memcpy(bytes + 8, src.raw, 16);
	memcpy(bytes + 24, dst.raw, 16);
	memset(icmp, 0, ICMP_HEAD);
	icmp[0] = TOO_BIG;
	vb_store_be(icmp + 4, mtu, 4);
	memcpy(icmp + ICMP_HEAD, packet, quoted);
	sum = ipoib_sum(ipoib_pseudo_sum(&src, &dst, ICMP_HEAD + quoted), icmp,
			ICMP_HEAD + quoted);
	vb_store_be(icmp + 2, ~sum & 0xffff, 2);
	return IPV6_BYTES + ICMP_HEAD + quoted;
}

size_t vb_ip_too_long(uint8_t bytes[VB_TOO_LONG_BYTES], const uint8_t *packet,
		      size_t len, unsigned mtu)
{
	struct vb_ip ip;

	if (!vb_ip_get(packet, len, &ip))
		return 0;
	if (ip.type == IPOIB_IPV4 && has_answer_ipv4(packet, len))
		return too_long_ipv4(bytes, packet, len, mtu);
	if (ip.type == IPOIB_IPV6 && has_answer_ipv6(packet, len))
		return too_long_ipv6(bytes, packet, len, mtu);
	return 0;
}

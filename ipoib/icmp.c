/* SPDX-License-Identifier: BSD-2-Clause */
/* Cuts IPv4 packets into fragments, and writes ICMP and ICMPv6 messages. */
#include "ipoib/icmp.h"

#include "base/bytes.h"
#include "ipoib/packet_priv.h"

#define IPV4_BYTES  20
#define IPV4_MOST   60 /* the longest IPv4 header, with all options */
#define PROTO_ICMP  1
#define DONT_CUT    0x4000
#define MORE	    0x2000
#define OFFSET_MASK 0x1fff
#define HOPS	    64
#define CLASS_D	    224 /* first byte of the lowest multicast address of IPv4 */
/* bytes of a packet behind its header that an error quotes (RFC 792) */
#define QUOTED 8
/* the most bytes of an error about IPv4 (RFC 1812, 4.3.2.3) */
#define ICMP4_MOST 576

enum {
	ICMP_ECHO_REPLY = 0,
	ICMP_UNREACHABLE = 3,
	ICMP_ECHO = 8,
	UNREACHABLE_TOO_BIG = 4,
	ICMPV6_TOO_BIG = 2,
	ICMPV6_ECHO = 128,
	ICMPV6_ECHO_REPLY = 129,
	ICMPV6_FIRST_INFORMATION = 128,
};

static bool is_v4(const uint8_t *packet)
{
	return packet[0] >> 4 == 4;
}

size_t vb_ip_bytes(const uint8_t *packet)
{
	return is_v4(packet) ? vb_load_be(packet + 2, 2)
			     : IPV6_BYTES + vb_load_be(packet + 4, 2);
}

static size_t head_bytes(const uint8_t *packet)
{
	return (packet[0] & 0x0fu) * 4;
}

static uint16_t invert(uint32_t sum)
{
	return (uint16_t)(~sum & 0xffff);
}

void vb_ip_seal(uint8_t *head)
{
	vb_store_be(head + 10, 0, 2);
	vb_store_be(head + 10, invert(ipoib_sum(0, head, head_bytes(head))), 2);
}

/* --- fragments --- */

bool vb_ip_may_be_cut(const uint8_t *packet)
{
	return is_v4(packet) && !(vb_load_be(packet + 6, 2) & DONT_CUT);
}

/* Change the first fragment's header into that of the later fragments, which
 * have only the options whose highest bit is set (RFC 791, 3.1). The other
 * options become no-operations, so that the header keeps its length. */
static void keep_copied_options(uint8_t *head)
{
	size_t end = head_bytes(head), at = IPV4_BYTES;

	while (at < end && head[at] != 0) {
		size_t bytes = head[at] == 1 ? 1 : 2;

		if (head[at] != 1 && at + 1 < end)
			bytes = VB_MAX(head[at + 1], bytes);
		bytes = VB_MIN(bytes, end - at);
		if (!(head[at] & 0x80))
			memset(head + at, 1, bytes);
		at += bytes;
	}
}

/* Each fragment is made in place: its header is written directly before its
 * piece of the payload, over bytes that were handed out already. */
void vb_ip_cut(uint8_t *packet, size_t len, unsigned mtu,
	       void (*each)(void *arg, const uint8_t *fragment, size_t len),
	       void *arg)
{
	size_t head = head_bytes(packet), room = (mtu - head) & ~(size_t)7;
	unsigned field = (unsigned)vb_load_be(packet + 6, 2);
	uint8_t copy[IPV4_MOST];

	memcpy(copy, packet, head);
	for (size_t at = 0; at < len - head; at += room) {
		size_t piece = VB_MIN(room, len - head - at);
		bool more = at + piece < len - head || field & MORE;
		uint8_t *fragment = packet + at;

		memcpy(fragment, copy, head);
		vb_store_be(fragment + 2, head + piece, 2);
		vb_store_be(fragment + 6,
			    ((field & OFFSET_MASK) + at / 8) |
				    (more ? MORE : 0),
			    2);
		vb_ip_seal(fragment);
		each(arg, fragment, head + piece);
		if (at == 0)
			keep_copied_options(copy);
	}
}

/* --- messages --- */

/* Is the IPv4 packet one about which no ICMP error is sent (RFC 1122, 3.2.2)?
 * Of ICMP messages, errors are sent about echoes only. */
static bool is_silent_v4(const uint8_t *p, size_t len)
{
	size_t head = head_bytes(p);

	if (vb_load_be(p + 6, 2) & OFFSET_MASK || p[16] >= CLASS_D ||
	    p[12] == 0 || p[12] >= CLASS_D)
		return true;
	return p[9] == PROTO_ICMP &&
	       (len <= head || (p[head] != ICMP_ECHO && p[head] != 0));
}

static size_t too_big_v4(uint8_t *m, const struct vb_gid *from,
			 const uint8_t *packet, size_t len, unsigned mtu)
{
	size_t quoted = VB_MIN(len, (size_t)ICMP4_MOST - IPV4_BYTES - QUOTED);
	uint8_t *body = m + IPV4_BYTES;

	if (is_silent_v4(packet, len))
		return 0;
	memset(m, 0, IPV4_BYTES + QUOTED);
	m[0] = 0x45;
	vb_store_be(m + 2, IPV4_BYTES + QUOTED + quoted, 2);
	m[8] = HOPS;
	m[9] = PROTO_ICMP;
	memcpy(m + 12, from->raw + 12, 4);
	memcpy(m + 16, packet + 12, 4);
	vb_ip_seal(m);
	body[0] = ICMP_UNREACHABLE;
	body[1] = UNREACHABLE_TOO_BIG;
	vb_store_be(body + 6, mtu, 2);
	memcpy(body + QUOTED, packet, quoted);
	vb_store_be(body + 2, invert(ipoib_sum(0, body, QUOTED + quoted)), 2);
	return IPV4_BYTES + QUOTED + quoted;
}

/* Is the IPv6 packet one about which no ICMP error is sent (RFC 4443, 2.4)? Of
 * packets with extension headers this function does not see whether they are
 * ICMP errors. */
static bool is_silent_v6(const uint8_t *p, size_t len)
{
	return p[8] == 0xff || p[24] == 0xff ||
	       (p[6] == PROTO_ICMPV6 &&
		(len <= IPV6_BYTES ||
		 p[IPV6_BYTES] < ICMPV6_FIRST_INFORMATION));
}

static size_t too_big_v6(uint8_t *m, const struct vb_gid *from,
			 const uint8_t *packet, size_t len, unsigned mtu)
{
	size_t quoted = VB_MIN(len, (size_t)VB_ICMP_MOST - IPV6_BYTES - QUOTED);
	uint8_t *body = m + IPV6_BYTES;
	struct vb_gid to;
	uint32_t sum;

	if (is_silent_v6(packet, len))
		return 0;
	memset(m, 0, IPV6_BYTES + QUOTED);
	m[0] = 0x60;
	vb_store_be(m + 4, QUOTED + quoted, 2);
	m[6] = PROTO_ICMPV6;
	m[7] = HOPS;
	memcpy(m + 8, from->raw, 16);
	memcpy(m + 24, packet + 8, 16);
	memcpy(to.raw, packet + 8, 16);
	body[0] = ICMPV6_TOO_BIG;
	vb_store_be(body + 4, mtu, 4);
	memcpy(body + QUOTED, packet, quoted);
	sum = ipoib_sum(ipoib_pseudo_sum(from, &to, QUOTED + quoted), body,
			QUOTED + quoted);
	vb_store_be(body + 2, invert(sum), 2);
	return IPV6_BYTES + QUOTED + quoted;
}

size_t vb_icmp_too_big(uint8_t message[VB_ICMP_MOST], const struct vb_gid *from,
		       const uint8_t *packet, size_t len, unsigned mtu)
{
	return is_v4(packet) ? too_big_v4(message, from, packet, len, mtu)
			     : too_big_v6(message, from, packet, len, mtu);
}

/* --- echo --- */

static void swap(uint8_t *a, uint8_t *b, size_t bytes)
{
	uint8_t keep[16];

	memcpy(keep, a, bytes);
	memcpy(a, b, bytes);
	memcpy(b, keep, bytes);
}

static bool echo_v4(uint8_t *p, size_t len)
{
	size_t head = head_bytes(p);
	uint8_t *body = p + head;

	if (p[9] != PROTO_ICMP || len < head + 8 || body[0] != ICMP_ECHO ||
	    vb_load_be(p + 6, 2) & (MORE | OFFSET_MASK) ||
	    ipoib_sum(0, body, len - head) != 0xffff)
		return false;
	swap(p + 12, p + 16, 4);
	p[8] = HOPS;
	vb_ip_seal(p);
	body[0] = ICMP_ECHO_REPLY;
	vb_store_be(body + 2, 0, 2);
	vb_store_be(body + 2, invert(ipoib_sum(0, body, len - head)), 2);
	return true;
}

static bool echo_v6(uint8_t *p, size_t len)
{
	uint8_t *body = p + IPV6_BYTES;
	size_t bytes = len - IPV6_BYTES;
	struct vb_gid src, dst;
	uint32_t pseudo;

	memcpy(src.raw, p + 8, 16);
	memcpy(dst.raw, p + 24, 16);
	pseudo = ipoib_pseudo_sum(&src, &dst, bytes);
	if (p[6] != PROTO_ICMPV6 || bytes < 8 || body[0] != ICMPV6_ECHO ||
	    ipoib_sum(pseudo, body, bytes) != 0xffff)
		return false;
	swap(p + 8, p + 24, 16);
	p[7] = HOPS;
	body[0] = ICMPV6_ECHO_REPLY;
	vb_store_be(body + 2, 0, 2);
	vb_store_be(body + 2, invert(ipoib_sum(pseudo, body, bytes)), 2);
	return true;
}

bool vb_icmp_echo(uint8_t *packet, size_t len)
{
	return is_v4(packet) ? echo_v4(packet, len) : echo_v6(packet, len);
}

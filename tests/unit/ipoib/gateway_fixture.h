/* SPDX-License-Identifier: BSD-2-Clause */
/* A gateway between two links whose hosts a test plays, in virtual time. The
 * file that includes this is the test program. */
#ifndef TESTS_UNIT_IPOIB_GATEWAY_FIXTURE_H
#define TESTS_UNIT_IPOIB_GATEWAY_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>

#include "base/bytes.h"
#include "ipoib/gateway.h"
#include "ipoib/icmp.h"

#define GW_QPN 0x100
#define SENT   256

/* A frame that has left the gateway: by Ethernet to @mac, or by IPoIB to the
 * neighbour @hw or the group @group. */
struct sent {
	enum vb_gw_side side;
	bool group;
	uint8_t mac[6];
	struct vb_ipoib_hw hw;
	struct vb_gid to;
	unsigned type;
	uint8_t packet[VB_GW_PACKET];
	size_t len;
};

static struct bed {
	struct vb_nbrs *ib;
	struct vb_gw *g;
	vb_time now;
	struct sent list[SENT];
	unsigned sent;
	uint32_t paths[VB_NBR_TABLE];
	unsigned path_count;
	/* requests that the table of the IPoIB side has sent */
	unsigned ib_asked;
	struct vb_gid last_asked, entered;
	unsigned entered_count, left_count;
} b;

static const uint8_t gw_mac[6] = { 2, 0, 0, 0, 3, 1 };

static inline struct vb_gid address(const char *text)
{
	struct vb_gid ip;
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1)
		return vb_gid_from_ipv4(v4);
	assert_int_equal(inet_pton(AF_INET6, text, ip.raw), 1);
	return ip;
}

/* Address of host number @n: 10.9.0.N, or fd09::N with v6(). */
static inline struct vb_gid v4(unsigned n)
{
	uint8_t bytes[4] = { 10, 9, 0, (uint8_t)n };

	return vb_gid_from_ipv4(bytes);
}

static inline struct vb_gid v6(unsigned n)
{
	struct vb_gid ip = address("fd09::1");

	ip.raw[15] = (uint8_t)n;
	return ip;
}

static struct vb_ipoib_hw ib_hw(unsigned n)
{
	return (struct vb_ipoib_hw){
		.qpn = 0x1000 + n, .gid = { { 0xfe, 0x80, [15] = (uint8_t)n } }
	};
}

static struct vb_ipoib_hw eth_hw(unsigned n)
{
	const uint8_t mac[6] = { 2, 0, 0, 0xee, 0, (uint8_t)n };

	return vb_hw_of_mac(mac);
}

/* --- what leaves the gateway --- */

static struct sent *keep(enum vb_gw_side side, const uint8_t *frame, size_t len,
			 size_t head)
{
	struct sent *s = &b.list[b.sent % SENT];

	b.sent++;
	memset(s, 0, sizeof(*s) - sizeof(s->packet) - sizeof(s->len));
	assert_in_range(len, head, sizeof(s->packet) + head);
	s->side = side;
	s->type = (unsigned)vb_load_be(frame + (side == GW_IB ? 0 : 12), 2);
	s->len = len - head;
	memcpy(s->packet, frame + head, s->len);
	return s;
}

static inline void on_eth(void *arg, const uint8_t to[6], const uint8_t *frame,
			  size_t len)
{
	struct sent *s = keep(GW_ETH, frame, len, VB_GW_ETH_HEADER);

	assert_memory_equal(frame + 6, gw_mac, 6);
	memcpy(s->mac, to, 6);
	s->group = to[0] & 1;
}

static inline void on_ib_group(void *arg, const struct vb_gid *group,
			       const uint8_t *frame, size_t len)
{
	struct sent *s = keep(GW_IB, frame, len, VB_IPOIB_HEADER);

	s->group = true;
	s->to = *group;
}

static inline void on_enter(void *arg, const struct vb_gid *group)
{
	b.entered = *group;
	b.entered_count++;
}

static inline void on_leave(void *arg, const struct vb_gid *group)
{
	b.left_count++;
}

static inline void ib_ask(void *arg, const struct vb_gid *ip)
{
	b.last_asked = *ip;
	b.ib_asked++;
}

static inline void ib_find_path(void *arg, const struct vb_nbr *n)
{
	assert_in_range(b.path_count, 0, VB_NBR_TABLE - 1);
	b.paths[b.path_count++] = n->query;
}

static inline bool ib_prepare(void *arg, struct vb_nbr *n)
{
	n->handle = &b;
	return true;
}

static inline void ib_release(void *arg, struct vb_nbr *n)
{
}

static inline void ib_send(void *arg, const struct vb_nbr *n, const void *frame,
			   size_t len)
{
	struct sent *s = keep(GW_IB, frame, len, VB_IPOIB_HEADER);

	s->hw = n->hw;
	s->to = n->ip;
}

static inline void ib_told(void *arg, const struct vb_gid *ip,
			   const struct vb_ipoib_hw *hw)
{
	vb_gw_told(b.g, ip, hw);
}

static inline int make_bed(void **state)
{
	static const struct vb_nbr_ops nbr_ops = { ib_ask,     ib_find_path,
						   ib_prepare, ib_release,
						   ib_send,    ib_told };
	static const struct vb_gw_ops ops = { on_eth, on_ib_group, on_enter,
					      on_leave };
	struct vb_gw_config c = { .eth_mtu = 1500, .seed = 7 };
	const struct vb_ipoib_hw own = {
		.qpn = GW_QPN, .gid = { { 0xfe, 0x80, [15] = 0xfe } }
	};

	memset(&b, 0, sizeof(b));
	b.now = 1000 * VB_SEC;
	memcpy(c.mac, gw_mac, 6);
	c.nets.count = 3;
	c.nets.list[0] = (struct vb_ip_net){ v4(254), 96 + 24 };
	c.nets.list[1] = (struct vb_ip_net){ address("fe80::fe"), 64 };
	c.nets.list[2] = (struct vb_ip_net){ v6(254), 64 };
	c.router[0] = v4(1);
	b.ib = vb_nbrs_create(&nbr_ops, NULL, 0x1234);
	b.g = vb_gw_create(&ops, NULL, &c, b.ib);
	vb_gw_begin(b.g, &own, 2044, b.now);
	b.sent = 0;
	return 0;
}

static inline int end_bed(void **state)
{
	vb_gw_destroy(b.g);
	vb_nbrs_destroy(b.ib);
	return 0;
}

/* --- what comes to the gateway --- */

static inline void give_ib_paths(void)
{
	static const struct vb_ipoib_path path = { .dlid = 5 };

	while (b.path_count)
		vb_nbrs_path(b.ib, b.paths[--b.path_count], &path, b.now);
}

static inline void pass_time(vb_time t)
{
	b.now += t;
	vb_nbrs_tick(b.ib, b.now);
	vb_gw_tick(b.g, b.now);
	give_ib_paths();
}

static inline void come(enum vb_gw_side side, unsigned type, const uint8_t *to,
			const struct vb_ipoib_hw *from, const uint8_t *packet,
			size_t len)
{
	static uint8_t frame[VB_GW_FRAME + 1];

	if (side == GW_IB) {
		vb_gw_from_ib(b.g, type, packet, len, from->qpn, b.now);
	} else {
		memcpy(frame, to, 6);
		memcpy(frame + 6, from->gid.raw, 6);
		vb_store_be(frame + 12, type, 2);
		memcpy(frame + 14, packet, len);
		vb_gw_from_eth(b.g, frame, len + 14, b.now);
	}
	give_ib_paths();
}

static const uint8_t all_mac[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

static struct vb_ipoib_hw hw_on(enum vb_gw_side side, unsigned n)
{
	return side == GW_IB ? ib_hw(n) : eth_hw(n);
}

static inline void arp(enum vb_gw_side side, bool reply, unsigned host,
		       struct vb_gid from, struct vb_gid to)
{
	const struct vb_ipoib_hw hw = hw_on(side, host);
	struct vb_arp a = { .link = side == GW_IB ? LINK_INFINIBAND
						  : LINK_ETHERNET,
			    .reply = reply,
			    .from_hw = hw,
			    .from_ip = from,
			    .to_ip = to };
	uint8_t bytes[VB_ARP_BYTES];
	size_t len = vb_arp_put(bytes, &a);

	come(side, IPOIB_ARP, reply ? gw_mac : all_mac, &hw, bytes, len);
}

static inline void nd(enum vb_gw_side side, unsigned host, struct vb_nd n)
{
	const struct vb_ipoib_hw hw = hw_on(side, host);
	uint8_t bytes[VB_ND_BYTES];
	size_t len;

	n.link = side == GW_IB ? LINK_INFINIBAND : LINK_ETHERNET;
	n.hw = hw;
	len = vb_nd_put(bytes, &n);
	come(side, IPOIB_IPV6, n.solicited ? gw_mac : all_mac, &hw, bytes, len);
}

/* An IPv4 packet of @len bytes from host @from to host @to; UDP says it is. */
static inline size_t put_v4(uint8_t *p, struct vb_gid from, struct vb_gid to,
			    size_t len, unsigned flags)
{
	memset(p, 0, 20);
	for (size_t i = 20; i < len; i++)
		p[i] = (uint8_t)(i * 3);
	p[0] = 0x45;
	vb_store_be(p + 2, len, 2);
	vb_store_be(p + 6, flags, 2);
	p[8] = 7;
	p[9] = 17;
	memcpy(p + 12, from.raw + 12, 4);
	memcpy(p + 16, to.raw + 12, 4);
	return len;
}

static inline void packet(enum vb_gw_side side, unsigned from, struct vb_gid to,
			  size_t len, unsigned flags)
{
	static uint8_t p[VB_GW_PACKET + 1];
	const struct vb_ipoib_hw hw = hw_on(side, from);

	put_v4(p, v4(from), to, len, flags);
	come(side, IPOIB_IPV4, gw_mac, &hw, p, len);
}

/* --- checks of what has left --- */

static inline struct sent *last(void)
{
	assert_int_not_equal(b.sent, 0);
	return &b.list[(b.sent - 1) % SENT];
}

/* Returns the ARP message in the last frame, which must be the gateway's own,
 * on @side. */
static inline struct vb_arp last_arp(enum vb_gw_side side)
{
	struct vb_arp a;

	assert_int_equal(last()->side, side);
	assert_int_equal(last()->type, IPOIB_ARP);
	assert_true(vb_arp_get(last()->packet, last()->len, &a));
	assert_int_equal(a.link,
			 side == GW_IB ? LINK_INFINIBAND : LINK_ETHERNET);
	if (side == GW_IB)
		assert_int_equal(a.from_hw.qpn, GW_QPN);
	else
		assert_memory_equal(a.from_hw.gid.raw, gw_mac, 6);
	return a;
}

static inline void assert_ip(const struct vb_gid *got, struct vb_gid wanted)
{
	assert_memory_equal(got->raw, wanted.raw, 16);
}

/* Make host @ib of IPoIB and host @eth of Ethernet known to each other. */
static inline void acquaint(unsigned ib, unsigned eth)
{
	arp(GW_IB, false, ib, v4(ib), v4(eth));
	arp(GW_ETH, true, eth, v4(eth), v4(254));
	arp(GW_ETH, false, eth, v4(eth), v4(ib));
	b.sent = 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_bed, end_bed)

#endif

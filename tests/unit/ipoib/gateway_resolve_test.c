/* SPDX-License-Identifier: BSD-2-Clause */
/* How a gateway answers for addresses of the other side. */
#include "ipoib/packet_priv.h"
#include "tests/unit/ipoib/gateway_fixture.h"

/* --- ARP --- */

static void question__is_asked_on_the_other_side_and_answered(void **state)
{
	struct vb_arp a;

	arp(GW_IB, false, 3, v4(3), v4(7));
	assert_int_equal(b.sent, 1);
	a = last_arp(GW_ETH);
	assert_true(last()->group);
	assert_false(a.reply);
	assert_ip(&a.from_ip, v4(254));
	assert_ip(&a.to_ip, v4(7));
	arp(GW_ETH, true, 7, v4(7), v4(254));
	assert_int_equal(b.sent, 2);
	a = last_arp(GW_IB);
	assert_true(a.reply);
	assert_ip(&a.from_ip, v4(7));
	assert_ip(&a.to_ip, v4(3));
	assert_int_equal(last()->hw.qpn, ib_hw(3).qpn);
	assert_int_equal(vb_gw_counters(b.g)->proxied, 1);
	/* the gateway answers the next request at once */
	arp(GW_IB, false, 4, v4(4), v4(7));
	assert_int_equal(b.sent, 3);
	a = last_arp(GW_IB);
	assert_ip(&a.to_ip, v4(4));
}

static void question__of_the_ethernet_is_answered(void **state)
{
	struct vb_arp a;

	arp(GW_ETH, false, 7, v4(7), v4(3));
	assert_int_equal(b.sent, 0);
	assert_int_equal(b.ib_asked, 1);
	assert_ip(&b.last_asked, v4(3));
	arp(GW_IB, true, 3, v4(3), v4(254));
	assert_int_equal(b.sent, 1);
	a = last_arp(GW_ETH);
	assert_true(a.reply);
	assert_ip(&a.from_ip, v4(3));
	assert_memory_equal(last()->mac, eth_hw(7).gid.raw, 6);
}

static void question__that_nobody_answers_is_not_answered(void **state)
{
	pass_time(0); /* let the gateway send its membership queries now */
	b.sent = 0;
	arp(GW_IB, false, 3, v4(3), v4(7));
	for (unsigned i = 0; i < 5; i++)
		pass_time(VB_SEC);
	/* the gateway asked three times, and then gave up */
	assert_int_equal(b.sent, 3);
	assert_null(vb_nbrs_find(vb_gw_neighbours(b.g), &b.last_asked));
	assert_int_equal(vb_gw_counters(b.g)->proxied, 0);
	/* the host answers too late: the gateway has forgotten the question */
	arp(GW_ETH, true, 7, v4(7), v4(254));
	assert_int_equal(b.sent, 3);
}

static void question__for_a_host_of_the_same_side_is_left_to_it(void **state)
{
	acquaint(3, 7);
	arp(GW_IB, false, 4, v4(4), v4(3));
	assert_int_equal(b.sent, 0);
	assert_int_equal(b.ib_asked, 0);
}

static void question__for_the_gateway_is_answered_on_both_sides(void **state)
{
	struct vb_arp a;

	arp(GW_IB, false, 3, v4(3), v4(254));
	a = last_arp(GW_IB);
	assert_true(a.reply);
	assert_ip(&a.from_ip, v4(254));
	arp(GW_ETH, false, 7, v4(7), v4(254));
	a = last_arp(GW_ETH);
	assert_true(a.reply);
	assert_int_equal(b.sent, 2);
}

/* RFC 5227: a host that looks whether its address is free has none. */
static void probe__finds_a_host_of_the_other_side(void **state)
{
	static const uint8_t zero[4] = { 0 };
	struct vb_gid nobody = vb_gid_from_ipv4(zero);
	struct vb_arp a;

	acquaint(3, 7);
	arp(GW_ETH, false, 9, nobody, v4(3));
	a = last_arp(GW_ETH);
	assert_true(a.reply);
	assert_true(last()->group);
	assert_ip(&a.from_ip, v4(3));
	b.sent = 0;
	arp(GW_ETH, false, 9, nobody, v4(77));
	assert_int_equal(b.sent, 0);
	assert_ip(&b.last_asked, v4(77));
}

static void question__about_other_networks_or_from_them_is_ignored(void **state)
{
	arp(GW_IB, false, 3, v4(3), address("10.8.0.7"));
	arp(GW_IB, false, 3, address("10.8.0.7"), v4(7));
	arp(GW_IB, false, 3, v4(3), v4(255));
	arp(GW_IB, false, 3, v4(3), address("224.0.0.5"));
	arp(GW_IB, false, 3, v4(255), v4(7));
	arp(GW_ETH, false, 7, address("127.0.0.1"), v4(3));
	/* the gateway's own address as the source */
	arp(GW_ETH, false, 7, v4(254), v4(3));
	assert_int_equal(b.sent, 0);
	assert_int_equal(b.ib_asked, 0);
	assert_int_equal(vb_nbrs_count(b.ib), 0);
	assert_int_equal(vb_nbrs_count(vb_gw_neighbours(b.g)), 0);
}

static void
announcement__moves_an_address_and_tells_the_other_side(void **state)
{
	struct vb_gid seven = v4(7);
	struct vb_arp a;

	acquaint(3, 7);
	/* the address 10.9.0.7 moves from the Ethernet to the IPoIB side */
	arp(GW_IB, false, 8, v4(7), v4(7));
	a = last_arp(GW_ETH);
	assert_ip(&a.from_ip, v4(7));
	assert_ip(&a.to_ip, v4(7));
	assert_true(last()->group);
	assert_null(vb_nbrs_find(vb_gw_neighbours(b.g), &seven));
	b.sent = 0;
	/* now the gateway answers for this address on the Ethernet */
	arp(GW_ETH, false, 9, v4(9), v4(7));
	arp(GW_IB, true, 8, v4(7), v4(254));
	a = last_arp(GW_ETH);
	assert_ip(&a.from_ip, v4(7));
	assert_ip(&a.to_ip, v4(9));
}

/* If a host was not confirmed for a while, the gateway asks it anew before it
 * answers for it. */
static void question__about_a_silent_host_is_asked_anew(void **state)
{
	acquaint(3, 7);
	pass_time(VB_NBR_FRESH + VB_SEC);
	b.sent = 0;
	arp(GW_IB, false, 4, v4(4), v4(7));
	assert_int_equal(b.sent, 1);
	assert_false(last_arp(GW_ETH).reply);
	arp(GW_ETH, true, 7, v4(7), v4(254));
	assert_true(last_arp(GW_IB).reply);
}

/* --- IPv6 --- */

static void solicitation__is_answered_for_the_other_side(void **state)
{
	struct vb_gid seven = v6(7);
	struct vb_nd n;
	struct vb_ip ip;

	nd(GW_IB, 3,
	   (struct vb_nd){ .src = v6(3),
			   .dst = vb_ip_solicited_node(&seven),
			   .target = seven,
			   .has_hw = true });
	assert_int_equal(b.sent, 1);
	assert_int_equal(last()->side, GW_ETH);
	assert_true(vb_ip_get(last()->packet, last()->len, &ip));
	assert_int_equal(ip.kind, IP_SOLICIT);
	assert_true(vb_nd_get(&ip, &n));
	assert_ip(&n.src, v6(254));
	assert_ip(&n.target, seven);
	assert_true(n.has_hw);
	assert_int_equal(n.link, LINK_ETHERNET);
	assert_memory_equal(n.hw.gid.raw, gw_mac, 6);
	assert_memory_equal(last()->mac, "\x33\x33\xff\x00\x00\x07", 6);
	nd(GW_ETH, 7,
	   (struct vb_nd){ .advertise = true,
			   .solicited = true,
			   .override = true,
			   .src = seven,
			   .dst = v6(254),
			   .target = seven,
			   .has_hw = true });
	assert_int_equal(b.sent, 2);
	assert_int_equal(last()->side, GW_IB);
	assert_true(vb_ip_get(last()->packet, last()->len, &ip));
	assert_int_equal(ip.kind, IP_ADVERTISE);
	assert_true(vb_nd_get(&ip, &n));
	assert_ip(&n.src, seven);
	assert_ip(&n.dst, v6(3));
	assert_true(n.solicited);
	assert_int_equal(n.link, LINK_INFINIBAND);
	assert_int_equal(n.hw.qpn, GW_QPN);
}

/* A host that has no address yet gets the answer by multicast (RFC 4861,
 * 7.2.4). */
static void solicitation__of_nobody_is_answered_to_all(void **state)
{
	struct vb_gid three = v6(3), none = { { 0 } };
	struct vb_nd n;
	struct vb_ip ip;

	nd(GW_ETH, 9,
	   (struct vb_nd){ .src = none,
			   .dst = vb_ip_solicited_node(&three),
			   .target = three });
	assert_ip(&b.last_asked, three);
	nd(GW_IB, 3,
	   (struct vb_nd){ .advertise = true,
			   .solicited = true,
			   .src = three,
			   .dst = v6(254),
			   .target = three,
			   .has_hw = true });
	assert_int_equal(last()->side, GW_ETH);
	assert_memory_equal(last()->mac, "\x33\x33\x00\x00\x00\x01", 6);
	assert_true(vb_ip_get(last()->packet, last()->len, &ip));
	assert_true(vb_nd_get(&ip, &n));
	assert_false(n.solicited);
	assert_ip(&n.target, three);
}

/* An option with an Ethernet address is ignored on InfiniBand, and the other
 * way round. */
static void address__of_another_kind_of_link_is_not_believed(void **state)
{
	struct vb_gid three = v6(3);
	uint8_t bytes[VB_ND_BYTES];
	struct vb_nd n = { .link = LINK_ETHERNET,
			   .advertise = true,
			   .solicited = true,
			   .src = three,
			   .dst = v6(254),
			   .target = three,
			   .has_hw = true,
			   .hw = eth_hw(3) };
	struct vb_ipoib_hw hw = ib_hw(3);
	struct vb_arp a = { .link = LINK_ETHERNET,
			    .from_hw = eth_hw(3),
			    .from_ip = v4(3),
			    .to_ip = v4(254) };
	size_t len = vb_nd_put(bytes, &n);

	come(GW_IB, IPOIB_IPV6, NULL, &hw, bytes, len);
	len = vb_arp_put(bytes, &a);
	come(GW_IB, IPOIB_ARP, NULL, &hw, bytes, len);
	assert_int_equal(b.sent, 0);
	assert_int_equal(vb_nbrs_count(b.ib), 0);
}

/* Write a message of router discovery with an option of the sender's address
 * and one of the MTU. Returns its length. */
static size_t put_discovery(uint8_t *p, uint8_t type, unsigned lifetime)
{
	static const uint8_t options[16] = { 1, 1, 2, 0, 0, 0xee, 0, 7,
					     5, 1, 0, 0, 0, 0,	  5, 0xdc };
	size_t head = type == 134 ? 16 : 8, len = head + sizeof(options);
	struct vb_gid src = address("fe80::7"), dst = address("ff02::1");
	uint32_t sum;

	memset(p, 0, 40 + head);
	p[0] = 0x60;
	vb_store_be(p + 4, len, 2);
	p[6] = 58;
	p[7] = 255;
	memcpy(p + 8, src.raw, 16);
	memcpy(p + 24, dst.raw, 16);
	p[40] = type;
	if (type == 134)
		vb_store_be(p + 46, lifetime, 2);
	memcpy(p + 40 + head, options, sizeof(options));
	sum = ipoib_sum(ipoib_pseudo_sum(&src, &dst, len), p + 40, len);
	vb_store_be(p + 42, ~sum & 0xffff, 2);
	return 40 + len;
}

static void discover(uint8_t type, unsigned lifetime)
{
	const struct vb_ipoib_hw hw = eth_hw(7);
	uint8_t p[128];
	size_t len = put_discovery(p, type, lifetime);

	come(GW_ETH, IPOIB_IPV6, all_mac, &hw, p, len);
}

/* Returns whether the gateway, which answers for fe80::7, says that this
 * address is a router's. */
static bool answers_for_a_router(void)
{
	struct vb_gid seven = address("fe80::7");
	struct vb_nd n;
	struct vb_ip ip;

	nd(GW_IB, 3,
	   (struct vb_nd){ .src = v6(3),
			   .dst = vb_ip_solicited_node(&seven),
			   .target = seven,
			   .has_hw = true });
	nd(GW_ETH, 7,
	   (struct vb_nd){ .advertise = true,
			   .solicited = true,
			   .router = true,
			   .src = seven,
			   .dst = address("fe80::fe"),
			   .target = seven,
			   .has_hw = true });
	assert_int_equal(last()->side, GW_IB);
	assert_true(vb_ip_get(last()->packet, last()->len, &ip));
	assert_true(vb_nd_get(&ip, &n));
	assert_ip(&n.target, seven);
	return n.router;
}

static void discovery__of_routers_passes_without_addresses(void **state)
{
	struct vb_ip ip;

	discover(134, 1800);
	assert_int_equal(b.sent, 1);
	assert_int_equal(last()->side, GW_IB);
	assert_ip(&last()->to, address("ff02::1"));
	assert_int_equal(last()->len, 40 + 16 + 8);
	assert_int_equal(last()->packet[45], 0x04);
	assert_int_equal(last()->packet[56], 5);
	assert_true(vb_ip_get(last()->packet, last()->len, &ip));
	assert_int_equal(ipoib_sum(ipoib_pseudo_sum(&ip.src, &ip.dst, 24),
				   last()->packet + 40, 24),
			 0xffff);
	assert_true(answers_for_a_router());
	discover(133, 0);
	assert_int_equal(last()->len, 40 + 8 + 8);
}

/* The gateway sends packets for other networks to the router that has
 * advertised itself. */
static void router__gets_packets_for_other_networks(void **state)
{
	const struct vb_ipoib_hw hw = ib_hw(3);
	uint8_t p[60] = { 0x60, 0, 0, 0, 0, 20, 17, 64 };
	struct vb_gid far_away = address("2001:db8::1");

	memcpy(p + 8, v6(3).raw, 16);
	memcpy(p + 24, far_away.raw, 16);
	come(GW_IB, IPOIB_IPV6, NULL, &hw, p, sizeof(p));
	assert_int_equal(vb_gw_counters(b.g)->dropped, 1);
	discover(134, 100);
	answers_for_a_router();
	come(GW_IB, IPOIB_IPV6, NULL, &hw, p, sizeof(p));
	assert_int_equal(last()->side, GW_ETH);
	assert_memory_equal(last()->mac, eth_hw(7).gid.raw, 6);
	assert_memory_equal(last()->packet, p, sizeof(p));
}

static void router__is_one_for_its_time(void **state)
{
	assert_false(answers_for_a_router());
	discover(134, 100);
	assert_true(answers_for_a_router());
	pass_time(99 * VB_SEC);
	assert_true(answers_for_a_router());
	pass_time(2 * VB_SEC);
	assert_false(answers_for_a_router());
	discover(134, 100);
	discover(134, 0);
	assert_false(answers_for_a_router());
}

/* These do not pass: redirects, messages that another proxy has passed,
 * messages with a wrong checksum or a malformed option. */
static void discovery__that_may_not_pass_is_dropped(void **state)
{
	const struct vb_ipoib_hw hw = eth_hw(7);
	uint8_t p[128];
	size_t len;

	discover(137, 0);
	discover(134, 1800);
	b.sent = 0;
	len = put_discovery(p, 134, 1800);
	p[45] = 0x04; /* the Proxy flag, which also makes the checksum wrong */
	come(GW_ETH, IPOIB_IPV6, all_mac, &hw, p, len);
	vb_store_be(p + 42, vb_load_be(p + 42, 2) - 4, 2);
	come(GW_ETH, IPOIB_IPV6, all_mac, &hw, p, len);
	len = put_discovery(p, 134, 1800);
	p[57] = 0; /* an option without a length */
	vb_store_be(p + 42, vb_load_be(p + 42, 2) + 1, 2);
	come(GW_ETH, IPOIB_IPV6, all_mac, &hw, p, len);
	assert_int_equal(b.sent, 0);
	assert_int_equal(vb_gw_counters(b.g)->dropped, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(question__is_asked_on_the_other_side_and_answered),
		TEST(question__of_the_ethernet_is_answered),
		TEST(question__that_nobody_answers_is_not_answered),
		TEST(question__for_a_host_of_the_same_side_is_left_to_it),
		TEST(question__for_the_gateway_is_answered_on_both_sides),
		TEST(probe__finds_a_host_of_the_other_side),
		TEST(question__about_other_networks_or_from_them_is_ignored),
		TEST(announcement__moves_an_address_and_tells_the_other_side),
		TEST(question__about_a_silent_host_is_asked_anew),
		TEST(solicitation__is_answered_for_the_other_side),
		TEST(solicitation__of_nobody_is_answered_to_all),
		TEST(address__of_another_kind_of_link_is_not_believed),
		TEST(discovery__of_routers_passes_without_addresses),
		TEST(router__gets_packets_for_other_networks),
		TEST(router__is_one_for_its_time),
		TEST(discovery__that_may_not_pass_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

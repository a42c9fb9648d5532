/* SPDX-License-Identifier: BSD-2-Clause */
/* ipoib/gateway: passes packets from one side to the other. */
#include "tests/unit/ipoib/gateway_fixture.h"

/* --- packets --- */

static void packet__passes_unchanged_to_the_other_sides_host(void **state)
{
	uint8_t wanted[600];

	acquaint(3, 7);
	packet(GW_IB, 3, v4(7), 600, 0);
	assert_int_equal(b.sent, 1);
	assert_int_equal(last()->side, GW_ETH);
	assert_memory_equal(last()->mac, eth_hw(7).gid.raw, 6);
	put_v4(wanted, v4(3), v4(7), 600, 0);
	assert_int_equal(last()->len, 600);
	assert_memory_equal(last()->packet, wanted, 600);
	packet(GW_ETH, 7, v4(3), 600, 0);
	assert_int_equal(last()->side, GW_IB);
	assert_int_equal(last()->hw.qpn, ib_hw(3).qpn);
	assert_int_equal(vb_gw_counters(b.g)->passed[GW_IB], 1);
	assert_int_equal(vb_gw_counters(b.g)->passed[GW_ETH], 1);
}

/* A gateway that has just started knows no host's address yet, and packets
 * wait. */
static void packet__waits_until_its_host_is_found(void **state)
{
	packet(GW_IB, 3, v4(7), 100, 0);
	assert_int_equal(b.sent, 1);
	assert_false(last_arp(GW_ETH).reply);
	arp(GW_ETH, true, 7, v4(7), v4(254));
	assert_int_equal(b.sent, 2);
	assert_int_equal(last()->type, IPOIB_IPV4);
	assert_int_equal(last()->len, 100);
}

static void padding__of_an_ethernet_frame_does_not_pass(void **state)
{
	const struct vb_ipoib_hw hw = eth_hw(7);
	uint8_t p[46] = { 0 };

	acquaint(3, 7);
	put_v4(p, v4(7), v4(3), 28, 0);
	come(GW_ETH, IPOIB_IPV4, gw_mac, &hw, p, sizeof(p));
	assert_int_equal(last()->len, 28);
}

static void packet__to_another_network_goes_to_the_router(void **state)
{
	acquaint(3, 1);
	packet(GW_IB, 3, address("192.0.2.9"), 100, 0);
	assert_int_equal(b.sent, 1);
	assert_memory_equal(last()->mac, eth_hw(1).gid.raw, 6);
	assert_int_equal(last()->len, 100);
}

static void frame__for_another_host_is_not_taken(void **state)
{
	const uint8_t other[6] = { 2, 0, 0, 0xee, 0, 9 };
	const struct vb_ipoib_hw hw = eth_hw(7), own = vb_hw_of_mac(gw_mac);
	uint8_t p[100];

	acquaint(3, 7);
	put_v4(p, v4(7), v4(3), 100, 0);
	come(GW_ETH, IPOIB_IPV4, other, &hw, p, sizeof(p));
	/* the gateway's own frame, which has come back */
	come(GW_ETH, IPOIB_IPV4, all_mac, &own, p, sizeof(p));
	assert_int_equal(b.sent, 0);
}

static void group__passes_both_ways(void **state)
{
	struct vb_gid group = address("239.1.2.3");

	packet(GW_IB, 3, group, 100, 0);
	assert_int_equal(b.sent, 1);
	assert_memory_equal(last()->mac, "\x01\x00\x5e\x01\x02\x03", 6);
	packet(GW_IB, 3, v4(255), 100, 0);
	assert_memory_equal(last()->mac, all_mac, 6);
	packet(GW_ETH, 7, group, 100, 0);
	assert_int_equal(last()->side, GW_IB);
	assert_ip(&last()->to, group);
	packet(GW_ETH, 7, v4(255), 100, 0);
	assert_ip(&last()->to, address("255.255.255.255"));
	assert_int_equal(b.sent, 4);
}

static void
report__of_the_ethernet_lets_the_gateway_hear_the_group(void **state)
{
	const struct vb_ipoib_hw hw = eth_hw(7);
	struct vb_gid group = address("239.1.2.3");
	uint8_t p[28];

	put_v4(p, v4(7), group, 28, 0);
	p[9] = 2; /* protocol IGMP, with a report of version 2 */
	vb_store_be(p + 20, 0x16000000, 4);
	memcpy(p + 24, group.raw + 12, 4);
	vb_store_be(p + 22, 0xf8fa, 2); /* checksum of the report */
	come(GW_ETH, IPOIB_IPV4, all_mac, &hw, p, sizeof(p));
	assert_int_equal(b.entered_count, 1);
	assert_ip(&b.entered, group);
	/* a report from the IPoIB side: those hosts join the group
	 * themselves */
	come(GW_IB, IPOIB_IPV4, NULL, &hw, p, sizeof(p));
	assert_int_equal(b.entered_count, 1);
}

/* Check that the last frame asks the Ethernet's hosts for their groups, with a
 * right checksum. */
static void assert_query(const struct sent *s, const char *mac, size_t at,
			 uint8_t type)
{
	assert_int_equal(s->side, GW_ETH);
	assert_memory_equal(s->mac, mac, 6);
	assert_int_equal(s->packet[at], type);
}

/* The gateway asks the Ethernet's hosts for their groups. So it learns the
 * groups of a host that was there before it, and forgets those of a host that
 * is gone. */
static void hosts__are_asked_for_groups(void **state)
{
	struct vb_ip ip;

	pass_time(VB_MSEC);
	assert_int_equal(b.sent, 2);
	assert_query(&b.list[0], "\x01\x00\x5e\x00\x00\x01", 24, 0x11);
	assert_query(&b.list[1], "\x33\x33\x00\x00\x00\x01", 48, 130);
	assert_true(vb_ip_get(b.list[0].packet, b.list[0].len, &ip));
	/* an IGMP message with a right checksum */
	assert_int_equal(ip.kind, IP_REPORT);
	assert_true(vb_ip_get(b.list[1].packet, b.list[1].len, &ip));
	assert_int_equal(b.list[1].len, 76);
	assert_ip(&ip.src, address("fe80::fe"));
	pass_time(124 * VB_SEC);
	assert_int_equal(b.sent, 2);
	pass_time(VB_SEC);
	assert_int_equal(b.sent, 4);
	/* another router sends queries, so the gateway sends none for a
	 * while */
	b.list[0] = b.list[2];
	come(GW_ETH, IPOIB_IPV4, all_mac, &(struct vb_ipoib_hw){ .qpn = 1 },
	     b.list[0].packet, b.list[0].len);
	b.sent = 0;
	pass_time(250 * VB_SEC);
	assert_int_equal(b.sent, 0);
	pass_time(11 * VB_SEC);
	assert_int_equal(b.sent, 2);
}

static void group__that_nobody_reports_is_left(void **state)
{
	report__of_the_ethernet_lets_the_gateway_hear_the_group(NULL);
	for (unsigned i = 0; i < 2; i++) {
		pass_time(125 * VB_SEC);
		assert_int_equal(b.left_count, 0);
	}
	pass_time(125 * VB_SEC);
	assert_int_equal(b.left_count, 1);
	/* the IPoIB side begins anew, and the gateway knows no group to join */
	b.entered_count = 0;
	vb_gw_begin(b.g, &(struct vb_ipoib_hw){ .qpn = GW_QPN }, 2044, b.now);
	assert_int_equal(b.entered_count, 0);
	report__of_the_ethernet_lets_the_gateway_hear_the_group(NULL);
	vb_gw_begin(b.g, &(struct vb_ipoib_hw){ .qpn = GW_QPN }, 2044, b.now);
	assert_int_equal(b.entered_count, 2);
}

/* --- lengths --- */

static void packet__that_is_too_long_leaves_in_fragments(void **state)
{
	static uint8_t whole[VB_GW_PACKET], wanted[VB_GW_PACKET];
	size_t got = 20;

	acquaint(3, 7);
	packet(GW_IB, 3, v4(7), 2044, 0);
	assert_int_equal(b.sent, 2);
	put_v4(wanted, v4(3), v4(7), 2044, 0);
	for (unsigned i = 0; i < b.sent; i++) {
		const struct sent *s = &b.list[i];
		unsigned field = (unsigned)vb_load_be(s->packet + 6, 2);

		assert_in_range(s->len, 21, 1500);
		assert_int_equal(vb_load_be(s->packet + 2, 2), s->len);
		assert_int_equal((field & 0x1fff) * 8 + 20, got);
		assert_int_equal(!!(field & 0x2000), i + 1 < b.sent);
		memcpy(whole + got, s->packet + 20, s->len - 20);
		got += s->len - 20;
	}
	assert_int_equal(got, 2044);
	assert_memory_equal(whole + 20, wanted + 20, 2024);
	assert_int_equal(vb_gw_counters(b.g)->cut, 1);
	assert_int_equal(vb_gw_counters(b.g)->passed[GW_IB], 1);
}

static void sender__is_told_of_a_packet_that_may_not_be_cut(void **state)
{
	const uint8_t *m;

	acquaint(3, 7);
	packet(GW_IB, 3, v4(7), 1501, 0x4000);
	assert_int_equal(b.sent, 1);
	assert_int_equal(last()->side, GW_IB);
	assert_int_equal(last()->hw.qpn, ib_hw(3).qpn);
	m = last()->packet;
	assert_int_equal(m[9], 1);
	assert_memory_equal(m + 12, v4(254).raw + 12, 4);
	assert_memory_equal(m + 16, v4(3).raw + 12, 4);
	assert_int_equal(vb_load_be(m + 20, 2), 0x0304);
	assert_int_equal(vb_load_be(m + 26, 2), 1500);
	assert_int_equal(m[28], 0x45);
	assert_int_equal(vb_gw_counters(b.g)->too_big, 1);
	packet(GW_IB, 3, v4(7), 1500, 0x4000);
	assert_int_equal(last()->side, GW_ETH);
	/* no ICMP error is sent about a packet to a group */
	b.sent = 0;
	packet(GW_IB, 3, address("239.1.2.3"), 1501, 0x4000);
	assert_int_equal(b.sent, 0);
}

static void sender__of_ipv6_is_told(void **state)
{
	const struct vb_ipoib_hw hw = ib_hw(3);
	static uint8_t p[2000] = { 0x60 };
	struct vb_gid three = v6(3);

	vb_store_be(p + 4, sizeof(p) - 40, 2);
	p[6] = 17;
	p[7] = 64;
	memcpy(p + 8, v6(3).raw, 16);
	memcpy(p + 24, v6(7).raw, 16);
	vb_nbrs_learn(b.ib, &three, &hw, false, true, b.now);
	give_ib_paths();
	come(GW_IB, IPOIB_IPV6, NULL, &hw, p, sizeof(p));
	assert_int_equal(b.sent, 1);
	assert_int_equal(last()->side, GW_IB);
	assert_int_equal(last()->len, VB_ICMP_MOST);
	assert_int_equal(last()->packet[40], 2);
	assert_int_equal(vb_load_be(last()->packet + 44, 4), 1500);
	assert_memory_equal(last()->packet + 48, p, 100);
}

static void senders__are_told_at_most_so_often(void **state)
{
	acquaint(3, 7);
	for (unsigned i = 0; i < 3 * VB_GW_ERRORS; i++)
		packet(GW_IB, 3, v4(7), 1501, 0x4000);
	assert_int_equal(vb_gw_counters(b.g)->too_big, VB_GW_ERRORS);
	b.now += VB_SEC;
	packet(GW_IB, 3, v4(7), 1501, 0x4000);
	assert_int_equal(vb_gw_counters(b.g)->too_big, VB_GW_ERRORS + 1);
}

/* --- a hostile host: a flood of questions --- */

/* The host asks for more addresses than the tables have entries. The connection
 * between two other hosts must go on. */
static void flood_of_questions__is_bounded(void **state)
{
	acquaint(3, 7);
	for (unsigned i = 0; i < 20000; i++) {
		uint8_t from[4] = { 10, 9, 0, (uint8_t)(20 + i % 200) };
		uint8_t to[4] = { 10, 9, 0, (uint8_t)(20 + i / 200) };

		arp(GW_ETH, false, from[3], vb_gid_from_ipv4(from),
		    vb_gid_from_ipv4(to));
		b.sent = 0;
		packet(GW_IB, 3, v4(7), 100, 0);
		assert_int_equal(b.sent, 1);
		assert_int_equal(last()->type, IPOIB_IPV4);
		b.now += VB_MSEC;
		if (i % 100 == 0)
			pass_time(0);
		if (i % 1000 == 0)
			arp(GW_ETH, true, 7, v4(7), v4(254));
	}
	assert_in_range(vb_nbrs_count(b.ib), 1, VB_NBR_TABLE);
	assert_in_range(vb_nbrs_count(vb_gw_neighbours(b.g)), 1, VB_NBR_TABLE);
}

static void frames__of_any_length_do_no_harm(void **state)
{
	static uint8_t p[VB_GW_PACKET + 1];
	const struct vb_ipoib_hw hw = eth_hw(7);

	for (size_t len = 0; len < 200; len++) {
		memset(p, 0x45, len);
		come(GW_ETH, IPOIB_IPV4, gw_mac, &hw, p, len);
		come(GW_ETH, IPOIB_IPV6, all_mac, &hw, p, len);
		come(GW_IB, IPOIB_ARP, NULL, &hw, p, len);
	}
	come(GW_ETH, IPOIB_IPV4, gw_mac, &hw, p, VB_GW_PACKET);
	vb_gw_from_ib(b.g, IPOIB_IPV4, p, sizeof(p), 1, b.now);
	for (size_t len = 0; len < 14; len++)
		vb_gw_from_eth(b.g, p, len, b.now);
	assert_int_equal(b.sent, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(packet__passes_unchanged_to_the_other_sides_host),
		TEST(packet__waits_until_its_host_is_found),
		TEST(padding__of_an_ethernet_frame_does_not_pass),
		TEST(packet__to_another_network_goes_to_the_router),
		TEST(frame__for_another_host_is_not_taken),
		TEST(group__passes_both_ways),
		TEST(report__of_the_ethernet_lets_the_gateway_hear_the_group),
		TEST(hosts__are_asked_for_groups),
		TEST(group__that_nobody_reports_is_left),
		TEST(packet__that_is_too_long_leaves_in_fragments),
		TEST(sender__is_told_of_a_packet_that_may_not_be_cut),
		TEST(sender__of_ipv6_is_told),
		TEST(senders__are_told_at_most_so_often),
		TEST(flood_of_questions__is_bounded),
		TEST(frames__of_any_length_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

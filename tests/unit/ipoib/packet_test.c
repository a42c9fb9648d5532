/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "ipoib/packet.h"

static const struct vb_gid one = { { 0xfd, 9, [15] = 1 } };
static const struct vb_gid two = { { 0xfd, 9, [13] = 0xab, 0xcd, 0xef } };
static const struct vb_ipoib_hw hw = {
	.qpn = 0x123456,
	.gid = { { 0xfe, 0x80, [8] = 2, 0, 0xca, [15] = 7 } },
};

static struct vb_gid ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	const uint8_t bytes[4] = { a, b, c, d };

	return vb_gid_from_ipv4(bytes);
}

static void header__has_the_type_and_no_more(void **state)
{
	uint8_t bytes[VB_IPOIB_HEADER];
	static const uint8_t wanted[] = { 0x86, 0xdd, 0, 0 };

	vb_ipoib_header_put(bytes, IPOIB_IPV6);
	assert_memory_equal(bytes, wanted, 4);
	assert_int_equal(vb_ipoib_header_get(bytes, 4), IPOIB_IPV6);
	assert_int_equal(vb_ipoib_header_get(bytes, 3), 0);
}

/* The bytes of RFC 4391, 9.1.2: type 32, and 20 bytes of flags, QPN, GID. */
static void arp__bytes_of_a_request(void **state)
{
	const struct vb_arp arp = { .from_hw = hw,
				    .from_ip = ipv4(10, 9, 0, 3),
				    .to_hw = hw,
				    .to_ip = ipv4(10, 9, 0, 4) };
	static const uint8_t wanted[VB_ARP_BYTES] = {
		0,  32, 8, 0, 20, 4, 0, 1, 0,	 0x12, 0x34, 0x56, 0xfe, 0x80,
		0,  0,	0, 0, 0,  0, 2, 0, 0xca, 0,    0,    0,	   0,	 7,
		10, 9,	0, 3, 0,  0, 0, 0, 0,	 0,    0,    0,	   0,	 0,
		0,  0,	0, 0, 0,  0, 0, 0, 0,	 0,    10,   9,	   0,	 4,
	};
	uint8_t bytes[VB_ARP_BYTES];

	vb_arp_put(bytes, &arp);
	assert_memory_equal(bytes, wanted, sizeof(wanted));
}

static void arp__reply_is_read_as_it_was_written(void **state)
{
	const struct vb_arp arp = { .reply = true,
				    .from_hw = hw,
				    .from_ip = ipv4(10, 9, 0, 3),
				    .to_hw = { 0xffffff, two },
				    .to_ip = ipv4(10, 9, 0, 4) };
	uint8_t bytes[VB_ARP_BYTES];
	struct vb_arp got;

	vb_arp_put(bytes, &arp);
	assert_true(vb_arp_get(bytes, sizeof(bytes), &got));
	assert_true(got.reply);
	assert_int_equal(got.from_hw.qpn, 0x123456);
	assert_true(vb_gid_equal(&got.from_hw.gid, &hw.gid));
	assert_true(vb_gid_equal(&got.from_ip, &arp.from_ip));
	assert_int_equal(got.to_hw.qpn, 0xffffff);
	assert_true(vb_gid_equal(&got.to_hw.gid, &two));
	assert_true(vb_gid_equal(&got.to_ip, &arp.to_ip));
	/* The flags of connected mode do not count as a part of the QPN. */
	bytes[8] = 0x80;
	assert_true(vb_arp_get(bytes, sizeof(bytes), &got));
	assert_int_equal(got.from_hw.qpn, 0x123456);
}

/* RFC 826: type 1, and 6 bytes of a MAC address. */
static void arp__of_an_ethernet_has_mac_addresses(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0xab, 0xcd, 0xef };
	static const uint8_t wanted[VB_ARP_ETH_BYTES] = {
		0,  1, 8, 0, 6, 4, 0, 1, 2, 0, 0,  0xab, 0xcd, 0xef,
		10, 9, 0, 3, 0, 0, 0, 0, 0, 0, 10, 9,	 0,    4,
	};
	const struct vb_arp arp = { .link = LINK_ETHERNET,
				    .from_hw = vb_hw_of_mac(mac),
				    .from_ip = ipv4(10, 9, 0, 3),
				    .to_ip = ipv4(10, 9, 0, 4) };
	uint8_t bytes[VB_ARP_BYTES];
	struct vb_arp got;

	assert_int_equal(vb_arp_put(bytes, &arp), sizeof(wanted));
	assert_memory_equal(bytes, wanted, sizeof(wanted));
	assert_false(vb_arp_get(bytes, sizeof(wanted) - 1, &got));
	assert_true(vb_arp_get(bytes, sizeof(wanted), &got));
	assert_int_equal(got.link, LINK_ETHERNET);
	assert_memory_equal(got.from_hw.gid.raw, mac, 6);
	assert_int_equal(got.from_hw.qpn, 0xabcdef);
	assert_true(vb_gid_equal(&got.to_ip, &arp.to_ip));
}

static void nd__of_an_ethernet_has_a_short_option(void **state)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0xab, 0xcd, 0xef };
	struct vb_nd nd = { .link = LINK_ETHERNET,
			    .src = one,
			    .target = two,
			    .has_hw = true,
			    .hw = vb_hw_of_mac(mac) },
		     got;
	uint8_t bytes[VB_ND_BYTES];
	struct vb_ip ip;

	nd.dst = vb_ip_solicited_node(&two);
	assert_int_equal(vb_nd_put(bytes, &nd), 40 + 24 + 8);
	assert_memory_equal(bytes + 64, "\x01\x01", 2);
	assert_memory_equal(bytes + 66, mac, 6);
	assert_true(vb_ip_get(bytes, 72, &ip));
	assert_int_equal(ip.kind, IP_SOLICIT);
	assert_true(vb_nd_get(&ip, &got));
	assert_int_equal(got.link, LINK_ETHERNET);
	assert_memory_equal(got.hw.gid.raw, mac, 6);
}

static void arp__that_is_wrong_is_refused(void **state)
{
	static const struct {
		unsigned at;
		uint8_t value;
	} wrong[] = { { 1, 1 },	 { 2, 0x86 }, { 4, 6 },
		      { 5, 16 }, { 7, 3 },    { 7, 0 } };
	uint8_t bytes[VB_ARP_BYTES];
	struct vb_arp got;

	for (unsigned i = 0; i < VB_COUNT(wrong); i++) {
		vb_arp_put(bytes, &(struct vb_arp){ .from_hw = hw });
		bytes[wrong[i].at] = wrong[i].value;
		assert_false(vb_arp_get(bytes, sizeof(bytes), &got));
	}
	vb_arp_put(bytes, &(struct vb_arp){ .from_hw = hw });
	assert_false(vb_arp_get(bytes, sizeof(bytes) - 1, &got));
	assert_true(vb_arp_get(bytes, sizeof(bytes), &got));
}

static void nd__is_read_as_it_was_written(void **state)
{
	struct vb_nd nd = { .src = one,
			    .target = two,
			    .has_hw = true,
			    .hw = hw },
		     got;
	uint8_t bytes[VB_ND_BYTES];
	struct vb_ip ip;

	nd.dst = vb_ip_solicited_node(&two);
	assert_int_equal(vb_nd_put(bytes, &nd), VB_ND_BYTES);
	assert_true(vb_ip_get(bytes, sizeof(bytes), &ip));
	assert_int_equal(ip.kind, IP_SOLICIT);
	assert_true(vb_nd_get(&ip, &got));
	assert_false(got.advertise);
	assert_true(vb_gid_equal(&got.target, &two));
	assert_true(got.has_hw && got.hw.qpn == hw.qpn);
	assert_true(vb_gid_equal(&got.hw.gid, &hw.gid));

	nd.advertise = nd.solicited = nd.override = true;
	assert_int_equal(vb_nd_put(bytes, &nd), VB_ND_BYTES);
	assert_true(vb_ip_get(bytes, sizeof(bytes), &ip));
	assert_int_equal(ip.kind, IP_ADVERTISE);
	assert_true(vb_nd_get(&ip, &got));
	assert_true(got.advertise && got.solicited && got.override);
	assert_true(got.has_hw);

	nd.has_hw = false;
	assert_int_equal(vb_nd_put(bytes, &nd), VB_ND_BYTES - 24);
	assert_true(vb_ip_get(bytes, VB_ND_BYTES - 24, &ip));
	assert_true(vb_nd_get(&ip, &got));
	assert_false(got.has_hw);
}

/* A message with a wrong checksum, or with a hop limit below 255, is treated as
 * a plain packet. A message without its full length, or with an option of
 * length 0, is refused. */
static void nd__that_is_wrong_is_refused(void **state)
{
	const struct vb_nd nd = {
		.src = one, .dst = two, .target = two, .has_hw = true, .hw = hw
	};
	uint8_t bytes[VB_ND_BYTES];
	struct vb_ip ip;
	struct vb_nd got;

	vb_nd_put(bytes, &nd);
	bytes[60] ^= 1;
	assert_true(vb_ip_get(bytes, sizeof(bytes), &ip));
	assert_int_equal(ip.kind, IP_PLAIN);
	vb_nd_put(bytes, &nd);
	bytes[7] = 254;
	assert_true(vb_ip_get(bytes, sizeof(bytes), &ip));
	assert_int_equal(ip.kind, IP_PLAIN);
	vb_nd_put(bytes, &nd);
	assert_false(vb_ip_get(bytes, sizeof(bytes) - 1, &ip));
	assert_true(vb_ip_get(bytes, sizeof(bytes), &ip));
	bytes[65] = 0;
	assert_false(vb_nd_get(&ip, &got));
	bytes[65] = 4;
	assert_false(vb_nd_get(&ip, &got));
	bytes[65] = 3;
	assert_true(vb_nd_get(&ip, &got));
	for (size_t len = 0; len < 48; len++) {
		ip.body_bytes = len;
		assert_true(vb_nd_get(&ip, &got) == (len == 24));
	}
}

static void nd__group_of_an_address(void **state)
{
	static const struct vb_gid wanted = { { 0xff, 2, [11] = 1, 0xff, 0xab,
						0xcd, 0xef } };
	struct vb_gid got = vb_ip_solicited_node(&two);

	assert_true(vb_gid_equal(&got, &wanted));
}

/* Multicast GIDs as RFC 4391, 4 defines them: the low 28 or 80 bits of the
 * group, and the P_Key. */
static void mgid__of_groups(void **state)
{
	static const struct vb_gid v6 = {
		{ 0xff, 0x02, [6] = 0x11, [7] = 0x22, [15] = 0xfb }
	};
	static const struct {
		struct vb_gid mgid;
	} wanted[] = {
		{ { { 0xff, 0x12, 0x40, 0x1b, 0x80, 0x01, [12] = 0xff, 0xff,
		      0xff, 0xff } } },
		{ { { 0xff, 0x12, 0x40, 0x1b, 0x80, 0x01, [12] = 0x0f, 0xff, 1,
		      2 } } },
		{ { { 0xff, 0x12, 0x60, 0x1b, 0x80, 0x01, 0x11,
		      0x22, [15] = 0xfb } } },
	};
	struct vb_gid all = vb_ip_broadcast(), v4 = ipv4(239, 255, 1, 2);
	struct vb_gid got[] = { vb_ip_mgid(&all, 0x8001),
				vb_ip_mgid(&v4, 0x8001),
				vb_ip_mgid(&v6, 0x0001) };

	for (unsigned i = 0; i < VB_COUNT(got); i++)
		assert_true(vb_gid_equal(&got[i], &wanted[i].mgid));
}

static const uint8_t plain_ipv4[] = {
	0x45, 0, 0, 24, 0,  0, 0, 0, 64, 17, 0, 0,
	10,   9, 0, 3,	10, 9, 0, 4, 1,	 2,  3, 4,
};

static void ip__plain(void **state)
{
	uint8_t bytes[sizeof(plain_ipv4)];
	struct vb_gid wanted = ipv4(10, 9, 0, 4);
	struct vb_ip ip;

	assert_true(vb_ip_get(plain_ipv4, sizeof(plain_ipv4), &ip));
	assert_int_equal(ip.kind, IP_PLAIN);
	assert_int_equal(ip.type, IPOIB_IPV4);
	assert_true(vb_gid_equal(&ip.dst, &wanted));
	for (size_t len = 0; len < sizeof(plain_ipv4); len++)
		assert_false(vb_ip_get(plain_ipv4, len, &ip));
	memcpy(bytes, plain_ipv4, sizeof(bytes));
	bytes[0] = 0x44; /* header length 4: too short */
	assert_false(vb_ip_get(bytes, sizeof(bytes), &ip));
	bytes[0] = 0x4f; /* header length 15: longer than the packet */
	assert_false(vb_ip_get(bytes, sizeof(bytes), &ip));
	bytes[0] = 0x55;
	assert_false(vb_ip_get(bytes, sizeof(bytes), &ip));
}

/* --- reports --- */

struct heard {
	struct vb_gid group[8];
	bool joins[8];
	unsigned count;
};

static void hear(void *arg, const struct vb_gid *group, bool joins)
{
	struct heard *h = arg;

	assert_true(h->count < 8);
	h->group[h->count] = *group;
	h->joins[h->count++] = joins;
}

static struct heard report_of(const uint8_t *packet, size_t len)
{
	struct heard h = { .count = 0 };
	struct vb_ip ip;

	assert_true(vb_ip_get(packet, len, &ip));
	if (ip.kind == IP_REPORT)
		vb_ip_report_read(&ip, hear, &h);
	return h;
}

/* Writes the checksum of an IGMP message, and an IPv4 header with a router
 * alert before it. */
static size_t make_igmp(uint8_t *packet, const uint8_t *body, size_t len)
{
	static const uint8_t head[24] = { 0x46, 0, 0, 0,  0,	0, 0, 0,
					  1,	2, 0, 0,  10,	9, 0, 3,
					  224,	0, 0, 22, 0x94, 4, 0, 0 };
	uint32_t sum = 0;

	memcpy(packet, head, sizeof(head));
	packet[3] = (uint8_t)(sizeof(head) + len);
	memcpy(packet + sizeof(head), body, len);
	for (size_t i = 0; i < len; i += 2)
		sum += (uint32_t)body[i] << 8 | body[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	packet[sizeof(head) + 2] = (uint8_t)(sum >> 8);
	packet[sizeof(head) + 3] = (uint8_t)sum;
	return sizeof(head) + len;
}

static void report__igmp_version_2(void **state)
{
	static const uint8_t join[8] = { 0x16, 0, 0, 0, 239, 1, 2, 3 };
	static const uint8_t leave[8] = { 0x17, 0, 0, 0, 239, 1, 2, 3 };
	static const uint8_t query[8] = { 0x11, 0, 0, 0, 239, 1, 2, 3 };
	struct vb_gid group = ipv4(239, 1, 2, 3);
	uint8_t packet[64];
	struct heard h = report_of(packet, make_igmp(packet, join, 8));

	assert_int_equal(h.count, 1);
	assert_true(h.joins[0] && vb_gid_equal(&h.group[0], &group));
	h = report_of(packet, make_igmp(packet, leave, 8));
	assert_int_equal(h.count, 1);
	assert_false(h.joins[0]);
	assert_int_equal(report_of(packet, make_igmp(packet, query, 8)).count,
			 0);
	make_igmp(packet, join, 8);
	packet[31] ^= 1;
	assert_int_equal(report_of(packet, 32).count, 0);
}

/* A list of sources to exclude means a member; an empty one to include means
 * that the host leaves. */
static void report__igmp_version_3(void **state)
{
	static const uint8_t body[] = {
		0x22, 0, 0, 0, 0,   0, 0, 4, 4,	  0, 0, 0, 239, 0, 0, 1,
		3,    0, 0, 0, 239, 0, 0, 2, 5,	  0, 0, 1, 232, 0, 0, 3,
		10,   9, 0, 9, 6,   0, 0, 1, 232, 0, 0, 4, 10,	9, 0, 9,
	};
	uint8_t packet[96], cut[sizeof(body)];
	struct heard h =
		report_of(packet, make_igmp(packet, body, sizeof(body)));

	assert_int_equal(h.count, 3);
	assert_true(h.joins[0]);
	assert_false(h.joins[1]);
	assert_true(h.joins[2]);
	assert_int_equal(h.group[2].raw[12], 232);
	/* the message claims more records, or sources, than it has */
	memcpy(cut, body, sizeof(cut));
	cut[7] = 200;
	assert_int_equal(
		report_of(packet, make_igmp(packet, cut, sizeof(cut))).count,
		3);
	cut[10] = 0xff;
	assert_int_equal(
		report_of(packet, make_igmp(packet, cut, sizeof(cut))).count,
		0);
}

/* A report of MLD version 2, as Linux sends it for a solicited-node group. */
static void report__mld_version_2(void **state)
{
	static const uint8_t body[] = {
		143, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0,    0, 0xff, 2,
		0,   0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0,    3,
	};
	uint8_t packet[40 + 8 + sizeof(body)] = {
		0x60,	     [5] = 8 + sizeof(body),
		[7] = 1,     [8] = 0xfe,
		0x80,	     [23] = 3,
		[24] = 0xff, 2,
		[39] = 0x16, [40] = 58,
		0,	     5,
		2,	     0,
		0,	     1,
		0,
	};
	uint32_t sum = 58 + sizeof(body);
	struct heard h;

	memcpy(packet + 48, body, sizeof(body));
	for (size_t i = 8; i < 40; i += 2)
		sum += (uint32_t)packet[i] << 8 | packet[i + 1];
	for (size_t i = 0; i < sizeof(body); i += 2)
		sum += (uint32_t)body[i] << 8 | body[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	packet[50] = (uint8_t)(sum >> 8);
	packet[51] = (uint8_t)sum;
	h = report_of(packet, sizeof(packet));
	assert_int_equal(h.count, 1);
	assert_true(h.joins[0]);
	assert_int_equal(h.group[0].raw[15], 3);
	packet[7] = 2;
	assert_int_equal(report_of(packet, sizeof(packet)).count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header__has_the_type_and_no_more),
		cmocka_unit_test(arp__bytes_of_a_request),
		cmocka_unit_test(arp__reply_is_read_as_it_was_written),
		cmocka_unit_test(arp__that_is_wrong_is_refused),
		cmocka_unit_test(arp__of_an_ethernet_has_mac_addresses),
		cmocka_unit_test(nd__of_an_ethernet_has_a_short_option),
		cmocka_unit_test(nd__is_read_as_it_was_written),
		cmocka_unit_test(nd__that_is_wrong_is_refused),
		cmocka_unit_test(nd__group_of_an_address),
		cmocka_unit_test(mgid__of_groups),
		cmocka_unit_test(ip__plain),
		cmocka_unit_test(report__igmp_version_2),
		cmocka_unit_test(report__igmp_version_3),
		cmocka_unit_test(report__mld_version_2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

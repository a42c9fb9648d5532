/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzzes what an IPoIB interface reads: packets and ARP from the fabric, IP
 * packets from the host, and the subnet administrator's answers. What was read
 * must be read equal after it was written. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "ipoib/icmp.h"
#include "ipoib/packet.h"
#include "ipoib/sa.h"

static void same_hw(const struct vb_ipoib_hw *a, const struct vb_ipoib_hw *b)
{
	MUST(a->qpn == b->qpn && a->qpn <= 0xffffff);
	MUST(a->flags == b->flags);
	MUST(vb_gid_equal(&a->gid, &b->gid));
}

static void fuzz_arp(const uint8_t *bytes, size_t len)
{
	uint8_t written[VB_ARP_BYTES];
	struct vb_arp a, b;

	if (!vb_arp_get(bytes, len, &a))
		return;
	MUST(vb_gid_is_ipv4(&a.from_ip) && vb_gid_is_ipv4(&a.to_ip));
	vb_arp_put(written, &a);
	MUST(vb_arp_get(written, sizeof(written), &b));
	MUST(a.reply == b.reply);
	same_hw(&a.from_hw, &b.from_hw);
	MUST(vb_gid_equal(&a.from_ip, &b.from_ip));
	MUST(vb_gid_equal(&a.to_ip, &b.to_ip));
}

static void fuzz_nd(const struct vb_ip *ip)
{
	uint8_t written[VB_ND_BYTES];
	struct vb_nd a, b;
	struct vb_ip again;
	size_t len;

	if (!vb_nd_get(ip, &a))
		return;
	len = vb_nd_put(written, &a);
	MUST(len <= sizeof(written));
	MUST(vb_ip_get(written, len, &again) && again.kind == ip->kind);
	MUST(vb_nd_get(&again, &b));
	MUST(a.advertise == b.advertise && a.has_hw == b.has_hw);
	MUST(a.solicited == b.solicited && a.override == b.override);
	MUST(vb_gid_equal(&a.target, &b.target));
	if (a.has_hw)
		same_hw(&a.hw, &b.hw);
}

static void check_group(void *arg, const struct vb_gid *group, bool joins)
{
	struct vb_gid mgid = vb_ip_mgid(group, 0x8001);

	MUST(vb_gid_is_multicast(group));
	MUST(mgid.raw[0] == 0xff && mgid.raw[4] == 0x80 && mgid.raw[5] == 1);
	++*(unsigned *)arg;
}

static void fuzz_too_long(const struct vb_ip *asked, const uint8_t *bytes,
			  size_t len)
{
	uint8_t answer[VB_ICMP_MOST];
	size_t n = vb_icmp_too_big(answer, &asked->dst, bytes, len, 2044);
	struct vb_ip ip;

	if (n == 0)
		return;
	MUST(n <= sizeof(answer) && vb_ip_get(answer, n, &ip));
	MUST(ip.type == asked->type);
	MUST(vb_gid_equal(&ip.src, &asked->dst));
	MUST(vb_gid_equal(&ip.dst, &asked->src));
}

static void fuzz_ip(const uint8_t *bytes, size_t len)
{
	unsigned groups = 0;
	struct vb_ip ip;

	if (!vb_ip_get(bytes, len, &ip))
		return;
	fuzz_too_long(&ip, bytes, len);
	if (ip.kind != IP_PLAIN)
		MUST(ip.body >= bytes &&
		     ip.body + ip.body_bytes <= bytes + len);
	if (ip.kind == IP_SOLICIT || ip.kind == IP_ADVERTISE)
		fuzz_nd(&ip);
	if (ip.kind == IP_REPORT)
		vb_ip_report_read(&ip, check_group, &groups);
	/* A record of a report has at least 8 bytes. */
	MUST(groups <= len / 8 + 1);
}

/* Read the same messages without checksums, because mutated bytes seldom have a
 * right one. */
static void fuzz_body(const uint8_t *bytes, size_t len)
{
	struct vb_ip ip = { .kind = IP_SOLICIT,
			    .type = IPOIB_IPV6,
			    .body = bytes,
			    .body_bytes = len };
	unsigned groups = 0;

	fuzz_nd(&ip);
	ip.kind = IP_REPORT;
	vb_ip_report_read(&ip, check_group, &groups);
	MUST(groups <= len / 8 + 1);
}

static void fuzz_sa(const uint8_t *bytes, size_t len)
{
	uint8_t written[VB_MAD_BYTES];
	struct ipoib_sa_answer a, b;

	if (!ipoib_sa_get(bytes, len, &a) || !a.good ||
	    a.attr_id != SA_MCMEMBER)
		return;
	ipoib_sa_put_join(written, a.tid, &a.group, &a.group);
	written[3] = 0x81;
	vb_store_be(written + 56 + 36, a.group.mlid, 2);
	MUST(ipoib_sa_get(written, sizeof(written), &b) && b.good);
	MUST(a.tid == b.tid && a.group.qkey == b.group.qkey);
	MUST(a.group.mtu == b.group.mtu && a.group.rate == b.group.rate);
	MUST(a.group.sl == b.group.sl && a.group.pkey == b.group.pkey);
	MUST(a.group.flow_label == b.group.flow_label);
	MUST(a.group.join_state == b.group.join_state);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	unsigned type = vb_ipoib_header_get(bytes, len);

	fuzz_ip(bytes, len);
	if (len > 40)
		fuzz_body(bytes + 40, len - 40);
	fuzz_sa(bytes, len);
	if (type == IPOIB_ARP)
		fuzz_arp(bytes + VB_IPOIB_HEADER, len - VB_IPOIB_HEADER);
	return 0;
}

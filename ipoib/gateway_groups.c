/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Learns of which multicast groups hosts of the Ethernet side are members. The
 * gateway joins these groups on the IPoIB side, because otherwise the fabric
 * would not bring the groups' packets here. It sends membership queries
 * regularly, unless another router on the Ethernet does so, and leaves a group
 * that no host has reported for a while (RFC 3376, RFC 3810).
 */
#include <string.h>

#include "base/bytes.h"
#include "ipoib/gateway_priv.h"
#include "ipoib/icmp.h"
#include "ipoib/packet_priv.h"

#define QUERY_INTERVAL (125 * VB_SEC)
/* after another router's query the gateway sends none for this long; and a
 * group is left when no host has reported it for this long */
#define HOLD	   (260 * VB_SEC)
#define PROTO_IGMP 2
/* IPv4 header with the Router Alert option */
#define IPV4_QUERY 24
#define IGMP_QUERY 12
#define MLD_QUERY  28
#define HOP_OPTION 8

enum { TYPE_IGMP_QUERY = 0x11, TYPE_MLD_QUERY = 130 };

static const struct vb_gid all_hosts = {
	{ [10] = 0xff, [11] = 0xff, 224, 0, 0, 1 }
};
static const struct vb_gid all_nodes = { { 0xff, 0x02, [15] = 1 } };

/* --- membership queries --- */

/* Write a general query of IGMPv3, which hosts answer within a second. */
static size_t put_igmp_query(uint8_t *p, const struct vb_gid *from)
{
	static const uint8_t alert[4] = { 0x94, 4, 0, 0 };
	uint8_t *body = p + IPV4_QUERY;

	memset(p, 0, IPV4_QUERY + IGMP_QUERY);
	p[0] = 0x46;
	vb_store_be(p + 2, IPV4_QUERY + IGMP_QUERY, 2);
	p[8] = 1;
	p[9] = PROTO_IGMP;
	memcpy(p + 12, from->raw + 12, 4);
	memcpy(p + 16, all_hosts.raw + 12, 4);
	memcpy(p + 20, alert, sizeof(alert));
	vb_ip_seal(p);
	body[0] = TYPE_IGMP_QUERY;
	body[1] = 10; /* answer within 10 tenths of a second */
	body[8] = 2;  /* querier's robustness variable */
	body[9] = QUERY_INTERVAL / VB_SEC;
	vb_store_be(body + 2, ~ipoib_sum(0, body, IGMP_QUERY) & 0xffff, 2);
	return IPV4_QUERY + IGMP_QUERY;
}

/* Write a general query of MLDv2, behind the Router Alert option. */
static size_t put_mld_query(uint8_t *p, const struct vb_gid *from)
{
	static const uint8_t alert[HOP_OPTION] = {
		PROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0
	};
	uint8_t *body = p + IPV6_BYTES + HOP_OPTION;
	uint32_t sum;

	memset(p, 0, IPV6_BYTES + HOP_OPTION + MLD_QUERY);
	p[0] = 0x60;
	vb_store_be(p + 4, HOP_OPTION + MLD_QUERY, 2);
	p[7] = 1;
	memcpy(p + 8, from->raw, 16);
	memcpy(p + 24, all_nodes.raw, 16);
	memcpy(p + IPV6_BYTES, alert, sizeof(alert));
	body[0] = TYPE_MLD_QUERY;
	vb_store_be(body + 4, 1000, 2); /* answer within 1000 ms */
	body[24] = 2;
	body[25] = QUERY_INTERVAL / VB_SEC;
	sum = ipoib_pseudo_sum(from, &all_nodes, MLD_QUERY);
	vb_store_be(body + 2, ~ipoib_sum(sum, body, MLD_QUERY) & 0xffff, 2);
	return IPV6_BYTES + HOP_OPTION + MLD_QUERY;
}

/* Send a query to the group @to. The source of an MLD query is a link-local
 * address, because hosts ignore queries from other addresses. */
static void ask_for_groups(struct vb_gw *g, const struct vb_gid *to)
{
	static const struct vb_gid link_local = { { 0xfe, 0x80 } };
	bool v4 = vb_gid_is_ipv4(to);
	const struct vb_gid *from =
		vb_ip_nets_source(&g->config.nets, v4 ? to : &link_local);
	uint8_t frame[VB_GW_ETH_HEADER + IPV6_BYTES + HOP_OPTION + MLD_QUERY];
	size_t head =
		gw_put_head(g, GW_ETH, frame, v4 ? IPOIB_IPV4 : IPOIB_IPV6);

	if (!from)
		return;
	head += v4 ? put_igmp_query(frame + head, from)
		   : put_mld_query(frame + head, from);
	gw_send_group(g, GW_ETH, to, frame, head);
}

/* Is the packet a membership query, which another router has sent? */
static bool is_query(const struct vb_ip *ip, const uint8_t *packet, size_t len)
{
	if (ip->type == IPOIB_IPV4)
		return ip->kind == IP_REPORT && ip->body_bytes > 0 &&
		       ip->body[0] == TYPE_IGMP_QUERY;
	return len > IPV6_BYTES + HOP_OPTION && packet[6] == 0 &&
	       packet[IPV6_BYTES] == PROTO_ICMPV6 &&
	       packet[IPV6_BYTES + HOP_OPTION] == TYPE_MLD_QUERY;
}

/* --- membership reports --- */

static struct gw_group *find_group_of(struct vb_gw *g,
				      const struct vb_gid *group)
{
	for (unsigned i = 0; i < VB_GW_GROUPS; i++)
		if (vb_gid_equal(&g->groups[i].ip, group))
			return &g->groups[i];
	return NULL;
}

/* Note that a host has reported @group. That a host leaves is ignored, because
 * other hosts may still be members: a group ends only when no host has reported
 * it for HOLD. */
static void take_report(void *arg, const struct vb_gid *group, bool joins)
{
	static const struct vb_gid free_place;
	struct vb_gw *g = arg;
	struct gw_group *at = find_group_of(g, group);

	if (!joins)
		return;
	if (!at) {
		at = find_group_of(g, &free_place);
		if (!at)
			return;
		at->ip = *group;
		g->ops.ib_enter(g->arg, group);
	}
	at->heard = g->now;
}

void gw_take_report(struct vb_gw *g, const struct vb_ip *ip,
		    const uint8_t *packet, size_t len)
{
	if (is_query(ip, packet, len))
		g->ask_at = VB_MAX(g->ask_at, g->now + HOLD);
	else if (ip->kind == IP_REPORT)
		vb_ip_report_read(ip, take_report, g);
}

void gw_enter_groups(struct vb_gw *g)
{
	for (unsigned i = 0; i < VB_GW_GROUPS; i++)
		if (!vb_gid_is_zero(&g->groups[i].ip))
			g->ops.ib_enter(g->arg, &g->groups[i].ip);
	g->ask_at = g->now;
}

void gw_tick_groups(struct vb_gw *g)
{
	if (g->now < g->ask_at)
		return;
	for (unsigned i = 0; i < VB_GW_GROUPS; i++) {
		struct gw_group *at = &g->groups[i];

		if (vb_gid_is_zero(&at->ip) || at->heard + HOLD > g->now)
			continue;
		g->ops.ib_leave(g->arg, &at->ip);
		*at = (struct gw_group){ .heard = 0 };
	}
	ask_for_groups(g, &all_hosts);
	ask_for_groups(g, &all_nodes);
	g->ask_at = g->now + QUERY_INTERVAL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* ARP and IPv6 neighbour discovery: answers hosts of one side for the IP
 * addresses of the other side. */
#include <string.h>

#include "ipoib/gateway_priv.h"

#define MESSAGE_MOST (VB_GW_ETH_HEADER + VB_ND_BYTES)

_Static_assert(VB_ARP_BYTES <= VB_ND_BYTES, "a message has room for either");

static const struct vb_gid all_nodes = { { 0xff, 0x02, [15] = 1 } };

/* Is @ip unspecified (all zero)? A host that probes whether its address is free
 * has no other source address yet. */
static bool is_nobody(const struct vb_gid *ip)
{
	static const uint8_t zero[4] = { 0 };
	const struct vb_gid nobody = vb_gid_from_ipv4(zero);

	return vb_gid_is_zero(ip) || vb_gid_equal(ip, &nobody);
}

/* --- messages --- */

static size_t put_arp(struct vb_gw *g, enum vb_gw_side side,
		      uint8_t frame[MESSAGE_MOST], struct vb_arp *arp)
{
	size_t head = gw_put_head(g, side, frame, IPOIB_ARP);

	arp->link = g->side[side].link;
	arp->from_hw = g->side[side].hw;
	return head + vb_arp_put(frame + head, arp);
}

static size_t put_nd(struct vb_gw *g, enum vb_gw_side side,
		     uint8_t frame[MESSAGE_MOST], struct vb_nd *nd)
{
	size_t head = gw_put_head(g, side, frame, IPOIB_IPV6);

	nd->link = g->side[side].link;
	nd->has_hw = true;
	nd->hw = g->side[side].hw;
	return head + vb_nd_put(frame + head, nd);
}

/* Broadcast an ARP message on @side. */
static void arp_to_all(struct vb_gw *g, enum vb_gw_side side,
		       struct vb_arp *arp)
{
	struct vb_gid all = vb_ip_broadcast();
	uint8_t frame[MESSAGE_MOST];
	size_t len = put_arp(g, side, frame, arp);

	gw_send_group(g, side, &all, frame, len);
}

void gw_ask(struct vb_gw *g, enum vb_gw_side side, const struct vb_gid *ip)
{
	const struct vb_gid *from = vb_ip_nets_source(&g->config.nets, ip);
	struct vb_arp arp = { .to_ip = *ip };
	struct vb_nd nd = { .target = *ip };
	uint8_t frame[MESSAGE_MOST];
	size_t len;

	if (!from || !g->side[side].mtu)
		return;
	if (vb_gid_is_ipv4(ip)) {
		arp.from_ip = *from;
		arp_to_all(g, side, &arp);
		return;
	}
	nd.src = *from;
	nd.dst = vb_ip_solicited_node(ip);
	len = put_nd(g, side, frame, &nd);
	gw_send_group(g, side, &nd.dst, frame, len);
}

void gw_announce(struct vb_gw *g, enum vb_gw_side side, const struct vb_gid *ip)
{
	struct vb_arp arp = { .from_ip = *ip, .to_ip = *ip };
	struct vb_nd nd = { .advertise = true,
			    .router = gw_is_router(g, ip),
			    .override = true,
			    .src = *ip,
			    .dst = all_nodes,
			    .target = *ip };
	uint8_t frame[MESSAGE_MOST];
	size_t len;

	if (!g->side[side].mtu)
		return;
	if (vb_gid_is_ipv4(ip)) {
		arp_to_all(g, side, &arp);
		return;
	}
	len = put_nd(g, side, frame, &nd);
	gw_send_group(g, side, &nd.dst, frame, len);
}

static void answer_by_arp(struct vb_gw *g, const struct gw_question *q)
{
	struct vb_arp arp = { .reply = true,
			      .from_ip = q->target,
			      .to_hw = q->hw,
			      .to_ip = q->from };
	uint8_t frame[MESSAGE_MOST];
	size_t len;

	if (is_nobody(&q->from)) {
		arp_to_all(g, q->side, &arp);
		return;
	}
	len = put_arp(g, q->side, frame, &arp);
	gw_send(g, q->side, &q->from, frame, len);
}

static void answer_by_nd(struct vb_gw *g, const struct gw_question *q)
{
	bool nobody = is_nobody(&q->from);
	struct vb_nd nd = { .advertise = true,
			    .router = gw_is_router(g, &q->target),
			    .solicited = !nobody,
			    .src = q->target,
			    .dst = nobody ? all_nodes : q->from,
			    .target = q->target };
	uint8_t frame[MESSAGE_MOST];
	size_t len = put_nd(g, q->side, frame, &nd);

	if (nobody)
		gw_send_group(g, q->side, &nd.dst, frame, len);
	else
		gw_send(g, q->side, &q->from, frame, len);
}

/* Send the answer. A host without an address gets it by broadcast or multicast,
 * since nothing can be sent to the host itself. */
static void answer_question(struct vb_gw *g, const struct gw_question *q)
{
	if (vb_gid_is_ipv4(&q->target))
		answer_by_arp(g, q);
	else
		answer_by_nd(g, q);
}

/* --- questions --- */

void gw_answer_waiting(struct vb_gw *g, enum vb_gw_side side,
		       const struct vb_gid *ip, bool found)
{
	for (unsigned i = 0; i < VB_GW_WAITING; i++) {
		struct gw_question *q = &g->questions[i];

		if (!q->waits || q->side == side ||
		    !vb_gid_equal(&q->target, ip))
			continue;
		q->waits = false;
		if (!found)
			continue;
		g->count.proxied++;
		answer_question(g, q);
	}
}

/* The neighbour @ip of @side was not confirmed within VB_NBR_FRESH: forget it,
 * so that it is asked for anew, since the host may have moved to the side that
 * asks. */
static void forget_old(struct vb_gw *g, enum vb_gw_side side,
		       const struct vb_gid *ip)
{
	const struct vb_nbr *n = vb_nbrs_find(g->side[side].nbrs, ip);

	if (n && n->state >= NBR_READY && n->confirmed + VB_NBR_FRESH <= g->now)
		vb_nbrs_forget(g->side[side].nbrs, ip);
}

/* Does the gateway know that a host of @side itself has the address @ip? */
static bool has_it_itself(const struct vb_gw *g, enum vb_gw_side side,
			  const struct vb_gid *ip)
{
	const struct vb_nbr *n = vb_nbrs_find(g->side[side].nbrs, ip);

	return n && n->state >= NBR_KNOWN;
}

static void ask_other_side(struct vb_gw *g, const struct gw_question *q)
{
	enum vb_gw_side there = gw_other(q->side);

	if (!g->side[there].mtu)
		return;
	g->questions[g->next_question] = *q;
	g->next_question = (g->next_question + 1) % VB_GW_WAITING;
	forget_old(g, there, &q->target);
	vb_nbrs_want(g->side[there].nbrs, &q->target, g->now);
}

/* Should the gateway answer the question, at once or after the other side has
 * answered? */
static bool concerns(const struct vb_gw *g, const struct gw_question *q)
{
	return vb_ip_nets_have(&g->config.nets, &q->target) ||
	       (gw_may_be_neighbour(g, &q->target) &&
		gw_is_near(g, &q->target) &&
		!has_it_itself(g, q->side, &q->target));
}

static void serve_question(struct vb_gw *g, const struct gw_question *q)
{
	if (vb_ip_nets_have(&g->config.nets, &q->target))
		answer_question(g, q);
	else
		ask_other_side(g, q);
}

/* A message of a host of @side shows that @ip has the link-layer address @hw.
 * @create: add the host to the table if it is missing, since the gateway will
 * send to it. */
static void learn(struct vb_gw *g, enum vb_gw_side side,
		  const struct vb_gid *ip, const struct vb_ipoib_hw *hw,
		  bool solicited, bool create)
{
	vb_nbrs_forget(g->side[gw_other(side)].nbrs, ip);
	vb_nbrs_learn(g->side[side].nbrs, ip, hw, solicited, create, g->now);
	gw_give_paths(g);
}

/* Is a message's claim that @from has the link-layer address @hw plausible: is
 * @from a possible neighbour's address, and @hw not the gateway's own? */
static bool is_host(const struct vb_gw *g, enum vb_gw_side side,
		    const struct vb_gid *from, const struct vb_ipoib_hw *hw)
{
	const struct vb_ipoib_hw *own = &g->side[side].hw;

	return gw_may_be_neighbour(g, from) && gw_is_near(g, from) &&
	       !(hw->qpn == own->qpn && vb_gid_equal(&hw->gid, &own->gid));
}

void gw_take_arp(struct vb_gw *g, enum vb_gw_side side, const uint8_t *bytes,
		 size_t len)
{
	struct gw_question q = { .waits = true, .side = side };
	struct vb_arp arp;
	bool host, wanted;

	if (!vb_arp_get(bytes, len, &arp) || arp.link != g->side[side].link)
		return;
	q.target = arp.to_ip;
	q.from = arp.from_ip;
	q.hw = arp.from_hw;
	host = is_host(g, side, &arp.from_ip, &arp.from_hw);
	if (!host && !is_nobody(&arp.from_ip))
		return;
	if (host && vb_gid_equal(&arp.from_ip, &arp.to_ip)) {
		learn(g, side, &arp.from_ip, &arp.from_hw, false, false);
		gw_announce(g, gw_other(side), &arp.from_ip);
		return;
	}
	wanted = !arp.reply && concerns(g, &q);
	if (host)
		learn(g, side, &arp.from_ip, &arp.from_hw, arp.reply, wanted);
	if (wanted)
		serve_question(g, &q);
}

/* Handle a neighbour advertisement. An unsolicited one announces a new
 * link-layer address (RFC 4861, 7.2.6), so the other side is told, too. */
static void take_advertisement(struct vb_gw *g, enum vb_gw_side side,
			       const struct vb_nd *nd)
{
	if (!nd->has_hw || !is_host(g, side, &nd->target, &nd->hw))
		return;
	learn(g, side, &nd->target, &nd->hw, nd->solicited, false);
	if (!nd->solicited)
		gw_announce(g, gw_other(side), &nd->target);
}

void gw_take_nd(struct vb_gw *g, enum vb_gw_side side, const struct vb_ip *ip)
{
	struct gw_question q = { .waits = true, .side = side };
	struct vb_nd nd;
	bool host;

	if (!vb_nd_get(ip, &nd))
		return;
	nd.has_hw = nd.has_hw && nd.link == g->side[side].link;
	if (nd.advertise) {
		take_advertisement(g, side, &nd);
		return;
	}
	q.target = nd.target;
	q.from = nd.src;
	q.hw = nd.hw;
	host = is_host(g, side, &nd.src, &nd.hw);
	if ((!host && !is_nobody(&nd.src)) || !concerns(g, &q))
		return;
	if (host && nd.has_hw)
		learn(g, side, &nd.src, &nd.hw, false, true);
	serve_question(g, &q);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes IP packets between the two sides of a gateway. ARP and neighbour
 * discovery are in gateway_resolve.c. */
#include "ipoib/gateway.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "ipoib/gateway_priv.h"
#include "ipoib/icmp.h"

#define SOURCE_AT 6 /* offset of the source address in an Ethernet frame */
#define TYPE_AT	  12

/* --- addresses --- */

bool gw_may_be_neighbour(const struct vb_gw *g, const struct vb_gid *ip)
{
	return !vb_gid_is_zero(ip) && !vb_gid_is_multicast(ip) &&
	       !vb_gid_is_loopback(ip) &&
	       !vb_ip_nets_have(&g->config.nets, ip) &&
	       !vb_ip_nets_broadcast(&g->config.nets, ip) &&
	       !(vb_gid_is_ipv4(ip) && ip->raw[12] == 0);
}

bool gw_is_near(const struct vb_gw *g, const struct vb_gid *ip)
{
	return vb_gid_is_link_local(ip) || vb_ip_nets_near(&g->config.nets, ip);
}

/* Returns the neighbour to which the gateway sends a packet for @ip: @ip itself
 * if it is in the gateway's networks; else the router that the user has named,
 * or for IPv6 a router that has advertised itself. NULL: there is no such
 * router. */
static const struct vb_gid *next_hop(const struct vb_gw *g,
				     const struct vb_gid *ip)
{
	const struct vb_gid *router = &g->config.router[!vb_gid_is_ipv4(ip)];

	if (gw_is_near(g, ip))
		return ip;
	if (!vb_gid_is_zero(router))
		return router;
	return vb_gid_is_ipv4(ip) ? NULL : gw_default_router(g);
}

/* --- frames --- */

size_t gw_put_head(const struct vb_gw *g, enum vb_gw_side side, uint8_t *frame,
		   enum vb_ipoib_type type)
{
	if (side == GW_IB) {
		vb_ipoib_header_put(frame, type);
		return VB_IPOIB_HEADER;
	}
	memcpy(frame + SOURCE_AT, g->config.mac, VB_MAC_BYTES);
	vb_store_be(frame + TYPE_AT, type, 2);
	return VB_GW_ETH_HEADER;
}

void gw_give_paths(struct vb_gw *g)
{
	static const struct vb_ipoib_path none;

	while (g->path_count) {
		uint32_t query = g->paths[--g->path_count];

		vb_nbrs_path(g->side[GW_ETH].nbrs, query, &none, g->now);
	}
}

void gw_send(struct vb_gw *g, enum vb_gw_side side, const struct vb_gid *ip,
	     const uint8_t *frame, size_t len)
{
	vb_nbrs_send(g->side[side].nbrs, ip, frame, len, g->now);
	if (side == GW_ETH)
		gw_give_paths(g);
}

/* Multicast groups of IP have MAC addresses that follow from the group (RFC
 * 1112, 6.4; RFC 2464, 7). */
static void mac_of_group(const struct vb_gw *g, const struct vb_gid *group,
			 uint8_t mac[VB_MAC_BYTES])
{
	if (vb_ip_nets_broadcast(&g->config.nets, group)) {
		memset(mac, 0xff, VB_MAC_BYTES);
	} else if (vb_gid_is_ipv4(group)) {
		vb_store_be(mac, 0x01005e, 3);
		memcpy(mac + 3, group->raw + 13, 3);
		mac[3] &= 0x7f;
	} else {
		vb_store_be(mac, 0x3333, 2);
		memcpy(mac + 2, group->raw + 12, 4);
	}
}

void gw_send_group(struct vb_gw *g, enum vb_gw_side side,
		   const struct vb_gid *group, const uint8_t *frame, size_t len)
{
	const struct vb_gid all = vb_ip_broadcast();
	uint8_t mac[VB_MAC_BYTES];

	if (side == GW_IB) {
		if (vb_ip_nets_broadcast(&g->config.nets, group))
			group = &all;
		g->ops.ib_group(g->arg, group, frame, len);
		return;
	}
	mac_of_group(g, group, mac);
	g->ops.eth_send(g->arg, mac, frame, len);
}

/* --- forwarding --- */

/* The side by which a packet leaves, and its next receiver. */
struct gw_exit {
	struct vb_gw *g;
	enum vb_gw_side side;
	enum vb_ipoib_type type;
	bool group;
	struct vb_gid to; /* a neighbour, or a group */
};

static void depart(void *arg, const uint8_t *packet, size_t len)
{
	static uint8_t frame[VB_GW_FRAME];
	const struct gw_exit *e = arg;
	size_t head = gw_put_head(e->g, e->side, frame, e->type);

	memcpy(frame + head, packet, len);
	if (e->group)
		gw_send_group(e->g, e->side, &e->to, frame, head + len);
	else
		gw_send(e->g, e->side, &e->to, frame, head + len);
}

/* May the gateway send one more ICMP error in this second? */
static bool may_complain(struct vb_gw *g)
{
	if (g->now >= g->second + VB_SEC) {
		g->second = g->now;
		g->errors = 0;
	}
	return g->errors++ < VB_GW_ERRORS;
}

/* Send @packet, which the gateway itself has made, to the sender of @ip. */
static void send_back(struct vb_gw *g, enum vb_gw_side side,
		      const struct vb_ip *ip, const uint8_t *packet, size_t len)
{
	const struct vb_gid *to = next_hop(g, &ip->src);
	struct gw_exit e = { .g = g, .side = side, .type = ip->type };

	if (!to || !gw_may_be_neighbour(g, to))
		return;
	e.to = *to;
	depart(&e, packet, len);
}

/* Tell the packet's sender by ICMP that the packet is longer than the other
 * side's MTU, @mtu. */
static void complain(struct vb_gw *g, enum vb_gw_side from,
		     const struct vb_ip *ip, const uint8_t *packet, size_t len,
		     unsigned mtu)
{
	const struct vb_gid *own = vb_ip_nets_source(&g->config.nets, &ip->src);
	uint8_t message[VB_ICMP_MOST];
	size_t bytes;

	g->count.dropped++;
	if (!own || vb_gid_is_multicast(&ip->dst) ||
	    vb_ip_nets_broadcast(&g->config.nets, &ip->dst) || !may_complain(g))
		return;
	bytes = vb_icmp_too_big(message, own, packet, len, mtu);
	if (!bytes)
		return;
	g->count.too_big++;
	send_back(g, from, ip, message, bytes);
}

static void leave_fitting(struct gw_exit *e, enum vb_gw_side from,
			  const struct vb_ip *ip, uint8_t *packet, size_t len)
{
	struct vb_gw *g = e->g;
	unsigned mtu = g->side[e->side].mtu;

	if (len <= mtu) {
		depart(e, packet, len);
	} else if (vb_ip_may_be_cut(packet)) {
		g->count.cut++;
		vb_ip_cut(packet, len, mtu, depart, e);
	} else {
		complain(g, from, ip, packet, len, mtu);
		return;
	}
	g->count.passed[from]++;
}

/* Is @ip an IPv6 group whose packets must not leave their host, or a group of
 * the reserved scope 0 (RFC 4291, 2.7)? */
static bool stays_on_host(const struct vb_gid *ip)
{
	return vb_gid_is_multicast(ip) && !vb_gid_is_ipv4(ip) &&
	       (ip->raw[1] & 0x0f) <= 1;
}

static void pass_packet(struct vb_gw *g, enum vb_gw_side from,
			const struct vb_ip *ip, uint8_t *packet, size_t len)
{
	struct gw_exit e = { .g = g, .side = gw_other(from), .type = ip->type };
	const struct vb_gid *hop;

	if (gw_is_of_routers(ip, packet, len))
		len = gw_translate_discovery(g, ip, packet, len);
	e.group = vb_gid_is_multicast(&ip->dst) ||
		  vb_ip_nets_broadcast(&g->config.nets, &ip->dst);
	hop = e.group ? &ip->dst : next_hop(g, &ip->dst);
	if (!len || !g->side[e.side].mtu || !hop || stays_on_host(&ip->dst) ||
	    (!e.group && !gw_may_be_neighbour(g, hop))) {
		g->count.dropped++;
		return;
	}
	e.to = *hop;
	leave_fitting(&e, from, ip, packet, len);
}

/* Handle an IP packet; its bytes may change. */
static void take_packet(struct vb_gw *g, enum vb_gw_side from, uint8_t *packet,
			size_t len, uint32_t sender)
{
	struct vb_ip ip;

	if (!vb_ip_get(packet, len, &ip)) {
		g->count.dropped++;
		return;
	}
	len = vb_ip_bytes(packet);
	if (ip.kind == IP_SOLICIT || ip.kind == IP_ADVERTISE) {
		gw_take_nd(g, from, &ip);
		return;
	}
	vb_nbrs_heard(g->side[from].nbrs, &ip.src, sender, g->now);
	if (from == GW_ETH)
		gw_take_report(g, &ip, packet, len);
	if (!vb_ip_nets_have(&g->config.nets, &ip.dst))
		pass_packet(g, from, &ip, packet, len);
	else if (vb_icmp_echo(packet, len))
		send_back(g, from, &ip, packet, len);
}

/* --- frames from either side --- */

/* Handle a frame. Its bytes are copied first, since vb_ip_cut() overwrites the
 * packet that it cuts. */
static void take_frame_of(struct vb_gw *g, enum vb_gw_side from, unsigned type,
			  const uint8_t *packet, size_t len, uint32_t sender)
{
	static uint8_t copy[VB_GW_PACKET];

	if (!g->side[from].mtu || len > sizeof(copy)) {
		g->count.dropped++;
		return;
	}
	if (type == IPOIB_ARP) {
		gw_take_arp(g, from, packet, len);
		return;
	}
	if (type != IPOIB_IPV4 && type != IPOIB_IPV6)
		return;
	memcpy(copy, packet, len);
	take_packet(g, from, copy, len, sender);
}

/* A switch may flood frames for other hosts to this port, so frames for other
 * MAC addresses are ignored. */
void vb_gw_from_eth(struct vb_gw *g, const uint8_t *frame, size_t len,
		    vb_time now)
{
	struct vb_ipoib_hw from;

	g->now = now;
	if (len < VB_GW_ETH_HEADER)
		return;
	from = vb_hw_of_mac(frame + SOURCE_AT);
	if (vb_gid_equal(&from.gid, &g->side[GW_ETH].hw.gid) ||
	    (!(frame[0] & 1) &&
	     memcmp(frame, g->config.mac, VB_MAC_BYTES) != 0))
		return;
	take_frame_of(g, GW_ETH, (unsigned)vb_load_be(frame + TYPE_AT, 2),
		      frame + VB_GW_ETH_HEADER, len - VB_GW_ETH_HEADER,
		      from.qpn);
}

void vb_gw_from_ib(struct vb_gw *g, unsigned type, const uint8_t *packet,
		   size_t len, uint32_t qpn, vb_time now)
{
	g->now = now;
	take_frame_of(g, GW_IB, type, packet, len, qpn);
}

void vb_gw_told(struct vb_gw *g, const struct vb_gid *ip,
		const struct vb_ipoib_hw *hw)
{
	gw_answer_waiting(g, GW_IB, ip, hw);
}

/* --- the Ethernet side's neighbours --- */

static void eth_nbr_ask(void *arg, const struct vb_gid *ip)
{
	gw_ask(arg, GW_ETH, ip);
}

/* Note the query; gw_give_paths() answers it later. The array has room for
 * every neighbour, and a neighbour makes at most one query before it is
 * answered. */
static void eth_nbr_find_path(void *arg, const struct vb_nbr *n)
{
	struct vb_gw *g = arg;

	if (g->path_count < VB_NBR_TABLE)
		g->paths[g->path_count++] = n->query;
}

/* Sending to a MAC address needs no address handle, but the table takes NULL
 * for a failure, so the handle is any pointer. */
static bool eth_nbr_prepare(void *arg, struct vb_nbr *n)
{
	n->handle = arg;
	return true;
}

static void eth_nbr_release(void *arg, struct vb_nbr *n)
{
}

static void eth_nbr_send(void *arg, const struct vb_nbr *n, const void *frame,
			 size_t len)
{
	struct vb_gw *g = arg;

	g->ops.eth_send(g->arg, n->hw.gid.raw, frame, len);
}

static void eth_nbr_told(void *arg, const struct vb_gid *ip,
			 const struct vb_ipoib_hw *hw)
{
	gw_answer_waiting(arg, GW_ETH, ip, hw);
}

static const struct vb_nbr_ops eth_nbr_ops = {
	.ask = eth_nbr_ask,
	.find_path = eth_nbr_find_path,
	.prepare = eth_nbr_prepare,
	.release = eth_nbr_release,
	.send = eth_nbr_send,
	.told = eth_nbr_told,
};

/* --- creation and end --- */

struct vb_gw *vb_gw_create(const struct vb_gw_ops *ops, void *arg,
			   const struct vb_gw_config *config,
			   struct vb_nbrs *ib)
{
	struct vb_gw *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->ops = *ops;
	g->arg = arg;
	g->config = *config;
	g->side[GW_IB] =
		(struct gw_side){ .nbrs = ib, .link = LINK_INFINIBAND };
	g->side[GW_ETH] = (struct gw_side){
		.nbrs = vb_nbrs_create(&eth_nbr_ops, g, config->seed),
		.link = LINK_ETHERNET,
		.hw = vb_hw_of_mac(config->mac),
		.mtu = config->eth_mtu,
	};
	if (g->side[GW_ETH].nbrs)
		return g;
	free(g);
	return NULL;
}

void vb_gw_destroy(struct vb_gw *g)
{
	vb_nbrs_destroy(g->side[GW_ETH].nbrs);
	free(g);
}

void vb_gw_begin(struct vb_gw *g, const struct vb_ipoib_hw *hw, unsigned mtu,
		 vb_time now)
{
	g->now = now;
	g->side[GW_IB].hw = *hw;
	g->side[GW_IB].mtu = mtu;
	for (unsigned i = 0; i < g->config.nets.count; i++) {
		gw_announce(g, GW_IB, &g->config.nets.list[i].ip);
		gw_announce(g, GW_ETH, &g->config.nets.list[i].ip);
	}
	gw_enter_groups(g);
}

void vb_gw_tick(struct vb_gw *g, vb_time now)
{
	g->now = now;
	vb_nbrs_tick(g->side[GW_ETH].nbrs, now);
	gw_give_paths(g);
	if (g->side[GW_IB].mtu)
		gw_tick_groups(g);
}

vb_time vb_gw_next(const struct vb_gw *g)
{
	vb_time ask = g->side[GW_IB].mtu ? g->ask_at : VB_NEVER;

	return VB_MIN(ask, vb_nbrs_next(g->side[GW_ETH].nbrs));
}

const struct vb_gw_counters *vb_gw_counters(const struct vb_gw *g)
{
	return &g->count;
}

const struct vb_nbrs *vb_gw_neighbours(const struct vb_gw *g)
{
	return g->side[GW_ETH].nbrs;
}

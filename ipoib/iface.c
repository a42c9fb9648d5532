/* SPDX-License-Identifier: BSD-2-Clause */
/* An IPoIB interface: handles packets from the host and from the fabric,
 * answers of the subnet administrator, events and timers. */
#include "ipoib/iface_priv.h"

#include <errno.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "ipoib/icmp.h"

/* --- from the host --- */

static void follow_report(void *arg, const struct vb_gid *group, bool joins)
{
	struct iface *f = arg;
	struct vb_gid mgid = vb_ip_mgid(group, f->pkey);

	if (joins)
		vb_groups_enter(f->groups, &mgid, f->now);
	else
		vb_groups_leave(f->groups, &mgid);
}

/* Is @ip an IPv6 group whose packets must not leave this host (RFC 4291,
 * 2.7)? */
static bool stays_here(const struct vb_gid *ip)
{
	return !vb_gid_is_ipv4(ip) && (ip->raw[1] & 0x0f) <= 1;
}

static void send_to_groups(struct iface *f, const struct vb_ip *ip,
			   const uint8_t *frame, size_t len)
{
	struct vb_gid all = vb_ip_broadcast();
	struct vb_gid mgid = vb_ip_mgid(&ip->dst, f->pkey);

	if (len > f->longest)
		return;
	if (vb_ip_nets_broadcast(&f->tun.nets, &ip->dst))
		mgid = vb_ip_mgid(&all, f->pkey);
	else if (stays_here(&ip->dst))
		return;
	if (ip->kind == IP_REPORT)
		vb_ip_report_read(ip, follow_report, f);
	vb_groups_send(f->groups, &mgid, frame, len, f->now);
}

/* Send the host, whose packet is in @frame, an ICMP error: the host's frames
 * must have at most @most bytes, header included. The error's source is the
 * packet's destination, since a host drops messages that have its own address
 * as the source. */
static void tell_too_long(struct iface *f, const uint8_t *frame, size_t len,
			  unsigned most)
{
	const uint8_t *packet = frame + VB_IPOIB_HEADER;
	uint8_t message[VB_ICMP_MOST];
	struct vb_ip ip;
	size_t n;

	len -= VB_IPOIB_HEADER;
	if (!vb_ip_get(packet, len, &ip))
		return;
	n = vb_icmp_too_big(message, &ip.dst, packet, len,
			    most - VB_IPOIB_HEADER);
	if (n)
		iface_to_host(f, message, n);
}

void iface_send_to(struct iface *f, const struct vb_ipoib_hw *hw,
		   struct ibv_ah *ah, const void *frame, size_t len)
{
	unsigned most;
	enum vb_conn_way way = ipoib_cm_send(&f->cm, hw, frame, len, f->longest,
					     f->now, &most);

	if (way == CONN_DATAGRAM)
		ipoib_port_send(&f->port, ah, hw->qpn, frame, len);
	else if (way == CONN_TOO_LONG)
		tell_too_long(f, frame, len, most);
}

/* Send an IP packet from the host; @frame has room for a header before it.
 * Neighbour discovery of the host's kernel is dropped, because its messages
 * lack the link-layer addresses of IPoIB; ipoib/iface_resolve.c sends its
 * own. */
static void send_packet(struct iface *f, uint8_t *frame, size_t len)
{
	struct vb_ip ip;

	if (!f->groups ||
	    !vb_ip_get(frame + VB_IPOIB_HEADER, len - VB_IPOIB_HEADER, &ip) ||
	    ip.kind == IP_SOLICIT || ip.kind == IP_ADVERTISE)
		return;
	vb_ipoib_header_put(frame, ip.type);
	if (vb_gid_is_multicast(&ip.dst) ||
	    vb_ip_nets_broadcast(&f->tun.nets, &ip.dst))
		send_to_groups(f, &ip, frame, len);
	else
		vb_nbrs_send(f->nbrs, route_next_hop(&f->routes, &ip.dst),
			     frame, len, f->now);
}

bool iface_has_room(const struct iface *f)
{
	return ipoib_port_has_room(&f->port) &&
	       ipoib_cm_has_room(&f->cm, f->now);
}

/* Sends into the fabric what the kernel has sent to the interface. The kind's
 * send() checks the length of each frame, since the interface's MTU may be
 * larger than the broadcast group's: a user may have set it, and in connected
 * mode it always is. */
void iface_from_tun(struct iface *f)
{
	for (unsigned i = 0; i < IFACE_BATCH && iface_has_room(f); i++) {
		ssize_t n = read(f->tun.fd, f->frame + VB_IPOIB_HEADER,
				 sizeof(f->frame) - VB_IPOIB_HEADER);

		if (n <= 0)
			break;
		f->kind->send(f, f->frame, (size_t)n + VB_IPOIB_HEADER);
	}
	ipoib_port_flush(&f->port);
}

/* --- from the fabric --- */

/* A packet for which the host has no room is lost, as on any link. */
void iface_to_host(struct iface *f, const uint8_t *packet, size_t len)
{
	if (write(f->tun.fd, packet, len) < 0 && errno == EIO)
		vb_log(LOG_DEBUG, "%s: the interface is down", f->tun.name);
}

/* Handle an IP packet. @qpn: the queue pair from which the sender sends its
 * datagrams. */
static void take_ip(struct iface *f, uint32_t qpn, const uint8_t *packet,
		    size_t len)
{
	struct vb_ip ip;

	if (!vb_ip_get(packet, len, &ip))
		return;
	if (ip.kind == IP_SOLICIT || ip.kind == IP_ADVERTISE) {
		iface_take_nd(f, &ip);
		return;
	}
	vb_nbrs_heard(f->nbrs, &ip.src, qpn, f->now);
	iface_to_host(f, packet, len);
}

static void take_typed(struct iface *f, uint32_t qpn, unsigned type,
		       const uint8_t *packet, size_t len)
{
	if (type == IPOIB_ARP)
		iface_take_arp(f, packet, len);
	else if (type == IPOIB_IPV4 || type == IPOIB_IPV6)
		take_ip(f, qpn, packet, len);
}

static void take_packet_of(struct iface *f, const struct ibv_wc *wc,
			   unsigned type, const uint8_t *packet, size_t len)
{
	take_typed(f, wc->src_qp, type, packet, len);
}

/* Has this interface sent the packet itself? A group's packets come back to
 * their sender, which is a member, too. */
static bool is_own(const struct iface *f, const struct ibv_wc *wc)
{
	return wc->src_qp == f->port.qp->qp_num && wc->slid == f->port.lid;
}

/* Handle a frame that came by a connection; only IPoIB interfaces have
 * connections. */
static void take_connected(void *arg, uint32_t qpn, const uint8_t *frame,
			   size_t len)
{
	unsigned type = vb_ipoib_header_get(frame, len);
	struct iface *f = arg;

	if (len >= VB_IPOIB_HEADER && f->groups)
		take_typed(f, qpn, type, frame + VB_IPOIB_HEADER,
			   len - VB_IPOIB_HEADER);
}

static void take_datagram(void *arg, const struct ibv_wc *wc,
			  const uint8_t *frame, size_t len)
{
	unsigned type = vb_ipoib_header_get(frame, len);
	struct iface *f = arg;

	if (len < VB_IPOIB_HEADER || is_own(f, wc) || !f->groups)
		return;
	f->kind->take(f, wc, type, frame + VB_IPOIB_HEADER,
		      len - VB_IPOIB_HEADER);
}

/* The completion queues are armed before they are polled, so that each
 * completion that the polls miss raises an event. */
bool iface_from_fabric(struct iface *f)
{
	unsigned frames = 0;
	int n;

	ipoib_port_arm(&f->port);
	ipoib_cm_arm(&f->cm);
	n = ipoib_port_poll(&f->port, take_datagram, f);
	if (n < 0)
		f->failure = "the fabric has ended";
	else if (f->cm.channel)
		frames = ipoib_cm_poll(&f->cm, take_connected, f, f->now);
	ipoib_port_flush(&f->port);
	return n >= PORT_RECVS || frames >= CM_RECVS;
}

/* --- answers, addresses, events --- */

void iface_from_sa(struct iface *f)
{
	struct ipoib_sa_answer a;

	while (ipoib_sa_take(&f->port, &a)) {
		if (a.attr_id == SA_PATH)
			vb_nbrs_path(f->nbrs, (uint32_t)a.tid,
				     a.good ? &a.path : NULL, f->now);
		else if (a.attr_id == SA_MCMEMBER && !a.left && f->groups)
			vb_groups_answer(f->groups, (uint32_t)a.tid,
					 a.good ? &a.group : NULL, f->now);
	}
	ipoib_port_flush(&f->port);
}

void iface_from_cm(struct iface *f)
{
	bool listened = f->cm.listener;

	ipoib_cm_events(&f->cm, f->now);
	ipoib_cm_answers(&f->cm, f->now);
	/* The interface has begun to listen only now: follow_begin() brings it
	 * up again with the MTU of connected mode, and announces its addresses
	 * to the neighbours. */
	if (!listened && f->cm.listener && f->groups)
		f->begun = true;
	ipoib_port_flush(&f->port);
}

/* Become a member of the groups that every host is a member of, and of those by
 * which neighbours ask for the host's IPv6 addresses. */
void iface_enter_groups(struct iface *f)
{
	static const struct vb_gid all_nodes = { { 0xff, 0x02, [15] = 1 } };
	static const uint8_t all_hosts[4] = { 224, 0, 0, 1 };
	struct vb_gid ip = vb_gid_from_ipv4(all_hosts), mgid;

	mgid = vb_ip_mgid(&ip, f->pkey);
	vb_groups_enter(f->groups, &mgid, f->now);
	mgid = vb_ip_mgid(&all_nodes, f->pkey);
	vb_groups_enter(f->groups, &mgid, f->now);
	for (unsigned i = 0; i < f->tun.nets.count; i++) {
		if (vb_gid_is_ipv4(&f->tun.nets.list[i].ip))
			continue;
		ip = vb_ip_solicited_node(&f->tun.nets.list[i].ip);
		mgid = vb_ip_mgid(&ip, f->pkey);
		vb_groups_enter(f->groups, &mgid, f->now);
	}
}

void iface_from_netlink(struct iface *f)
{
	tun_drain(&f->tun);
	route_forget(&f->routes);
	if (tun_refresh(&f->tun) && f->groups && f->mtu)
		f->kind->enter(f);
	ipoib_port_flush(&f->port);
}

void iface_from_events(struct iface *f)
{
	struct ibv_async_event e;

	while (ibv_get_async_event(f->port.context, &e) == 0) {
		vb_log(LOG_DEBUG, "%s: %s", f->tun.name,
		       ibv_event_type_str(e.event_type));
		if (e.event_type == IBV_EVENT_DEVICE_FATAL)
			f->failure = "the adapter has failed";
		ibv_ack_async_event(&e);
		f->news = true;
	}
}

/* --- the port's state, and timers --- */

static void begin_groups(struct iface *f)
{
	struct vb_gid all = vb_ip_broadcast();
	struct vb_gid mgid = vb_ip_mgid(&all, f->pkey);

	f->groups_gid = f->port.gid;
	f->groups = vb_groups_create(&iface_group_ops, f, &mgid, &f->port.gid,
				     f->pkey, f->now);
	if (!f->groups)
		f->failure = "there is no memory";
}

static void follow_port(struct iface *f)
{
	bool fit;

	f->news = false;
	if (ipoib_port_refresh(&f->port, f->pkey)) {
		f->failure = "the adapter does not say what its port is";
		return;
	}
	fit = f->port.active && f->port.pkey_index >= 0;
	if (f->groups && fit && vb_gid_equal(&f->groups_gid, &f->port.gid)) {
		vb_groups_rejoin(f->groups, f->now);
		vb_nbrs_forget_paths(f->nbrs, f->now);
		f->kind->moved(f);
		return;
	}
	tun_carrier(&f->tun, false);
	if (f->groups && (!vb_gid_equal(&f->groups_gid, &f->port.gid) ||
			  f->port.pkey_index < 0)) {
		vb_groups_destroy(f->groups);
		f->groups = NULL;
		ipoib_cm_hush(&f->cm);
	}
	if (fit && !f->groups)
		begin_groups(f);
}

/* The interface has joined its broadcast group and can be used. The first time,
 * set it up and give it its addresses. */
static void follow_begin(struct iface *f)
{
	const struct vb_sa_mcmember *all = vb_groups_broadcast(f->groups);
	unsigned mtu;

	f->begun = false;
	if (!all)
		return;
	f->longest = vb_sa_mtu_bytes(all->mtu);
	mtu = f->longest - VB_IPOIB_HEADER;
	if (f->kind->bring_up(f, mtu))
		return;
	f->kind->enter(f);
}

/* Returns the time of the next try to listen for neighbours' connections;
 * VB_NEVER: the interface listens already, or is not in connected mode. */
static vb_time next_listen(const struct iface *f)
{
	return f->cm.channel && !f->cm.listener && f->groups &&
			       vb_groups_broadcast(f->groups)
		       ? f->cm.retry
		       : VB_NEVER;
}

vb_time iface_tick(struct iface *f)
{
	vb_time due;

	if (f->news && !f->failure)
		follow_port(f);
	if (f->groups)
		vb_groups_tick(f->groups, f->now);
	vb_nbrs_tick(f->nbrs, f->now);
	if ((f->begun || next_listen(f) <= f->now) && f->groups && !f->failure)
		follow_begin(f);
	due = ipoib_cm_tick(&f->cm, f->now);
	if (f->gw)
		vb_gw_tick(f->gw, f->now);
	ipoib_port_flush(&f->port);
	due = VB_MIN(due, vb_nbrs_next(f->nbrs));
	due = VB_MIN(due, next_listen(f));
	due = VB_MIN(due, f->gw ? vb_gw_next(f->gw) : VB_NEVER);
	return VB_MIN(due, f->groups ? vb_groups_next(f->groups) : VB_NEVER);
}

/* --- IPoIB --- */

/* In connected mode the MTU is that of connections, which carry longer packets
 * than datagrams do. */
static int bring_up_host(struct iface *f, unsigned mtu)
{
	if (ipoib_cm_listen(&f->cm, f->pkey, f->now))
		mtu = VB_CONN_LONGEST - VB_IPOIB_HEADER;
	return iface_bring_up(f, mtu);
}

static void enter_host(struct iface *f)
{
	iface_enter_groups(f);
	iface_announce(f);
}

static void forget_nothing(struct iface *f)
{
}

static void tell_program(struct iface *f, const struct vb_gid *ip,
			 const struct vb_ipoib_hw *hw)
{
	lookup_told(&f->lookup, ip, hw);
}

const struct iface_kind iface_ip = {
	.open = iface_ip_open,
	.send = send_packet,
	.take = take_packet_of,
	.bring_up = bring_up_host,
	.enter = enter_host,
	.moved = forget_nothing,
	.told = tell_program,
};

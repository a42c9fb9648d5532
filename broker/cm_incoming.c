/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles requests and events that the state machine (mgmt/cm_ib.h) reports:
 * finds the listener for a request, and tells programs by events what
 * happened. */
#include "broker/cm_priv.h"

#include <errno.h>

#define HOP_LIMIT 64
/* Code of XRC in the extended transport type (IBA 12.6.5). */
#define XRC_TRANSPORT 1

struct vb_ipc_cm vb_cm_id_event(const struct vb_cm_id *id,
				enum vb_ipc_cm_event e)
{
	return (struct vb_ipc_cm){ .kind = IPC_CM_EVENT,
				   .version = VB_IPC_CM_VERSION,
				   .event = (uint8_t)e,
				   .id = id->number };
}

/* Adds the numbers with which the program can resume the connection at another
 * broker. */
static void attach_ticket(struct vb_ipc_cm *m, const struct vb_cm_conn *c)
{
	m->local_id = c->local_id;
	m->remote_id = c->remote_id;
	m->peer_qpn = c->remote_qpn & 0xffffff;
	m->guid = c->remote_guid;
	m->tid = c->tid;
}

static void attach_private(struct vb_ipc_cm *m, const uint8_t *data,
			   unsigned bytes)
{
	m->private_bytes = (uint8_t)bytes;
	memcpy(m->private_data, data, bytes);
}

/* Adds by which fabric's adapter, and to which LID, the packets of the
 * connection leave. */
static void describe_place(struct vb_ipc_cm *m, const struct vb_mad_path *p,
			   uint16_t dlid, uint16_t pkey)
{
	m->place = p->place;
	m->dlid = dlid;
	m->pkey = pkey;
	m->sl = p->sl;
	m->path_bits = p->path_bits;
}

/* Fill in the fields of a REQUEST. Responder resources and initiator depth are
 * exchanged: what the peer initiates, this side must answer. */
static void describe_request(struct vb_ipc_cm *m, const struct vb_cm_req *q,
			     uint32_t ifindex)
{
	m->src = q->path.remote_gid;
	m->dst = q->path.local_gid;
	m->ifindex = ifindex;
	m->qpn = q->qpn;
	m->psn = q->psn;
	m->guid = q->ca_guid;
	m->responder_resources = q->initiator_depth;
	m->initiator_depth = q->responder_resources;
	m->retry_count = q->retry_count;
	m->rnr_retry = q->rnr_retry;
	m->flow_control = q->flow_control;
	m->srq = q->srq;
	m->mtu = VB_MIN(q->mtu, 5);
	m->tclass = q->path.tclass;
	m->hop_limit = q->path.hop_limit;
	m->flow_label = q->path.flow_label;
	m->ack_timeout = q->path.ack_timeout;
	m->vendor_id = q->vendor_id;
}

/* Fill in the fields of the event for a SIDR REQ. A SIDR REQ describes no path,
 * so the event has the path back to the packet's sender. */
static void describe_look_up(struct vb_ipc_cm *m, const struct vb_mad_path *p)
{
	m->src = p->sgid;
	m->dst = p->dgid;
	m->ifindex = p->ifindex;
	m->hop_limit = HOP_LIMIT;
	if (!p->place)
		return;
	describe_place(m, p, p->dlid, p->pkey);
	m->tclass = p->tclass;
	m->flow_label = p->flow_label;
	m->hop_limit = p->global ? HOP_LIMIT : 0;
}

static void describe_address(struct vb_ipc_cm *m, const struct vb_cm_msg *msg)
{
	m->status = msg->sidr.status;
	m->qpn = msg->sidr.qpn;
	m->qkey = msg->sidr.qkey;
	m->vendor_options = msg->attr_mod;
	attach_private(m, msg->private_data, vb_cm_private_bytes(CM_SIDR_REP));
}

static void describe_reply(struct vb_ipc_cm *m, const struct vb_cm_msg *msg)
{
	const struct vb_cm_rep *p = &msg->rep;

	m->qpn = vb_cm_rep_qpn(p);
	m->psn = p->psn;
	m->guid = p->ca_guid;
	m->vendor_id = p->vendor_id;
	m->vendor_options = msg->attr_mod;
	m->responder_resources = p->initiator_depth;
	m->initiator_depth = p->responder_resources;
	m->rnr_retry = p->rnr_retry;
	m->flow_control = p->flow_control;
	m->srq = p->srq;
	if (p->failover != CM_FAILOVER_ACCEPTED)
		m->flags |= IPC_CM_NO_ALTERNATE;
	attach_private(m, msg->private_data, vb_cm_private_bytes(CM_REP));
}

static struct vb_cm_id *listener_at(struct vb_host_cm *cm, uint64_t service,
				    const struct vb_gid *address, bool plain)
{
	uint16_t space, number;
	struct vb_cm_port *p = NULL;

	if (vb_ipc_cm_service_split(service, &space, &number))
		p = vb_cm_ports_find(&cm->ports, space, number, address, plain);
	return p ? VB_CONTAINER_OF(p, struct vb_cm_id, port) : NULL;
}

/* Does the program use the adapter at which the request with the path @path has
 * arrived? */
static bool hears_at(const struct vb_cm_client *c,
		     const struct vb_mad_path *path)
{
	return path->place ? vb_cm_client_has_place(c, path->place)
			   : !c->only_places;
}

/*
 * Finds a listener by the addresses in the header. A listener at a loopback
 * address serves this host only, but another host can write a loopback address
 * into the header. So the request must come from this host: sent by this
 * broker, or by way of loopback. A request of this broker to a loopback address
 * also finds a listener at @to, the address of the device to which the request
 * was sent instead.
 */
static struct vb_cm_id *find_by_header(struct vb_host_cm *cm,
				       const struct vb_cm_msg *m,
				       uint64_t service,
				       const struct vb_gid *to,
				       const struct vb_gid *named)
{
	struct vb_cm_id *l;

	if (!vb_gid_is_loopback(named) || vb_gid_equal(named, to))
		return listener_at(cm, service, named, false);
	if (!vb_cm_is_own(cm->engine, m))
		return NULL;
	l = listener_at(cm, service, named, false);
	if (!l && !vb_gid_is_loopback(to) &&
	    vb_gid_is_ipv4(named) == vb_gid_is_ipv4(to))
		l = listener_at(cm, service, to, false);
	return l;
}

/* Finds a listener of AF_IB by the address @to which the request came, and a
 * listener of IP by the address in rdma_cm's header. NULL: @reason says why. */
static struct vb_cm_id *find_listener(struct vb_host_cm *cm,
				      const struct vb_cm_msg *m,
				      const struct vb_gid *to,
				      struct vb_cm_header *header,
				      unsigned *reason)
{
	uint64_t service =
		m->attr == CM_REQ ? m->req.service_id : m->sidr.service_id;
	struct vb_cm_id *l;

	*reason = CM_REJ_INVALID_SERVICE_ID;
	l = listener_at(cm, service, to, true);
	if (l || service >> 32)
		return l;
	if (!vb_cm_header_get(m->private_data, header)) {
		*reason = CM_REJ_CONSUMER;
		return NULL;
	}
	return find_by_header(cm, m, service, to, &header->dst);
}

/* Returns a number that no id of the client's program has. The broker looks
 * each candidate up, because ids that the program resumed from an earlier
 * broker keep the numbers of that broker. */
static uint32_t new_number(const struct vb_cm_client *c)
{
	uint32_t number;

	do
		number = VB_IPC_CM_INCOMING | c->cm->next_number++;
	while (vb_cm_id_find(c, number));
	return number;
}

struct vb_cm_transport_code vb_cm_transport_of(enum vb_ipc_cm_type type)
{
	// clang-format off
	static const struct vb_cm_transport_code transports[IPC_CM_TYPES] = {
		[IPC_CM_RC]  = { CM_RC, 0 },
		[IPC_CM_UC]  = { CM_UC, 0 },
		[IPC_CM_XRC] = { CM_EXTENDED, XRC_TRANSPORT },
	};
	// clang-format on

	return transports[type];
}

static bool is_for(enum vb_ipc_cm_type type, const struct vb_cm_msg *m)
{
	struct vb_cm_transport_code t;

	if (m->attr == CM_SIDR_REQ || type == IPC_CM_UD)
		return m->attr == CM_SIDR_REQ && type == IPC_CM_UD;
	t = vb_cm_transport_of(type);
	return m->req.transport == t.transport &&
	       (m->req.transport != CM_EXTENDED ||
		m->req.extended_transport == t.extended);
}

/* The same as cm_incoming_is_on_its_way() for a REQ that came to a fabric's
 * adapter. @bits: the path bits of the LID at which the peer wants to reach the
 * port. A peer behind a router is known by its GID, not by a LID. */
static bool is_on_its_route(const struct vb_host_cm *cm,
			    const struct vb_mad_path *from,
			    const struct vb_cm_path *p, uint8_t *bits)
{
	if (!vb_place_has_gid(cm->adapters, from->place, &p->remote_gid))
		return false;
	if (from->global && !p->subnet_local) {
		*bits = from->path_bits;
		return vb_gid_equal(&p->local_gid, &from->dgid);
	}
	return p->local_lid == from->dlid &&
	       vb_place_has_lid(cm->adapters, from->place, p->remote_lid, bits);
}

/* Are the addresses in a REQ those of its packet? They must be, so that no peer
 * can make this host send to a third one. */
static bool cm_incoming_is_on_its_way(const struct vb_host_cm *cm,
				      const struct vb_cm_conn *c,
				      const struct vb_cm_msg *m, uint8_t *bits)
{
	if (c->path.place && !c->sidr)
		return is_on_its_route(cm, &c->path, &m->req.path, bits);
	return c->sidr ||
	       (vb_gid_equal(&m->req.path.local_gid, &c->path.dgid) &&
		vb_gid_equal(&m->req.path.remote_gid, &c->path.sgid));
}

static struct vb_cm_id *make_incoming(struct vb_cm_id *l, struct vb_cm_conn *c)
{
	struct vb_cm_id *id;

	if (vb_cm_id_make(l->client, new_number(l->client), &id))
		return NULL;
	id->state = ID_CONN;
	id->type = l->type;
	id->listener = l->number;
	id->conn = c;
	c->owner = id;
	l->pending++;
	return id;
}

/* Names the ends of a request by the addresses in rdma_cm's header, if the path
 * has others. On InfiniBand these are the IP addresses of both ends. Loopback
 * addresses count only if the request comes from this host, because programs
 * trust callers from 127.0.0.1. */
static void name_ends(const struct vb_host_cm *cm, const struct vb_cm_msg *m,
		      const struct vb_cm_header *header, struct vb_ipc_cm *e)
{
	if (e->place && !vb_gid_is_loopback(&header->dst))
		e->src_name = header->dst;
	if (e->place && !vb_gid_is_loopback(&header->src))
		e->dst_name = header->src;
	if (vb_cm_is_own(cm->engine, m))
		vb_cm_header_name(e, header);
}

/* Describes in @e the path that the request @m asks for; @bits: as of
 * is_on_its_route(). */
static void describe_path(struct vb_ipc_cm *e, const struct vb_cm_conn *c,
			  const struct vb_cm_msg *m, uint8_t bits)
{
	const struct vb_cm_path *p = &m->req.path;

	if (c->sidr) {
		describe_look_up(e, &c->path);
		return;
	}
	describe_request(e, &m->req, c->path.ifindex);
	if (!c->path.place)
		return;
	describe_place(e, &c->path, p->local_lid, m->req.pkey);
	if (!p->subnet_local && c->path.global)
		e->dlid = c->path.dlid;
	e->sl = p->sl;
	e->rate = p->rate;
	e->path_bits = bits;
}

/* Returns the address at which the peer wants to reach this host. */
static const struct vb_gid *called_at(const struct vb_cm_conn *c,
				      const struct vb_cm_msg *m)
{
	return c->path.place && !c->sidr ? &m->req.path.remote_gid
					 : &c->path.sgid;
}

unsigned vb_host_cm_on_request(void *arg, struct vb_cm_conn *c,
			       const struct vb_cm_msg *m)
{
	struct vb_cm_header header = { 0 };
	unsigned reason;
	struct vb_cm_id *l = find_listener(arg, m, called_at(c, m), &header,
					   &reason),
			*id;
	uint8_t path_bits = 0;
	struct vb_ipc_cm e;
	unsigned skip;

	if (!l)
		return reason;
	if (!hears_at(l->client, &c->path))
		return CM_REJ_INVALID_SERVICE_ID;
	if (!is_for(l->type, m))
		return CM_REJ_INVALID_TRANSPORT;
	if (!cm_incoming_is_on_its_way(arg, c, m, &path_bits))
		return CM_REJ_INVALID_GID;
	if (l->pending >= l->backlog)
		/* the peer repeats the request, as with TCP */
		return VB_CM_LATER;
	id = make_incoming(l, c);
	if (!id)
		return CM_REJ_NO_RESOURCES;
	e = vb_cm_id_event(id, IPC_CM_REQUEST);
	e.listener = l->number;
	e.space = l->port.space;
	e.type = (uint8_t)l->type;
	e.flags = c->path.v1 ? IPC_CM_V1 : 0;
	e.src_port = l->port.number;
	e.dst_port = header.port;
	e.vendor_options = m->attr_mod;
	if (c->sidr)
		id->service = m->sidr.service_id;
	describe_path(&e, c, m, path_bits);
	if (!c->sidr)
		vb_cm_alternate_offer(id, &m->req, &e);
	name_ends(arg, m, &header, &e);
	attach_ticket(&e, c);
	skip = vb_cm_header_room(l->port.flags);
	attach_private(&e, m->private_data + skip,
		       vb_cm_private_bytes(m->attr) - skip);
	vb_cm_client_tell(l->client, &e);
	return 0;
}

void vb_host_cm_on_happen(void *arg, struct vb_cm_conn *c,
			  enum vb_cm_happening what, const struct vb_cm_msg *m)
{
	// clang-format off
	static const enum vb_ipc_cm_event events[] = {
		[CM_HAS_REPLY]	     = IPC_CM_REPLY,
		[CM_IS_ESTABLISHED]  = IPC_CM_ESTABLISHED,
		[CM_IS_REJECTED]     = IPC_CM_REJECTED,
		[CM_IS_UNREACHABLE]  = IPC_CM_UNREACHABLE,
		[CM_IS_DISCONNECTED] = IPC_CM_DISCONNECTED,
		[CM_IS_OVER]	     = IPC_CM_OVER,
		[CM_HAS_ADDRESS]     = IPC_CM_ADDRESS,
	};
	// clang-format on
	struct vb_cm_id *id = c->owner;
	struct vb_ipc_cm e = vb_cm_id_event(id, events[what]);

	vb_cm_id_leave_backlog(id);
	attach_ticket(&e, c);
	if (what == CM_HAS_REPLY) {
		describe_reply(&e, m);
		e.mtu = c->mtu;
	}
	if (what == CM_HAS_ADDRESS)
		describe_address(&e, m);
	if (what == CM_IS_REJECTED) {
		e.status = m->answer.reason;
		attach_private(&e, m->private_data,
			       vb_cm_private_bytes(CM_REJ));
	}
	if (what == CM_IS_UNREACHABLE)
		e.status = c->returned ? -c->returned : -ETIMEDOUT;
	vb_cm_client_tell(id->client, &e);
}

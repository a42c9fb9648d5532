/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles messages of the broker, or of an iWARP stream: what each changes in
 * its id, and the event that the program gets for it.
 */
#include "front/rdmacm/event_priv.h"

#include <endian.h>
#include <string.h>

#include "base/log.h"
#include "wire/mad.h"

/* Copies the connection parameters of the peer's message to the event. The
 * private data stay in @e and live until the program acknowledges the event. */
static void fill_connection(struct rcm_event *e)
{
	struct rdma_conn_param *p = &e->pub.param.conn;
	const struct vb_ipc_cm *m = &e->m;

	p->private_data = m->private_bytes ? e->m.private_data : NULL;
	p->private_data_len = m->private_bytes;
	if (e->more) {
		p->private_data = e->more->bytes ? e->more->data : NULL;
		p->private_data_len = e->more->bytes;
	}
	p->responder_resources = m->responder_resources;
	p->initiator_depth = m->initiator_depth;
	p->flow_control = m->flow_control;
	p->retry_count = m->retry_count;
	p->rnr_retry_count = m->rnr_retry;
	p->srq = m->srq;
	p->qp_num = m->qpn;
}

/* Copies to the event what the program needs to send datagrams to the peer: the
 * peer's queue pair number, Q_Key and address. */
static void event_take_fill_datagram(struct rcm_event *e,
				     const struct rcm_id *id)
{
	struct rdma_ud_param *p = &e->pub.param.ud;
	const struct vb_ipc_cm *m = &e->m;

	p->private_data = m->private_bytes ? e->m.private_data : NULL;
	p->private_data_len = m->private_bytes;
	p->qp_num = m->qpn;
	p->qkey = m->qkey;
	rcm_fill_ah(id, &p->ah_attr, &id->path.dst);
}

static void close_request(uint32_t number)
{
	const struct vb_ipc_cm m = { .kind = IPC_CM_CLOSE,
				     .version = VB_IPC_CM_VERSION,
				     .id = number };

	(void)!rcm_session_tell(&m);
}

/* Returns the address by which the peer's program knows one end: @name, for
 * example a loopback address, or, if the message has none, @way, the GID of
 * that end. */
static const struct vb_gid *event_take_name_of(const struct vb_gid *name,
					       const struct vb_gid *way)
{
	return vb_gid_is_zero(name) ? way : name;
}

/* Fills the addresses of @id in the address family of its listener. A peer that
 * connects to an AF_IB listener does not tell its own port or port space, so
 * the remote address has 0 there. */
static void put_addresses(const struct rcm_id *listener, struct rcm_id *id,
			  const struct vb_ipc_cm *m)
{
	struct rdma_addr *a = &id->pub.route.addr;
	const struct vb_gid *src = event_take_name_of(&m->src_name, &m->src);
	const struct vb_gid *dst = event_take_name_of(&m->dst_name, &m->dst);

	if (listener->pub.route.addr.src_addr.sa_family == AF_IB) {
		rcm_address_of_ib(&a->src_addr, &m->src, m->space, m->src_port);
		rcm_address_of_ib(&a->dst_addr, &m->dst, 0, 0);
	} else {
		rcm_address_of(&a->src_addr, src, m->src_port,
			       id->path.ifindex);
		rcm_address_of(&a->dst_addr, dst, m->dst_port,
			       id->path.ifindex);
	}
	memcpy(a->addr.ibaddr.sgid.raw, m->src.raw, 16);
	memcpy(a->addr.ibaddr.dgid.raw, m->dst.raw, 16);
	a->addr.ibaddr.pkey = htobe16(m->place ? m->pkey : 0xffff);
}

/* Chooses the device that has the local address of the request. A TCP stream
 * can come to 127.0.0.1, which no device has: then this function chooses any
 * iWARP device that is up. 0 or -errno. */
static int choose_device(struct rcm_id *id, const struct rcm_event *e)
{
	const struct vb_gid *own = &e->m.src;
	int rc;

	if (!e->stream && e->m.place)
		return rcm_device_choose_place(id, own, e->m.place);
	if (!e->stream)
		return rcm_device_choose(id, own, RCM_ROCE);
	rc = rcm_device_choose(id, own, RCM_IWARP);
	if (rc == -ENODEV && vb_gid_is_loopback(own))
		rc = rcm_device_choose_home(id, own, RCM_IWARP);
	return rc;
}

/* Makes the id of a connection request that arrived for @listener. NULL: no
 * memory, no device, or the stream has ended. The caller holds no lock. */
static struct rcm_id *adopt(struct rcm_id *listener, const struct rcm_event *e)
{
	const struct vb_ipc_cm *m = &e->m;
	struct rcm_id *id =
		rcm_id_create(listener->pub.channel, listener->pub.context,
			      listener->pub.ps, listener->pub.qp_type);

	if (!id)
		return NULL;
	id->path = *m;
	/* Both ends of a connection are of one version. */
	id->gid_rule = m->flags & IPC_CM_V1 ? RCM_GID_V1 : RCM_GID_V2;
	if (choose_device(id, e) || (e->stream && rcm_iw_adopt(e, id))) {
		(void)rdma_destroy_id(&id->pub);
		return NULL;
	}
	if (!e->stream) {
		rcm_id_renumber(id, m->id);
		id->in_broker = true;
	}
	id->peer = *m;
	id->port = m->src_port;
	id->state = RCM_CONNECTING;
	id->tos = listener->tos;
	id->qkey = listener->qkey;
	id->responder_resources = m->responder_resources;
	id->initiator_depth = m->initiator_depth;
	put_addresses(listener, id, m);
	if (!rcm_alternate_port(id))
		id->path.alternate.place = 0;
	if (!e->stream && !rcm_is_ud(id))
		rcm_route_describe(id);
	return id;
}

/* Replaces the entry in rcm.unseen by the record of @id (NULL: the request is
 * dropped). Both changes are made under one lock, so that at every moment
 * resume.c would report the request to the next broker exactly once. */
static void note_seen(struct rcm_event *e, struct rcm_id *id)
{
	pthread_mutex_lock(&rcm.lock);
	rcm_unseen_remove(e);
	if (id) {
		id->record.ticket = e->m;
		id->record.stage = RCM_ASKED;
	}
	pthread_mutex_unlock(&rcm.lock);
}

/* True if the request asks for a larger path MTU than the local interface
 * supports; both ends must use one MTU. The caller then rejects the request
 * with reason 26 and the largest possible MTU (IBA 12.6.7.2), so that the peer
 * can ask again with that. A datagram request and an iWARP stream have no path
 * MTU. */
static bool is_too_long_for(const struct rcm_event *e, const struct rcm_id *id)
{
	return !e->stream && !rcm_is_ud(id) && e->m.mtu > id->device->mtu;
}

static void ask_for_less(struct rcm_id *id)
{
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_REJECT);

	vb_log(LOG_INFO,
	       "rdmacm: rejected a request for path MTU %u: %s carries %u",
	       128u << id->path.mtu, id->device->verbs->device->name,
	       128u << id->device->mtu);
	m.status = CM_REJ_INVALID_MTU;
	m.private_bytes = 1;
	m.private_data[0] = id->device->mtu;
	(void)!rcm_session_tell(&m);
}

/* Handles a connection request. False: this function has rejected the request,
 * and the program gets no event. */
static bool take_request(struct rcm_event *e)
{
	struct rcm_id *id = adopt(e->id, e);

	note_seen(e, id);
	if (id && is_too_long_for(e, id)) {
		ask_for_less(id);
		(void)rdma_destroy_id(&id->pub);
		return false;
	}
	if (!id) {
		if (e->stream)
			rcm_iw_refuse(e);
		else
			close_request(e->m.id);
		return false;
	}
	e->pub.event = RDMA_CM_EVENT_CONNECT_REQUEST;
	e->pub.listen_id = &e->id->pub;
	e->pub.id = &id->pub;
	if (rcm_is_ud(id))
		event_take_fill_datagram(e, id);
	else
		fill_connection(e);
	return true;
}

/* The connection failed: gives the program the event @what, and moves the queue
 * pair, if this library manages one, to the error state, which flushes its work
 * requests. */
static void take_failure(struct rcm_event *e, enum rdma_cm_event_type what,
			 int status)
{
	e->pub.event = what;
	e->pub.status = status;
	rcm_qp_fail(e->id);
}

/* An iWARP peer accepted the connection. This function gives the stream to the
 * queue pair, even if the program made the queue pair itself. */
static bool take_stream(struct rcm_event *e)
{
	int rc = rcm_iw_establish(e->id);

	fill_connection(e);
	if (rc)
		take_failure(e, RDMA_CM_EVENT_CONNECT_ERROR, rc);
	else
		e->pub.event = RDMA_CM_EVENT_ESTABLISHED;
	return true;
}

/* The peer sent a REP. If rdma_create_qp() made the queue pair, this function
 * makes it ready and sends the RTU; otherwise the program makes it ready and
 * calls rdma_establish(). */
static bool take_reply(struct rcm_event *e)
{
	struct rcm_id *id = e->id;
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_ESTABLISH);
	int rc;

	id->peer = e->m;
	if (e->stream)
		return take_stream(e);
	if (e->m.mtu) { /* nonzero: the peer asked for a smaller path MTU */
		id->path.mtu = e->m.mtu;
		if (id->pub.route.path_rec)
			id->pub.route.path_rec->mtu = e->m.mtu;
	}
	if (e->m.flags & IPC_CM_NO_ALTERNATE)
		id->path.alternate.place = 0;
	fill_connection(e);
	e->pub.event = RDMA_CM_EVENT_CONNECT_RESPONSE;
	if (!id->pub.qp)
		return true;
	rc = rcm_qp_connect(id);
	if (rc) {
		m = rcm_message(id, IPC_CM_REJECT);
		take_failure(e, RDMA_CM_EVENT_CONNECT_ERROR, rc);
	} else {
		e->pub.event = RDMA_CM_EVENT_ESTABLISHED;
	}
	(void)!rcm_session_tell(&m);
	return true;
}

/* Handles a SIDR_REP. As on Linux, a refusal is reported as UNREACHABLE, with
 * the status of the SIDR_REP. */
static bool event_take_address(struct rcm_event *e)
{
	e->id->peer = e->m;
	if (e->m.status)
		take_failure(e, RDMA_CM_EVENT_UNREACHABLE, e->m.status);
	else
		e->pub.event = RDMA_CM_EVENT_ESTABLISHED;
	event_take_fill_datagram(e, e->id);
	return true;
}

/* Handles the subnet administrator's answer about the path of the id. False:
 * the id has not asked, and the program gets no event. */
static bool event_take_route(struct rcm_event *e)
{
	if (!rcm_route_take(e->id, &e->m))
		return false;
	e->pub.event = e->m.status ? RDMA_CM_EVENT_ROUTE_ERROR
				   : RDMA_CM_EVENT_ROUTE_RESOLVED;
	e->pub.status = -e->m.status;
	return true;
}

/* Handles the answer to a join: the id is a member of a multicast group now.
 * False: the program has left the group before it read the event, and gets no
 * event. */
static bool take_group(struct rcm_event *e)
{
	int rc = rcm_group_joined(e->id, &e->pub.param.ud.ah_attr);

	if (rc == -ENOENT)
		return false;
	if (rc) {
		e->pub.event = RDMA_CM_EVENT_MULTICAST_ERROR;
		e->pub.status = rc;
	}
	return true;
}

bool rcm_event_take(struct rcm_event *e)
{
	if (e->local)
		return e->pub.event != RDMA_CM_EVENT_MULTICAST_JOIN ||
		       take_group(e);

	switch (e->m.event) {
	case IPC_CM_REQUEST:
		return take_request(e);
	case IPC_CM_REPLY:
		return take_reply(e);
	case IPC_CM_ADDRESS:
		return event_take_address(e);
	case IPC_CM_ROUTE:
		return event_take_route(e);
	case IPC_CM_SERVICES:
		rcm_service_take(e->id, &e->m, &e->pub);
		return true;
	case IPC_CM_GROUP:
		return rcm_group_take(e->id, &e->m, &e->pub);
	case IPC_CM_ESTABLISHED:
		e->pub.event = RDMA_CM_EVENT_ESTABLISHED;
		if (e->stream)
			fill_connection(e);
		return true;
	case IPC_CM_REJECTED:
		rcm_why_rejected(e->id, e->m.status);
		take_failure(e, RDMA_CM_EVENT_REJECTED, e->m.status);
		fill_connection(e);
		return true;
	case IPC_CM_UNREACHABLE:
		rcm_why_unreachable(e->id,
				    e->m.status < 0 ? e->m.status : -ETIMEDOUT);
		take_failure(e, RDMA_CM_EVENT_UNREACHABLE,
			     e->m.status < 0 ? e->m.status : -ETIMEDOUT);
		return true;
	case IPC_CM_DISCONNECTED:
		e->pub.event = RDMA_CM_EVENT_DISCONNECTED;
		return true;
	case IPC_CM_OVER:
		e->pub.event = RDMA_CM_EVENT_TIMEWAIT_EXIT;
		return true;
	case IPC_CM_FAILED:
		if (e->m.status == EPROTONOSUPPORT)
			vb_log(LOG_WARN,
			       "rdmacm: no connection by RoCEv1: the broker "
			       "of this host lacks CAP_NET_RAW");
		take_failure(e, RDMA_CM_EVENT_CONNECT_ERROR, -e->m.status);
		return true;
	default:
		return false;
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each message of the broker, or of an iWARP stream, changes in its id,
 * and the event that the program gets for it.
 */
#include "front/rdmacm/event_priv.h"

#include <endian.h>
#include <string.h>

#include "base/log.h"
#include "wire/mad.h"

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

static void fill_datagram(struct rcm_event *e, const struct rcm_id *id)
{
	struct rdma_ud_param *p = &e->pub.param.ud;
	const struct vb_ipc_cm *m = &e->m;

	p->private_data = m->private_bytes ? e->m.private_data : NULL;
	p->private_data_len = m->private_bytes;
	p->qp_num = m->qpn;
	p->qkey = m->qkey;
	rcm_fill_ah(id, &p->ah_attr, &id->way.dst);
}

static void close_request(uint32_t number)
{
	const struct vb_ipc_cm m = { .kind = IPC_CM_CLOSE,
				     .version = VB_IPC_CM_VERSION,
				     .id = number };

	(void)!rcm_session_tell(&m);
}

static const struct vb_gid *name_of(const struct vb_gid *name,
				    const struct vb_gid *way)
{
	return vb_gid_is_zero(name) ? way : name;
}

/* As its listener's. Who calls an AF_IB one says no port. */
static void put_addresses(const struct rcm_id *listener, struct rcm_id *id,
			  const struct vb_ipc_cm *m)
{
	struct rdma_addr *a = &id->pub.route.addr;
	const struct vb_gid *src = name_of(&m->src_name, &m->src);
	const struct vb_gid *dst = name_of(&m->dst_name, &m->dst);

	if (listener->pub.route.addr.src_addr.sa_family == AF_IB) {
		rcm_address_of_ib(&a->src_addr, &m->src, m->space, m->src_port);
		rcm_address_of_ib(&a->dst_addr, &m->dst, 0, 0);
	} else {
		rcm_address_of(&a->src_addr, src, m->src_port, id->way.ifindex);
		rcm_address_of(&a->dst_addr, dst, m->dst_port, id->way.ifindex);
	}
	memcpy(a->addr.ibaddr.sgid.raw, m->src.raw, 16);
	memcpy(a->addr.ibaddr.dgid.raw, m->dst.raw, 16);
	a->addr.ibaddr.pkey = htobe16(0xffff);
}

/* TCP leads to 127.0.0.1 without a device: any that can have the stream. */
static int choose_device(struct rcm_id *id, const struct rcm_event *e)
{
	const struct vb_gid *own = &e->m.src;
	int rc;

	if (!e->stream)
		return rcm_device_choose(id, own, RCM_ROCE);
	rc = rcm_device_choose(id, own, RCM_IWARP);
	if (rc == -ENODEV && vb_gid_is_loopback(own))
		rc = rcm_device_choose_home(id, own, RCM_IWARP);
	return rc;
}

/* An id for who wants to connect. */
static struct rcm_id *adopt(struct rcm_id *listener, const struct rcm_event *e)
{
	const struct vb_ipc_cm *m = &e->m;
	struct rcm_id *id =
		rcm_id_create(listener->pub.channel, listener->pub.context,
			      listener->pub.ps, listener->pub.qp_type);

	if (!id)
		return NULL;
	id->way = *m;
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
	id->responder_resources = m->responder_resources;
	id->initiator_depth = m->initiator_depth;
	put_addresses(listener, id, m);
	return id;
}

/* In one step: now @id, if there is one, is what the next broker hears of. */
static void note_seen(struct rcm_event *e, struct rcm_id *id)
{
	pthread_mutex_lock(&rcm.lock);
	rcm_event_seen(e);
	if (id) {
		id->record.ticket = e->m;
		id->record.stage = RCM_ASKED;
	}
	pthread_mutex_unlock(&rcm.lock);
}

/* Both ends of a connection cut their messages alike: one who asks for more
 * than this interface carries is told how much that is, and asks again or
 * knows why not (IBA 12.6.7.2, reason 26). */
static bool is_too_long_for(const struct rcm_event *e, const struct rcm_id *id)
{
	return !e->stream && !rcm_is_ud(id) && e->m.mtu > id->device->mtu;
}

static void ask_for_less(struct rcm_id *id)
{
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_REJECT);

	vb_log(LOG_INFO,
	       "rdmacm: a request for path MTU %u, of which %s carries %u: refused as such",
	       128u << id->way.mtu, id->device->verbs->device->name,
	       128u << id->device->mtu);
	m.status = CM_REJ_INVALID_MTU;
	m.private_bytes = 1;
	m.private_data[0] = id->device->mtu;
	(void)!rcm_session_tell(&m);
}

/* False: the program is not to see it. */
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
		fill_datagram(e, id);
	else
		fill_connection(e);
	return true;
}

static void take_failure(struct rcm_event *e, enum rdma_cm_event_type what,
			 int status)
{
	e->pub.event = what;
	e->pub.status = status;
	rcm_qp_fail(e->id);
}

/* The queue pair, whoever made it, is at the peer's disposal. */
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

/* With a queue pair of ours, the connection is made here; without one, the
 * program makes it and calls rdma_establish(). */
static bool take_reply(struct rcm_event *e)
{
	struct rcm_id *id = e->id;
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_ESTABLISH);
	int rc;

	id->peer = e->m;
	if (e->stream)
		return take_stream(e);
	if (e->m.mtu) { /* the peer wanted less than was asked for */
		id->way.mtu = e->m.mtu;
		if (id->pub.route.path_rec)
			id->pub.route.path_rec->mtu = e->m.mtu;
	}
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

/* As Linux says it: what a SIDR REP refuses is unreachable, and why. */
static bool take_address(struct rcm_event *e)
{
	e->id->peer = e->m;
	if (e->m.status)
		take_failure(e, RDMA_CM_EVENT_UNREACHABLE, e->m.status);
	else
		e->pub.event = RDMA_CM_EVENT_ESTABLISHED;
	fill_datagram(e, e->id);
	return true;
}

/* False: it was left again meanwhile. */
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
		return take_address(e);
	case IPC_CM_ESTABLISHED:
		e->pub.event = RDMA_CM_EVENT_ESTABLISHED;
		if (e->stream)
			fill_connection(e);
		return true;
	case IPC_CM_REJECTED:
		take_failure(e, RDMA_CM_EVENT_REJECTED, e->m.status);
		fill_connection(e);
		return true;
	case IPC_CM_UNREACHABLE:
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
		take_failure(e, RDMA_CM_EVENT_CONNECT_ERROR, -e->m.status);
		return true;
	default:
		return false;
	}
}

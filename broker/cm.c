/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs' requests to the connection manager, and what it tells them. */
#include "broker/cm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/rand.h"
#include "broker/cm_header.h"
#include "broker/cm_ports.h"
#include "broker/gsi.h"
#include "broker/outbox.h"
#include "broker/local_addr.h"
#include "link/udp.h"
#include "mgmt/cm_ib.h"

#define BUCKETS	       16384
#define MAX_IDS	       65536 /* of one program */
#define MAX_BACKLOG    1024
#define PRIVILEGED     1024
#define PERMISSIVE_LID 0xffff
#define ACK_DELAY      15
#define HOP_LIMIT      64
#define XRC_TRANSPORT  1 /* of the extended ones (IBA 12.6.5) */
/* Who comes later does not come from a broker before us: programs look for
 * the next for 10 s, and say then what they have to say. */
#define RESUME_TIME (15 * VB_SEC)

enum id_state { ID_BOUND, ID_LISTENING, ID_CONN };

/* What a program calls an id. */
struct cm_id {
	struct vb_cm_client *client;
	uint32_t number;
	enum id_state state;
	enum vb_ipc_cm_type type;
	struct vb_cm_port port; /* number 0: of a request: it has none */
	uint64_t service;	/* that was asked for */
	unsigned backlog, pending;
	uint32_t listener; /* which counts it as pending; 0: none */
	struct vb_cm_conn *conn;
	struct cm_id *next;		       /* in its bucket */
	struct cm_id *next_own, **prev_own_at; /* of the client's */
};

struct vb_cm_client {
	struct vb_host_cm *cm;
	struct vb_process who;
	struct vb_user *user;
	unsigned ids;
	struct cm_id *own;
	struct vb_outbox out;
};

struct vb_host_cm {
	bool (*owns)(void *arg, const struct vb_process *who, uint32_t qpn);
	void *owns_arg;
	struct vb_cm *engine;
	struct vb_gsi *gsi;
	vb_time begun, now; /* now: of the call that is under way */
	uint32_t next_number;
	uint64_t key; /* secret: of vb_hash() over ids */
	struct vb_cm_ports ports;
	struct vb_local_addrs places;
	struct cm_id *buckets[BUCKETS];
};

/* Letters to programs. */

static void tell(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	uint8_t bytes[VB_IPC_CM_BYTES];

	(void)vb_ipc_cm_put(bytes, m);
	vb_outbox_put(&c->out, bytes, sizeof(bytes));
}

bool vb_host_cm_is_waiting(const struct vb_cm_client *client)
{
	return client->out.first;
}

void vb_host_cm_flush(struct vb_cm_client *client)
{
	vb_outbox_flush(&client->out);
}

int vb_host_cm_error(const struct vb_cm_client *client)
{
	return client->out.error;
}

/* Ids. */

static struct cm_id **id_bucket(const struct vb_cm_client *c, uint32_t number)
{
	uint64_t h = vb_hash(c->cm->key, (uintptr_t)c);

	return &c->cm->buckets[vb_hash(h, number) % BUCKETS];
}

static struct cm_id *find_id(const struct vb_cm_client *c, uint32_t number)
{
	struct cm_id *id = *id_bucket(c, number);

	while (id && !(id->client == c && id->number == number))
		id = id->next;
	return id;
}

/* -ENOBUFS: the program, or its user, has as many as it may; -ENOMEM. */
static int make_id(struct vb_cm_client *c, uint32_t number, struct cm_id **made)
{
	struct cm_id **at = id_bucket(c, number), *id;

	if (c->ids >= MAX_IDS || !vb_user_take(c->user, VB_QUOTA_IDS, 1))
		return -ENOBUFS;
	id = calloc(1, sizeof(*id));
	if (!id) {
		vb_user_give(c->user, VB_QUOTA_IDS, 1);
		return -ENOMEM;
	}
	id->client = c;
	id->number = number;
	id->next = *at;
	*at = id;
	id->next_own = c->own;
	id->prev_own_at = &c->own;
	if (c->own)
		c->own->prev_own_at = &id->next_own;
	c->own = id;
	c->ids++;
	*made = id;
	return 0;
}

/* With number 0: any, which it has then. */
static int bind_port(struct cm_id *id)
{
	struct vb_user *user = id->client->user;
	int rc = -ENOBUFS;

	if (vb_user_may_have(user, VB_QUOTA_PORTS, 1))
		rc = vb_cm_ports_bind(&id->client->cm->ports, &id->port);
	if (rc)
		id->port.number = 0;
	else
		vb_user_count(user, VB_QUOTA_PORTS, 1);
	return rc;
}

static void free_port(struct cm_id *id)
{
	if (!id->port.number)
		return;
	vb_cm_ports_free(&id->client->cm->ports, &id->port);
	vb_user_give(id->client->user, VB_QUOTA_PORTS, 1);
}

/* A request was answered, or is gone: its listener has room again. */
static void leave_backlog(struct cm_id *id)
{
	struct cm_id *l =
		id->listener ? find_id(id->client, id->listener) : NULL;

	id->listener = 0;
	if (l && l->pending > 0)
		l->pending--;
}

static void free_id(struct cm_id *id)
{
	struct cm_id **at = id_bucket(id->client, id->number);

	leave_backlog(id);
	while (*at != id)
		at = &(*at)->next;
	*at = id->next;
	*id->prev_own_at = id->next_own;
	if (id->next_own)
		id->next_own->prev_own_at = id->prev_own_at;
	free_port(id);
	if (id->conn)
		vb_cm_release(id->conn, id->client->cm->now);
	id->client->ids--;
	vb_user_give(id->client->user, VB_QUOTA_IDS, 1);
	free(id);
}

static unsigned header_bytes(uint8_t flags)
{
	return flags & IPC_CM_PLAIN ? 0 : VB_CM_HEADER_BYTES;
}

/* What the engine tells. */

static struct vb_ipc_cm event(const struct cm_id *id, enum vb_ipc_cm_event e)
{
	return (struct vb_ipc_cm){ .kind = IPC_CM_EVENT,
				   .version = VB_IPC_CM_VERSION,
				   .event = (uint8_t)e,
				   .id = id->number };
}

/* By which another broker would know the connection. */
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

/* Depths change sides on the way: what one asks for, the other gives. */
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

/* It says nothing of paths: the way it came is the way back. */
static void describe_look_up(struct vb_ipc_cm *m, const struct vb_mad_path *p)
{
	m->src = p->sgid;
	m->dst = p->dgid;
	m->ifindex = p->ifindex;
	m->hop_limit = HOP_LIMIT;
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
	attach_private(m, msg->private_data, vb_cm_private_bytes(CM_REP));
}

static struct cm_id *listener_at(struct vb_host_cm *cm, uint64_t service,
				 const struct vb_gid *address, bool plain)
{
	struct vb_cm_port *p =
		vb_cm_ports_find(&cm->ports, (uint16_t)(service >> 16),
				 (uint16_t)service, address, plain);

	return p ? VB_CONTAINER_OF(p, struct cm_id, port) : NULL;
}

/*
 * A listener at a loopback address is there for this host only, and a header
 * may say anything: the call must be one of our own, or have come by loopback.
 * One of our own that calls a loopback address finds who listens at the address
 * that it was led to, too.
 */
static struct cm_id *find_by_header(struct vb_host_cm *cm,
				    const struct vb_cm_msg *m, uint64_t service,
				    const struct vb_gid *to,
				    const struct vb_gid *named)
{
	struct cm_id *l;

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

/* A listener by AF_IB is found by the address @to which the request came, one
 * by IP by what rdma_cm's header says. */
static struct cm_id *find_listener(struct vb_host_cm *cm,
				   const struct vb_cm_msg *m,
				   const struct vb_gid *to,
				   struct vb_cm_header *header,
				   unsigned *reason)
{
	uint64_t service =
		m->attr == CM_REQ ? m->req.service_id : m->sidr.service_id;
	struct cm_id *l;

	*reason = CM_REJ_INVALID_SERVICE_ID;
	if (service >> 32)
		return NULL;
	l = listener_at(cm, service, to, true);
	if (l)
		return l;
	if (!vb_cm_header_get(m->private_data, header)) {
		*reason = CM_REJ_CONSUMER;
		return NULL;
	}
	return find_by_header(cm, m, service, to, &header->dst);
}

/* A program may have numbers of a broker before us. */
static uint32_t new_number(const struct vb_cm_client *c)
{
	uint32_t number;

	do
		number = VB_IPC_CM_INCOMING | c->cm->next_number++;
	while (find_id(c, number));
	return number;
}

// clang-format off
static const struct {
	uint8_t transport, extended;
} transports[IPC_CM_TYPES] = {
	[IPC_CM_RC]  = { CM_RC, 0 },
	[IPC_CM_UC]  = { CM_UC, 0 },
	[IPC_CM_XRC] = { CM_EXTENDED, XRC_TRANSPORT },
};
// clang-format on

static bool is_for(enum vb_ipc_cm_type type, const struct vb_cm_msg *m)
{
	if (m->attr == CM_SIDR_REQ || type == IPC_CM_UD)
		return m->attr == CM_SIDR_REQ && type == IPC_CM_UD;
	return m->req.transport == transports[type].transport &&
	       (m->req.transport != CM_EXTENDED ||
		m->req.extended_transport == transports[type].extended);
}

/* The connection is to take the way that its request took: nobody has us send
 * to a third. */
static bool is_on_its_way(const struct vb_cm_conn *c, const struct vb_cm_msg *m)
{
	return c->sidr ||
	       (vb_gid_equal(&m->req.path.local_gid, &c->path.dgid) &&
		vb_gid_equal(&m->req.path.remote_gid, &c->path.sgid));
}

static struct cm_id *make_incoming(struct cm_id *l, struct vb_cm_conn *c)
{
	struct cm_id *id;

	if (make_id(l->client, new_number(l->client), &id))
		return NULL;
	id->state = ID_CONN;
	id->type = l->type;
	id->listener = l->number;
	id->conn = c;
	c->owner = id;
	l->pending++;
	return id;
}

/* Names for the ends are believed of a request of our own only: programs let in
 * who calls from 127.0.0.1. */
static void name_ends(const struct vb_host_cm *cm, const struct vb_cm_msg *m,
		      const struct vb_cm_header *header, struct vb_ipc_cm *e)
{
	if (vb_cm_is_own(cm->engine, m))
		vb_cm_header_name(e, header);
}

static unsigned on_request(void *arg, struct vb_cm_conn *c,
			   const struct vb_cm_msg *m)
{
	struct vb_cm_header header = { 0 };
	unsigned reason;
	struct cm_id *l = find_listener(arg, m, &c->path.sgid, &header,
					&reason),
		     *id;
	struct vb_ipc_cm e;
	unsigned skip;

	if (!l)
		return reason;
	if (!is_for(l->type, m))
		return CM_REJ_INVALID_TRANSPORT;
	if (!is_on_its_way(c, m))
		return CM_REJ_INVALID_GID;
	if (l->pending >= l->backlog)
		return VB_CM_LATER; /* as TCP does */
	id = make_incoming(l, c);
	if (!id)
		return CM_REJ_NO_RESOURCES;
	e = event(id, IPC_CM_REQUEST);
	e.listener = l->number;
	e.space = l->port.space;
	e.type = (uint8_t)l->type;
	e.src_port = l->port.number;
	e.dst_port = header.port;
	e.vendor_options = m->attr_mod;
	if (c->sidr) {
		id->service = m->sidr.service_id;
		describe_look_up(&e, &c->path);
	} else {
		describe_request(&e, &m->req, c->path.ifindex);
	}
	name_ends(arg, m, &header, &e);
	attach_ticket(&e, c);
	skip = header_bytes(l->port.flags);
	attach_private(&e, m->private_data + skip,
		       vb_cm_private_bytes(m->attr) - skip);
	tell(l->client, &e);
	return 0;
}

static void on_happen(void *arg, struct vb_cm_conn *c,
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
	struct cm_id *id = c->owner;
	struct vb_ipc_cm e = event(id, events[what]);

	leave_backlog(id);
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
	tell(id->client, &e);
}

static void send_mad(void *arg, const struct vb_mad_path *path,
		     const uint8_t mad[VB_MAD_BYTES])
{
	struct vb_host_cm *cm = arg;

	if (cm->gsi)
		vb_gsi_send(cm->gsi, path, mad);
}

/* What programs ask. Nonsense ends a session; what is merely too late, as
 * when the peer disconnects just then, is passed over. */

static void answer(struct vb_cm_client *c, const struct vb_ipc_cm *m,
		   const struct cm_id *id, int rc)
{
	struct vb_ipc_cm done = { .kind = IPC_CM_DONE,
				  .version = VB_IPC_CM_VERSION,
				  .id = m->id,
				  .tid = m->tid,
				  .status = -rc };

	if (id)
		done.src_port = id->port.number;
	tell(c, &done);
}

static int bind_id(struct vb_cm_client *c, const struct vb_ipc_cm *m,
		   struct cm_id **bound)
{
	struct cm_id *id;
	int rc;

	/* A ticket stands for the right that its first holder had. */
	if (m->src_port && m->src_port < PRIVILEGED && c->who.uid != 0 &&
	    !(m->flags & IPC_CM_JOIN))
		return -EACCES;
	if (!vb_local_addrs_has(&c->cm->places, &m->src, m->ifindex))
		return -EADDRNOTAVAIL;
	rc = make_id(c, m->id, &id);
	if (rc)
		return rc;
	id->type = (enum vb_ipc_cm_type)m->type;
	id->port.space = m->space;
	id->port.number = m->src_port;
	id->port.address = m->src;
	id->port.flags = m->flags;
	id->port.ticket = m->guid;
	rc = bind_port(id);
	if (rc) {
		free_id(id);
		return rc;
	}
	*bound = id;
	return 0;
}

static int on_bind(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	struct cm_id *id = NULL;
	int rc;

	if (m->id >= VB_IPC_CM_INCOMING || m->id == 0 || find_id(c, m->id))
		return -EPROTO;
	rc = bind_id(c, m, &id);
	answer(c, m, id, rc);
	return 0;
}

static int on_listen(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	struct cm_id *id = find_id(c, m->id);
	int rc;

	if (!id || id->state == ID_CONN)
		return -EPROTO;
	rc = id->state == ID_LISTENING
		     ? 0
		     : vb_cm_ports_listen(&c->cm->ports, &id->port);
	if (rc == 0) {
		id->state = ID_LISTENING;
		id->backlog = m->backlog > 0 && m->backlog < MAX_BACKLOG
				      ? m->backlog
				      : MAX_BACKLOG;
	}
	answer(c, m, id, rc);
	if (rc == 0)
		vb_cm_listens(c->cm->engine);
	return 0;
}

static void fill_path(struct vb_cm_path *p, const struct vb_ipc_cm *m)
{
	p->local_lid = p->remote_lid = PERMISSIVE_LID;
	p->local_gid = m->src;
	p->remote_gid = m->dst;
	p->flow_label = m->flow_label;
	p->tclass = m->tclass;
	p->hop_limit = m->hop_limit;
	p->ack_timeout = m->ack_timeout;
}

static uint64_t service_of(const struct cm_id *id, const struct vb_ipc_cm *m)
{
	uint16_t space = m->flags & IPC_CM_PLAIN ? m->space : id->port.space;

	return (uint64_t)space << 16 | m->dst_port;
}

static void fill_request(struct vb_cm_msg *msg, const struct cm_id *id,
			 const struct vb_ipc_cm *m)
{
	struct vb_cm_req *q = &msg->req;

	msg->attr = CM_REQ;
	msg->attr_mod = m->vendor_options;
	q->vendor_id = m->vendor_id;
	q->service_id = service_of(id, m);
	q->ca_guid = m->guid;
	q->qpn = m->qpn;
	q->psn = m->psn;
	q->responder_resources = m->responder_resources;
	q->initiator_depth = m->initiator_depth;
	q->remote_timeout = q->local_timeout = VB_CM_TIMEOUT_CODE;
	q->transport = transports[id->type].transport;
	q->extended_transport = transports[id->type].extended;
	q->flow_control = m->flow_control;
	q->retry_count = m->retry_count;
	q->rnr_retry = m->rnr_retry;
	q->srq = m->srq;
	q->mtu = m->mtu;
	q->pkey = 0xffff;
	q->max_cm_retries = VB_CM_RETRIES;
	fill_path(&q->path, m);
}

static void fill_look_up(struct vb_cm_msg *msg, const struct cm_id *id,
			 const struct vb_ipc_cm *m)
{
	msg->attr = CM_SIDR_REQ;
	msg->sidr.service_id = service_of(id, m);
	msg->sidr.pkey = 0xffff;
}

/* A way has names only from an address to itself: no other host hears them. */
static bool is_named_rightly(const struct vb_ipc_cm *m)
{
	return vb_gid_equal(&m->src, &m->dst) ||
	       (vb_gid_is_zero(&m->src_name) && vb_gid_is_zero(&m->dst_name));
}

static int begin(struct vb_cm_client *c, struct cm_id *id, struct vb_ipc_cm *m)
{
	const struct vb_mad_path path = { .sgid = m->src,
					  .dgid = m->dst,
					  .ifindex = m->ifindex,
					  .tclass = m->tclass };
	const bool ud = id->type == IPC_CM_UD;
	struct vb_cm_msg msg = { 0 };
	struct vb_cm_header header;
	int rc;

	if (!ud && !c->cm->owns(c->cm->owns_arg, &c->who, m->qpn))
		return -EPERM;
	if (!vb_local_addrs_has(&c->cm->places, &m->src, m->ifindex))
		return -EADDRNOTAVAIL;
	if (!is_named_rightly(m))
		return -EADDRNOTAVAIL;
	m->src_port = id->port.number;
	header = vb_cm_header_of(m);
	if (ud)
		fill_look_up(&msg, id, m);
	else
		fill_request(&msg, id, m);
	if (!(m->flags & IPC_CM_PLAIN))
		vb_cm_header_put(msg.private_data, &header);
	memcpy(msg.private_data + header_bytes(m->flags), m->private_data,
	       m->private_bytes);
	rc = (ud ? vb_cm_look_up : vb_cm_connect)(c->cm->engine, &msg, &path,
						  id, c->cm->now, &id->conn);
	if (rc == 0 && m->flags & IPC_CM_AGAIN)
		vb_cm_insist(id->conn);
	return rc;
}

/* rdma_cm's header takes its part. */
static unsigned most_private(const struct cm_id *id, uint8_t flags)
{
	return vb_cm_private_bytes(id->type == IPC_CM_UD ? CM_SIDR_REQ
							 : CM_REQ) -
	       header_bytes(flags);
}

static int on_connect(struct vb_cm_client *c, const struct vb_ipc_cm *asked)
{
	struct cm_id *id = find_id(c, asked->id);
	struct vb_ipc_cm m = *asked, e;
	int rc;

	if (!id || id->state != ID_BOUND ||
	    m.private_bytes > most_private(id, m.flags))
		return -EPROTO;
	id->state = ID_CONN;
	rc = begin(c, id, &m);
	if (rc == 0)
		return 0;
	id->state = ID_BOUND;
	e = event(id, IPC_CM_FAILED);
	e.status = -rc;
	tell(c, &e);
	return 0;
}

static struct vb_cm_conn *find_conn(const struct vb_cm_client *c, uint32_t id)
{
	struct cm_id *i = find_id(c, id);

	return i ? i->conn : NULL;
}

/* The peer gave up before the program had its id: what was said of it then
 * met nobody. Or a broker before us knew it, and we do not. */
static void tell_too_late(struct vb_cm_client *c, uint32_t number)
{
	const struct vb_ipc_cm e = { .kind = IPC_CM_EVENT,
				     .version = VB_IPC_CM_VERSION,
				     .event = IPC_CM_FAILED,
				     .id = number,
				     .status = ECONNABORTED };

	tell(c, &e);
}

static void fill_reply(struct vb_cm_msg *msg, const struct cm_id *id,
		       const struct vb_ipc_cm *m)
{
	struct vb_cm_rep *p = &msg->rep;

	msg->attr = CM_REP;
	msg->attr_mod = m->vendor_options;
	p->vendor_id = m->vendor_id;
	if (id->type == IPC_CM_XRC)
		p->eecn = m->qpn; /* IBA A14 */
	else
		p->qpn = m->qpn;
	p->psn = m->psn;
	p->ca_guid = m->guid;
	p->responder_resources = m->responder_resources;
	p->initiator_depth = m->initiator_depth;
	p->ack_delay = ACK_DELAY;
	p->flow_control = m->flow_control;
	p->rnr_retry = m->rnr_retry;
	p->srq = m->srq || id->type == IPC_CM_XRC;
}

static void fill_address(struct vb_cm_msg *msg, const struct cm_id *id,
			 const struct vb_ipc_cm *m)
{
	msg->attr = CM_SIDR_REP;
	msg->attr_mod = m->vendor_options;
	msg->sidr.status = CM_SIDR_OK;
	msg->sidr.service_id = id->service;
	msg->sidr.qpn = m->qpn;
	msg->sidr.qkey = m->qkey;
}

static int on_accept(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	struct vb_cm_conn *conn = find_conn(c, m->id);
	struct cm_id *id = conn ? conn->owner : NULL;
	struct vb_cm_msg msg = { 0 };
	bool ud = id && id->type == IPC_CM_UD;

	if (!id && m->id >= VB_IPC_CM_INCOMING) {
		tell_too_late(c, m->id);
		return 0;
	}
	if (!id ||
	    m->private_bytes > vb_cm_private_bytes(ud ? CM_SIDR_REP : CM_REP) ||
	    !c->cm->owns(c->cm->owns_arg, &c->who, m->qpn))
		return -EPROTO;
	if (ud)
		fill_address(&msg, id, m);
	else
		fill_reply(&msg, id, m);
	memcpy(msg.private_data, m->private_data, m->private_bytes);
	leave_backlog(id);
	if ((ud ? vb_cm_answer : vb_cm_accept)(conn, &msg, c->cm->now))
		tell_too_late(c, m->id);
	return 0;
}

/* Of a connection that a broker before us knew, there is nothing to say. */
static int is_unknown(const struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	return find_id(c, m->id) ? -EPROTO : 0;
}

static int on_reject(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	struct vb_cm_conn *conn = find_conn(c, m->id);
	bool known = m->status == CM_REJ_VENDOR_OPTION ||
		     m->status == CM_REJ_INVALID_MTU;
	unsigned reason = known ? (unsigned)m->status : CM_REJ_CONSUMER;

	if (m->private_bytes > vb_cm_private_bytes(CM_REJ) ||
	    (reason == CM_REJ_INVALID_MTU && m->private_bytes != 1))
		return -EPROTO;
	if (!conn)
		return is_unknown(c, m);
	leave_backlog(conn->owner);
	(void)!vb_cm_reject(conn, reason, m->private_data, m->private_bytes);
	return 0;
}

static int on_establish(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	struct vb_cm_conn *conn = find_conn(c, m->id);

	if (!conn)
		return is_unknown(c, m);
	(void)!vb_cm_establish(conn, c->cm->now);
	return 0;
}

static int on_disconnect(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	struct vb_cm_conn *conn = find_conn(c, m->id);

	if (!conn)
		return is_unknown(c, m);
	(void)!vb_cm_disconnect(conn, c->cm->now);
	return 0;
}

static int on_close(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	struct cm_id *id = find_id(c, m->id);

	if (id)
		free_id(id);
	return 0;
}

/* A queue pair's owner may come back a little later than who speaks for it. */
static int on_hello(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	bool known = c->cm->owns(c->cm->owns_arg, &c->who, m->qpn);

	answer(c, m, NULL, known && c->cm->gsi ? 0 : -EAGAIN);
	return 0;
}

/* Nobody can tell whether there was such a connection: it may at least not
 * speak for other hosts, or for queue pairs that are not the program's. Before
 * a request is answered there is none. */
static bool may_resume(const struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	const struct vb_host_cm *cm = c->cm;
	bool owns = m->status == IPC_CM_AT_REQUEST
			    ? m->qpn == 0
			    : cm->owns(cm->owns_arg, &c->who, m->qpn);

	return owns && cm->now - cm->begun < RESUME_TIME &&
	       vb_udp_owns(&m->src, m->ifindex);
}

static int resume(struct vb_cm_client *c, struct cm_id *id,
		  const struct vb_ipc_cm *m)
{
	static const enum vb_cm_state states[IPC_CM_AT_STAGES] = {
		[IPC_CM_AT_END] = CM_ESTABLISHED,
		[IPC_CM_AT_REQUEST] = CM_REQ_RCVD,
		[IPC_CM_AT_REPLY] = CM_REP_RCVD,
	};
	const struct vb_mad_path path = { .sgid = m->src,
					  .dgid = m->dst,
					  .ifindex = m->ifindex,
					  .tclass = m->tclass };
	const struct vb_cm_ticket t = {
		.state = states[m->status],
		.passive = m->id >= VB_IPC_CM_INCOMING,
		.local_id = m->local_id,
		.remote_id = m->remote_id,
		.local_qpn = m->qpn,
		.remote_qpn = m->peer_qpn,
		.remote_guid = m->guid,
		.tid = m->tid,
	};

	if (!may_resume(c, m))
		return -EPERM;
	return vb_cm_resume(c->cm->engine, &t, &path, id, &id->conn);
}

/* Its port too, if nobody took it meanwhile. */
static void resume_port(struct cm_id *id, const struct vb_ipc_cm *m)
{
	if (m->src_port == 0 || m->id >= VB_IPC_CM_INCOMING ||
	    (m->src_port < PRIVILEGED && id->client->who.uid != 0))
		return;
	id->port.space = m->space;
	id->port.number = m->src_port;
	id->port.address = vb_gid_is_zero(&m->src_name) ? m->src : m->src_name;
	id->port.flags = m->flags;
	(void)!bind_port(id);
}

/* A broker before us knew it, and we do not. */
static void tell_gone(struct vb_cm_client *c, uint32_t number)
{
	const struct vb_ipc_cm e = { .kind = IPC_CM_EVENT,
				     .version = VB_IPC_CM_VERSION,
				     .event = IPC_CM_DISCONNECTED,
				     .id = number };

	tell(c, &e);
}

static int on_resume(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	struct cm_id *id;

	if (m->id == 0 || find_id(c, m->id) || m->type == IPC_CM_UD ||
	    m->status < 0 || m->status >= IPC_CM_AT_STAGES)
		return -EPROTO;
	if (make_id(c, m->id, &id)) {
		tell_gone(c, m->id);
		return 0;
	}
	id->type = (enum vb_ipc_cm_type)m->type;
	id->state = ID_CONN;
	if (resume(c, id, m)) {
		tell_gone(c, m->id);
		free_id(id);
		return 0;
	}
	resume_port(id, m);
	return 0;
}

int vb_host_cm_take(struct vb_cm_client *client, const uint8_t *bytes,
		    size_t len, vb_time now)
{
	// clang-format off
	static int (*const handlers[])(struct vb_cm_client *,
				       const struct vb_ipc_cm *) = {
		[IPC_CM_BIND - IPC_CM_BIND]	  = on_bind,
		[IPC_CM_LISTEN - IPC_CM_BIND]	  = on_listen,
		[IPC_CM_CONNECT - IPC_CM_BIND]	  = on_connect,
		[IPC_CM_ACCEPT - IPC_CM_BIND]	  = on_accept,
		[IPC_CM_REJECT - IPC_CM_BIND]	  = on_reject,
		[IPC_CM_ESTABLISH - IPC_CM_BIND]  = on_establish,
		[IPC_CM_DISCONNECT - IPC_CM_BIND] = on_disconnect,
		[IPC_CM_CLOSE - IPC_CM_BIND]	  = on_close,
		[IPC_CM_HELLO - IPC_CM_BIND]	  = on_hello,
		[IPC_CM_RESUME - IPC_CM_BIND]	  = on_resume,
	};
	// clang-format on
	struct vb_ipc_cm m;

	if (!vb_ipc_cm_get(bytes, len, &m) ||
	    m.kind - IPC_CM_BIND >= (int)VB_COUNT(handlers))
		return -EPROTO;
	client->cm->now = now;
	return handlers[m.kind - IPC_CM_BIND](client, &m);
}

struct vb_cm_client *vb_host_cm_join(struct vb_host_cm *cm, int fd,
				     const struct vb_process *who,
				     struct vb_user *user)
{
	struct vb_cm_client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->cm = cm;
	c->who = *who;
	c->user = user;
	vb_outbox_init(&c->out, fd, user);
	return c;
}

void vb_host_cm_leave(struct vb_cm_client *client, vb_time now)
{
	client->cm->now = now;
	while (client->own)
		free_id(client->own);
	vb_outbox_fini(&client->out);
	free(client);
}

/* The adapter's side. */

static void take_mad(void *arg, const struct vb_mad_path *back,
		     const uint8_t *bytes, size_t len)
{
	struct vb_host_cm *cm = arg;

	vb_cm_recv(cm->engine, back, bytes, len, cm->now);
}

static void take_return(void *arg, const struct vb_gid *to,
			const uint8_t *bytes, size_t len, int error)
{
	struct vb_host_cm *cm = arg;

	vb_cm_returned(cm->engine, to, bytes, len, error, cm->now);
}

int vb_host_cm_fd(const struct vb_host_cm *cm)
{
	return cm->gsi ? vb_gsi_fd(cm->gsi) : -1;
}

void vb_host_cm_poll(struct vb_host_cm *cm, vb_time now)
{
	cm->now = now;
	if (cm->gsi)
		vb_gsi_recv(cm->gsi, take_mad, cm);
}

vb_time vb_host_cm_deadline(const struct vb_host_cm *cm)
{
	return vb_cm_deadline(cm->engine);
}

void vb_host_cm_tick(struct vb_host_cm *cm, vb_time now)
{
	cm->now = now;
	/* Before anything is said again. */
	if (cm->gsi && now >= vb_cm_deadline(cm->engine))
		vb_gsi_returns(cm->gsi, take_return, cm);
	vb_cm_tick(cm->engine, now);
}

bool vb_host_cm_is_busy(const struct vb_host_cm *cm)
{
	return vb_cm_busy(cm->engine) > 0;
}

unsigned vb_host_cm_count(const struct vb_host_cm *cm)
{
	return vb_cm_count(cm->engine);
}

int vb_host_cm_attach(struct vb_host_cm *cm, int rx_fd)
{
	int fd = fcntl(rx_fd, F_DUPFD_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	rc = vb_gsi_open(fd, &cm->gsi);
	if (rc)
		close(fd);
	return rc;
}

int vb_host_cm_create(bool (*owns)(void *arg, const struct vb_process *who,
				   uint32_t qpn),
		      void *arg, vb_time now, struct vb_host_cm **made)
{
	struct vb_host_cm *cm = calloc(1, sizeof(*cm));
	const struct vb_cm_ops ops = { .request = on_request,
				       .happen = on_happen,
				       .arg = cm,
				       .out = { send_mad, cm },
				       .random = vb_rand32 };

	if (!cm)
		return -ENOMEM;
	cm->engine = vb_cm_create(&ops);
	if (!cm->engine) {
		free(cm);
		return -ENOMEM;
	}
	cm->begun = now;
	cm->owns = owns;
	cm->owns_arg = arg;
	cm->next_number = vb_rand32();
	cm->key = (uint64_t)vb_rand32() << 32 | vb_rand32();
	vb_cm_ports_init(&cm->ports);
	*made = cm;
	return 0;
}

void vb_host_cm_destroy(struct vb_host_cm *cm)
{
	vb_cm_destroy(cm->engine);
	vb_cm_ports_close(&cm->ports);
	vb_local_addrs_fini(&cm->places);
	if (cm->gsi)
		vb_gsi_close(cm->gsi);
	free(cm);
}

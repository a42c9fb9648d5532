/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of programs to the connection manager (wire/ipc_cm.h). A malformed
 * request ends the session. A request that comes too late, because the peer
 * just disconnected, is ignored. */
#include "broker/cm_priv.h"

#include <errno.h>

#include "link/udp.h"

#define MAX_BACKLOG    1024
#define PRIVILEGED     1024
#define PERMISSIVE_LID 0xffff
#define ACK_DELAY      15
/* How long after its start a broker lets programs resume connections. Programs
 * look for a new broker for 10 s and resume then, so a later RESUME does not
 * come from the time of an earlier broker. */
#define RESUME_TIME (15 * VB_SEC)

static void cm_requests_answer(struct vb_cm_client *c,
			       const struct vb_ipc_cm *m,
			       const struct vb_cm_id *id, int rc)
{
	struct vb_ipc_cm done = { .kind = IPC_CM_DONE,
				  .version = VB_IPC_CM_VERSION,
				  .id = m->id,
				  .tid = m->tid,
				  .status = -rc };

	if (id)
		done.src_port = id->port.number;
	vb_cm_client_tell(c, &done);
}

static int bind_id(struct vb_cm_client *c, const struct vb_ipc_cm *m,
		   struct vb_cm_id **bound)
{
	struct vb_cm_id *id;
	int rc;

	/* A process that joins a port by its secret needs no privilege, since
	 * the process that bound the port had it. */
	if (m->src_port && m->src_port < PRIVILEGED && c->who.uid != 0 &&
	    !(m->flags & IPC_CM_JOIN))
		return -EACCES;
	if (!vb_cm_client_has_gid(c, &m->src) &&
	    !vb_local_addrs_has(&c->cm->places, &m->src, m->ifindex))
		return -EADDRNOTAVAIL;
	rc = vb_cm_id_make(c, m->id, &id);
	if (rc)
		return rc;
	id->type = (enum vb_ipc_cm_type)m->type;
	id->port.space = m->space;
	id->port.number = m->src_port;
	id->port.address = m->src;
	id->port.flags = m->flags;
	id->port.secret = m->guid;
	rc = vb_cm_id_bind_port(id);
	if (rc) {
		vb_cm_id_free(id);
		return rc;
	}
	*bound = id;
	return 0;
}

static int on_bind(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	struct vb_cm_id *id = NULL;
	int rc;

	if (m->id >= VB_IPC_CM_INCOMING || m->id == 0 ||
	    vb_cm_id_find(c, m->id))
		return -EPROTO;
	rc = bind_id(c, m, &id);
	cm_requests_answer(c, m, id, rc);
	return 0;
}

static int on_listen(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	struct vb_cm_id *id = vb_cm_id_find(c, m->id);
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
	cm_requests_answer(c, m, id, rc);
	if (rc == 0)
		vb_cm_listens(c->cm->engine);
	return 0;
}

/* Fills in the fields of a path that only InfiniBand has. */
static void fill_route(const struct vb_host_cm *cm, struct vb_cm_path *p,
		       const struct vb_ipc_cm *m)
{
	if (!m->place)
		return;
	p->local_lid = vb_place_lid(cm->adapters, m->place) | m->path_bits;
	p->remote_lid = m->dlid;
	p->sl = m->sl;
	p->rate = m->rate;
	p->subnet_local = m->hop_limit <= 1;
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

static uint64_t service_of(const struct vb_cm_id *id, const struct vb_ipc_cm *m)
{
	uint16_t space = m->flags & IPC_CM_PLAIN ? m->space : id->port.space;

	return vb_ipc_cm_service(space, m->dst_port);
}

/* Returns the P_Key of the connection; RoCEv2 has only one. */
static uint16_t pkey_asked(const struct vb_ipc_cm *m)
{
	return m->place ? m->pkey : 0xffff;
}

static void fill_request(struct vb_cm_msg *msg, const struct vb_cm_id *id,
			 const struct vb_ipc_cm *m)
{
	struct vb_cm_req *q = &msg->req;
	struct vb_cm_transport_code t = vb_cm_transport_of(id->type);

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
	q->transport = t.transport;
	q->extended_transport = t.extended;
	q->flow_control = m->flow_control;
	q->retry_count = m->retry_count;
	q->rnr_retry = m->rnr_retry;
	q->srq = m->srq;
	q->mtu = m->mtu;
	q->pkey = pkey_asked(m);
	q->max_cm_retries = VB_CM_RETRIES;
	fill_path(&q->path, m);
	fill_route(id->client->cm, &q->path, m);
	vb_cm_alternate_fill(id->client->cm, &q->alternate, m);
}

static void fill_look_up(struct vb_cm_msg *msg, const struct vb_cm_id *id,
			 const struct vb_ipc_cm *m)
{
	msg->attr = CM_SIDR_REQ;
	msg->sidr.service_id = service_of(id, m);
	msg->sidr.pkey = pkey_asked(m);
}

/* Are the names in @m allowed? Loopback names only if both ends have one GID,
 * so that they never reach another host. On InfiniBand the caller's name must
 * be an IP address of this host. */
static bool is_named_rightly(const struct vb_cm_client *c,
			     const struct vb_ipc_cm *m)
{
	if (m->place && !vb_gid_is_loopback(&m->src_name) &&
	    !vb_gid_is_loopback(&m->dst_name))
		return vb_local_addrs_has(&c->cm->places, &m->src_name,
					  m->ifindex);
	return vb_gid_equal(&m->src, &m->dst) ||
	       (vb_gid_is_zero(&m->src_name) && vb_gid_is_zero(&m->dst_name));
}

/* Returns the path for the MADs of a connection. @m has the path for the
 * connection's packets. */
static struct vb_mad_path mad_path_of(const struct vb_ipc_cm *m)
{
	struct vb_mad_path path = { .sgid = m->src,
				    .dgid = m->dst,
				    .ifindex = m->ifindex,
				    .tclass = m->tclass };

	if (!m->place) {
		path.v1 = m->flags & IPC_CM_V1;
		return path;
	}
	path.place = m->place;
	path.sl = m->sl;
	path.path_bits = m->path_bits;
	path.dlid = m->dlid;
	path.pkey = m->pkey;
	path.global = m->hop_limit > 1;
	path.hop_limit = m->hop_limit;
	path.flow_label = m->flow_label;
	return path;
}

/* Returns whether @src, the source of the path in @m, is this host's. */
static bool has_source(const struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	if (m->place)
		return vb_place_has_gid(c->cm->adapters, m->place, &m->src);
	return vb_local_addrs_has(&c->cm->places, &m->src, m->ifindex);
}

static int cm_requests_begin(struct vb_cm_client *c, struct vb_cm_id *id,
			     struct vb_ipc_cm *m)
{
	const struct vb_mad_path path = mad_path_of(m);
	const bool ud = id->type == IPC_CM_UD;
	struct vb_cm_msg msg = { 0 };
	struct vb_cm_header header;
	int rc;

	if (!ud && !vb_cm_client_owns(c, m->place, m->qpn))
		return -EPERM;
	if (m->place && !vb_cm_client_has_place(c, m->place))
		return -EPERM;
	if (!has_source(c, m) || !vb_cm_alternate_is_own(c, m))
		return -EADDRNOTAVAIL;
	if (!is_named_rightly(c, m))
		return -EADDRNOTAVAIL;
	if (path.v1 && !(c->cm->gsi && vb_gsi_has_v1(c->cm->gsi)))
		return -EPROTONOSUPPORT;
	m->src_port = id->port.number;
	header = vb_cm_header_of(m);
	if (ud)
		fill_look_up(&msg, id, m);
	else
		fill_request(&msg, id, m);
	if (!(m->flags & IPC_CM_PLAIN))
		vb_cm_header_put(msg.private_data, &header);
	memcpy(msg.private_data + vb_cm_header_room(m->flags), m->private_data,
	       m->private_bytes);
	rc = (ud ? vb_cm_look_up : vb_cm_connect)(c->cm->engine, &msg, &path,
						  id, c->cm->now, &id->conn);
	if (rc)
		return rc;
	if (m->flags & IPC_CM_AGAIN)
		vb_cm_insist(id->conn);
	vb_cm_alternate_use(id, m);
	return 0;
}

/* Returns the most bytes of private data, from which rdma_cm's header is
 * subtracted. */
static unsigned most_private(const struct vb_cm_id *id, uint8_t flags)
{
	return vb_cm_private_bytes(id->type == IPC_CM_UD ? CM_SIDR_REQ
							 : CM_REQ) -
	       vb_cm_header_room(flags);
}

static int on_connect(struct vb_cm_client *c, const struct vb_ipc_cm *asked)
{
	struct vb_cm_id *id = vb_cm_id_find(c, asked->id);
	struct vb_ipc_cm m = *asked, e;
	int rc;

	if (!id || id->state != ID_BOUND ||
	    m.private_bytes > most_private(id, m.flags))
		return -EPROTO;
	id->state = ID_CONN;
	rc = cm_requests_begin(c, id, &m);
	if (rc == 0)
		return 0;
	id->state = ID_BOUND;
	e = vb_cm_id_event(id, IPC_CM_FAILED);
	e.status = -rc;
	vb_cm_client_tell(c, &e);
	return 0;
}

static struct vb_cm_conn *find_conn(const struct vb_cm_client *c, uint32_t id)
{
	struct vb_cm_id *i = vb_cm_id_find(c, id);

	return i ? i->conn : NULL;
}

/* Tells the program that its request ended: the peer gave up before the program
 * had the id, or only an earlier broker knew the id. */
static void tell_too_late(struct vb_cm_client *c, uint32_t number)
{
	const struct vb_ipc_cm e = { .kind = IPC_CM_EVENT,
				     .version = VB_IPC_CM_VERSION,
				     .event = IPC_CM_FAILED,
				     .id = number,
				     .status = ECONNABORTED };

	vb_cm_client_tell(c, &e);
}

static void fill_reply(struct vb_cm_msg *msg, const struct vb_cm_id *id,
		       const struct vb_ipc_cm *m)
{
	struct vb_cm_rep *p = &msg->rep;

	msg->attr = CM_REP;
	msg->attr_mod = m->vendor_options;
	p->vendor_id = m->vendor_id;
	if (id->type == IPC_CM_XRC)
		p->eecn = m->qpn; /* the field for XRC (IBA annex A14) */
	else
		p->qpn = m->qpn;
	p->psn = m->psn;
	p->ca_guid = m->guid;
	p->responder_resources = m->responder_resources;
	p->initiator_depth = m->initiator_depth;
	p->ack_delay = ACK_DELAY;
	p->failover = (uint8_t)vb_cm_alternate_answer(id, m);
	p->flow_control = m->flow_control;
	p->rnr_retry = m->rnr_retry;
	p->srq = m->srq || id->type == IPC_CM_XRC;
}

static void fill_address(struct vb_cm_msg *msg, const struct vb_cm_id *id,
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
	struct vb_cm_id *id = conn ? conn->owner : NULL;
	struct vb_cm_msg msg = { 0 };
	bool ud = id && id->type == IPC_CM_UD;

	if (!id && m->id >= VB_IPC_CM_INCOMING) {
		tell_too_late(c, m->id);
		return 0;
	}
	if (!id ||
	    m->private_bytes > vb_cm_private_bytes(ud ? CM_SIDR_REP : CM_REP) ||
	    !vb_cm_client_owns(c, conn->path.place, m->qpn) ||
	    !vb_cm_alternate_is_own(c, m))
		return -EPROTO;
	if (ud)
		fill_address(&msg, id, m);
	else
		fill_reply(&msg, id, m);
	memcpy(msg.private_data, m->private_data, m->private_bytes);
	vb_cm_alternate_use(id, m);
	vb_cm_id_leave_backlog(id);
	if ((ud ? vb_cm_answer : vb_cm_accept)(conn, &msg, c->cm->now))
		tell_too_late(c, m->id);
	return 0;
}

/* A request names a connection that this broker does not know. 0: only an
 * earlier broker knew it, so no action is needed. -EPROTO: the id has no
 * connection. */
static int is_unknown(const struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	return vb_cm_id_find(c, m->id) ? -EPROTO : 0;
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
	vb_cm_id_leave_backlog(conn->owner);
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

static int on_migrated(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	struct vb_cm_conn *conn = find_conn(c, m->id);

	if (!conn)
		return is_unknown(c, m);
	(void)!vb_cm_migrate(conn);
	return 0;
}

static int on_close(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	struct vb_cm_id *id = vb_cm_id_find(c, m->id);

	if (id)
		vb_cm_id_free(id);
	return 0;
}

/* Answers a HELLO: EAGAIN until the program's session that has the queue pair's
 * slot has rejoined, since the session for connections can begin earlier. */
static int cm_requests_on_hello(struct vb_cm_client *c,
				const struct vb_ipc_cm *m)
{
	bool known = vb_cm_client_owns(c, m->place, m->qpn) &&
		     (m->place || c->cm->gsi);

	cm_requests_answer(c, m, NULL, known ? 0 : -EAGAIN);
	return 0;
}

/* Returns whether the program may resume the connection. The broker cannot
 * check that the connection existed, so it checks that the program resumes from
 * an address of this host, or at an adapter of its own, and with a queue pair
 * of its own; a request that the program has not answered has no queue pair
 * yet. */
static bool may_resume(const struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	const struct vb_host_cm *cm = c->cm;
	bool owns = m->status == IPC_CM_AT_REQUEST
			    ? m->qpn == 0
			    : vb_cm_client_owns(c, m->place, m->qpn);

	if (!owns || cm->now - cm->begun >= RESUME_TIME)
		return false;
	if (m->place)
		return vb_cm_client_has_place(c, m->place);
	return vb_udp_owns(&m->src, m->ifindex);
}

static int resume(struct vb_cm_client *c, struct vb_cm_id *id,
		  const struct vb_ipc_cm *m)
{
	static const enum vb_cm_state states[IPC_CM_AT_STAGES] = {
		[IPC_CM_AT_END] = CM_ESTABLISHED,
		[IPC_CM_AT_REQUEST] = CM_REQ_RCVD,
		[IPC_CM_AT_REPLY] = CM_REP_RCVD,
	};
	const struct vb_mad_path path = mad_path_of(m);
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

	int rc;

	if (!may_resume(c, m) || !vb_cm_alternate_is_own(c, m))
		return -EPERM;
	rc = vb_cm_resume(c->cm->engine, &t, &path, id, &id->conn);
	if (rc == 0)
		vb_cm_alternate_use(id, m);
	return rc;
}

/* Binds the connection's port again, unless another program has bound it. */
static void resume_port(struct vb_cm_id *id, const struct vb_ipc_cm *m)
{
	if (m->src_port == 0 || m->id >= VB_IPC_CM_INCOMING ||
	    (m->src_port < PRIVILEGED && id->client->who.uid != 0))
		return;
	id->port.space = m->space;
	id->port.number = m->src_port;
	id->port.address = vb_gid_is_zero(&m->src_name) ? m->src : m->src_name;
	id->port.flags = m->flags;
	(void)!vb_cm_id_bind_port(id);
}

/* Tells the program that a connection of an earlier broker cannot be resumed.
 */
static void tell_gone(struct vb_cm_client *c, uint32_t number)
{
	const struct vb_ipc_cm e = { .kind = IPC_CM_EVENT,
				     .version = VB_IPC_CM_VERSION,
				     .event = IPC_CM_DISCONNECTED,
				     .id = number };

	vb_cm_client_tell(c, &e);
}

static int on_resume(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	struct vb_cm_id *id;

	if (m->id == 0 || vb_cm_id_find(c, m->id) || m->type == IPC_CM_UD ||
	    m->status < 0 || m->status >= IPC_CM_AT_STAGES)
		return -EPROTO;
	if (vb_cm_id_make(c, m->id, &id)) {
		tell_gone(c, m->id);
		return 0;
	}
	id->type = (enum vb_ipc_cm_type)m->type;
	id->state = ID_CONN;
	if (resume(c, id, m)) {
		tell_gone(c, m->id);
		vb_cm_id_free(id);
		return 0;
	}
	resume_port(id, m);
	return 0;
}

bool vb_host_cm_needs_roce(const struct vb_cm_client *client,
			   const struct vb_mail *mail)
{
	return !client->only_places && mail->bytes[0] != IPC_CM_PLACE;
}

/* Only the message PLACE has a descriptor. */
static int take_place(struct vb_cm_client *c, const struct vb_ipc_cm *m,
		      struct vb_mail *mail)
{
	int fd = mail->fd_count == 1 ? mail->fds[0] : -1;
	int rc = vb_cm_on_place(c, m, &fd);

	if (fd < 0)
		mail->fd_count = 0;
	return rc;
}

int vb_host_cm_take(struct vb_cm_client *client, struct vb_mail *mail,
		    vb_time now)
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
		[IPC_CM_HELLO - IPC_CM_BIND]	  = cm_requests_on_hello,
		[IPC_CM_RESUME - IPC_CM_BIND]	  = on_resume,
		[IPC_CM_PLACE - IPC_CM_BIND]	  = NULL,
		[IPC_CM_PATH - IPC_CM_BIND]	  = vb_cm_on_path,
		[IPC_CM_GROUP_JOIN - IPC_CM_BIND] = vb_cm_on_group_join,
		[IPC_CM_GROUP_LEAVE - IPC_CM_BIND] = vb_cm_on_group_leave,
		[IPC_CM_MIGRATED - IPC_CM_BIND]	  = on_migrated,
		[IPC_CM_SERVICE - IPC_CM_BIND]	  = vb_cm_on_service,
	};
	// clang-format on
	struct vb_ipc_cm m;

	if (!vb_ipc_cm_get(mail->bytes, mail->len, &m) ||
	    m.kind - IPC_CM_BIND >= (int)VB_COUNT(handlers))
		return -EPROTO;
	client->cm->now = now;
	if (m.kind == IPC_CM_PLACE)
		return take_place(client, &m, mail);
	return handlers[m.kind - IPC_CM_BIND](client, &m);
}

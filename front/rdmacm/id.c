/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids: the calls that create and destroy them, listen, connect, accept, reject
 * and disconnect, and the options of rdma_set_option(). */
#include "front/rdmacm/rdmacm.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"

#define PSN_MASK 0xffffff
/* Bytes of rdma_cm's IP addressing header in a request's private data (IBA
 * A11); requests of AF_IB addresses have none. */
#define HEADER_BYTES 36
/* The most bytes of private data in each message (IBA 12.6). */
#define MOST_PRIVATE_REQ      92
#define MOST_PRIVATE_REP      196
#define MOST_PRIVATE_REJ      148
#define MOST_PRIVATE_SIDR_REQ 216
#define MOST_PRIVATE_SIDR_REP 136
/* Reject reason of IBA 12.6.7.2: vendor option not supported. */
#define REJECT_ECE   35
#define MOST_RETRIES 7

static struct rcm_id **bucket(uint32_t number)
{
	return &rcm.ids[number % VB_COUNT(rcm.ids)];
}

struct rcm_id *rcm_id_find(uint32_t number)
{
	struct rcm_id *id = *bucket(number);

	while (id && id->number != number)
		id = id->next;
	return id;
}

/* Puts @id into the table of ids; number 0: under the next free number. The
 * caller holds rcm.lock. */
static void id_enter(struct rcm_id *id, uint32_t number)
{
	if (number == 0) {
		do
			number = rcm.next_number++ & ~VB_IPC_CM_INCOMING;
		while (number == 0 || rcm_id_find(number));
	}
	id->number = number;
	id->next = *bucket(number);
	*bucket(number) = id;
}

/* Removes @id from the table of ids. The caller holds rcm.lock. */
static void id_leave(struct rcm_id *id)
{
	struct rcm_id **at = bucket(id->number);

	while (*at && *at != id)
		at = &(*at)->next;
	if (*at)
		*at = id->next;
}

void rcm_id_renumber(struct rcm_id *id, uint32_t number)
{
	pthread_mutex_lock(&rcm.lock);
	id_leave(id);
	id_enter(id, number);
	pthread_mutex_unlock(&rcm.lock);
}

struct rcm_id *rcm_id_create(struct rdma_event_channel *channel, void *context,
			     enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct rcm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->forks = rcm.forks;
	id->sync = !channel;
	id->pub.channel = channel ? channel : rdma_create_event_channel();
	if (!id->pub.channel) {
		free(id);
		return NULL;
	}
	id->pub.context = context;
	id->pub.ps = ps;
	id->pub.qp_type = type;
	/* Choose the PSN now, because a program that makes its own queue pair
	 * can ask for the RTR attributes before it accepts. */
	id->psn = vb_rand32() & PSN_MASK;
	id->tcp = -1;
	id->qkey = RCM_QKEY;
	id->gid_rule = rcm.gid_rule;
	pthread_cond_init(&id->acks, NULL);
	pthread_mutex_lock(&rcm.lock);
	id_enter(id, 0);
	pthread_mutex_unlock(&rcm.lock);
	return id;
}

/* Does the port space allow the queue pair type? Each allows one type, except
 * that RDMA_PS_IB allows several. */
static bool fits(enum rdma_port_space ps, enum ibv_qp_type type)
{
	switch (ps) {
	case RDMA_PS_TCP:
		return type == IBV_QPT_RC;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return type == IBV_QPT_UD;
	case RDMA_PS_IB:
		return type == IBV_QPT_RC || type == IBV_QPT_UC ||
		       type == IBV_QPT_UD || type == IBV_QPT_XRC_SEND ||
		       type == IBV_QPT_XRC_RECV;
	default:
		return false;
	}
}

int rcm_id_make(struct rdma_event_channel *channel, struct rdma_cm_id **pub,
		void *context, enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct rcm_id *id;
	int rc = rcm_session_start();

	if (rc)
		return rc;
	if (!fits(ps, type)) {
		vb_why(WHY_CM_CALL, (uintptr_t)ps,
		       "rdmacm: no id: port space 0x%x has no queue pairs of "
		       "type %d (RDMA_PS_TCP is 0x106 and has RC, RDMA_PS_UDP "
		       "is 0x111 and has UD, RDMA_PS_IB is 0x13f)",
		       (unsigned)ps, (int)type);
		return -EINVAL;
	}
	id = rcm_id_create(channel, context, ps, type);
	if (!id)
		return -errno;
	*pub = &id->pub;
	return 0;
}

VB_EXPORT int rdma_create_id(struct rdma_event_channel *channel,
			     struct rdma_cm_id **pub, void *context,
			     enum rdma_port_space ps)
{
	bool ud = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;
	int rc = rcm_id_make(channel, pub, context, ps,
			     ud ? IBV_QPT_UD : IBV_QPT_RC);

	return rc ? rcm_fail(-rc) : 0;
}

VB_EXPORT int rdma_destroy_id(struct rdma_cm_id *pub)
{
	struct rcm_id *id = rcm_id_of(pub);
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_CLOSE);

	if (pub->event)
		(void)rdma_ack_cm_event(pub->event);
	rcm_iw_close(id);
	rcm_ipoib_forget(id);
	pthread_mutex_lock(&rcm.lock);
	id_leave(id);
	pthread_mutex_unlock(&rcm.lock);
	rcm_event_forget(id);
	rcm_groups_forget(id);
	if (id->in_broker)
		(void)!rcm_session_tell(&m);
	if (id->sync)
		rdma_destroy_event_channel(pub->channel);
	pthread_cond_destroy(&id->acks);
	free(pub->route.path_rec);
	free(id->ep_attr);
	rdma_freeaddrinfo(id->resolved);
	free(id);
	return 0;
}

VB_EXPORT int rdma_migrate_id(struct rdma_cm_id *pub,
			      struct rdma_event_channel *channel)
{
	struct rcm_id *id = rcm_id_of(pub);
	struct rdma_event_channel *old = pub->channel;
	bool was_sync = id->sync;
	struct rdma_event_channel *to;

	if (was_sync && !channel)
		return rcm_why_refuse(id, __func__,
				      "the id has no event channel already");
	to = channel ? channel : rdma_create_event_channel();
	if (!to)
		return -1;
	if (pub->event && was_sync) {
		(void)rdma_ack_cm_event(pub->event);
		pub->event = NULL;
	}
	id->sync = !channel;
	rcm_event_move(id, VB_CONTAINER_OF(to, struct rcm_channel, pub));
	if (was_sync)
		rdma_destroy_event_channel(old);
	return 0;
}

VB_EXPORT int rdma_listen(struct rdma_cm_id *pub, int backlog)
{
	struct rcm_id *id = rcm_id_of(pub);
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_LISTEN), answer;
	int rc = 0;

	if (id->state == RCM_NEW)
		rc = rcm_bind(id, (struct sockaddr *)&any);
	if (rc == 0 && id->state != RCM_BOUND)
		rc = -EINVAL;
	m.backlog = backlog > 0 ? (uint32_t)backlog : 0;
	if (rc == 0 && (id->tcp >= 0 || id->stream))
		rc = rcm_iw_listen(id, backlog);
	if (rc == 0 && id->in_broker)
		rc = rcm_session_ask(&m, &answer);
	return rc ? rcm_why_call(id, "rdma_listen", -rc) : 0;
}

/* Returns how many READs and atomics the connection permits at a time: the
 * number @wanted that the program gave; but if that is RDMA_MAX_RESP_RES, the
 * peer's offer, up to the device's limit. */
static uint8_t clamp(uint8_t wanted, uint8_t offered, uint8_t limit)
{
	return wanted == RDMA_MAX_RESP_RES ? VB_MIN(offered, limit) : wanted;
}

/* Copies @bytes bytes of private data to @m, which has room for @most. -EINVAL:
 * @bytes is larger. */
static int put_private(struct vb_ipc_cm *m, const void *data, unsigned bytes,
		       unsigned most)
{
	if (bytes > most || (bytes && !data))
		return -EINVAL;
	if (bytes)
		memcpy(m->private_data, data, bytes);
	m->private_bytes = (uint8_t)bytes;
	return 0;
}

/* Puts the private data of a request into @m: the bytes that rdma_create_ep()
 * kept of the rdma_addrinfo, then those of @p. -EINVAL: they do not fit. */
static int put_request(struct vb_ipc_cm *m, const struct rcm_id *id,
		       const struct rdma_conn_param *p)
{
	unsigned most =
		rcm_is_ud(id) ? MOST_PRIVATE_SIDR_REQ : MOST_PRIVATE_REQ;
	uint8_t data[VB_IPC_CM_PRIVATE];

	if (!(m->flags & IPC_CM_PLAIN))
		most -= HEADER_BYTES;
	if (id->connect_bytes + p->private_data_len > most ||
	    (p->private_data_len && !p->private_data))
		return -EINVAL;
	memcpy(data, id->connect, id->connect_bytes);
	if (p->private_data_len)
		memcpy(data + id->connect_bytes, p->private_data,
		       p->private_data_len);
	return put_private(m, data, id->connect_bytes + p->private_data_len,
			   most);
}

static int refuse_private(const struct rcm_id *id, const char *call, int rc)
{
	if (rc == -EINVAL)
		return rcm_why_refuse(
			id, call,
			"private_data is longer than the message "
			"holds (rdma_connect(3): 56 bytes, "
			"rdma_accept(3): 196, rdma_reject(3): 148; "
			"datagrams: 180 and 136), or is NULL");
	return rcm_fail_of(-rc, call);
}

static const struct rdma_conn_param defaults = {
	.responder_resources = RDMA_MAX_RESP_RES,
	.initiator_depth = RDMA_MAX_INIT_DEPTH,
	.retry_count = MOST_RETRIES,
	.rnr_retry_count = MOST_RETRIES,
};

/* Can the device meet the parameters of rdma_connect(3) or rdma_accept(3)? The
 * program must ask for no greater depths than the device has, and needs a queue
 * pair: the id's own, or the number in @p. */
static bool is_possible(const struct rcm_id *id,
			const struct rdma_conn_param *p)
{
	const struct rcm_device *d = id->device;

	if (id->pub.ps != RDMA_PS_TCP)
		return true;
	if (!p)
		return id->pub.qp;
	return (p->responder_resources == RDMA_MAX_RESP_RES ||
		p->responder_resources <= d->max_resources) &&
	       (p->initiator_depth == RDMA_MAX_INIT_DEPTH ||
		p->initiator_depth <= d->max_depth);
}

/* Describes the queue pair of @id in @m, a CONNECT or an ACCEPT. */
static void put_qp(struct vb_ipc_cm *m, struct rcm_id *id,
		   const struct rdma_conn_param *p)
{
	m->place = id->path.place;
	m->alternate = id->path.alternate;
	m->guid = id->device->guid;
	m->qpn = id->pub.qp ? id->pub.qp->qp_num : p->qp_num & PSN_MASK;
	m->srq = id->pub.qp ? id->pub.qp->srq != NULL : p->srq;
	m->psn = id->psn;
	m->flow_control = p->flow_control;
	m->rnr_retry = VB_MIN(p->rnr_retry_count, MOST_RETRIES);
	m->responder_resources = id->responder_resources;
	m->initiator_depth = id->initiator_depth;
	m->qkey = id->qkey;
	m->vendor_id = id->ece.vendor_id;
	m->vendor_options = id->ece.options;
}

/* Begins to connect. The state of @id is changed before @m is sent, because
 * another thread may read the peer's answer before this thread continues. */
static int id_begin_connect(struct rcm_id *id, const struct vb_ipc_cm *m,
			    const struct rdma_conn_param *p)
{
	int rc;

	id->state = RCM_CONNECTING;
	if (!rcm_is_iwarp(id))
		rcm_why_asks(id);
	rc = rcm_is_iwarp(id) ? rcm_iw_connect(id, p) : rcm_session_tell(m);
	if (rc)
		id->state = RCM_ROUTED;
	return rc;
}

static int accept_stream(struct rcm_id *id, const struct rdma_conn_param *p)
{
	int rc = rcm_iw_accept(id, p);

	return rc ? rcm_fail_of(-rc, "rdma_accept") : rcm_event_complete(id);
}

VB_EXPORT int rdma_connect(struct rdma_cm_id *pub,
			   struct rdma_conn_param *param)
{
	const struct rdma_conn_param *p = param ? param : &defaults;
	struct rcm_id *id = rcm_id_of(pub);
	struct vb_ipc_cm m = id->path;
	int rc;

	if (id->state != RCM_ROUTED || !is_possible(id, param))
		return rcm_why_call(id, "rdma_connect", EINVAL);
	m.kind = IPC_CM_CONNECT;
	m.version = VB_IPC_CM_VERSION;
	m.id = id->number;
	id->responder_resources =
		clamp(p->responder_resources, 255, id->device->max_resources);
	id->initiator_depth =
		clamp(p->initiator_depth, 255, id->device->max_depth);
	if (!rcm_is_iwarp(id)) {
		put_qp(&m, id, p);
		m.retry_count = VB_MIN(p->retry_count, MOST_RETRIES);
		id->path.retry_count = m.retry_count;
		rc = put_request(&m, id, p);
		if (rc)
			return refuse_private(id, __func__, rc);
	}
	rc = id_begin_connect(id, &m, p);
	if (rc)
		return rcm_fail(-rc);
	return rcm_event_complete(id);
}

VB_EXPORT int rdma_accept(struct rdma_cm_id *pub, struct rdma_conn_param *param)
{
	const struct rdma_conn_param *p = param ? param : &defaults;
	struct rcm_id *id = rcm_id_of(pub);
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_ACCEPT);
	int rc;

	if (id->state != RCM_CONNECTING || !id->device ||
	    !is_possible(id, param))
		return rcm_why_call(id, "rdma_accept", EINVAL);
	id->responder_resources =
		clamp(p->responder_resources, id->peer.responder_resources,
		      id->device->max_resources);
	id->initiator_depth =
		clamp(p->initiator_depth, id->peer.initiator_depth,
		      id->device->max_depth);
	if (rcm_is_iwarp(id))
		return accept_stream(id, p);
	put_qp(&m, id, p);
	rc = put_private(&m, p->private_data, p->private_data_len,
			 rcm_is_ud(id) ? MOST_PRIVATE_SIDR_REP
				       : MOST_PRIVATE_REP);
	if (rc)
		(void)refuse_private(id, __func__, rc);
	else if (pub->qp)
		rc = rcm_qp_connect(id);
	if (rc == 0) {
		rc = rcm_session_tell(&m);
		(void)(rc && rcm_fail(-rc));
	}
	if (rc) {
		rcm_qp_fail(id);
		return rcm_pass(-rc);
	}
	/* A SIDR exchange ends with the reply of this side: no event
	 * follows. */
	return rcm_is_ud(id) ? 0 : rcm_event_complete(id);
}

static int reject(struct rdma_cm_id *pub, const void *private_data,
		  uint8_t private_data_len, int reason)
{
	struct rcm_id *id = rcm_id_of(pub);
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_REJECT);
	int rc = put_private(&m, private_data, private_data_len,
			     rcm_is_ud(id) ? MOST_PRIVATE_SIDR_REP
					   : MOST_PRIVATE_REJ);

	m.status = reason;
	if (id->state != RCM_CONNECTING)
		return rcm_why_call(id, "rdma_reject", EINVAL);
	if (rcm_is_iwarp(id))
		rc = rcm_iw_reject(id, private_data, private_data_len);
	else if (rc == 0)
		rc = rcm_session_tell(&m);
	return rc ? refuse_private(id, "rdma_reject", rc) : 0;
}

VB_EXPORT int rdma_reject(struct rdma_cm_id *id, const void *private_data,
			  uint8_t private_data_len)
{
	return reject(id, private_data, private_data_len, 0);
}

VB_EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
			      uint8_t private_data_len)
{
	return reject(id, private_data, private_data_len, REJECT_ECE);
}

#define ECE_NEEDS                                                              \
	"it needs an id without a queue pair of rdma_create_qp, and a "        \
	"vendor_id of 24 bits"

/* Sets ECE options. They apply only to a queue pair that the program makes
 * itself; the queue pairs of rdma_create_qp() have none. */
VB_EXPORT int rdma_set_local_ece(struct rdma_cm_id *pub, struct ibv_ece *ece)
{
	if (!pub || pub->qp || !ece || ece->vendor_id > PSN_MASK)
		return rcm_why_refuse(NULL, __func__, ECE_NEEDS);
	rcm_id_of(pub)->ece = *ece;
	return 0;
}

VB_EXPORT int rdma_get_remote_ece(struct rdma_cm_id *pub, struct ibv_ece *ece)
{
	const struct rcm_id *id = rcm_id_of(pub);

	if (!pub || pub->qp || !ece)
		return rcm_why_refuse(NULL, __func__, ECE_NEEDS);
	ece->vendor_id = id->peer.vendor_id;
	ece->options = id->peer.vendor_options;
	ece->comp_mask = 0;
	return 0;
}

/* Sends the broker a message that has only a kind and the id's number. */
static int tell_plain(struct rcm_id *id, enum vb_ipc_cm_kind kind,
		      const char *call)
{
	struct vb_ipc_cm m = rcm_message(id, kind);
	int rc = 0;

	if (id->state != RCM_CONNECTING)
		return rcm_why_call(id, call, EINVAL);

	/* an iWARP connection has no broker */
	if (!rcm_is_iwarp(id))
		rc = rcm_session_tell(&m);
	return rc ? rcm_fail_of(-rc, call) : 0;
}

VB_EXPORT int rdma_establish(struct rdma_cm_id *pub)
{
	if (pub->qp) /* the RTU was sent when the event was read */
		return rcm_why_refuse(rcm_id_of(pub), __func__,
				      "only ids without a queue pair of "
				      "rdma_create_qp are established so");
	return tell_plain(rcm_id_of(pub), IPC_CM_ESTABLISH, __func__);
}

VB_EXPORT int rdma_notify(struct rdma_cm_id *pub, enum ibv_event_type event)
{
	struct rcm_id *id = rcm_id_of(pub);

	if (event == IBV_EVENT_COMM_EST)
		return tell_plain(id, IPC_CM_ESTABLISH, __func__);
	if (event != IBV_EVENT_PATH_MIG)
		return rcm_why_refuse(id, __func__,
				      "the event is neither IBV_EVENT_COMM_EST "
				      "nor IBV_EVENT_PATH_MIG");
	if (!id->path.alternate.place)
		return rcm_why_refuse(id, __func__,
				      "the connection has no alternate path");
	return tell_plain(id, IPC_CM_MIGRATED, __func__);
}

VB_EXPORT int rdma_disconnect(struct rdma_cm_id *pub)
{
	struct rcm_id *id = rcm_id_of(pub);

	if (id->state == RCM_NEW)
		return rcm_why_call(id, __func__, EINVAL);
	/* Programs that clean up call this whether or not there is a
	 * connection. */
	if (id->state != RCM_CONNECTING) {
		vb_why_quietly("rdmacm: rdma_disconnect refused: the id has no "
			       "connection");
		return rcm_fail(EINVAL);
	}
	if (rcm_is_iwarp(id)) {
		int rc = rcm_iw_disconnect(id);

		return rc ? rcm_fail(-rc) : rcm_event_complete(id);
	}
	rcm_qp_fail(id);
	if (rcm_is_ud(id)) /* a datagram id has no connection to end */
		return 0;
	if (tell_plain(id, IPC_CM_DISCONNECT, __func__))
		return -1;
	return rcm_event_complete(id);
}

static int set_flag(struct rcm_id *id, uint8_t flag, const void *value,
		    size_t len)
{
	int on;

	if (len != sizeof(on) || id->state != RCM_NEW)
		return -EINVAL;
	memcpy(&on, value, sizeof(on));
	id->flags = (uint8_t)(on ? id->flags | flag : id->flags & ~flag);
	return 0;
}

static int set_secret(struct rcm_id *id, const void *value, size_t len,
		      uint8_t flag)
{
	if (len != sizeof(id->secret) || id->state != RCM_NEW)
		return -EINVAL;
	memcpy(&id->secret, value, sizeof(id->secret));
	id->flags |= flag;
	return 0;
}

static int set_option(struct rcm_id *id, int name, const void *value,
		      size_t len)
{
	const uint8_t *byte = value;

	switch (name) {
	case RDMA_OPTION_ID_TOS:
		if (len != 1)
			return -EINVAL;
		id->tos = *byte;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		return set_flag(id, IPC_CM_REUSE, value, len);
	case RDMA_OPTION_ID_AFONLY:
		return set_flag(id, IPC_CM_V6ONLY, value, len);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		/* Only RC and XRC requesters have an ACK timeout. */
		if (len != 1 || *byte > 31 ||
		    (id->pub.qp_type != IBV_QPT_RC &&
		     id->pub.qp_type != IBV_QPT_XRC_SEND))
			return -EINVAL;
		id->ack_timeout = *byte;
		id->timeout_set = true;
		return 0;
	case RCM_OPTION_SECRET:
		return set_secret(id, value, len, 0);
	case RCM_OPTION_JOIN:
		return set_secret(id, value, len, IPC_CM_JOIN);
	default:
		return -ENOSYS;
	}
}

VB_EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int optname,
			      void *optval, size_t optlen)
{
	int rc = -ENOSYS;

	if (level == RDMA_OPTION_ID && optval)
		rc = set_option(rcm_id_of(id), optname, optval, optlen);
	else if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
		rc = rcm_path_set(rcm_id_of(id), optval, optlen);
	if (rc == -EINVAL)
		vb_why(WHY_CM_CALL, (uintptr_t)id + (unsigned)optname,
		       "rdmacm: rdma_set_option refused: level %d, option %d "
		       "with %zu bytes: the length or value does not fit, or "
		       "the id is too far (flags: before it is bound; a path: "
		       "when its address is resolved)",
		       level, optname, optlen);
	return rc ? rcm_fail(-rc) : 0;
}

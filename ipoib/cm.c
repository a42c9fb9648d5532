/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes, answers and ends connections by librdmacm. Both ends create their
 * queue pairs with ibv_create_qp() and not rdma_create_qp(), since librdmacm
 * opens the adapter a second time, and the queue pairs must belong to the
 * context of the interface's port. */
#include "ipoib/cm.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"

/* the Service-ID of RFC 4755, 3.5, before the number of the queue pair */
#define SERVICE	     UINT64_C(0x1000000000000000)
#define PRIVATE	     8 /* bytes of private data (RFC 4755, 6) */
#define MOST_EVENTS  64
#define FIRST_MS     1000
#define RETRIES	     7
#define RNR_FOR_EVER 7
#define RNR_TIMER    12 /* code of 0.64 ms */
#define PKEY_NUMBER  0x7fff

/* --- the state of one connection (struct cm_line) --- */

static struct cm_line *make_line(struct ipoib_cm *cm,
				 const struct vb_ipoib_hw *peer)
{
	struct cm_line *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct cm_line){
		.cm = cm, .peer = *peer, .place = -1, .next = cm->lines
	};
	cm->lines = l;
	return l;
}

/* Destroying the id makes the connection manager tell the peer that the
 * connection has ended. */
static void end_line(struct cm_line *l)
{
	struct cm_line **at = &l->cm->lines;

	ipoib_cm_data_end(l);
	if (l->id)
		rdma_destroy_id(l->id);
	else if (l->place < 0)
		ipoib_asker_withdraw(l->cm->asker, l->query);
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	free(l);
}

static void end_caller(void *arg, void *handle)
{
	end_line(handle);
}

/* --- the queue pair's states --- */

/* The queue pair gives the peer no access to memory. RNR is retried without
 * limit, because the table of connections (ipoib/conn.h) ends a connection that
 * makes no progress. */
static int move_line(struct cm_line *l, enum ibv_qp_state to)
{
	struct ibv_qp_attr a = { .qp_state = to };
	int mask;

	if (rdma_init_qp_attr(l->id, &a, &mask))
		return -errno;
	if (to == IBV_QPS_INIT)
		a.qp_access_flags = 0;
	if (to == IBV_QPS_RTR)
		a.min_rnr_timer = RNR_TIMER;
	if (to == IBV_QPS_RTS)
		a.rnr_retry = RNR_FOR_EVER;
	return -ibv_modify_qp(l->qp, &a, mask);
}

static int ready_line(struct cm_line *l)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR,
						    IBV_QPS_RTS };
	int rc = 0;

	for (unsigned i = 0; !rc && i < VB_COUNT(states); i++)
		rc = move_line(l, states[i]);
	return rc;
}

/* --- private data --- */

static void put_private(const struct ipoib_cm *cm, uint8_t bytes[PRIVATE])
{
	vb_store_be(bytes, cm->port->qp->qp_num, 4);
	vb_store_be(bytes + 4, VB_CONN_LONGEST, 4);
}

/* Read from the private data the peer's datagram queue pair number, and the
 * longest frame that the peer accepts. False: the private data is too short, or
 * that length is too small for any frame. */
static bool get_private(const struct rdma_conn_param *p, uint32_t *qpn,
			unsigned *mtu)
{
	const uint8_t *bytes = p->private_data;
	uint64_t longest;

	if (!bytes || p->private_data_len < PRIVATE)
		return false;
	*qpn = (uint32_t)vb_load_be(bytes + 1, 3);
	longest = vb_load_be(bytes + 4, 4);
	*mtu = (unsigned)VB_MIN(longest, VB_CONN_LONGEST);
	return longest > VB_IPOIB_HEADER;
}

static struct rdma_conn_param param_of(const struct cm_line *l,
				       const uint8_t bytes[PRIVATE])
{
	return (struct rdma_conn_param){ .private_data = bytes,
					 .private_data_len = PRIVATE,
					 .retry_count = RETRIES,
					 .rnr_retry_count = RNR_FOR_EVER,
					 .srq = 1,
					 .qp_num = l->qp->qp_num };
}

static struct sockaddr_ib address_of(const struct ipoib_cm *cm,
				     const struct vb_gid *gid, uint64_t service)
{
	struct sockaddr_ib a = {
		.sib_family = AF_IB,
		.sib_pkey = htobe16(cm->pkey),
		.sib_sid = htobe64(service),
		.sib_sid_mask = htobe64(service ? UINT64_MAX : 0),
	};

	memcpy(&a.sib_addr, gid->raw, 16);
	return a;
}

/* --- connections that this interface makes --- */

static bool cm_call(void *arg, struct vb_conn *c)
{
	struct ipoib_cm *cm = arg;
	const struct cm_question q = {
		.kind = CM_ASK_PATH,
		.query = c->query,
		.from = address_of(cm, &cm->gid, 0),
		.to = address_of(cm, &c->peer.gid, SERVICE | c->peer.qpn),
	};
	struct cm_line *l = make_line(cm, &c->peer);

	if (!l)
		return false;
	l->query = c->query;
	if (!cm->listener || !ipoib_asker_ask(cm->asker, &q)) {
		end_line(l);
		return false;
	}
	c->handle = l;
	return true;
}

static bool cm_put(void *arg, const struct vb_conn *c, const void *frame,
		   size_t len)
{
	return ipoib_cm_data_send(c->handle, frame, len);
}

static void cm_end(void *arg, struct vb_conn *c)
{
	end_line(c->handle);
}

static const struct vb_conn_ops conn_ops = {
	.call = cm_call,
	.send = cm_put,
	.end = cm_end,
};

static int ask_peer(struct cm_line *l)
{
	uint8_t bytes[PRIVATE];
	struct rdma_conn_param param;
	int rc = ipoib_cm_data_make(l, VB_CONN_DEPTH);

	if (rc)
		return rc;
	put_private(l->cm, bytes);
	param = param_of(l, bytes);
	return rdma_connect(l->id, &param) ? -errno : 0;
}

/* The private data of a peer's request or answer; @valid false: it is malformed
 * or missing. */
struct cm_said {
	bool valid;
	uint32_t qpn;
	unsigned mtu;
};

static int take_rep(struct cm_line *l, const struct cm_said *said)
{
	int rc = said->valid ? ready_line(l) : -EPROTO;

	if (!rc && rdma_establish(l->id))
		rc = -errno;
	if (!rc)
		vb_conns_up(l->cm->conns, l->query, said->mtu, l->cm->now);
	return rc;
}

/* Do the next step towards a connection that this interface makes, after
 * @event. -errno: the connection has failed. */
static int step(struct cm_line *l, enum rdma_cm_event_type event,
		const struct cm_said *said)
{
	switch (event) {
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		return take_rep(l, said);
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default:
		return -ECONNABORTED;
	}
}

/* Take the answer to the question for the path of a line. The line may have
 * ended meanwhile. */
static void take_path(struct ipoib_cm *cm, const struct cm_question *q)
{
	struct cm_line *l = cm->lines;

	while (l && (l->place >= 0 || l->id || l->query != q->query))
		l = l->next;
	if (!l) {
		if (q->id)
			rdma_destroy_id(q->id);
		return;
	}
	l->id = q->id;
	if (l->id)
		l->id->context = l;
	if (!l->id || ask_peer(l))
		vb_conns_failed(cm->conns, l->query, cm->now);
}

/* --- connections that neighbours make --- */

static int answer_caller(struct cm_line *l)
{
	uint8_t bytes[PRIVATE];
	struct rdma_conn_param param;
	int rc = ipoib_cm_data_make(l, 1);

	if (!rc)
		rc = ready_line(l);
	if (rc)
		return rc;
	put_private(l->cm, bytes);
	param = param_of(l, bytes);
	return rdma_accept(l->id, &param) ? -errno : 0;
}

static bool is_welcome(const struct ipoib_cm *cm, const struct rdma_cm_id *id,
		       const struct cm_said *said)
{
	uint16_t pkey = be16toh(id->route.addr.addr.ibaddr.pkey);

	return said->valid && !((pkey ^ cm->pkey) & PKEY_NUMBER);
}

/* Refuse a neighbour's request for a connection; the neighbour then sends
 * datagrams. */
static void refuse(struct rdma_cm_id *id, const struct vb_ipoib_hw *peer,
		   const char *why)
{
	char gid[VB_GID_TEXT];

	vb_log(LOG_INFO, "refused a connection of %s, QPN %#x: %s",
	       vb_gid_text(&peer->gid, gid), peer->qpn, why);
	(void)rdma_reject(id, NULL, 0);
	rdma_destroy_id(id);
}

static void take_call(struct ipoib_cm *cm, struct rdma_cm_id *id,
		      const struct cm_said *said)
{
	struct vb_ipoib_hw peer = { .qpn = said->qpn };
	struct cm_line *l = NULL;

	memcpy(peer.gid.raw, id->route.addr.addr.ibaddr.dgid.raw, 16);
	if (!is_welcome(cm, id, said)) {
		refuse(id, &peer,
		       "it lacks the private data of RFC 4755, or has another "
		       "P_Key than the interface");
		return;
	}
	l = make_line(cm, &peer);
	if (l)
		l->place = vb_callers_enter(cm->callers, &peer, l, cm->now);
	if (!l || l->place < 0) {
		if (l)
			end_line(l);
		refuse(id, &peer, "there are as many as the interface keeps");
		return;
	}
	l->id = id;
	id->context = l;
	if (answer_caller(l))
		vb_callers_remove(cm->callers, l->place);
}

/* --- events --- */

static void take_event(struct ipoib_cm *cm, struct rdma_cm_id *id,
		       enum rdma_cm_event_type event,
		       const struct cm_said *said)
{
	struct cm_line *l = id->context;

	if (event == RDMA_CM_EVENT_CONNECT_REQUEST)
		take_call(cm, id, said);
	else if (!l) /* the event is the listener's, or a new request's */
		return;
	else if (l->place < 0 && step(l, event, said))
		vb_conns_failed(cm->conns, l->query, cm->now);
	else if (l->place >= 0 && event != RDMA_CM_EVENT_ESTABLISHED)
		vb_callers_remove(cm->callers, l->place);
}

/* Each event is acknowledged before it is handled, since handling may destroy
 * the event's id, and rdma_destroy_id() waits for acknowledgements. */
void ipoib_cm_events(struct ipoib_cm *cm, vb_time now)
{
	struct rdma_cm_event *e;

	cm->now = now;
	for (unsigned i = 0; i < MOST_EVENTS && cm->channel; i++) {
		enum rdma_cm_event_type event;
		struct cm_said said = { .valid = false };
		struct rdma_cm_id *id;

		if (rdma_get_cm_event(cm->channel, &e))
			return;
		event = e->event;
		id = e->id;
		if (event == RDMA_CM_EVENT_CONNECT_REQUEST ||
		    event == RDMA_CM_EVENT_CONNECT_RESPONSE)
			said.valid = get_private(&e->param.conn, &said.qpn,
						 &said.mtu);
		rdma_ack_cm_event(e);
		take_event(cm, id, event, &said);
	}
}

/* --- creation and end --- */

int ipoib_cm_open(struct ipoib_cm *cm, struct ipoib_port *port)
{
	int rc;

	*cm = (struct ipoib_cm){ .port = port };
	cm->conns = vb_conns_create(&conn_ops, cm);
	cm->callers = vb_callers_create(end_caller, cm);
	if (!cm->conns || !cm->callers)
		return -ENOMEM;
	rc = ipoib_cm_data_open(cm);
	if (rc)
		return rc;
	cm->channel = rdma_create_event_channel();
	if (!cm->channel)
		return -errno;
	cm->asker = ipoib_asker_start(cm->channel);
	return cm->asker ? ipoib_unblock(cm->channel->fd) : -errno;
}

void ipoib_cm_close(struct ipoib_cm *cm)
{
	if (!cm->port)
		return;
	if (cm->conns)
		vb_conns_destroy(cm->conns);
	if (cm->callers)
		vb_callers_destroy(cm->callers);
	if (cm->listener)
		rdma_destroy_id(cm->listener);
	if (cm->asker && !ipoib_asker_end(cm->asker))
		return; /* the asker's thread still uses the channel */
	if (cm->channel)
		rdma_destroy_event_channel(cm->channel);
	ipoib_cm_data_close(cm);
}

void ipoib_cm_hush(struct ipoib_cm *cm)
{
	if (!cm->listener)
		return;
	vb_conns_forget(cm->conns);
	vb_callers_forget(cm->callers);
	rdma_destroy_id(cm->listener);
	cm->listener = NULL;
}

/* Take the connection manager's answer to the question CM_ASK_LISTEN. */
static void take_listener(struct ipoib_cm *cm, const struct cm_question *q)
{
	bool current = memcmp(&q->from.sib_addr, cm->gid.raw, 16) == 0 &&
		       vb_gid_equal(&cm->gid, &cm->port->gid);

	cm->asked = false;
	cm->retry = current && q->error ? cm->now + CM_RETRY : 0;
	if (current)
		cm->listener = q->id;
	else if (q->id)
		rdma_destroy_id(q->id);
	if (q->error && q->error != cm->refused)
		vb_log(LOG_WARN,
		       "no connected mode: the connection manager does not "
		       "listen at the adapter: %s; datagrams until it does",
		       strerror(q->error));
	cm->refused = q->error;
}

void ipoib_cm_answers(struct ipoib_cm *cm, vb_time now)
{
	struct cm_question q;

	cm->now = now;
	while (cm->asker && ipoib_asker_take(cm->asker, &q)) {
		if (q.kind == CM_ASK_LISTEN)
			take_listener(cm, &q);
		else
			take_path(cm, &q);
	}
}

/* Ask the connection manager to listen. At the first call wait for the answer,
 * so that the interface most often starts with its final MTU. */
static void ask_to_listen(struct ipoib_cm *cm)
{
	const struct cm_question q = {
		.kind = CM_ASK_LISTEN,
		.from = address_of(cm, &cm->gid,
				   SERVICE | cm->port->qp->qp_num),
	};
	struct pollfd p = { .fd = ipoib_asker_fd(cm->asker), .events = POLLIN };

	cm->asked = ipoib_asker_ask(cm->asker, &q);
	cm->retry = cm->asked ? VB_NEVER : cm->now + CM_RETRY;
	if (cm->asked && !cm->waited)
		(void)poll(&p, 1, FIRST_MS);
	cm->waited = true;
	ipoib_cm_answers(cm, cm->now);
}

bool ipoib_cm_listen(struct ipoib_cm *cm, uint16_t pkey, vb_time now)
{
	if (!cm->channel)
		return false;
	if (cm->listener && vb_gid_equal(&cm->gid, &cm->port->gid))
		return true;
	if (cm->asked || cm->retry > now)
		return false;
	ipoib_cm_hush(cm);
	cm->gid = cm->port->gid;
	cm->pkey = pkey;
	cm->now = now;
	ask_to_listen(cm);
	return cm->listener;
}

enum vb_conn_way ipoib_cm_send(struct ipoib_cm *cm,
			       const struct vb_ipoib_hw *peer,
			       const void *frame, size_t len, unsigned datagram,
			       vb_time now, unsigned *most)
{
	*most = datagram;
	if (!cm->listener || !(peer->flags & IPOIB_HW_RC))
		return len <= datagram ? CONN_DATAGRAM : CONN_TOO_LONG;
	cm->now = now;
	return vb_conns_send(cm->conns, peer, frame, len, datagram, now, most);
}

bool ipoib_cm_has_room(const struct ipoib_cm *cm, vb_time now)
{
	return !cm->channel ||
	       (cm->free_count && !vb_conns_is_full(cm->conns, now));
}

vb_time ipoib_cm_tick(struct ipoib_cm *cm, vb_time now)
{
	if (!cm->channel)
		return VB_NEVER;
	cm->now = now;
	vb_conns_tick(cm->conns, now);
	vb_callers_tick(cm->callers, now);
	return VB_MIN(vb_conns_next(cm->conns, now),
		      vb_callers_next(cm->callers));
}

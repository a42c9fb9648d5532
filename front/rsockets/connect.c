/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection of a stream socket: the connection manager's events, in the
 * order in which they come, change rs->state.
 */
#include "front/rsockets/rs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/defs.h"

enum {
	RESOLVE_MS = 2000,
	RETRIES = 7, /* the largest retry count; for RNR it means no limit */
};

void rs_connection_end(struct rs_sock *rs, int error)
{
	rs->state = RS_FAILED;
	rs->reads = rs->writes = false;
	rs->error = error;
}

static void connected(struct rs_sock *rs)
{
	rs->state = RS_CONNECTED;
	rs->reads = rs->writes = true;
	rs_qp_work(rs);
	rs_keep_alive(rs);
}

/* Returns the errno for a rejection. @reason: the REJ reason of the InfiniBand
 * connection manager (IBA 12.6.7.2), or -errno from an iWARP device's TCP. */
static int refusal(int reason)
{
	enum { NO_SUCH_SERVICE = 8, CONSUMER = 28 };

	if (reason < 0)
		return -reason;
	return reason == NO_SUCH_SERVICE || reason == CONSUMER ? ECONNREFUSED
							       : ECONNRESET;
}

/* Makes the queue pair and sends the connection request. 0 or -errno. */
static int connect_ask(struct rs_sock *rs)
{
	struct rs_hello hello;
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.flow_control = 1,
		.retry_count = RETRIES,
		.rnr_retry_count = RETRIES,
	};
	int rc = rs_qp_open(rs);

	if (rc)
		return rc;
	/* iWARP needs one READ in each direction: Linux's siw and others start
	 * the stream with a READ of no bytes, and rs_qp_probe() uses one. */
	if (rs->room.by_send)
		param.initiator_depth = param.responder_resources = 1;
	rs_stream_hello(&rs->stream, &rs->room, &hello);
	return rdma_connect(rs->id, &param) ? -errno : 0;
}

/* Starts the stream with the private data that the peer sent. -EPROTO: the peer
 * sent none, or none of this protocol. */
static int meet(struct rs_sock *rs, const struct rdma_conn_param *conn)
{
	if (!conn->private_data)
		return -EPROTO;
	return rs_stream_meet(&rs->stream, conn->private_data,
			      conn->private_data_len);
}

/* Handles @event of a connection that this side started. 0 or -errno. */
static int step(struct rs_sock *rs, const struct rdma_cm_event *event)
{
	int rc = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		rs->state = RS_ROUTE;
		return rdma_resolve_route(rs->id, RESOLVE_MS) ? -errno : 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		rs->state = RS_CONNECTING;
		return connect_ask(rs);
	case RDMA_CM_EVENT_ESTABLISHED:
		rc = meet(rs, &event->param.conn);
		if (rc == 0)
			connected(rs);
		return rc;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return event->status < 0 ? event->status : -EHOSTUNREACH;
	case RDMA_CM_EVENT_UNREACHABLE:
		return event->status < 0 ? event->status : -ETIMEDOUT;
	case RDMA_CM_EVENT_REJECTED:
		return -refusal(event->status);
	default:
		return -ECONNABORTED;
	}
}

static void connection_event(struct rs_sock *rs,
			     const struct rdma_cm_event *event)
{
	int rc;

	if (rs_connecting(rs)) {
		rc = step(rs, event);
		if (rc)
			rs_connection_end(rs, -rc);
	} else if (rs->state == RS_CONNECTED &&
		   (event->event == RDMA_CM_EVENT_DISCONNECTED ||
		    event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)) {
		/* Handle completions: bytes that came before the disconnect
		 * stay readable. */
		rs_qp_work(rs);
		if (rs->state == RS_CONNECTED)
			rs->state = RS_GONE;
		rs->reads = rs->writes = false;
	}
}

static int connect_answer(struct rs_sock *rs,
			  const struct rdma_conn_param *asked)
{
	struct rs_hello hello;
	struct rdma_conn_param param = *asked;
	int rc = rs_qp_open(rs);

	if (rc == 0)
		rc = meet(rs, asked);
	if (rc)
		return rc;
	rs_stream_hello(&rs->stream, &rs->room, &hello);
	param.private_data = &hello;
	param.private_data_len = sizeof(hello);
	return rdma_accept(rs->id, &param) ? -errno : 0;
}

/* Makes the socket for a connection request. NULL: this function has rejected
 * the request. */
static struct rs_sock *welcome(struct rs_sock *listener,
			       struct rdma_cm_event *event)
{
	struct rs_sock *rs =
		rs_make(listener->domain, SOCK_STREAM, &listener->wishes);

	if (!rs) {
		rdma_reject(event->id, NULL, 0);
		rdma_destroy_id(event->id);
		return NULL;
	}
	memcpy(rs->numbers, listener->numbers, sizeof(rs->numbers));
	rdma_destroy_id(rs->id);
	rs->id = event->id;
	if (rdma_migrate_id(rs->id, rs->channel) ||
	    connect_answer(rs, &event->param.conn)) {
		rdma_reject(rs->id, NULL, 0);
		rs_unmake(rs);
		return NULL;
	}
	connected(rs);
	return rs;
}

static void request(struct rs_sock *listener, struct rdma_cm_event *event)
{
	struct rs_sock *rs = welcome(listener, event);

	if (!rs)
		return;
	*listener->last = rs;
	listener->last = &rs->next;
	listener->waiting++;
}

/*
 * Copies the next event and acknowledges it at once, because rdma_migrate_id(),
 * which handling a request calls, waits until the program has acknowledged all
 * events of the id. False: there is no event.
 */
static bool connect_next_event(struct rs_sock *rs, struct rdma_cm_event *copy,
			       uint8_t private_data[256])
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(rs->channel, &event))
		return false;
	*copy = *event;
	if (copy->param.conn.private_data) {
		memcpy(private_data, copy->param.conn.private_data,
		       copy->param.conn.private_data_len);
		copy->param.conn.private_data = private_data;
	}
	rdma_ack_cm_event(event);
	return true;
}

void rs_connection_take_events(struct rs_sock *rs)
{
	struct rdma_cm_event event;
	uint8_t private_data[256];
	int rc = rs->state == RS_LISTENING ? rs_announce(rs) : 0;

	if (rc)
		rs_connection_end(rs, -rc);
	while ((rs->state != RS_LISTENING || rs->waiting < rs->backlog) &&
	       connect_next_event(rs, &event, private_data)) {
		if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
			request(rs, &event);
		else
			connection_event(rs, &event);
	}
}

int rs_announce(struct rs_sock *rs)
{
	if (rs->announced)
		return 0;
	if (rdma_listen(rs->id, rs->backlog))
		return -errno;
	rs->announced = true;
	return 0;
}

int rs_connection_begin(struct rs_sock *rs)
{
	if (rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)&rs->peer,
			      RESOLVE_MS))
		return -errno;
	rs->state = RS_ADDRESS;
	return 0;
}

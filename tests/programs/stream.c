/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream.h"

#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include "rc.h"

#define PORT 7491
#define WAIT 10000 /* milliseconds to wait for an event of rdma_cm */

static struct sockaddr_in address;
static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener, *caller, *called;

bool stream_is_for(struct ibv_context *context)
{
	return context->device->transport_type == IBV_TRANSPORT_IWARP;
}

void stream_begin(const char *text)
{
	address = (struct sockaddr_in){ .sin_family = AF_INET,
					.sin_port = htons(PORT) };
	if (!text || inet_pton(AF_INET, text, &address.sin_addr) != 1)
		die("an RNIC's IPv4 address is wanted");
	channel = rdma_create_event_channel();
	must(channel, "rdma_create_event_channel");
	must(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) &&
		     !rdma_bind_addr(listener, (struct sockaddr *)&address) &&
		     !rdma_listen(listener, 16),
	     "rdma_listen");
}

/* Expect @what as the next event. Returns the id of the event. */
static struct rdma_cm_id *expect(enum rdma_cm_event_type what)
{
	struct pollfd p = { channel->fd, POLLIN, 0 };
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	if (poll(&p, 1, WAIT) != 1)
		die("%s does not come", rdma_event_str(what));
	must(!rdma_get_cm_event(channel, &e), "rdma_get_cm_event");
	if (e->event != what)
		die("%s (%d) comes, and not %s", rdma_event_str(e->event),
		    e->status, rdma_event_str(what));
	id = e->id;
	must(!rdma_ack_cm_event(e), "rdma_ack_cm_event");
	return id;
}

void stream_connect(struct ibv_qp *a, struct ibv_qp *b, unsigned reads)
{
	struct rdma_conn_param p = { .qp_num = a->qp_num,
				     .responder_resources = 4,
				     .initiator_depth = 4 };

	stream_drop();
	must(!rdma_create_id(channel, &caller, NULL, RDMA_PS_TCP) &&
		     !rdma_resolve_addr(caller, NULL,
					(struct sockaddr *)&address, 1000),
	     "rdma_resolve_addr");
	expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	must(!rdma_resolve_route(caller, 1000), "rdma_resolve_route");
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	must(!rdma_connect(caller, &p), "rdma_connect");
	called = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	p.qp_num = b->qp_num;
	p.responder_resources = (uint8_t)reads;
	must(!rdma_accept(called, &p), "rdma_accept");
	expect(RDMA_CM_EVENT_ESTABLISHED);
	expect(RDMA_CM_EVENT_ESTABLISHED);
}

void stream_drop(void)
{
	if (caller)
		must(!rdma_destroy_id(caller), "rdma_destroy_id");
	if (called)
		must(!rdma_destroy_id(called), "rdma_destroy_id");
	caller = called = NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The two sides of a connection, and functions that check them. */
#include "iwarp_test.h"

struct sockaddr_in address;
struct rdma_event_channel *channel;
struct rdma_cm_id *listener;
struct ibv_context *verbs;
struct ibv_pd *pd;
char problem[256];

void wrong(const char *format, ...)
{
	va_list args;

	/* only the first error is kept, because it is the cause of the
	 * others */
	if (problem[0])
		return;
	va_start(args, format);
	vsnprintf(problem, sizeof(problem), format, args);
	va_end(args);
}
struct side a, b; /* the sides of the connection: a connects, b accepts */
struct event event;

bool next_event(double seconds_left)
{
	struct pollfd p = { channel->fd, POLLIN, 0 };
	struct rdma_cm_event *e;

	event.what = (enum rdma_cm_event_type) - 1;
	if (poll(&p, 1, (int)(seconds_left * 1000)) != 1)
		return false;
	must(!rdma_get_cm_event(channel, &e), "rdma_get_cm_event");
	event.what = e->event;
	event.status = e->status;
	event.id = e->id;
	event.bytes = e->param.conn.private_data_len;
	event.responder_resources = e->param.conn.responder_resources;
	event.initiator_depth = e->param.conn.initiator_depth;
	if (event.bytes)
		memcpy(event.data, e->param.conn.private_data, event.bytes);
	must(!rdma_ack_cm_event(e), "rdma_ack_cm_event");
	return true;
}

bool expect_event(enum rdma_cm_event_type what)
{
	if (!next_event(WAIT))
		wrong("no %s came", rdma_event_str(what));
	else if (event.what != what)
		wrong("%s (%d) came, and not %s", rdma_event_str(event.what),
		      event.status, rdma_event_str(what));
	return event.what == what;
}

void equip(struct side *s)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = 64,
			 .max_send_sge = 2,
			 .max_recv_sge = 2 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	verbs = s->id->verbs;
	if (!pd)
		pd = ibv_alloc_pd(verbs);
	must(pd, "ibv_alloc_pd");
	s->cq = ibv_create_cq(verbs, 256, NULL, NULL, 0);
	must(s->cq, "ibv_create_cq");
	s->memory = calloc(1, BYTES);
	must(s->memory, "memory");
	s->mr = ibv_reg_mr(pd, s->memory, BYTES, RC_ALL_ACCESS);
	must(s->mr, "ibv_reg_mr");
	attr.send_cq = attr.recv_cq = s->cq;
	must(!rdma_create_qp(s->id, pd, &attr), "rdma_create_qp");
}

void drop(struct side *s)
{
	if (!s->id)
		return;
	rdma_destroy_qp(s->id);
	if (rdma_destroy_id(s->id))
		wrong("rdma_destroy_id");
	if (s->mr && ibv_dereg_mr(s->mr))
		wrong("ibv_dereg_mr");
	if (s->cq && ibv_destroy_cq(s->cq))
		wrong("ibv_destroy_cq");
	free(s->memory);
	memset(s, 0, sizeof(*s));
}

void begin_connect(struct side *s, const struct sockaddr_in *to,
		   struct rdma_conn_param *p)
{
	must(!rdma_create_id(channel, &s->id, s, RDMA_PS_TCP),
	     "rdma_create_id");
	must(!rdma_resolve_addr(s->id, NULL, (struct sockaddr *)to, 1000),
	     "rdma_resolve_addr");
	expect_event(RDMA_CM_EVENT_ADDR_RESOLVED);
	must(!rdma_resolve_route(s->id, 1000), "rdma_resolve_route");
	expect_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
	equip(s);
	must(!rdma_connect(s->id, p), "rdma_connect");
}

struct rdma_conn_param params(const char *data)
{
	return (struct rdma_conn_param){
		.responder_resources = 5,
		.initiator_depth = 3,
		.private_data = data,
		.private_data_len = data ? (uint8_t)strlen(data) : 0,
	};
}

/* Connect a to b, and expect the event ESTABLISHED at both. */
void connected(void)
{
	struct rdma_conn_param p = params(NULL);

	begin_connect(&a, &address, &p);
	if (!expect_event(RDMA_CM_EVENT_CONNECT_REQUEST))
		return;
	b.id = event.id;
	equip(&b);
	must(!rdma_accept(b.id, &p), "rdma_accept");
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
}

void post_from(struct side *s, struct ibv_send_wr wr, uint64_t id,
	       uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, 4096, lkey };
	struct ibv_send_wr *bad;

	wr.wr_id = id;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	must(!ibv_post_send(s->id->qp, &wr, &bad), "ibv_post_send");
}

void post(struct side *s, struct ibv_send_wr wr, uint64_t id)
{
	post_from(s, wr, id, s->mr->lkey);
}

struct ibv_send_wr rdma(enum ibv_wr_opcode opcode, uint32_t rkey)
{
	return (struct ibv_send_wr){
		.opcode = opcode,
		.wr.rdma = { (uintptr_t)b.memory, rkey },
	};
}

void post_recv(struct side *s, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, bytes, s->mr->lkey };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = 99, .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_recv(s->id->qp, &wr, &bad), "ibv_post_recv");
}

void expect_status(struct side *s, uint64_t id, enum ibv_wc_status status,
		   enum ibv_wc_status or)
{
	struct ibv_wc wc;

	if (!rc_wait(s->cq, WAIT, &wc))
		wrong("work request %d: no completion", (int)id);
	else if (wc.wr_id != id || (wc.status != status && wc.status != or))
		wrong("work request %d: %s of %d, and not %s", (int)id,
		      ibv_wc_status_str(wc.status), (int)wc.wr_id,
		      ibv_wc_status_str(status));
}

void expect_error_state(struct side *s, const char *who)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(s->id->qp, &attr, IBV_QP_STATE, &init) ||
	    attr.qp_state != IBV_QPS_ERR)
		wrong("%s: in state %d, and not in ERR", who,
		      (int)attr.qp_state);
}

/* Expect the event DISCONNECTED at both sides, in any order. */
void expect_end(void)
{
	expect_event(RDMA_CM_EVENT_DISCONNECTED);
	expect_event(RDMA_CM_EVENT_DISCONNECTED);
	expect_error_state(&a, "who asked");
	expect_error_state(&b, "who was asked");
}

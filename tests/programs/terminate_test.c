/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that an iWARP peer refuses, each on a new connection: a WRITE and a
 * READ with a wrong key, and a SEND without a posted receive. For each, the
 * client prints one line: how the request ended, how a receive ended, and the
 * event that reported the end. The server prints one about its receive, its
 * memory and its event.
 *
 *	terminate_test -s ADDRESS
 *	terminate_test ADDRESS
 */
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rc.h"

#define BYTES 4096
#define FILL  0xb5
#define WAIT  10.0

static const struct one {
	const char *name;
	enum ibv_wr_opcode opcode;
	bool receive; /* true: the server posts a RECV for the SEND */
} cases[] = {
	{ "write_key", IBV_WR_RDMA_WRITE, true },
	{ "read_key", IBV_WR_RDMA_READ, true },
	{ "send_unawaited", IBV_WR_SEND, false },
};
#define CASES (sizeof(cases) / sizeof(*cases))

struct target { /* what the server tells the client in the private data */
	uint64_t address;
	uint32_t rkey;
};

static uint8_t memory[BYTES];
static struct ibv_mr *mr;

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){
		.cap = { 4, 4, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
}

static void equip(struct rdma_cm_id *id)
{
	memset(memory, FILL, BYTES);
	mr = ibv_reg_mr(id->pd, memory, BYTES, RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
}

static void post_receive(struct rdma_cm_id *id)
{
	struct ibv_sge sge = { (uintptr_t)memory, BYTES, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	must(!ibv_post_recv(id->qp, &wr, &bad), "ibv_post_recv");
}

static const char *status_of(struct ibv_cq *cq, double limit)
{
	struct ibv_wc wc;

	if (!rc_wait(cq, limit, &wc))
		return "none";
	switch (wc.status) {
	case IBV_WC_SUCCESS:
		return "SUCCESS";
	case IBV_WC_WR_FLUSH_ERR:
		return "WR_FLUSH_ERR";
	case IBV_WC_REM_ACCESS_ERR:
		return "REM_ACCESS_ERR";
	case IBV_WC_LOC_QP_OP_ERR:
		return "LOC_QP_OP_ERR";
	default:
		return ibv_wc_status_str(wc.status);
	}
}

static const char *event_of(struct rdma_cm_id *id)
{
	struct pollfd p = { id->channel->fd, POLLIN, 0 };
	struct rdma_cm_event *e;
	const char *name;

	if (poll(&p, 1, (int)(WAIT * 1000)) != 1)
		return "none";
	must(!rdma_get_cm_event(id->channel, &e), "rdma_get_cm_event");
	name = rdma_event_str(e->event) + strlen("RDMA_CM_EVENT_");
	must(!rdma_ack_cm_event(e), "rdma_ack_cm_event");
	return name;
}

static void drop(struct rdma_cm_id *id)
{
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	rdma_destroy_ep(id);
}

static bool intact(void)
{
	for (unsigned i = 0; i < BYTES; i++)
		if (memory[i] != FILL)
			return false;
	return true;
}

static void refuse(struct rdma_cm_id *listener, const struct one *c)
{
	struct rdma_conn_param p = { .responder_resources = 1,
				     .initiator_depth = 1 };
	struct target t = { (uintptr_t)memory, 0 };
	struct rdma_cm_id *id;
	const char *event;

	must(!rdma_get_request(listener, &id), "rdma_get_request");
	equip(id);
	t.rkey = mr->rkey;
	p.private_data = &t;
	p.private_data_len = sizeof(t);
	if (c->receive)
		post_receive(id);
	must(!rdma_accept(id, &p), "rdma_accept");
	event = event_of(id);
	printf("%s %s %s %s\n", c->name,
	       c->receive ? status_of(id->recv_cq, 1.0) : "none",
	       intact() ? "intact" : "changed", event);
	drop(id);
}

static void ask(const struct rdma_addrinfo *to, const struct one *c)
{
	struct rdma_conn_param p = { .responder_resources = 1,
				     .initiator_depth = 1 };
	struct ibv_qp_init_attr attr = qp_attr();
	struct ibv_sge sge = { (uintptr_t)memory, 64, 0 };
	struct ibv_send_wr *bad,
		wr = { .sg_list = &sge, .num_sge = 1, .opcode = c->opcode };
	const char *status, *event;
	struct rdma_cm_id *id;
	struct target t;

	must(!rdma_create_ep(&id, (struct rdma_addrinfo *)to, NULL, &attr),
	     "rdma_create_ep");
	equip(id);
	post_receive(id);
	must(!rdma_connect(id, &p), "rdma_connect");
	must(id->event->param.conn.private_data_len >= sizeof(t),
	     "the server's private data");
	memcpy(&t, id->event->param.conn.private_data, sizeof(t));
	sge.lkey = mr->lkey;
	wr.wr.rdma.remote_addr = t.address;
	wr.wr.rdma.rkey = t.rkey + 0x100;
	/* Wait, because Linux's iwcm (6.1) BUGs on a siw connection that ends
	 * before siw has reported ESTABLISHED. siw does not report it if a
	 * faulty message comes together with the first FPDU
	 * (siw_rtr_data_ready). */
	usleep(500000);
	must(!ibv_post_send(id->qp, &wr, &bad), "ibv_post_send");
	status = status_of(id->send_cq, WAIT);
	event = event_of(id);
	printf("%s %s %s %s\n", c->name, status, status_of(id->recv_cq, WAIT),
	       event);
	drop(id);
}

int main(int argc, char **argv)
{
	bool serves = argc == 3 && !strcmp(argv[1], "-s");
	struct rdma_addrinfo *to, hints = { .ai_port_space = RDMA_PS_TCP };
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *listener = NULL;

	if (argc != 2 && !serves)
		die("usage: terminate_test [-s] ADDRESS");
	if (serves)
		hints.ai_flags = RAI_PASSIVE;
	must(!rdma_getaddrinfo(argv[argc - 1], "7481", &hints, &to),
	     "rdma_getaddrinfo");
	if (serves)
		must(!rdma_create_ep(&listener, to, NULL, &attr) &&
			     !rdma_listen(listener, 1),
		     "rdma_listen");
	for (unsigned i = 0; i < CASES; i++) {
		if (serves)
			refuse(listener, &cases[i]);
		else
			ask(to, &cases[i]);
		fflush(stdout);
	}
	if (serves)
		rdma_destroy_ep(listener);
	rdma_freeaddrinfo(to);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every asynchronous event that a queue can have, by its cause, on a real
 * device: two queue pairs of this program that are each other's peer.
 *
 *	events_test DEVICE
 *
 * Prints "ok" or "not ok" for each. Exit status 1: one of them failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "rc.h"

#define PSN   0x123456
#define BYTES 4096

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static uint8_t memory[2 * BYTES];
static struct ibv_mr *mr;
static bool failed;

/* A side of a connection; the second side is the one with the events. */
struct side {
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct rc_address address;
};

static void open_side(struct side *s, int cqe, bool with_srq)
{
	struct ibv_srq_init_attr srq = { .attr = { 8, 1, 0 } };
	struct ibv_qp_init_attr init = { .cap = { 16, 16, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };

	memset(s, 0, sizeof(*s));
	s->cq = ibv_create_cq(device.context, cqe, NULL, NULL, 0);
	must(s->cq, "ibv_create_cq");
	if (with_srq)
		must((s->srq = ibv_create_srq(device.pd, &srq)) != NULL,
		     "ibv_create_srq");
	init.send_cq = init.recv_cq = s->cq;
	init.srq = s->srq;
	s->qp = ibv_create_qp(device.pd, &init);
	must(s->qp, "ibv_create_qp");
	s->address = rc_address(&device, s->qp, PSN);
}

static void close_side(struct side *s)
{
	must(!ibv_destroy_qp(s->qp), "ibv_destroy_qp");
	if (s->srq)
		must(!ibv_destroy_srq(s->srq), "ibv_destroy_srq");
	must(!ibv_destroy_cq(s->cq), "ibv_destroy_cq");
}

static void to_rtr(struct side *s, const struct side *peer, unsigned access)
{
	must(!rc_to_init(s->qp, access), "RESET to INIT");
	must(!rc_to_rtr(&device, s->qp, &peer->address), "INIT to RTR");
}

static void to_rts(struct side *s)
{
	must(!rc_to_rts(s->qp, &options, PSN), "RTR to RTS");
}

static void post(struct side *s, enum ibv_wr_opcode op, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)memory, 64, mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = op,
					.send_flags = IBV_SEND_SIGNALED };

	wr.wr.rdma.remote_addr = (uintptr_t)memory + BYTES;
	wr.wr.rdma.rkey = rkey;
	must(!ibv_post_send(s->qp, &wr, &bad), "ibv_post_send");
}

static void post_receive(struct side *s)
{
	struct ibv_sge sge = { (uintptr_t)memory + BYTES, 64, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	int rc = s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad)
			: ibv_post_recv(s->qp, &wr, &bad);

	must(!rc, "post a receive");
}

/* Expect an event of @type about @of. The descriptor is non-blocking, so
 * poll(2) says when an event is there. */
static void expect(enum ibv_event_type type, const void *of)
{
	struct pollfd p = { .fd = device.context->async_fd, .events = POLLIN };
	const char *name = ibv_event_type_str(type);
	struct ibv_async_event e;

	if (poll(&p, 1, 5000) != 1 || ibv_get_async_event(device.context, &e)) {
		printf("not ok event %s: none came\n", name);
		failed = true;
		return;
	}
	if (e.event_type != type || e.element.qp != of) {
		printf("not ok event %s: it is %s\n", name,
		       ibv_event_type_str(e.event_type));
		failed = true;
	} else {
		printf("ok event %s\n", name);
	}
	ibv_ack_async_event(&e);
}

static void expect_none(void)
{
	struct ibv_async_event e;

	if (ibv_get_async_event(device.context, &e) == 0) {
		printf("not ok event too many: %s\n",
		       ibv_event_type_str(e.event_type));
		ibv_ack_async_event(&e);
		failed = true;
	} else if (errno != EAGAIN) {
		printf("not ok no event: %s\n", strerror(errno));
		failed = true;
	}
}

static void expect_wc(struct side *s, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (rc_wait(s->cq, 5, &wc) && wc.status == status)
		return;
	printf("not ok completion %s\n", ibv_wc_status_str(status));
	failed = true;
}

static void established(void)
{
	struct side a, b;

	open_side(&a, 16, false);
	open_side(&b, 16, false);
	to_rtr(&a, &b, RC_ALL_ACCESS);
	to_rtr(&b, &a, RC_ALL_ACCESS);
	to_rts(&a);
	post_receive(&b);
	post(&a, IBV_WR_SEND, 0);
	expect(IBV_EVENT_COMM_EST, b.qp);
	expect_wc(&a, IBV_WC_SUCCESS);
	expect_none();
	close_side(&a);
	close_side(&b);
}

static void connect_both(struct side *a, struct side *b, int cqe, bool srq,
			 unsigned access)
{
	open_side(a, cqe, false);
	open_side(b, 16, srq);
	to_rtr(a, b, RC_ALL_ACCESS);
	to_rtr(b, a, access);
	to_rts(a);
	to_rts(b);
}

static void drained(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD,
				    .en_sqd_async_notify = 1 };
	struct side a, b;

	connect_both(&a, &b, 16, false, RC_ALL_ACCESS);
	post(&a, IBV_WR_RDMA_WRITE, mr->rkey);
	must(!ibv_modify_qp(a.qp, &attr,
			    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
	     "RTS to SQD");
	expect(IBV_EVENT_SQ_DRAINED, a.qp);
	expect_wc(&a, IBV_WC_SUCCESS);
	expect_none();
	close_side(&a);
	close_side(&b);
}

/* Post a request that the peer must refuse, while no receive is posted that
 * could report the fault. */
static void refused(enum ibv_event_type type, enum ibv_wr_opcode op,
		    uint32_t rkey, unsigned access, enum ibv_wc_status status)
{
	struct side a, b;

	connect_both(&a, &b, 16, false, access);
	post(&a, op, rkey);
	expect(type, b.qp);
	expect_wc(&a, status);
	expect_none();
	close_side(&a);
	close_side(&b);
}

static void shared_queue(void)
{
	struct ibv_srq_attr limit = { .srq_limit = 2 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct side a, b;

	connect_both(&a, &b, 16, true, RC_ALL_ACCESS);
	for (int i = 0; i < 3; i++)
		post_receive(&b);
	must(!ibv_modify_srq(b.srq, &limit, IBV_SRQ_LIMIT), "arm the limit");
	post(&a, IBV_WR_SEND, 0);
	expect_wc(&a, IBV_WC_SUCCESS);
	expect_none();
	post(&a, IBV_WR_SEND, 0);
	expect(IBV_EVENT_SRQ_LIMIT_REACHED, b.srq);
	must(!ibv_modify_qp(b.qp, &attr, IBV_QP_STATE), "to ERR");
	expect(IBV_EVENT_QP_LAST_WQE_REACHED, b.qp);
	expect_none();
	close_side(&a);
	close_side(&b);
}

/* Make more completions than the queue has room for, without polling. */
static void overrun(void)
{
	struct side a, b;
	int n;

	connect_both(&a, &b, 1, false, RC_ALL_ACCESS);
	n = a.cq->cqe + 1;
	for (int i = 0; i < n; i++)
		post(&a, IBV_WR_RDMA_WRITE, mr->rkey);
	expect(IBV_EVENT_CQ_ERR, a.cq);
	expect(IBV_EVENT_QP_FATAL, a.qp);
	expect_none();
	close_side(&a);
	close_side(&b);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		die("usage: events_test DEVICE");
	options.device = argv[1];
	rc_open(&device, &options);
	must(fcntl(device.context->async_fd, F_SETFL, O_NONBLOCK) == 0,
	     "fcntl");
	mr = ibv_reg_mr(device.pd, memory, sizeof(memory), RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	established();
	drained();
	refused(IBV_EVENT_QP_ACCESS_ERR, IBV_WR_RDMA_WRITE, mr->rkey ^ 1,
		RC_ALL_ACCESS, IBV_WC_REM_ACCESS_ERR);
	refused(IBV_EVENT_QP_REQ_ERR, IBV_WR_RDMA_READ, mr->rkey,
		IBV_ACCESS_REMOTE_WRITE, IBV_WC_REM_INV_REQ_ERR);
	shared_queue();
	overrun();
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	rc_close(&device);
	return failed;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts some messages of one kind, each when the one before it is complete. So
 * a tool that counts by function sees the way of a single message: count_post()
 * calls only ibv_post_send(). Runs with any libibverbs.
 *
 *	way_test [-d DEVICE] [-p PORT] KIND		one side, the target
 *	way_test [-d DEVICE] [-p PORT] KIND HOST	the other
 *
 * KIND is a row of the table below.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rc.h"

#define MESSAGES 16

struct remote {
	uint64_t address;
	uint32_t rkey;
};

static const struct kind {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
} kinds[] = {
	{ "write", IBV_WR_RDMA_WRITE, 8 },
	{ "long-write", IBV_WR_RDMA_WRITE, 65536 },
	{ "send", IBV_WR_SEND, 8 },
	{ "read", IBV_WR_RDMA_READ, 8 },
};

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct remote there;
static char memory[65536];
static int tcp;

static const struct kind *kind_of(const char *name)
{
	for (size_t i = 0; name && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	die("no such kind of message: %s", name ? name : "none");
}

static void post_receives(void)
{
	struct ibv_sge sge = { (uintptr_t)memory, sizeof(memory), mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	for (int i = 0; i < MESSAGES; i++)
		must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void set_up(void)
{
	struct rc_address me, peer;
	struct remote here;

	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, 2 * MESSAGES, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	mr = ibv_reg_mr(device.pd, memory, sizeof(memory), RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	qp = rc_qp(&device, cq, MESSAGES, 1, 0);
	me = rc_address(&device, qp, 1);
	here = (struct remote){ (uintptr_t)memory, mr->rkey };
	tcp = tcp_meet(&options);
	tcp_swap(tcp, &me, &peer, sizeof(me));
	tcp_swap(tcp, &here, &there, sizeof(here));
	rc_connect(&device, qp, &options, 1, &peer);
	post_receives();
	tcp_barrier(tcp);
}

/* This function stays out of line, so that a profiling tool can count it by
 * name. */
__attribute__((noinline)) static int count_post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(qp, wr, &bad);
}

static void pass(const struct kind *k)
{
	struct ibv_sge sge = { (uintptr_t)memory, k->bytes, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = k->opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { there.address, there.rkey } };
	struct ibv_wc wc;

	must(!count_post(&wr), "ibv_post_send");
	must(rc_wait(cq, 20, &wc), "a completion");
	if (wc.status)
		die("%s", ibv_wc_status_str(wc.status));
	usleep(2000); /* 2 ms, after which no packet is on its way */
}

int main(int argc, char **argv)
{
	char **rest = rc_read_options(&options, argc, argv);
	const struct kind *k = kind_of(*rest);

	options.host = rest[1];
	set_up();
	for (int i = 0; options.host && i < MESSAGES; i++)
		pass(k);
	tcp_barrier(tcp);
	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	must(!ibv_destroy_cq(cq), "ibv_destroy_cq");
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	rc_close(&device);
	return 0;
}

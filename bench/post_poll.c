/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts bursts of small WRITEs and polls their completions when they have all
 * come, so that a tool that counts instructions sees neither waiting nor
 * chance: in count_post() and count_poll() there is only ibv_post_send or
 * ibv_poll_cq. Runs with any libibverbs.
 *
 *	post_poll [-d DEVICE] [-p PORT]			one side
 *	post_poll [-d DEVICE] [-p PORT] HOST		the other
 *
 * The other side prints how many messages there were.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/programs/rc.h"

#define BURST  16
#define BURSTS 64

struct remote {
	uint64_t address;
	uint32_t rkey;
};

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct remote there;
static uint64_t memory[BURST];
static int tcp;

static void set_up(void)
{
	struct rc_address me, peer;
	struct remote here;

	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, 2 * BURST, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	mr = ibv_reg_mr(device.pd, memory, sizeof(memory), RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	qp = rc_qp(&device, cq, BURST, 1, 0);
	me = rc_address(&device, qp, 1);
	here = (struct remote){ (uintptr_t)memory, mr->rkey };
	tcp = tcp_meet(&options);
	tcp_swap(tcp, &me, &peer, sizeof(me));
	tcp_swap(tcp, &here, &there, sizeof(here));
	rc_connect(&device, qp, &options, 1, &peer);
	tcp_barrier(tcp);
}

/* These functions stay out of line, so that a profiling tool can count their
 * instructions by name. */
__attribute__((noinline)) static int count_post(struct ibv_send_wr *wrs)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(qp, wrs, &bad);
}

__attribute__((noinline)) static int count_poll(struct ibv_wc *wcs, int n)
{
	return ibv_poll_cq(cq, n, wcs);
}

static void fill(struct ibv_send_wr *wrs, struct ibv_sge *sges)
{
	for (int i = 0; i < BURST; i++) {
		sges[i] =
			(struct ibv_sge){ (uintptr_t)&memory[i], 8, mr->lkey };
		wrs[i] = (struct ibv_send_wr){
			.next = i + 1 < BURST ? &wrs[i + 1] : NULL,
			.sg_list = &sges[i],
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { there.address + 8 * (uint64_t)i,
				     there.rkey }
		};
	}
}

static void burst(struct ibv_send_wr *wrs)
{
	struct ibv_wc wcs[BURST];
	int got = 0, n;

	must(!count_post(wrs), "ibv_post_send");
	while (got < BURST) {
		/* let the adapter's own thread finish its work */
		usleep(20000);
		n = count_poll(wcs, BURST - got);
		must(n >= 0, "ibv_poll_cq");
		for (int i = 0; i < n; i++)
			if (wcs[i].status)
				die("%s", ibv_wc_status_str(wcs[i].status));
		got += n;
	}
}

static void measure(void)
{
	struct ibv_send_wr wrs[BURST];
	struct ibv_sge sges[BURST];

	fill(wrs, sges);
	for (int i = 0; i < BURSTS; i++)
		burst(wrs);
	printf("%d\n", BURST * BURSTS);
}

int main(int argc, char **argv)
{
	options.host = *rc_read_options(&options, argc, argv);
	set_up();
	if (options.host)
		measure();
	tcp_barrier(tcp);
	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	must(!ibv_destroy_cq(cq), "ibv_destroy_cq");
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	rc_close(&device);
	return 0;
}

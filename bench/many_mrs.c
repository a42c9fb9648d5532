/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What many memory regions cost: to register one more, and to write from one
 * to another of them. Runs with any libibverbs.
 *
 *	many_mrs [-d DEVICE] [-p PORT] [-n REGIONS] [-m MESSAGES]	one side
 *	many_mrs [-d DEVICE] [-p PORT] [-n REGIONS] [-m MESSAGES] HOST	the
 *other
 *
 * The other side prints nanoseconds: to register a region among the first few
 * and the last few, and for a WRITE between random regions while there are
 * few, and when there are all. All regions are in one page, so that what
 * differs is what the adapter does with keys.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/programs/rc.h"

#define FEW   1000
#define BYTES 8

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr **mrs;
static uint32_t *rkeys; /* the other side's */
static uint64_t there;
static uint64_t memory[512] __attribute__((aligned(4096)));
static int tcp, count = 1000000, messages = 40000;

static void *piece(int i)
{
	return &memory[i % 512];
}

static double register_some(int from, int to)
{
	double begin = seconds();

	for (int i = from; i < to; i++) {
		mrs[i] = ibv_reg_mr(device.pd, piece(i), BYTES, RC_ALL_ACCESS);
		must(mrs[i], "ibv_reg_mr");
	}
	return (seconds() - begin) / (to - from) * 1e9;
}

/* Only one side writes, and needs keys. */
static void tell_keys(int from, int to)
{
	if (options.host) {
		tcp_recv(tcp, &rkeys[from],
			 (size_t)(to - from) * sizeof(*rkeys));
		return;
	}
	for (int i = from; i < to; i++)
		rkeys[i] = mrs[i]->rkey;
	tcp_send(tcp, &rkeys[from], (size_t)(to - from) * sizeof(*rkeys));
}

static void write_between(int i, int j)
{
	struct ibv_sge sge = { (uintptr_t)piece(i), BYTES, mrs[i]->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = there + (uint64_t)(j % 512) * BYTES;
	wr.wr.rdma.rkey = rkeys[j];
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	if (!rc_wait(cq, 30, &wc))
		die("no completion");
	if (wc.status)
		die("%s", ibv_wc_status_str(wc.status));
}

static double write_among(int regions)
{
	struct rng random = { 1 };
	double begin = seconds();

	for (int i = 0; i < messages; i++)
		write_between((int)rng_below(&random, (uint64_t)regions),
			      (int)rng_below(&random, (uint64_t)regions));
	return (seconds() - begin) / messages * 1e9;
}

/* A busy program that is written to, until the other says it is over. */
static void serve(void)
{
	struct ibv_wc wc;
	char over;
	ssize_t n;

	do {
		for (int i = 0; i < 10000; i++)
			must(ibv_poll_cq(cq, 1, &wc) == 0, "ibv_poll_cq");
		n = recv(tcp, &over, 1, MSG_DONTWAIT);
	} while (n < 0 && errno == EAGAIN);
}

static double write_or_serve(int regions)
{
	double time = 0;

	tcp_barrier(tcp);
	if (!options.host) {
		serve();
		return 0;
	}
	write_among(regions);
	time = write_among(regions);
	tcp_send(tcp, "", 1);
	return time;
}

static void set_up(void)
{
	uint64_t here = (uintptr_t)memory;
	struct rc_address me, peer;

	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, 256, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	qp = rc_qp(&device, cq, 64, 1, 0);
	mrs = calloc((size_t)count, sizeof(*mrs));
	rkeys = calloc((size_t)count, sizeof(*rkeys));
	must(mrs && rkeys, "calloc");
	me = rc_address(&device, qp, 4711);
	tcp = tcp_meet(&options);
	tcp_swap(tcp, &me, &peer, sizeof(me));
	tcp_swap(tcp, &here, &there, sizeof(here));
	rc_connect(&device, qp, &options, 4711, &peer);
}

int main(int argc, char **argv)
{
	double first, last, few, all;
	int c;

	while ((c = getopt(argc, argv, "d:p:n:m:")) != -1) {
		if (c == 'd')
			options.device = optarg;
		else if (c == 'p')
			options.port = atoi(optarg);
		else if (c == 'n')
			count = atoi(optarg);
		else if (c == 'm')
			messages = atoi(optarg);
		else
			return 2;
	}
	if (count < 4 * FEW || messages < 1)
		return 2;
	options.host = argv[optind];
	set_up();
	register_some(0, FEW / 2); /* first uses of everything */
	first = register_some(FEW / 2, FEW);
	tell_keys(0, FEW);
	few = write_or_serve(FEW);
	register_some(FEW, count - FEW);
	last = register_some(count - FEW, count);
	tell_keys(FEW, count);
	all = write_or_serve(count);
	if (options.host)
		printf("%.0f %.0f %.0f %.0f\n", first, last, few, all);
	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	for (int i = 0; i < count; i++)
		must(!ibv_dereg_mr(mrs[i]), "ibv_dereg_mr");
	must(!ibv_destroy_cq(cq), "ibv_destroy_cq");
	rc_close(&device);
	return 0;
}

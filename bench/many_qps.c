/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What many connected queue pairs cost: memory while they are idle, and time
 * when each in turn sends a message. Runs with any libibverbs.
 *
 *	many_qps [-d DEVICE] [-p PORT] [-n QPS] [-m MESSAGES]		one side
 *	many_qps [-d DEVICE] [-p PORT] [-n QPS] [-m MESSAGES] HOST	the
 *other
 *
 * The other side, which writes 8 bytes at a time and waits for each, prints
 *
 *	NANOSECONDS a message, KIB a queue pair idle, KIB when each was used
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/programs/rc.h"

#define WRS 64

struct remote {
	uint64_t address;
	uint32_t rkey;
};

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq;
static struct ibv_qp **qps;
static struct ibv_mr *mr;
static struct remote there;
static uint64_t memory[2];
static int tcp, count = 1, messages = 40000;

/* Resident memory, KiB. */
static double resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long size, pages = 0;

	must(f && fscanf(f, "%lu %lu", &size, &pages) == 2, "statm");
	fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static void connect_qp(int i)
{
	uint32_t psn = (uint32_t)i * 77;
	struct rc_address me, peer;

	qps[i] = rc_qp(&device, cq, WRS, 1, 0);
	me = rc_address(&device, qps[i], psn);
	tcp_swap(tcp, &me, &peer, sizeof(me));
	rc_connect(&device, qps[i], &options, psn, &peer);
}

static void set_up(void)
{
	struct remote here;

	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, 256, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	mr = ibv_reg_mr(device.pd, memory, sizeof(memory), RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	qps = calloc((size_t)count, sizeof(struct ibv_qp *));
	must(qps, "calloc");
	here = (struct remote){ (uintptr_t)memory, mr->rkey };
	tcp = tcp_meet(&options);
	tcp_swap(tcp, &here, &there, sizeof(here));
}

static void write_by(struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
	struct ibv_send_wr *bad,
		wr = { .sg_list = &sge,
		       .num_sge = 1,
		       .opcode = IBV_WR_RDMA_WRITE,
		       .send_flags = IBV_SEND_SIGNALED,
		       .wr.rdma = { there.address + 8, there.rkey } };
	struct ibv_wc wc;

	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	if (!rc_wait(cq, 30, &wc))
		die("no completion");
	if (wc.status)
		die("%s", ibv_wc_status_str(wc.status));
}

static double run(int times)
{
	double begin = seconds();

	for (int i = 0; i < times; i++)
		write_by(qps[i % count]);
	return (seconds() - begin) / times * 1e9;
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

static void measure(double before)
{
	double idle = resident(), time;

	run(count < 1000 ? 1000 : count);
	time = run(messages < 2 * count ? 2 * count : messages);
	printf("%.0f %.3f %.3f\n", time, (idle - before) / count,
	       (resident() - before) / count);
	tcp_send(tcp, "", 1);
}

int main(int argc, char **argv)
{
	double before;
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
	if (count < 1 || messages < 1)
		return 2;
	options.host = argv[optind];
	set_up();
	before = resident();
	for (int i = 0; i < count; i++)
		connect_qp(i);
	tcp_barrier(tcp);
	if (options.host)
		measure(before);
	else
		serve();
	for (int i = 0; i < count; i++)
		must(!ibv_destroy_qp(qps[i]), "ibv_destroy_qp");
	must(!ibv_destroy_cq(cq), "ibv_destroy_cq");
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	rc_close(&device);
	return 0;
}

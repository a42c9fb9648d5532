/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What many connected queue pairs cost: memory while they are idle, and time
 * when each in turn sends a message. Runs with any libibverbs.
 *
 *	many_qps [-d DEVICE] [-p PORT] [-n QPS] [-m MESSAGES] [HOST]
 *
 * One side without HOST, the other with it. The latter writes 8 bytes at a
 * time and waits for each, and prints
 *
 *	NANOSECONDS a message, KIB a queue pair idle, KIB when each was used
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/one_by_one.h"

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

/* Returns the resident memory of this process in KiB. */
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

static void write_in_turn(int i)
{
	const struct one_write w = { .qp = qps[i % count],
				     .from = memory,
				     .lkey = mr->lkey,
				     .rkey = there.rkey,
				     .to = there.address + 8 };

	write_and_wait(cq, &w);
}

static void measure(double before)
{
	double idle = resident(), time;
	int warm = count < 1000 ? 1000 : count;

	time_each(write_in_turn, 0, warm);
	time = time_each(write_in_turn, warm,
			 warm + (messages < 2 * count ? 2 * count : messages));
	printf("%.0f %.3f %.3f\n", time, (idle - before) / count,
	       (resident() - before) / count);
	tell_over(tcp);
}

int main(int argc, char **argv)
{
	double before;

	read_counts(argc, argv, &options, &count, &messages);
	set_up();
	before = resident();
	for (int i = 0; i < count; i++)
		connect_qp(i);
	tcp_barrier(tcp);
	if (options.host)
		measure(before);
	else
		be_written_to(cq, tcp);
	for (int i = 0; i < count; i++)
		must(!ibv_destroy_qp(qps[i]), "ibv_destroy_qp");
	must(!ibv_destroy_cq(cq), "ibv_destroy_cq");
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	rc_close(&device);
	return 0;
}

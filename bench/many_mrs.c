/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What many memory regions cost: to register one more, and to write from one
 * to another of them. Runs with any libibverbs.
 *
 *	many_mrs [-d DEVICE] [-p PORT] [-n REGIONS] [-m MESSAGES] [HOST]
 *
 * One side without HOST, the other with it. The latter prints nanoseconds: to
 * register a region among the first few and the last few, and for a WRITE
 * between random regions while there are few, and when there are all. All
 * regions are in one page, and which of them are written is drawn before the
 * clock starts, so that what differs is what the adapter does with keys.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/one_by_one.h"

#define FEW   1000
#define BYTES 8

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr **mrs;
static uint32_t *rkeys; /* the remote keys of the other side's regions */
static struct one_write *writes;
static uint64_t there;
static uint64_t memory[512] __attribute__((aligned(4096)));
static int tcp, count = 1000000, messages = 40000;

static void *piece(int i)
{
	return &memory[i % 512];
}

static void register_one(int i)
{
	mrs[i] = ibv_reg_mr(device.pd, piece(i), BYTES, RC_ALL_ACCESS);
	must(mrs[i], "ibv_reg_mr");
}

/* Pass the remote keys @from..@to - 1 to the side that writes, which alone
 * needs them. */
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

static struct one_write between(int i, int j)
{
	return (struct one_write){ .qp = qp,
				   .from = piece(i),
				   .lkey = mrs[i]->lkey,
				   .rkey = rkeys[j],
				   .to = there + (uint64_t)(j % 512) * BYTES };
}

static void write_next(int i)
{
	write_and_wait(cq, &writes[i]);
}

static double write_among(int regions)
{
	struct rng random = { 1 };

	for (int i = 0; i < 2 * messages; i++) {
		int from = (int)rng_below(&random, (uint64_t)regions);

		writes[i] = between(from,
				    (int)rng_below(&random, (uint64_t)regions));
	}
	time_each(write_next, 0, messages);
	return time_each(write_next, messages, 2 * messages);
}

static double write_or_be_written(int regions)
{
	double time = 0;

	tcp_barrier(tcp);
	if (options.host) {
		time = write_among(regions);
		tell_over(tcp);
	} else {
		be_written_to(cq, tcp);
	}
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
	writes = calloc(2 * (size_t)messages, sizeof(*writes));
	must(mrs && rkeys && writes, "calloc");
	me = rc_address(&device, qp, 4711);
	tcp = tcp_meet(&options);
	tcp_swap(tcp, &me, &peer, sizeof(me));
	tcp_swap(tcp, &here, &there, sizeof(here));
	rc_connect(&device, qp, &options, 4711, &peer);
}

int main(int argc, char **argv)
{
	double first, last, few, all;

	read_counts(argc, argv, &options, &count, &messages);
	if (count < 4 * FEW)
		die("at least %d regions", 4 * FEW);
	set_up();
	/* warm up: the first calls allocate memory and are not measured */
	time_each(register_one, 0, FEW / 2);
	first = time_each(register_one, FEW / 2, FEW);
	tell_keys(0, FEW);
	few = write_or_be_written(FEW);
	time_each(register_one, FEW, count - FEW);
	last = time_each(register_one, count - FEW, count);
	tell_keys(FEW, count);
	all = write_or_be_written(count);
	if (options.host)
		printf("%.0f %.0f %.0f %.0f\n", first, last, few, all);
	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	for (int i = 0; i < count; i++)
		must(!ibv_dereg_mr(mrs[i]), "ibv_dereg_mr");
	must(!ibv_destroy_cq(cq), "ibv_destroy_cq");
	rc_close(&device);
	return 0;
}

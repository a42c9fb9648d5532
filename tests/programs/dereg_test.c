/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * After ibv_dereg_mr() has returned, no process writes to the memory any more:
 *
 *	dereg_test [options]		registers, and deregisters under fire
 *	dereg_test [options] HOST	writes as fast as it can
 *
 * Each round the target waits until bytes arrive, deregisters, marks the
 * memory as its own, and looks whether a mark changes. Every other round it
 * unmaps the memory instead, and maps another there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rc.h"

#define BYTES  (1u << 20)
#define ROUNDS 60
#define DEPTH  16
#define MARK   0x5a
#define FIRE   0xc3

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq;
static int tcp;

struct hello {
	uint64_t address;
	uint32_t rkey;
	struct rc_address at;
};

static struct ibv_qp *meet(uint8_t *memory, const struct ibv_mr *mr,
			   struct hello *peer)
{
	struct ibv_qp *qp = rc_qp(&device, cq, DEPTH, 1, 0);
	struct hello me = { (uintptr_t)memory, mr->rkey,
			    rc_address(&device, qp, 99) };

	tcp_swap(tcp, &me, peer, sizeof(me));
	rc_connect(&device, qp, &options, 99, &peer->at);
	tcp_barrier(tcp);
	return qp;
}

static uint8_t *map_at(uint8_t *at)
{
	uint8_t *p =
		mmap(at, BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	must(p != MAP_FAILED, "mmap");
	return p;
}

static unsigned changed(const uint8_t *memory)
{
	unsigned n = 0;

	for (unsigned i = 0; i < BYTES; i++)
		n += ((const volatile uint8_t *)memory)[i] != MARK;
	return n;
}

static void one_round(unsigned round)
{
	uint8_t *memory = map_at(NULL);
	struct ibv_mr *mr = ibv_reg_mr(device.pd, memory, BYTES, RC_ALL_ACCESS);
	double until = seconds() + 10;
	struct hello peer;
	struct ibv_qp *qp;
	unsigned n;

	must(mr, "ibv_reg_mr");
	qp = meet(memory, mr, &peer);
	while (((volatile uint8_t *)memory)[BYTES - 1] != FIRE)
		if (seconds() > until)
			die("nothing was written");
	usleep(round * 37 % 300);
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	if (round % 2) {
		must(!munmap(memory, BYTES), "munmap");
		map_at(memory);
	}
	memset(memory, MARK, BYTES);
	for (unsigned i = 0; i < 5; i++) {
		usleep(200);
		n = changed(memory);
		if (n)
			die("round %u: %u bytes were written afterwards", round,
			    n);
	}
	tcp_barrier(tcp);
	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	must(!munmap(memory, BYTES), "munmap");
}

static void target(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		one_round(i);
	printf("%u rounds, no byte too late\n", ROUNDS);
}

static void post(struct ibv_qp *qp, const struct ibv_mr *mr,
		 const struct hello *peer)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, BYTES, mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { peer->address, peer->rkey } };
	struct ibv_send_wr *bad;

	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void shoot(const struct ibv_mr *mr)
{
	struct hello peer;
	struct ibv_qp *qp = meet(mr->addr, mr, &peer);
	struct ibv_wc wc;

	for (unsigned i = 0; i < DEPTH / 2; i++)
		post(qp, mr, &peer);
	for (;;) {
		if (!rc_wait(cq, 20, &wc))
			die("no completion");
		if (wc.status != IBV_WC_SUCCESS)
			break;
		post(qp, mr, &peer);
	}
	if (wc.status != IBV_WC_REM_ACCESS_ERR)
		die("it ended with %s", ibv_wc_status_str(wc.status));
	tcp_barrier(tcp);
	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
}

static void shooter(void)
{
	uint8_t *memory = map_at(NULL);
	struct ibv_mr *mr;

	memset(memory, FIRE, BYTES);
	mr = ibv_reg_mr(device.pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
	must(mr, "ibv_reg_mr");
	for (unsigned i = 0; i < ROUNDS; i++)
		shoot(mr);
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
}

int main(int argc, char **argv)
{
	options.host = *rc_read_options(&options, argc, argv);
	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, 2 * DEPTH, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	tcp = tcp_meet(&options);
	if (options.host)
		shooter();
	else
		target();
	must(!ibv_destroy_cq(cq), "ibv_destroy_cq");
	rc_close(&device);
	return 0;
}

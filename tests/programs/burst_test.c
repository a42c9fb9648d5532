/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thousands of small WRITEs, of which many are under way at a time and
 * overwrite each other:
 *
 *	burst_test [options]		the target, which looks at the end
 *	burst_test [options] HOST	writes
 *
 * Both sides draw the WRITEs from one seed, so the target knows the final bytes
 * and compares them. The last WRITE is out of bounds: it must fail, and all
 * WRITEs before it must have arrived.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rc.h"

#define BYTES	4096u
#define LONGEST 300u
#define WRITES	20000u
#define DEPTH	128u
#define INLINE	64u

static struct rc_options options = RC_OPTIONS;
static struct rc_device device;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
/* @here: the bytes that the writer sends. @there: in the target, the memory
 * that is written; in the writer, the contents that the target must have */
static uint8_t here[BYTES], there[BYTES];

struct hello {
	uint64_t address;
	uint32_t rkey;
	struct rc_address at;
};

struct burst {
	uint32_t from, to, length;
};

static struct burst next(struct rng *r)
{
	struct burst b = { .length = 1 + (uint32_t)rng_below(r, LONGEST) };

	/* one WRITE in 50 is too long to be joined with others */
	if (rng_below(r, 50) == 0)
		b.length = BYTES / 2;
	b.from = (uint32_t)rng_below(r, BYTES - b.length);
	b.to = (uint32_t)rng_below(r, BYTES - b.length);
	return b;
}

static void post(const struct burst *b, const struct hello *peer, unsigned nth)
{
	struct ibv_sge sge = { (uintptr_t)here + b->from, b->length, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = nth,
		.opcode = IBV_WR_RDMA_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = b->length <= INLINE ? IBV_SEND_INLINE : 0,
		.wr.rdma = { peer->address + b->to, peer->rkey },
	};

	if (nth % 40 == 0 || nth >= WRITES - 1)
		wr.send_flags |= IBV_SEND_SIGNALED;
	must(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

/* Wait for the oldest signalled WRITE, which must have @status. */
static unsigned await(enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!rc_wait(cq, 20, &wc))
		die("no completion");
	if (wc.status != status)
		die("WRITE %u: %s", (unsigned)wc.wr_id,
		    ibv_wc_status_str(wc.status));
	return (unsigned)wc.wr_id;
}

static void shoot(const struct hello *peer)
{
	struct burst beyond = { 0, BYTES - 4, 8 };
	struct rng r = { 77 };
	unsigned done = 0;

	for (unsigned i = 0; i < WRITES; i++) {
		struct burst b = next(&r);

		while (i - done >= DEPTH - 8)
			done = await(IBV_WC_SUCCESS);
		post(&b, peer, i);
	}
	while (done != WRITES - 1)
		done = await(IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 40; i++)
		post(&(struct burst){ i, i, 1 }, peer, 1);
	post(&beyond, peer, WRITES);
	if (await(IBV_WC_REM_ACCESS_ERR) != WRITES)
		die("it was not the one out of bounds");
}

static void expect(void)
{
	static uint8_t model[BYTES];
	struct rng r = { 77 };

	for (unsigned i = 0; i < WRITES; i++) {
		struct burst b = next(&r);

		memcpy(model + b.to, here + b.from, b.length);
	}
	memcpy(model, here, 40);
	for (unsigned i = 0; i < BYTES; i++)
		if (model[i] != there[i])
			die("byte %u is %#x, must be %#x", i, there[i],
			    model[i]);
	printf("%u WRITEs, every byte as it should be\n", WRITES);
}

static void set_up(struct hello *peer, int *tcp)
{
	struct rng r = { 5 };
	struct hello me;

	rng_fill(&r, here, BYTES);
	rc_open(&device, &options);
	cq = ibv_create_cq(device.context, 2 * DEPTH, NULL, NULL, 0);
	must(cq, "ibv_create_cq");
	qp = rc_qp(&device, cq, DEPTH, 1, INLINE);
	mr = ibv_reg_mr(device.pd, options.host ? here : there, BYTES,
			RC_ALL_ACCESS);
	must(mr, "ibv_reg_mr");
	me = (struct hello){ (uintptr_t)there, mr->rkey,
			     rc_address(&device, qp, 31) };
	*tcp = tcp_meet(&options);
	tcp_swap(*tcp, &me, peer, sizeof(me));
	rc_connect(&device, qp, &options, 31, &peer->at);
	tcp_barrier(*tcp);
}

int main(int argc, char **argv)
{
	struct hello peer;
	int tcp;

	options.host = *rc_read_options(&options, argc, argv);
	set_up(&peer, &tcp);
	if (options.host)
		shoot(&peer);
	tcp_barrier(tcp);
	if (!options.host)
		expect();
	must(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	must(!ibv_destroy_cq(cq), "ibv_destroy_cq");
	rc_close(&device);
	return 0;
}

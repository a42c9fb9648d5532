/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/support/bench.h"

#include <stdlib.h>
#include <string.h>

static enum sim_fate record(void *arg, unsigned from,
			    const struct vb_ib_pkt *pkt)
{
	struct bench *b = arg;

	assert_true(b->logged < BENCH_LOG);
	b->log[b->logged++] = (struct bench_packet){ from, b->sim.now, *pkt };
	if (!b->lose || !b->lose(b, from, pkt))
		return SIM_PASS;
	b->lost++;
	return SIM_DROP;
}

struct bench *bench_open_as(const struct vb_qp_attr *attr,
			    const struct sim_caps *caps)
{
	uint32_t all = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
		       ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	sim_open(&b->sim, 1);
	b->sim.tap = record;
	b->sim.tap_arg = b;
	b->attr = *attr;
	sim_connect(&b->sim, &b->pair, attr, caps);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		for (unsigned j = 0; j < BENCH_MEM; j++)
			b->mem[i][j] = (uint8_t)sim_rand32(&b->sim.rand);
		assert_int_equal(vb_mr_register(b->sim.side[i].pd, b->mem[i],
						BENCH_MEM, (uintptr_t)b->mem[i],
						all, &b->mr[i]),
				 0);
	}
	return b;
}

struct bench *bench_open(void)
{
	return bench_open_as(&sim_attr, &sim_caps);
}

void bench_close(struct bench *b)
{
	sim_disconnect(&b->sim, &b->pair);
	for (unsigned i = 0; i < SIM_SIDES; i++)
		if (b->mr[i])
			assert_int_equal(vb_mr_deregister(b->mr[i]), 0);
	sim_close(&b->sim);
	free(b);
}

void bench_wait(struct bench *b, unsigned us)
{
	sim_run(&b->sim, b->sim.now + us * VB_USEC);
}

const struct vb_ib_pkt *bench_next(struct bench *b, unsigned from)
{
	while (b->read < b->logged)
		if (b->log[b->read++].from == from)
			return &b->log[b->read - 1].pkt;
	return NULL;
}

unsigned bench_count(const struct bench *b, unsigned from, uint8_t code)
{
	unsigned count = 0;

	for (unsigned i = 0; i < b->logged; i++)
		count += b->log[i].from == from &&
			 b->log[i].pkt.bth.opcode == code;
	return count;
}

static struct vb_ib_pkt packet(const struct bench *b, unsigned to, uint8_t code,
			       uint32_t psn)
{
	return (struct vb_ib_pkt){
		.op = vb_ib_op(code),
		.bth = {
			.opcode = code,
			.migrated = true,
			.ack_req = true,
			.pkey = 0xffff,
			.dqpn = b->pair.qp[to]->qpn,
			.psn = psn,
		},
	};
}

struct vb_ib_pkt bench_request(const struct bench *b, uint8_t code, int nth)
{
	uint32_t psn = vb_psn_add(b->attr.rq_psn, (uint32_t)nth);
	uint8_t class = b->pair.xrcd ? CLASS_XRC : CLASS_RC;
	struct vb_ib_pkt pkt = packet(b, 1, class << 5 | code, psn);

	if (b->pair.xrcd)
		pkt.xrc_srqn = b->pair.srq[1]->number;
	pkt.reth = (struct vb_reth){ (uintptr_t)b->mem[1], b->mr[1]->key, 0 };
	pkt.atomic.va = (uintptr_t)b->mem[1];
	pkt.atomic.rkey = b->mr[1]->key;
	return pkt;
}

struct vb_ib_pkt bench_response(const struct bench *b, uint8_t code, int nth,
				uint8_t syndrome)
{
	uint32_t psn = vb_psn_add(b->attr.sq_psn, (uint32_t)nth);
	struct vb_ib_pkt pkt = packet(b, 0, code, psn);

	pkt.aeth.syndrome = syndrome;
	return pkt;
}

void bench_inject(struct bench *b, unsigned to, struct vb_ib_pkt *pkt,
		  uint32_t len, uint8_t fill)
{
	uint8_t payload[4096];

	memset(payload, fill, sizeof(payload));
	pkt->payload = payload;
	pkt->payload_bytes = len;
	sim_inject(&b->sim, to, pkt);
	pkt->payload = NULL;
	bench_wait(b, 10);
}

void bench_expect_aeth(struct bench *b, unsigned from, uint8_t syndrome,
		       int nth)
{
	const struct vb_ib_pkt *pkt = bench_next(b, from);
	uint32_t base = from ? b->attr.rq_psn : b->attr.sq_psn;

	assert_non_null(pkt);
	assert_int_equal(pkt->bth.opcode & 0x1f, CODE_ACK);
	assert_int_equal(pkt->bth.opcode >> 5,
			 b->pair.xrcd ? CLASS_XRC : CLASS_RC);
	assert_int_equal(pkt->aeth.syndrome, syndrome);
	assert_int_equal(pkt->bth.psn, vb_psn_add(base, (uint32_t)nth));
}

void bench_expect_silence(struct bench *b, unsigned from)
{
	assert_null(bench_next(b, from));
}

void bench_post(struct bench *b, unsigned from, enum vb_wr_op op, uint32_t at,
		uint32_t len, uint8_t flags)
{
	struct vb_qp *qp = b->pair.qp[from];
	struct vb_sge sge = { (uintptr_t)b->mem[from] + at, len,
			      b->mr[from] ? b->mr[from]->key : 0 };
	struct vb_send_wqe wqe = {
		.wr_id = atomic_load(&qp->sq.posted),
		.op = op,
		.flags = flags | SEND_SIGNALED,
		.length = len,
		.num_sge = 1,
		.remote_addr = (uintptr_t)b->mem[!from],
		.rkey = b->mr[!from] ? b->mr[!from]->key : 0,
		.srqn = b->pair.xrcd ? b->pair.srq[1]->number : 0,
		.compare_add = 1,
	};

	sim_post_send(qp, &wqe, &sge);
}

void bench_post_recv(struct bench *b, unsigned side, uint64_t wr_id,
		     uint32_t at, uint32_t len)
{
	struct vb_sge sge = { (uintptr_t)b->mem[side] + at, len,
			      b->mr[side]->key };

	if (b->pair.xrcd)
		assert_int_equal(
			vb_rq_post(&b->pair.srq[1]->rq, wr_id, &sge, 1), 0);
	else
		sim_post_recv(b->pair.qp[side], wr_id, &sge, 1);
}

void bench_expect_wc(struct vb_cq *cq, uint64_t wr_id, enum vb_wc_status status)
{
	struct vb_cqe e;

	assert_true(sim_poll(cq, &e));
	assert_int_equal(e.wr_id, wr_id);
	assert_int_equal(e.status, status);
}

void bench_expect_no_wc(struct vb_cq *cq)
{
	struct vb_cqe e;

	assert_false(sim_poll(cq, &e));
}

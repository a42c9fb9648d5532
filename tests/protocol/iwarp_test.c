/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP: what each work request becomes, order, depths, peer-to-peer mode. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/mman.h>

#include "core/mw.h"
#include "tests/support/pipe.h"

#define FAR (PIPE_MEM / 2) /* offset of the remote buffer */

static enum vb_qp_state state_of(const struct pipe *p, unsigned side)
{
	return atomic_load(&p->pair.qp[side]->state);
}

static void fill(struct pipe *p)
{
	for (unsigned i = 0; i < SIM_SIDES; i++)
		for (uint32_t at = 0; at < PIPE_MEM; at++)
			p->mem[i][at] = (uint8_t)(at * 7 + at / 251 + i * 101);
}

static struct vb_send_wqe wr(enum vb_wr_op op, uint32_t len)
{
	return (struct vb_send_wqe){ .op = (uint8_t)op,
				     .length = len,
				     .flags = SEND_SIGNALED };
}

static struct vb_send_wqe wr_at(struct pipe *p, enum vb_wr_op op, uint32_t len,
				uint32_t remote)
{
	struct vb_send_wqe w = wr(op, len);

	w.remote_addr = (uintptr_t)p->mem[1] + remote;
	return w;
}

static void expect_sent(struct pipe *p, unsigned side, enum vb_wc_status status)
{
	struct vb_cqe e;

	assert_true(sim_poll(p->pair.send_cq[side], &e));
	assert_int_equal(e.status, status);
}

static struct vb_cqe expect_recv(struct pipe *p, unsigned side,
				 enum vb_wc_status status)
{
	struct vb_cqe e;

	assert_true(sim_poll(p->pair.recv_cq[side], &e));
	assert_int_equal(e.status, status);
	return e;
}

static void expect_quiet(struct pipe *p)
{
	struct vb_cqe e;

	for (unsigned i = 0; i < SIM_SIDES; i++) {
		assert_false(sim_poll(p->pair.send_cq[i], &e));
		assert_false(sim_poll(p->pair.recv_cq[i], &e));
	}
}

/* The combinations of terms that a stream may have. */
static const struct vb_mpa_terms manners[] = {
	{ .initiator = true, .crc = true, .ird = 4, .ord = 4, .mss = 1460 },
	{ .initiator = true, .ird = 4, .ord = 4, .mss = 8960 },
	{ .initiator = true,
	  .crc = true,
	  .ird = 1,
	  .ord = 1,
	  .mss = 536,
	  .tx_markers = true,
	  .rx_markers = true },
	{ .initiator = true,
	  .ird = 4,
	  .ord = 4,
	  .mss = 1460,
	  .rx_markers = true,
	  .rtr = RTR_WRITE },
	{ .initiator = true,
	  .crc = true,
	  .ird = 4,
	  .ord = 4,
	  .mss = 65483,
	  .rtr = RTR_READ },
	{ .initiator = true,
	  .crc = true,
	  .ird = 4,
	  .ord = 4,
	  .mss = 100,
	  .rtr = RTR_SEND },
};

static void each(void (*test)(struct pipe *p))
{
	for (unsigned i = 0; i < VB_COUNT(manners); i++) {
		struct pipe *p = pipe_open(&manners[i]);

		fill(p);
		test(p);
		pipe_close(p);
	}
}

static const uint32_t lengths[] = { 0,	  1,	2,    3,     4,	    5,
				    8,	  507,	508,  509,   1000,  1422,
				    1423, 1440, 4096, 65535, 100001 };

static void sends(struct pipe *p)
{
	for (unsigned i = 0; i < VB_COUNT(lengths); i++) {
		uint32_t len = lengths[i];
		struct vb_cqe e;

		pipe_post_recv(p, 1, FAR, PIPE_MEM / 2);
		pipe_post(p, 0, wr(WR_SEND, len), i, len > 3 ? 3 : 1);
		pipe_settle(p);
		expect_sent(p, 0, WC_SUCCESS);
		e = expect_recv(p, 1, WC_SUCCESS);
		assert_int_equal(e.byte_len, len);
		assert_int_equal(e.opcode, WC_OP_RECV);
		assert_int_equal(e.wc_flags, 0);
		assert_memory_equal(p->mem[1] + FAR, p->mem[0] + i, len);
	}
	expect_quiet(p);
}

static void iwarp__sends(void **state)
{
	each(sends);
}

static void words(struct pipe *p)
{
	struct vb_send_wqe w = wr(WR_SEND_IMM, 3000);
	struct vb_cqe e;

	w.imm = 0x01020304;
	pipe_post_recv(p, 1, FAR, 4000);
	pipe_post(p, 0, w, 0, 1);
	w.op = WR_WRITE_IMM;
	w.remote_addr = (uintptr_t)p->mem[1] + FAR + 5000;
	pipe_post_recv(p, 1, 0, 0);
	pipe_post(p, 0, w, 10, 2);
	/* Immediate data does not belong to a WRITE before it that has none. */
	w.op = WR_WRITE;
	pipe_post(p, 0, w, 10, 2);
	w.op = WR_WRITE_IMM;
	w.length = 0;
	pipe_post_recv(p, 1, 0, 0);
	pipe_post(p, 0, w, 0, 1);
	pipe_settle(p);
	for (unsigned i = 0; i < 4; i++)
		expect_sent(p, 0, WC_SUCCESS);
	e = expect_recv(p, 1, WC_SUCCESS);
	assert_int_equal(e.opcode, WC_OP_RECV);
	assert_int_equal(e.wc_flags, WC_WITH_IMM);
	assert_int_equal(e.imm, w.imm);
	assert_int_equal(e.byte_len, 3000);
	e = expect_recv(p, 1, WC_SUCCESS);
	assert_int_equal(e.opcode, WC_OP_RECV_WRITE_IMM);
	assert_int_equal(e.wc_flags, WC_WITH_IMM);
	assert_int_equal(e.imm, w.imm);
	assert_int_equal(e.byte_len, 3000);
	assert_memory_equal(p->mem[1] + FAR + 5000, p->mem[0] + 10, 3000);
	e = expect_recv(p, 1, WC_SUCCESS);
	assert_int_equal(e.byte_len, 0);
	expect_quiet(p);
}

static void iwarp__immediate_data(void **state)
{
	each(words);
}

static void writes_and_reads(struct pipe *p)
{
	for (unsigned i = 0; i < VB_COUNT(lengths); i++) {
		uint32_t len = lengths[i];
		unsigned pieces = len > 3 ? 3 : 1;

		pipe_post(p, 0, wr_at(p, WR_WRITE, len, FAR), i, pieces);
		pipe_post(p, 0, wr_at(p, WR_READ, len, FAR), FAR + 1, pieces);
		pipe_settle(p);
		expect_sent(p, 0, WC_SUCCESS);
		expect_sent(p, 0, WC_SUCCESS);
		assert_memory_equal(p->mem[1] + FAR, p->mem[0] + i, len);
		assert_memory_equal(p->mem[0] + FAR + 1, p->mem[0] + i, len);
	}
	expect_quiet(p);
}

static void iwarp__writes_and_reads(void **state)
{
	each(writes_and_reads);
}

static uint64_t word_at(struct pipe *p, unsigned side, uint32_t at)
{
	uint64_t v;

	memcpy(&v, p->mem[side] + at, sizeof(v));
	return v;
}

static void atomics(struct pipe *p)
{
	struct vb_send_wqe w = wr_at(p, WR_FETCH_ADD, 8, FAR);
	uint64_t was = word_at(p, 1, FAR);

	w.compare_add = UINT64_MAX - 5;
	pipe_post(p, 0, w, 0, 2);
	w.op = WR_CMP_SWAP;
	w.compare_add = was - 6;
	w.swap = 77;
	pipe_post(p, 0, w, 8, 1);
	w.swap = 99; /* does not match: the word is 77 now */
	pipe_post(p, 0, w, 16, 1);
	pipe_settle(p);
	for (unsigned i = 0; i < 3; i++)
		expect_sent(p, 0, WC_SUCCESS);
	assert_true(word_at(p, 0, 0) == was);
	assert_true(word_at(p, 0, 8) == was - 6);
	assert_true(word_at(p, 0, 16) == 77);
	assert_true(word_at(p, 1, FAR) == 77);
	expect_quiet(p);
}

static void iwarp__atomics(void **state)
{
	each(atomics);
}

/* More READs than permitted at a time, fenced and not, in both directions at
 * once, in several batches. */
static void many(struct pipe *p)
{
	for (unsigned round = 0; round < 8; round++) {
		for (unsigned side = 0; side < SIM_SIDES; side++) {
			struct vb_send_wqe w = wr(WR_READ, 20000);

			pipe_post_recv(p, side, FAR, 20000);
			pipe_post(p, side, w, FAR + 30000, 1);
			w.op = WR_FETCH_ADD;
			w.length = 8;
			pipe_post(p, side, w, FAR + 60000, 1);
			w.op = WR_SEND;
			w.length = 20000;
			w.flags |= round & 1 ? SEND_FENCE : 0;
			pipe_post(p, side, w, 8, 1);
		}
	}
	pipe_settle(p);
	for (unsigned side = 0; side < SIM_SIDES; side++) {
		for (unsigned i = 0; i < 24; i++)
			expect_sent(p, side, WC_SUCCESS);
		for (unsigned i = 0; i < 8; i++)
			expect_recv(p, side, WC_SUCCESS);
	}
	expect_quiet(p);
}

static void iwarp__both_ways(void **state)
{
	each(many);
}

static void iwarp__no_more_reads_than_agreed(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	unsigned asked = 0;

	p->limit[1] = 0; /* responses do not arrive */
	for (unsigned i = 0; i < 9; i++)
		pipe_post(p, 0, wr(WR_READ, 8), 0, 1);
	pipe_settle(p);
	for (size_t at = 0; at < p->wire[0].put; asked++)
		at += vb_mpa_fpdu_bytes(
			(uint32_t)vb_load_be(p->wire[0].bytes + at, 2));
	assert_int_equal(asked, pipe_terms.ord);
	p->limit[1] = SIZE_MAX;
	pipe_settle(p);
	for (unsigned i = 0; i < 9; i++)
		expect_sent(p, 0, WC_SUCCESS);
	pipe_close(p);
}

static void iwarp__a_fence_waits_for_reads(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	struct vb_send_wqe w = wr(WR_WRITE, 8);
	size_t before;

	p->limit[1] = 0;
	pipe_post(p, 0, wr(WR_READ, 8), 0, 1);
	pipe_settle(p);
	before = p->wire[0].put;
	w.flags |= SEND_FENCE;
	pipe_post(p, 0, w, 0, 1);
	pipe_settle(p);
	assert_int_equal(p->wire[0].put, before);
	p->limit[1] = SIZE_MAX;
	pipe_settle(p);
	expect_sent(p, 0, WC_SUCCESS);
	expect_sent(p, 0, WC_SUCCESS);
	pipe_close(p);
}

/* The socket takes a WRITE that follows a READ long before the READ's response
 * arrives; the WRITE still completes second. */
static void iwarp__completions_keep_order(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	struct vb_cqe e;

	p->limit[1] = 0;
	pipe_post(p, 0, wr(WR_READ, 8), 0, 1);
	pipe_post(p, 0, wr(WR_WRITE, 8), 0, 1);
	pipe_settle(p);
	assert_false(sim_poll(p->pair.send_cq[0], &e));
	p->limit[1] = SIZE_MAX;
	pipe_settle(p);
	assert_true(sim_poll(p->pair.send_cq[0], &e));
	assert_int_equal(e.opcode, WC_OP_READ);
	assert_int_equal(e.byte_len, 8);
	assert_true(sim_poll(p->pair.send_cq[0], &e));
	assert_int_equal(e.opcode, WC_OP_WRITE);
	pipe_close(p);
}

/* FPDUs fill TCP segments exactly. */
static void iwarp__segments_follow_the_mss(void **state)
{
	static const uint32_t mss[] = { 536, 1220, 1448, 8948 };
	struct vb_mpa_terms terms = pipe_terms;

	for (unsigned i = 0; i < VB_COUNT(mss); i++) {
		struct pipe *p;
		uint32_t fpdu;

		terms.mss = (uint16_t)mss[i];
		p = pipe_open(&terms);
		pipe_post(p, 0, wr(WR_WRITE, 30000), 0, 1);
		pipe_settle(p);
		fpdu = vb_mpa_fpdu_bytes(
			(uint32_t)vb_load_be(p->wire[0].bytes, 2));
		assert_true(fpdu <= mss[i] && fpdu + 4 > mss[i]);
		vb_iw_set_mss(p->pair.qp[0], 700);
		p->wire[0].got = p->wire[0].put;
		pipe_post(p, 0, wr(WR_WRITE, 30000), 0, 1);
		pipe_settle(p);
		fpdu = vb_mpa_fpdu_bytes((uint32_t)vb_load_be(
			p->wire[0].bytes + p->wire[0].got - 0, 2));
		pipe_close(p);
	}
}

static void iwarp__windows(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	struct vb_send_wqe bind = { .op = WR_BIND_MW, .flags = SEND_SIGNALED };
	struct vb_send_wqe w = wr(WR_WRITE, 64);
	struct vb_mr *mw;
	struct vb_cqe e;
	uint32_t key;

	fill(p);
	assert_int_equal(vb_mw_alloc(p->sim.side[1].pd, 2, &mw, &key), 0);
	key ^= 1; /* change the consumer's byte */
	bind.rkey = key;
	bind.swap = p->key[1];
	bind.remote_addr = (uintptr_t)p->mem[1] + FAR;
	bind.compare_add = 64;
	bind.imm = ACCESS_REMOTE_WRITE;
	pipe_post(p, 1, bind, 0, 1);
	pipe_settle(p);
	expect_sent(p, 1, WC_SUCCESS);
	w.rkey = key;
	w.remote_addr = (uintptr_t)p->mem[1] + FAR;
	pipe_post(p, 0, w, 0, 1);
	w.op = WR_SEND_INV;
	w.imm = key;
	pipe_post_recv(p, 1, 0, 100);
	pipe_post(p, 0, w, 0, 1);
	pipe_settle(p);
	expect_sent(p, 0, WC_SUCCESS);
	expect_sent(p, 0, WC_SUCCESS);
	e = expect_recv(p, 1, WC_SUCCESS);
	assert_int_equal(e.wc_flags, WC_WITH_INV);
	assert_int_equal(e.imm, key);
	assert_memory_equal(p->mem[1] + FAR, p->mem[0], 64);
	/* The window is closed: a WRITE through it ends the stream. */
	w.op = WR_WRITE;
	pipe_post(p, 0, w, 0, 1);
	pipe_settle(p);
	assert_int_equal(state_of(p, 0), QPS_ERR);
	assert_int_equal(state_of(p, 1), QPS_ERR);
	vb_mw_free(mw);
	pipe_close(p);
}

/* Peer-to-peer mode: which side sends first. */

static void iwarp__the_responder_waits(void **state)
{
	struct vb_mpa_terms terms = pipe_terms;
	struct pipe *p;

	for (unsigned rtr = 0; rtr < 2; rtr++) {
		terms.rtr = rtr ? RTR_READ : RTR_NONE;
		p = pipe_open(&terms);
		assert_true(vb_iw_is_established(p->pair.qp[0]));
		assert_int_equal(vb_iw_is_established(p->pair.qp[1]), !rtr);
		p->limit[0] = 0;
		pipe_post_recv(p, 0, 0, 100);
		pipe_post(p, 1, wr(WR_SEND, 10), 0, 1);
		pipe_settle(p);
		assert_int_equal(p->wire[1].put, 0);
		assert_true(rtr == (vb_iwarp_transport.deadline(
					    p->pair.qp[1]) == VB_NEVER));
		p->sim.now += VB_SEC; /* without RTR the responder now sends... */
		pipe_settle(p);
		assert_int_equal(p->wire[1].put == 0, rtr); /* ...with RTR it still waits */
		p->limit[0] = SIZE_MAX;
		pipe_settle(p);
		expect_recv(p, 0, WC_SUCCESS);
		assert_true(vb_iw_is_established(p->pair.qp[1]) || !rtr);
		pipe_close(p);
	}
}

static void iwarp__an_empty_fulpdu_is_a_send_rtr(void **state)
{
	struct vb_mpa_terms terms = pipe_terms;
	struct pipe *p;

	terms.rtr = RTR_SEND;
	p = pipe_open(&terms);
	p->limit[0] = 0;
	pipe_settle(p);
	p->wire[0].put = 0; /* the regular RTR does not arrive */
	p->limit[0] = SIZE_MAX;
	pipe_inject_ulpdu(p, 0, NULL, 0);
	pipe_post_recv(p, 1, 0, 10);
	pipe_post(p, 0, wr(WR_SEND, 10), 0, 1);
	pipe_settle(p);
	expect_recv(p, 1, WC_SUCCESS);
	pipe_close(p);
}

/* Faults. */

/* The last Terminate that @side sent, as on the wire. */
static const uint8_t *term_of(const struct pipe *p, unsigned side)
{
	const uint8_t *last = NULL;

	for (size_t at = 0; at < p->wire[side].put;) {
		const uint8_t *fpdu = p->wire[side].bytes + at;

		if (vb_load_be(fpdu + 2, 2) == 0x4147)
			last = fpdu;
		at += vb_mpa_fpdu_bytes((uint32_t)vb_load_be(fpdu, 2));
	}
	assert_non_null(last);
	return last + 20;
}

static void expect_term(const struct pipe *p, unsigned layer, unsigned etype,
			unsigned code)
{
	const uint8_t *t = term_of(p, 1);

	assert_int_equal(t[0], layer << 4 | etype);
	assert_int_equal(t[1], code);
	assert_int_equal(state_of(p, 0), QPS_ERR);
	assert_int_equal(state_of(p, 1), QPS_ERR);
	for (unsigned i = 0; i < SIM_SIDES; i++)
		assert_true(vb_iw_wants_close(p->pair.qp[i]));
}

struct bad_key {
	enum vb_wr_op op;
	int32_t offset; /* from the beginning of the remote memory */
	uint32_t len;
	bool no_key, other_domain, no_right;
	uint8_t layer, etype, code;
};

static const struct bad_key bad_keys[] = {
	/* op	      offset	 len  no_key domain right  layer type code */
	{ WR_WRITE, 0, 64, true, false, false, 1, 1, 0 },
	{ WR_WRITE, -1, 64, false, false, false, 1, 1, 1 },
	{ WR_WRITE, PIPE_MEM, 1, false, false, false, 1, 1, 1 },
	{ WR_WRITE, PIPE_MEM - 63, 64, false, false, false, 1, 1, 1 },
	{ WR_WRITE, 0, 64, false, true, false, 1, 1, 2 },
	{ WR_WRITE, 0, 64, false, false, true, 0, 1, 2 },
	{ WR_READ, 0, 64, true, false, false, 0, 1, 0 },
	{ WR_READ, PIPE_MEM - 63, 64, false, false, false, 0, 1, 1 },
	{ WR_READ, 0, 64, false, true, false, 0, 1, 3 },
	{ WR_READ, 0, 64, false, false, true, 0, 1, 2 },
	{ WR_FETCH_ADD, 0, 8, true, false, false, 0, 1, 0 },
	{ WR_CMP_SWAP, 0, 8, false, false, true, 0, 1, 2 },
	{ WR_FETCH_ADD, 4, 8, false, false, false, 0, 2, 0xff },
};

static void try_key(const struct bad_key *k)
{
	struct pipe *p = pipe_open(&pipe_terms);
	struct vb_send_wqe w = wr(k->op, k->len);
	bool asks = k->op != WR_WRITE;
	struct vb_mr *other = NULL;
	struct vb_pd *pd;

	assert_int_equal(vb_pd_create(&p->sim.side[1].adapter, &pd), 0);
	assert_int_equal(
		vb_mr_register(k->other_domain ? pd : p->sim.side[1].pd,
			       p->mem[1], PIPE_MEM, (uintptr_t)p->mem[1],
			       k->no_right ? 0
					   : ACCESS_LOCAL_WRITE |
						     ACCESS_REMOTE_WRITE |
						     ACCESS_REMOTE_READ |
						     ACCESS_REMOTE_ATOMIC,
			       &other),
		0);
	w.rkey = k->no_key ? 0x77777777 : atomic_load(&other->key);
	w.remote_addr = (uintptr_t)p->mem[1] + (int64_t)k->offset;
	/* A valid request before it completes. */
	pipe_post(p, 0, wr(WR_READ, 5000), FAR, 1);
	pipe_post_recv(p, 1, 0, 10);
	pipe_post(p, 0, w, 0, 1);
	pipe_settle(p);
	expect_sent(p, 0, WC_SUCCESS);
	if (asks)
		expect_sent(p, 0,
			    k->code == 0xff ? WC_REM_INV_REQ_ERR
					    : WC_REM_ACCESS_ERR);
	else
		expect_sent(p, 0, WC_SUCCESS);
	expect_recv(p, 1, WC_FLUSH_ERR);
	expect_quiet(p);
	expect_term(p, k->layer, k->etype, k->code);
	/* The Terminate names the request. */
	assert_int_equal(term_of(p, 1)[2], k->op == WR_READ ? 0xe0 : 0xc0);
	assert_int_equal(sim_event(&p->sim, 1), k->code == 0xff
							? EVENT_QP_REQ_ERR
							: EVENT_QP_ACCESS_ERR);
	assert_int_equal(vb_mr_deregister(other), 0);
	assert_int_equal(vb_pd_destroy(pd), 0);
	pipe_close(p);
}

static void iwarp__a_wrong_key_is_named(void **state)
{
	for (unsigned i = 0; i < VB_COUNT(bad_keys); i++)
		try_key(&bad_keys[i]);
}

static void iwarp__no_receive_ends_it(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);

	pipe_post(p, 0, wr(WR_SEND, 10), 0, 1);
	pipe_settle(p);
	expect_term(p, 1, 2, 2);
	assert_int_equal(sim_event(&p->sim, 1), EVENT_QP_REQ_ERR);
	assert_int_equal(sim_event(&p->sim, 0), EVENT_QP_FATAL);
	pipe_close(p);
}

static void iwarp__too_long_for_the_receive(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);

	pipe_post_recv(p, 1, 0, 2999);
	pipe_post(p, 0, wr(WR_SEND, 3000), 0, 1);
	pipe_settle(p);
	expect_recv(p, 1, WC_LOC_LEN_ERR);
	expect_term(p, 1, 2, 5);
	pipe_close(p);
}

static void iwarp__a_receive_without_memory(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	const struct vb_sge sge = { (uintptr_t)p->mem[1], 100, 0x1234 };

	sim_post_recv(p->pair.qp[1], 0, &sge, 1);
	pipe_post(p, 0, wr(WR_SEND, 10), 0, 1);
	pipe_settle(p);
	expect_recv(p, 1, WC_LOC_PROT_ERR);
	expect_term(p, 0, 0, 0);
	pipe_close(p);
}

/* A local fault: earlier requests complete, and the peer is told. */
static void iwarp__a_bad_local_key(void **state)
{
	static const struct vb_sge bad = { 0x1000, 8, 0x1234 };
	struct pipe *p = pipe_open(&pipe_terms);
	struct vb_send_wqe w = wr(WR_WRITE, 8);

	pipe_post(p, 0, wr(WR_READ, 5000), FAR, 1);
	w.num_sge = 1;
	w.rkey = p->key[1];
	w.remote_addr = (uintptr_t)p->mem[1];
	sim_post_send(p->pair.qp[0], &w, &bad);
	pipe_post(p, 0, wr(WR_WRITE, 5), 0, 1);
	pipe_settle(p);
	expect_sent(p, 0, WC_SUCCESS);
	expect_sent(p, 0, WC_LOC_PROT_ERR);
	expect_sent(p, 0, WC_FLUSH_ERR);
	assert_int_equal(term_of(p, 0)[0], 0);
	assert_int_equal(state_of(p, 1), QPS_ERR);
	pipe_close(p);
}

static void iwarp__rights_of_the_queue_pair(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);

	p->pair.qp[1]->attr.access_flags = ACCESS_REMOTE_READ;
	pipe_post(p, 0, wr(WR_READ, 8), 0, 1);
	pipe_post(p, 0, wr(WR_WRITE, 8), 0, 1);
	pipe_settle(p);
	expect_sent(p, 0, WC_SUCCESS);
	expect_term(p, 0, 1, 2);
	pipe_close(p);
}

/* Registered memory that is unmapped: no signal kills the process. */

#define GONE_BYTES (64u << 10)

struct gone {
	struct pipe *p;
	void *at;
	struct vb_mr *mr;
	struct vb_sge sge;
};

static struct gone take_away(unsigned side, bool crc)
{
	const uint32_t all =
		ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ;
	struct vb_mpa_terms terms = pipe_terms;
	struct gone g;

	terms.crc = crc;
	g.p = pipe_open(&terms);
	g.at = mmap(NULL, GONE_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(g.at, MAP_FAILED);
	assert_int_equal(vb_mr_register(g.p->sim.side[side].pd, g.at,
					GONE_BYTES, (uintptr_t)g.at, all,
					&g.mr),
			 0);
	g.sge = (struct vb_sge){ (uintptr_t)g.at, GONE_BYTES,
				 atomic_load(&g.mr->key) };
	assert_int_equal(munmap(g.at, GONE_BYTES), 0);
	return g;
}

static void give_back(struct gone *g)
{
	assert_int_equal(vb_mr_deregister(g->mr), 0);
	pipe_close(g->p);
}

static void iwarp__memory_to_send_is_gone(void **state)
{
	struct gone g = take_away(0, true);
	struct vb_send_wqe w = wr_at(g.p, WR_WRITE, GONE_BYTES, 0);

	w.num_sge = 1;
	w.rkey = g.p->key[1];
	sim_post_send(g.p->pair.qp[0], &w, &g.sge);
	pipe_settle(g.p);
	expect_sent(g.p, 0, WC_LOC_PROT_ERR);
	assert_int_equal(state_of(g.p, 1), QPS_ERR);
	give_back(&g);
}

/* Without CRCs the socket is the first to notice. */
static void iwarp__memory_for_the_socket_is_gone(void **state)
{
	struct gone g = take_away(0, false);
	struct vb_qp *qp = g.p->pair.qp[0];
	struct vb_send_wqe w = wr_at(g.p, WR_WRITE, GONE_BYTES, 0);

	w.num_sge = 1;
	w.rkey = g.p->key[1];
	sim_post_send(qp, &w, &g.sge);
	vb_mutex_lock(&qp->drive);
	vb_iw_send(qp, g.p->sim.now, &g.p->tx);
	assert_true(g.p->tx.count > 2);
	vb_iw_send_fault(qp, &g.p->tx, g.p->sim.now);
	vb_mutex_unlock(&qp->drive);
	pipe_settle(g.p);
	expect_sent(g.p, 0, WC_LOC_PROT_ERR);
	give_back(&g);
}

static void iwarp__remote_memory_is_gone(void **state)
{
	static const enum vb_wr_op ops[] = { WR_WRITE, WR_READ };

	for (unsigned i = 0; i < VB_COUNT(ops); i++) {
		struct gone g = take_away(1, true);
		struct vb_send_wqe w = wr(ops[i], 1000);

		w.remote_addr = g.sge.addr;
		w.rkey = g.sge.lkey;
		pipe_post(g.p, 0, w, 0, 1);
		pipe_settle(g.p);
		expect_sent(g.p, 0, i ? WC_REM_ACCESS_ERR : WC_SUCCESS);
		expect_term(g.p, 0, 1, 0xff);
		give_back(&g);
	}
}

static void iwarp__memory_for_an_answer_is_gone(void **state)
{
	struct gone g = take_away(0, true);
	struct vb_send_wqe w = wr(WR_READ, 1000);

	w.num_sge = 1;
	w.rkey = g.p->key[1];
	w.remote_addr = (uintptr_t)g.p->mem[1];
	g.sge.length = 1000;
	sim_post_send(g.p->pair.qp[0], &w, &g.sge);
	pipe_settle(g.p);
	expect_sent(g.p, 0, WC_LOC_PROT_ERR);
	assert_int_equal(term_of(g.p, 0)[0], 0);
	give_back(&g);
}

static void iwarp__a_receive_is_gone(void **state)
{
	struct gone g = take_away(1, true);

	sim_post_recv(g.p->pair.qp[1], 0, &g.sge, 1);
	pipe_post(g.p, 0, wr(WR_SEND, 1000), 0, 1);
	pipe_settle(g.p);
	expect_recv(g.p, 1, WC_LOC_PROT_ERR);
	expect_term(g.p, 0, 0, 0);
	give_back(&g);
}

/* A program that changes its memory all the time does not end the stream. */
static size_t change_it(struct pipe *p, unsigned side, bool sends, size_t have)
{
	if (sends)
		for (uint32_t at = 0; at < PIPE_MEM; at += 64)
			p->mem[1][at]++;
	return have;
}

static void iwarp__memory_that_changes_meanwhile(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);

	p->cut = change_it;
	for (unsigned i = 0; i < 4; i++)
		pipe_post(p, 0, wr(WR_READ, 50000), 0, 1);
	pipe_settle(p);
	for (unsigned i = 0; i < 4; i++)
		expect_sent(p, 0, WC_SUCCESS);
	pipe_close(p);
}

/* Messages that no correct requester sends. */

struct bad_ulpdu {
	const char *what;
	uint8_t head[24];
	uint32_t len;
	uint8_t layer, etype, code;
};

#define U(ddp, op, word, queue, msn, mo)                                       \
	{                                                                      \
		ddp, op, 0, 0, 0, word, 0, 0, 0, queue, 0, 0, 0, msn, 0, 0, 0, \
			mo                                                     \
	}

static const struct bad_ulpdu bad_ulpdus[] = {
	{ "DDP version, tagged", { 0xc2, 0x40 }, 20, 1, 1, 4 },
	{ "DDP version, untagged", U(0x40, 0x43, 0, 0, 1, 0), 18, 1, 2, 6 },
	{ "RDMAP version", U(0x41, 0x03, 0, 0, 1, 0), 18, 0, 2, 5 },
	{ "queue", U(0x41, 0x43, 0, 4, 1, 0), 18, 1, 2, 1 },
	{ "another's queue", U(0x41, 0x43, 0, 1, 1, 0), 18, 1, 2, 1 },
	{ "opcode", U(0x41, 0x4e, 0, 0, 1, 0), 18, 0, 2, 6 },
	{ "a tagged SEND", { 0xc1, 0x43 }, 20, 0, 2, 6 },
	{ "an untagged WRITE", U(0x41, 0x40, 0, 0, 1, 0), 18, 0, 2, 6 },
	{ "MSN 0", U(0x41, 0x43, 0, 0, 0, 0), 18, 1, 2, 3 },
	{ "MSN 2", U(0x41, 0x43, 0, 0, 2, 0), 18, 1, 2, 3 },
	{ "MO", U(0x41, 0x43, 0, 0, 1, 1), 18, 1, 2, 4 },
	{ "READ's MSN", U(0x41, 0x41, 0, 1, 2, 0), 46, 1, 2, 3 },
	{ "a short READ", U(0x41, 0x41, 0, 1, 1, 0), 45, 0, 2, 0xff },
	{ "a long READ", U(0x41, 0x41, 0, 1, 1, 0), 47, 0, 2, 0xff },
	{ "a READ in two", U(0x01, 0x41, 0, 1, 1, 0), 46, 1, 2, 5 },
	{ "a short atomic", U(0x41, 0x4a, 0, 1, 1, 0), 69, 0, 2, 0xff },
	{ "short immediate data", U(0x41, 0x48, 0, 0, 1, 0), 25, 0, 2, 0xff },
	{ "an answer to nothing", { 0xc1, 0x42 }, 20, 1, 1, 0 },
	{ "an atomic's to nothing", U(0x41, 0x4b, 0, 3, 1, 0), 30, 0, 2, 6 },
	{ "no header", { 0xc1 }, 1, 1, 0, 0 },
	{ "half a header", U(0x41, 0x43, 0, 0, 1, 0), 17, 1, 0, 0 },
	{ "TO wraps",
	  { 0xc1, 0x40, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	    0xff },
	  20,
	  1,
	  1,
	  3 },
	{ "TO's last bytes are the last there are",
	  { 0xc1, 0x40, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	    0xfa },
	  20,
	  1,
	  1,
	  0 },
};

static void iwarp__nonsense_is_named(void **state)
{
	for (unsigned i = 0; i < VB_COUNT(bad_ulpdus); i++) {
		const struct bad_ulpdu *bad = &bad_ulpdus[i];
		struct pipe *p = pipe_open(&pipe_terms);
		uint8_t ulpdu[128] = { 0 };
		const uint8_t *t;

		memcpy(ulpdu, bad->head, sizeof(bad->head));
		pipe_post_recv(p, 1, 0, 100);
		pipe_inject_ulpdu(p, 0, ulpdu, bad->len);
		pipe_settle(p);
		t = term_of(p, 1);
		if (t[0] != (bad->layer << 4 | bad->etype) || t[1] != bad->code)
			fail_msg("%s: layer %u, type %u, code %u", bad->what,
				 t[0] >> 4, t[0] & 15, t[1]);
		assert_int_equal(state_of(p, 1), QPS_ERR);
		assert_int_equal(state_of(p, 0), QPS_ERR);
		pipe_close(p);
	}
}

/* A message must keep its opcode to its end. */
static void iwarp__a_message_that_changes(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	uint8_t first[20] = U(0x01, 0x43, 0, 0, 1, 0);
	uint8_t last[20] = U(0x41, 0x45, 0, 0, 1, 2);

	pipe_post_recv(p, 1, 0, 100);
	pipe_inject_ulpdu(p, 0, first, sizeof(first));
	pipe_inject_ulpdu(p, 0, last, sizeof(last));
	pipe_settle(p);
	assert_int_equal(term_of(p, 1)[0], 0x02);
	assert_int_equal(term_of(p, 1)[1], 6);
	expect_recv(p, 1, WC_REM_INV_REQ_ERR);
	pipe_close(p);
}

/* Immediate data that does not directly follow a WRITE is a message of its
 * own. */
static void iwarp__immediate_data_alone(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	uint8_t imm[26] = U(0x41, 0x48, 0, 0, 1, 0);

	for (unsigned i = 0; i < 4; i++)
		pipe_post_recv(p, 1, FAR, 100);
	pipe_post(p, 0, wr_at(p, WR_WRITE, 50, 0), 0, 1);
	pipe_settle(p);
	pipe_inject_ulpdu(p, 0, imm, sizeof(imm));
	imm[13] = 2;
	pipe_inject_ulpdu(p, 0, imm, sizeof(imm));
	pipe_settle(p);
	assert_int_equal(expect_recv(p, 1, WC_SUCCESS).byte_len, 50);
	assert_int_equal(expect_recv(p, 1, WC_SUCCESS).byte_len, 0);
	pipe_close(p);
}

/* More READs than the peer permitted. */
static void iwarp__too_many_reads(void **state)
{
	static const uint8_t read[46] = U(0x41, 0x41, 0, 1, 1, 0);
	struct pipe *p = pipe_open(&pipe_terms);
	uint8_t ulpdu[46];

	for (unsigned i = 0; i < 5; i++) {
		memcpy(ulpdu, read, sizeof(read));
		ulpdu[13] = (uint8_t)(i + 1);
		pipe_inject_ulpdu(p, 0, ulpdu, sizeof(ulpdu));
	}
	pipe_settle(p);
	assert_int_equal(term_of(p, 1)[0], 0x12);
	assert_int_equal(term_of(p, 1)[1], 2);
	pipe_close(p);
}

/* Responses that do not match the request. */
static void iwarp__a_wrong_answer(void **state)
{
	static const struct {
		int stag, to, len;
		bool last;
		uint8_t code;
	} rows[] = {
		{ 1, 0, 100, true, 0 },	 { 0, 1, 100, true, 1 },
		{ 0, -1, 100, true, 1 }, { 0, 0, 101, true, 1 },
		{ 0, 0, 99, true, 1 },	 { 0, 0, 100, false, 1 },
		{ 0, 0, 101, false, 1 },
	};

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct pipe *p = pipe_open(&pipe_terms);
		struct vb_ddp_seg seg = {
			.tagged = true,
			.last = rows[i].last,
			.ddp_version = 1,
			.rdmap_version = 1,
			.opcode = RDMAP_READ_RESPONSE,
			.stag = p->key[0] + (uint32_t)rows[i].stag,
			.to = (uintptr_t)p->mem[0] + (uint64_t)rows[i].to,
		};
		uint8_t ulpdu[200] = { 0 };
		struct vb_writer w = { ulpdu };

		p->limit[0] = 0; /* the test sends side 1's responses */
		pipe_post(p, 0, wr(WR_READ, 100), 0, 1);
		pipe_settle(p);
		vb_ddp_seg_put(&w, &seg);
		pipe_inject_ulpdu(p, 1, ulpdu, 14 + (uint32_t)rows[i].len);
		pipe_settle(p);
		assert_int_equal(state_of(p, 0), QPS_ERR);
		expect_sent(p, 0, WC_FLUSH_ERR);
		assert_int_equal(term_of(p, 0)[0], 0x11);
		assert_int_equal(term_of(p, 0)[1], rows[i].code);
		pipe_close(p);
	}
}

/* Terminates from the peer, with the codes of the RFC and those of siw. */
static void iwarp__terminates_are_read(void **state)
{
	static const struct {
		uint8_t bytes[4];
		enum vb_wc_status status;
	} rows[] = {
		{ { 0x11, 0, 0, 0 }, WC_REM_ACCESS_ERR },
		{ { 0x01, 2, 0x80, 0 }, WC_REM_ACCESS_ERR },
		{ { 0x10, 2, 1, 0 }, WC_REM_ACCESS_ERR }, /* as siw sends it */
		{ { 0x12, 2, 0xc0, 0 }, WC_RNR_RETRY_EXC_ERR },
		{ { 0x21, 2, 3, 0 }, WC_RNR_RETRY_EXC_ERR }, /* as siw sends it */
		{ { 0x21, 5, 1, 0 }, WC_REM_INV_REQ_ERR },
		{ { 0x02, 6, 0, 0 }, WC_REM_INV_REQ_ERR },
		{ { 0x20, 2, 0, 0 }, WC_RETRY_EXC_ERR },
		{ { 0x77, 1, 0, 0 }, WC_REM_OP_ERR },
	};

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct pipe *p = pipe_open(&pipe_terms);
		uint8_t ulpdu[22] = U(0x41, 0x47, 0, 2, 1, 0);

		memcpy(ulpdu + 18, rows[i].bytes, 4);
		p->limit[0] = 0;
		pipe_post(p, 0, wr(WR_READ, 8), 0, 1);
		pipe_post(p, 0, wr(WR_READ, 8), 0, 1);
		pipe_settle(p);
		pipe_inject_ulpdu(p, 1, ulpdu, sizeof(ulpdu));
		pipe_settle(p);
		expect_sent(p, 0, rows[i].status);
		expect_sent(p, 0, WC_FLUSH_ERR);
		assert_true(vb_iw_wants_close(p->pair.qp[0]));
		pipe_close(p);
	}
}

/* RFC 7306: no carry leaves a field, and masked bits do not change. */
static void iwarp__masked_atomics(void **state)
{
	static const struct {
		uint8_t op;
		uint64_t word, data, data_mask, compare, compare_mask, result;
	} rows[] = {
		{ ATOMIC_FETCH_ADD, 0xffull, 1, 0, 0, 0, 0x100 },
		{ ATOMIC_FETCH_ADD, 0xffull, 1, 0x80, 0, 0, 0 },
		{ ATOMIC_FETCH_ADD, 0x7f7full, 0x0101, 0x8080, 0, 0, 0x8080 },
		{ ATOMIC_FETCH_ADD, UINT64_MAX, 1, 1ull << 63, 0, 0, 0 },
		{ ATOMIC_SWAP, 0x1234, 0xabcd, 0xff00, 0, 0, 0xab34 },
		{ ATOMIC_CMP_SWAP, 0x1234, 0xabcd, 0xff, 0x1200, 0xff00,
		  0x12cd },
		{ ATOMIC_CMP_SWAP, 0x1234, 0xabcd, 0xff, 0x1300, 0xff00,
		  0x1234 },
	};
	struct pipe *p = pipe_open(&pipe_terms);

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		const struct vb_rdmap_atomic a = {
			.op = rows[i].op,
			.stag = p->key[1],
			.to = (uintptr_t)p->mem[1],
			.add_swap = rows[i].data,
			.add_swap_mask = rows[i].data_mask,
			.compare = rows[i].compare,
			.compare_mask = rows[i].compare_mask,
		};
		uint8_t ulpdu[128] = U(0x41, 0x4a, 0, 1, 0, 0);
		struct vb_writer w = { ulpdu + VB_DDP_UNTAGGED_BYTES };
		struct vb_rdmap_atomic_rsp rsp;
		struct vb_reader r;

		memcpy(p->mem[1], &rows[i].word, 8);
		ulpdu[13] = (uint8_t)(i + 1);
		vb_rdmap_atomic_put(&w, &a);
		p->limit[1] = 0;
		p->wire[1].put = 0;
		pipe_inject_ulpdu(p, 0, ulpdu, (uint32_t)(w.at - ulpdu));
		pipe_settle(p);
		assert_true(word_at(p, 1, 0) == rows[i].result);
		r = vb_reader(p->wire[1].bytes + 20, 12);
		assert_true(vb_rdmap_atomic_rsp_get(&r, &rsp));
		assert_true(rsp.value == rows[i].word);
	}
	pipe_close(p);
}

/* Ends. */

static void iwarp__fin_between_messages(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	struct vb_qp *qp = p->pair.qp[1];

	pipe_post_recv(p, 1, 0, 10);
	pipe_settle(p);
	vb_mutex_lock(&qp->drive);
	vb_iw_eof(qp, p->sim.now);
	vb_mutex_unlock(&qp->drive);
	expect_recv(p, 1, WC_FLUSH_ERR);
	assert_int_equal(sim_event(&p->sim, 1), -1);
	assert_true(vb_iw_wants_close(qp));
	pipe_close(p);
}

static void iwarp__fin_within_a_message(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	struct vb_qp *qp = p->pair.qp[1];

	p->limit[0] = 2000;
	pipe_post_recv(p, 1, 0, 3000);
	pipe_post(p, 0, wr(WR_SEND, 3000), 0, 1);
	pipe_settle(p);
	vb_mutex_lock(&qp->drive);
	vb_iw_eof(qp, p->sim.now);
	vb_mutex_unlock(&qp->drive);
	expect_recv(p, 1, WC_FLUSH_ERR);
	assert_int_equal(sim_event(&p->sim, 1), EVENT_QP_FATAL);
	pipe_close(p);
}

static void iwarp__lost(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	struct vb_qp *qp = p->pair.qp[0];

	p->limit[0] = 0;
	pipe_post(p, 0, wr(WR_READ, 3000), 0, 1);
	pipe_post(p, 0, wr(WR_READ, 3000), 0, 1);
	pipe_settle(p);
	vb_mutex_lock(&qp->drive);
	vb_iw_lost(qp, p->sim.now);
	vb_mutex_unlock(&qp->drive);
	expect_sent(p, 0, WC_RETRY_EXC_ERR);
	expect_sent(p, 0, WC_FLUSH_ERR);
	assert_true(vb_iw_wants_close(qp));
	pipe_close(p);
}

/* The program moves the queue pair to ERR: an FPDU that is sent in part is
 * completed, and no Terminate is sent. */
static void iwarp__to_err_by_the_program(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);

	pipe_settle(p);
	pipe_post_recv(p, 0, 0, 10);
	sim_modify(&p->sim, p->pair.qp[0], QPS_ERR, 0, &sim_attr);
	pipe_settle(p);
	expect_recv(p, 0, WC_FLUSH_ERR);
	assert_int_equal(p->wire[0].put, 0);
	assert_true(vb_iw_wants_close(p->pair.qp[0]));
	pipe_post(p, 0, wr(WR_SEND, 8), 0, 1);
	pipe_settle(p);
	expect_sent(p, 0, WC_FLUSH_ERR);
	pipe_close(p);
}

static void iwarp__again_after_reset(void **state)
{
	const uint32_t init = QPM_PKEY_INDEX | QPM_PORT | QPM_ACCESS_FLAGS;
	struct pipe *p = pipe_open(&pipe_terms);

	for (unsigned round = 0; round < 3; round++) {
		pipe_post_recv(p, 1, FAR, 5000);
		pipe_post(p, 0, wr(WR_SEND, 5000), 0, 1);
		pipe_settle(p);
		expect_sent(p, 0, WC_SUCCESS);
		expect_recv(p, 1, WC_SUCCESS);
		for (unsigned i = 0; i < SIM_SIDES; i++) {
			struct vb_mpa_terms t = pipe_terms;
			struct vb_qp *qp = p->pair.qp[i];

			t.initiator = i == 0;
			sim_modify(&p->sim, qp, QPS_RESET, 0, &sim_attr);
			sim_modify(&p->sim, qp, QPS_INIT, init, &sim_attr);
			assert_int_equal(vb_iw_start(qp, &t, p->sim.now), 0);
			assert_int_equal(vb_iw_start(qp, &t, p->sim.now),
					 -EINVAL);
			p->wire[i].put = p->wire[i].got = 0;
		}
	}
	pipe_close(p);
}

/* Small messages are coalesced while nothing arrives, for a short time only. */
static void iwarp__small_messages_gather(void **state)
{
	const struct vb_transport_ops *t = &vb_iwarp_transport;
	struct pipe *p = pipe_open(&pipe_terms);
	struct vb_qp *qp = p->pair.qp[0];

	for (unsigned i = 0; i < 8; i++) {
		/* only the nudge of a silent peer */
		assert_true(t->deadline(qp) > p->sim.now + 10 * VB_MSEC);
		pipe_post(p, 0, wr(WR_WRITE, 8), 0, 1);
		assert_false(t->can_wait(qp));
		pipe_settle(p);
		expect_sent(p, 0, WC_SUCCESS);
	}
	assert_false(t->can_wait(qp)); /* nothing is posted */
	assert_true(t->deadline(qp) == p->sim.now + 200 * VB_USEC);
	for (unsigned i = 0; i < 63; i++) {
		pipe_post(p, 0, wr(WR_WRITE, 8), 0, 1);
		assert_true(t->can_wait(qp));
	}
	pipe_post(p, 0, wr(WR_WRITE, 8), 0, 1);
	assert_false(t->can_wait(qp));
	pipe_settle(p);
	for (unsigned i = 0; i < 64; i++)
		expect_sent(p, 0, WC_SUCCESS);
	/* Long messages do not wait. */
	pipe_post(p, 0, wr(WR_WRITE, 20000), 0, 1);
	assert_false(t->can_wait(qp));
	pipe_settle(p);
	/* The time is over: the message is sent, and the next one does not
	 * wait. */
	pipe_post(p, 0, wr(WR_WRITE, 8), 0, 1);
	assert_true(t->can_wait(qp));
	p->sim.now += 200 * VB_USEC;
	pipe_settle(p);
	pipe_post(p, 0, wr(WR_WRITE, 8), 0, 1);
	assert_false(t->can_wait(qp));
	/* A response has arrived: the program waits for each one. */
	for (unsigned i = 0; i < 20; i++) {
		pipe_post(p, 0, wr(WR_READ, 8), 0, 1);
		assert_false(t->can_wait(qp));
		pipe_settle(p);
	}
	pipe_close(p);
}

/* After a completion entry is lost, later messages are not received. */
static void iwarp__a_full_completion_queue(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	struct vb_cqe e;

	assert_int_equal(vb_cq_resize(p->pair.recv_cq[1], 1), 0);
	for (unsigned i = 0; i < 3; i++) {
		pipe_post_recv(p, 1, FAR + i * 100, 100);
		pipe_post(p, 0, wr_at(p, i == 2 ? WR_WRITE : WR_SEND, 10, 0),
			  i * 10, 1);
	}
	fill(p);
	p->mem[1][0] = (uint8_t)~p->mem[0][20];
	pipe_settle(p);
	expect_recv(p, 1, WC_SUCCESS);
	assert_int_equal(vb_cq_poll(p->pair.recv_cq[1], 1, &e), -EIO);
	assert_int_equal(state_of(p, 1), QPS_ERR);
	assert_int_not_equal(p->mem[1][0], p->mem[0][20]);
	expect_term(p, 0, 0, 0);
	pipe_close(p);
}

static void iwarp__a_shared_receive_queue(void **state)
{
	struct pipe *p = pipe_open_as(&pipe_terms, true);

	fill(p);
	for (unsigned i = 0; i < 3; i++) {
		pipe_post_recv(p, 1, FAR + i * 5000, 5000);
		pipe_post(p, 0, wr(WR_SEND, 4000), i, 1);
	}
	pipe_settle(p);
	for (unsigned i = 0; i < 3; i++) {
		expect_recv(p, 1, WC_SUCCESS);
		assert_memory_equal(p->mem[1] + FAR + i * 5000, p->mem[0] + i,
				    4000);
	}
	pipe_post(p, 0, wr(WR_SEND, 4000), 0, 1);
	pipe_settle(p);
	expect_term(p, 1, 2, 2);
	assert_int_equal(sim_event(&p->sim, 1), EVENT_LAST_WQE);
	pipe_close(p);
}

/* The socket has not taken the end of the message: it is not complete. */
static size_t take_some(struct pipe *p, unsigned side, bool sends, size_t have)
{
	return sends ? *(size_t *)p->arg : have;
}

static void iwarp__complete_when_all_is_taken(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	size_t room = 1000;
	struct vb_cqe e;

	p->cut = take_some;
	p->arg = &room;
	pipe_post_recv(p, 1, FAR, 3000);
	pipe_post(p, 0, wr(WR_SEND, 1200), 0, 1);
	pipe_turn(p);
	assert_false(sim_poll(p->pair.send_cq[0], &e));
	/* Half of the FPDU was sent: a change of the memory has no effect any
	 * more. */
	memset(p->mem[0] + 900, 0x55, 400);
	pipe_turn(p);
	expect_sent(p, 0, WC_SUCCESS);
	expect_recv(p, 1, WC_SUCCESS);
	assert_int_not_equal(p->mem[1][FAR + 1100], 0x55);
	pipe_close(p);
}

/* The batch already contains the check of a bad WQE when the socket takes only
 * the beginning of the good message before it. */
static void iwarp__bad_behind_what_is_not_taken(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	uint32_t key = p->key[0];
	size_t room = 1000;

	p->cut = take_some;
	p->arg = &room;
	pipe_post_recv(p, 1, FAR, 9000);
	pipe_post(p, 0, wr(WR_SEND, 8000), 0, 1);
	p->key[0] = 0x12345600;
	pipe_post(p, 0, wr(WR_WRITE, 8), 0, 1);
	p->key[0] = key;
	pipe_settle(p);
	expect_sent(p, 0, WC_SUCCESS);
	expect_sent(p, 0, WC_LOC_PROT_ERR);
	expect_recv(p, 1, WC_SUCCESS);
	assert_int_equal(state_of(p, 0), QPS_ERR);
	assert_int_equal(state_of(p, 1), QPS_ERR);
	pipe_close(p);
}

/* Adjacent pieces form one iovec entry, but each region is held. */
static void iwarp__many_pieces_that_touch(void **state)
{
	enum { COUNT = 40, PIECES = 30 };
	const struct vb_mpa_terms t = { .initiator = true, .mss = 1460 };
	struct pipe *p = pipe_open(&t);
	struct vb_qp *qp = p->pair.qp[0];

	fill(p);
	for (unsigned i = 0; i < COUNT; i++)
		pipe_post(p, 0, wr_at(p, WR_WRITE, 1400, i * 1400), i * 1400,
			  PIECES);
	vb_mutex_lock(&qp->drive);
	assert_true(vb_iw_send(qp, p->sim.now, &p->tx));
	assert_true(p->tx.held <= VB_IW_TX_IOV);
	(void)vb_iw_sent(qp, &p->tx, 0, p->sim.now);
	vb_mutex_unlock(&qp->drive);
	pipe_settle(p);
	for (unsigned i = 0; i < COUNT; i++)
		expect_sent(p, 0, WC_SUCCESS);
	assert_memory_equal(p->mem[1], p->mem[0], COUNT * 1400);
	pipe_close(p);
}

/* Two programs on one host. */

static struct pipe *open_near(void)
{
	struct vb_mpa_terms terms = pipe_terms;
	struct pipe *p;

	terms.near = true;
	p = pipe_open(&terms);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		const struct vb_rdmap_card card = { 100 + i, 200 + i };

		p->pair.qp[i]->way = WAY_OPEN;
		vb_iw_show_card(p->pair.qp[i], &card);
	}
	return p;
}

/* Cards are exchanged before anything else, until it is decided how requests
 * travel. */
static void iwarp__cards_first(void **state)
{
	struct pipe *p = open_near();
	struct vb_rdmap_card card;

	for (unsigned i = 0; i < SIM_SIDES; i++) {
		assert_false(vb_iw_is_quiet(p->pair.qp[i], p->sim.now));
		assert_false(vb_iw_has_card(p->pair.qp[i], &card));
		pipe_post_recv(p, i, FAR, 100);
		pipe_post(p, i, wr(WR_SEND, 100), 0, 1);
	}
	pipe_settle(p);
	expect_quiet(p);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		assert_true(vb_iw_is_quiet(p->pair.qp[i], p->sim.now));
		assert_true(vb_iw_has_card(p->pair.qp[i], &card));
		assert_int_equal(card.number, 100 + !i);
		assert_int_equal(card.life, 200 + !i);
		p->pair.qp[i]->way = WAY_PACKETS;
	}
	pipe_settle(p);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		expect_sent(p, i, WC_SUCCESS);
		expect_recv(p, i, WC_SUCCESS);
	}
	pipe_close(p);
}

/* Requests travel by shared memory; the end of the stream ends them, too. */
static void iwarp__the_end_of_a_silent_stream(void **state)
{
	for (unsigned lost = 0; lost < 2; lost++) {
		struct pipe *p = open_near();
		struct vb_qp *qp = p->pair.qp[0];

		pipe_settle(p);
		qp->way = WAY_NEAR;
		pipe_post(p, 0, wr(WR_SEND, 100), 0, 1);
		pipe_post(p, 0, wr(WR_SEND, 100), 0, 1);
		pipe_settle(p);
		expect_quiet(p);
		vb_mutex_lock(&qp->drive);
		if (lost)
			vb_iw_lost(qp, p->sim.now);
		else
			vb_iw_eof(qp, p->sim.now);
		vb_mutex_unlock(&qp->drive);
		expect_sent(p, 0, lost ? WC_RETRY_EXC_ERR : WC_FLUSH_ERR);
		expect_sent(p, 0, WC_FLUSH_ERR);
		pipe_close(p);
	}
}

/* The peer's queue pair has failed for a reason of its own. */
static void iwarp__a_terminate_on_a_silent_stream(void **state)
{
	struct pipe *p = open_near();

	pipe_settle(p);
	p->pair.qp[0]->way = p->pair.qp[1]->way = WAY_NEAR;
	pipe_post(p, 0, wr(WR_SEND, 100), 0, 1);
	vb_mutex_lock(&p->pair.qp[1]->drive);
	vb_qp_fail(p->pair.qp[1], -1);
	vb_mutex_unlock(&p->pair.qp[1]->drive);
	pipe_settle(p);
	expect_sent(p, 0, WC_REM_OP_ERR);
	pipe_close(p);
}

/* A card that was not negotiated, and a second card. */
static void iwarp__cards_out_of_place(void **state)
{
	static const uint8_t
		card[VB_DDP_UNTAGGED_BYTES + VB_RDMAP_CARD_BYTES] = {
			0x41, 0x4e, [9] = 4, [13] = 1, [21] = 1, [25] = 1
		};

	for (unsigned near = 0; near < 2; near++) {
		struct pipe *p = near ? open_near() : pipe_open(&pipe_terms);

		pipe_settle(p);
		assert_int_equal(state_of(p, 1), QPS_RTS);
		pipe_inject_ulpdu(p, 0, card, sizeof(card));
		pipe_settle(p);
		assert_int_equal(state_of(p, 1), QPS_ERR);
		assert_int_equal(term_of(p, 1)[0], near ? 0x12 : 0x02);
		assert_int_equal(term_of(p, 1)[1], near ? 0x03 : 0x06);
		pipe_close(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(iwarp__sends),
		cmocka_unit_test(iwarp__immediate_data),
		cmocka_unit_test(iwarp__writes_and_reads),
		cmocka_unit_test(iwarp__atomics),
		cmocka_unit_test(iwarp__both_ways),
		cmocka_unit_test(iwarp__no_more_reads_than_agreed),
		cmocka_unit_test(iwarp__a_fence_waits_for_reads),
		cmocka_unit_test(iwarp__completions_keep_order),
		cmocka_unit_test(iwarp__segments_follow_the_mss),
		cmocka_unit_test(iwarp__windows),
		cmocka_unit_test(iwarp__the_responder_waits),
		cmocka_unit_test(iwarp__an_empty_fulpdu_is_a_send_rtr),
		cmocka_unit_test(iwarp__a_wrong_key_is_named),
		cmocka_unit_test(iwarp__no_receive_ends_it),
		cmocka_unit_test(iwarp__too_long_for_the_receive),
		cmocka_unit_test(iwarp__a_receive_without_memory),
		cmocka_unit_test(iwarp__a_bad_local_key),
		cmocka_unit_test(iwarp__rights_of_the_queue_pair),
		cmocka_unit_test(iwarp__memory_to_send_is_gone),
		cmocka_unit_test(iwarp__memory_for_the_socket_is_gone),
		cmocka_unit_test(iwarp__remote_memory_is_gone),
		cmocka_unit_test(iwarp__memory_for_an_answer_is_gone),
		cmocka_unit_test(iwarp__a_receive_is_gone),
		cmocka_unit_test(iwarp__memory_that_changes_meanwhile),
		cmocka_unit_test(iwarp__nonsense_is_named),
		cmocka_unit_test(iwarp__a_message_that_changes),
		cmocka_unit_test(iwarp__immediate_data_alone),
		cmocka_unit_test(iwarp__too_many_reads),
		cmocka_unit_test(iwarp__a_wrong_answer),
		cmocka_unit_test(iwarp__terminates_are_read),
		cmocka_unit_test(iwarp__masked_atomics),
		cmocka_unit_test(iwarp__fin_between_messages),
		cmocka_unit_test(iwarp__fin_within_a_message),
		cmocka_unit_test(iwarp__lost),
		cmocka_unit_test(iwarp__to_err_by_the_program),
		cmocka_unit_test(iwarp__again_after_reset),
		cmocka_unit_test(iwarp__small_messages_gather),
		cmocka_unit_test(iwarp__a_full_completion_queue),
		cmocka_unit_test(iwarp__a_shared_receive_queue),
		cmocka_unit_test(iwarp__complete_when_all_is_taken),
		cmocka_unit_test(iwarp__bad_behind_what_is_not_taken),
		cmocka_unit_test(iwarp__many_pieces_that_touch),
		cmocka_unit_test(iwarp__cards_first),
		cmocka_unit_test(iwarp__the_end_of_a_silent_stream),
		cmocka_unit_test(iwarp__a_terminate_on_a_silent_stream),
		cmocka_unit_test(iwarp__cards_out_of_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP: the message of each work request, order, depths, peer-to-peer mode. */
#include "core/mw.h"
#include "tests/protocol/iwarp_fixture.h"

/* MPA terms that two sides may agree on; each case runs with all of them. */
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

		pipe_post_recv(p, 1, HALF, PIPE_MEM / 2);
		pipe_post(p, 0, wr(WR_SEND, len), i, len > 3 ? 3 : 1);
		pipe_settle(p);
		expect_sent(p, 0, WC_SUCCESS);
		e = expect_recv(p, 1, WC_SUCCESS);
		assert_int_equal(e.byte_len, len);
		assert_int_equal(e.opcode, WC_OP_RECV);
		assert_int_equal(e.wc_flags, 0);
		assert_memory_equal(p->mem[1] + HALF, p->mem[0] + i, len);
	}
	expect_idle(p);
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
	pipe_post_recv(p, 1, HALF, 4000);
	pipe_post(p, 0, w, 0, 1);
	w.op = WR_WRITE_IMM;
	w.remote_addr = (uintptr_t)p->mem[1] + HALF + 5000;
	pipe_post_recv(p, 1, 0, 0);
	pipe_post(p, 0, w, 10, 2);
	/* Immediate data does not belong to an earlier WRITE without
	 * immediate. */
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
	assert_memory_equal(p->mem[1] + HALF + 5000, p->mem[0] + 10, 3000);
	e = expect_recv(p, 1, WC_SUCCESS);
	assert_int_equal(e.byte_len, 0);
	expect_idle(p);
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

		pipe_post(p, 0, wr_at(p, WR_WRITE, len, HALF), i, pieces);
		pipe_post(p, 0, wr_at(p, WR_READ, len, HALF), HALF + 1, pieces);
		pipe_settle(p);
		expect_sent(p, 0, WC_SUCCESS);
		expect_sent(p, 0, WC_SUCCESS);
		assert_memory_equal(p->mem[1] + HALF, p->mem[0] + i, len);
		assert_memory_equal(p->mem[0] + HALF + 1, p->mem[0] + i, len);
	}
	expect_idle(p);
}

static void iwarp__writes_and_reads(void **state)
{
	each(writes_and_reads);
}

static void atomics(struct pipe *p)
{
	struct vb_send_wqe w = wr_at(p, WR_FETCH_ADD, 8, HALF);
	uint64_t was = word_at(p, 1, HALF);

	w.compare_add = UINT64_MAX - 5;
	pipe_post(p, 0, w, 0, 2);
	w.op = WR_CMP_SWAP;
	w.compare_add = was - 6;
	w.swap = 77;
	pipe_post(p, 0, w, 8, 1);
	/* the compare fails: the word in memory is 77 at this time */
	w.swap = 99;
	pipe_post(p, 0, w, 16, 1);
	pipe_settle(p);
	for (unsigned i = 0; i < 3; i++)
		expect_sent(p, 0, WC_SUCCESS);
	assert_true(word_at(p, 0, 0) == was);
	assert_true(word_at(p, 0, 8) == was - 6);
	assert_true(word_at(p, 0, 16) == 77);
	assert_true(word_at(p, 1, HALF) == 77);
	expect_idle(p);
}

static void iwarp__atomics(void **state)
{
	each(atomics);
}

/* Post more READs than are permitted at a time, with and without a fence, in
 * both directions at once and in several batches. */
static void many(struct pipe *p)
{
	for (unsigned round = 0; round < 8; round++) {
		for (unsigned side = 0; side < SIM_SIDES; side++) {
			struct vb_send_wqe w = wr(WR_READ, 20000);

			pipe_post_recv(p, side, HALF, 20000);
			pipe_post(p, side, w, HALF + 30000, 1);
			w.op = WR_FETCH_ADD;
			w.length = 8;
			pipe_post(p, side, w, HALF + 60000, 1);
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
	expect_idle(p);
}

static void iwarp__both_ways(void **state)
{
	each(many);
}

static void iwarp__no_more_reads_than_agreed(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	unsigned asked = 0;

	p->limit[1] = 0; /* side 1's READ responses do not reach side 0 */
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

/* The socket accepts a WRITE that follows a READ long before the READ's
 * response arrives; the WRITE still completes second. */
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

/* Each FPDU of a long message fills a TCP segment of the MSS exactly. */
static void VB_UNCHECKED iwarp__segments_follow_the_mss(void **state)
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
	/* change the low 8 bits of the key, which the consumer owns */
	key ^= 1;
	bind.rkey = key;
	bind.swap = p->key[1];
	bind.remote_addr = (uintptr_t)p->mem[1] + HALF;
	bind.compare_add = 64;
	bind.imm = ACCESS_REMOTE_WRITE;
	pipe_post(p, 1, bind, 0, 1);
	pipe_settle(p);
	expect_sent(p, 1, WC_SUCCESS);
	w.rkey = key;
	w.remote_addr = (uintptr_t)p->mem[1] + HALF;
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
	assert_memory_equal(p->mem[1] + HALF, p->mem[0], 64);
	/* The memory window is invalid now, so a WRITE with its key ends the
	 * stream. */
	w.op = WR_WRITE;
	pipe_post(p, 0, w, 0, 1);
	pipe_settle(p);
	assert_int_equal(state_of(p, 0), QPS_ERR);
	assert_int_equal(state_of(p, 1), QPS_ERR);
	vb_mw_free(mw);
	pipe_close(p);
}

static void VB_UNCHECKED iwarp__the_responder_waits(void **state)
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
		assert_true(rtr ==
			    (vb_iwarp_ops.deadline(p->pair.qp[1]) == VB_NEVER));
		/* Without an RTR message the responder may send at once. */
		p->sim.now += VB_SEC;
		pipe_settle(p);
		/* With an RTR message in the terms, the responder sends nothing
		 * before the initiator's RTR has arrived. */
		assert_int_equal(p->wire[1].put == 0, rtr);
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
	p->wire[0].put = 0; /* The test drops the initiator's RTR message. */
	p->limit[0] = SIZE_MAX;
	pipe_inject_ulpdu(p, 0, NULL, 0);
	pipe_post_recv(p, 1, 0, 10);
	pipe_post(p, 0, wr(WR_SEND, 10), 0, 1);
	pipe_settle(p);
	expect_recv(p, 1, WC_SUCCESS);
	pipe_close(p);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

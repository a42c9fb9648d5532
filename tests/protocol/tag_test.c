/* SPDX-License-Identifier: BSD-2-Clause */
/* Tag matching over packets: side 0 sends, side 1 has the list and reads the
 * data of a rendezvous. Includes losses, and peers that lie. */
#include "base/bytes.h"
#include "tests/support/bench.h"

#define TAGS 64
/* Offset in side 0's memory of the data that side 1 reads. */
#define SOURCE 0x10000
#define LANDS  0x20000 /* offset in side 1's memory of the tagged buffers */
/* Offset in side 1's memory of the RECVs without a tag. */
#define SPARE 0x80000
#define SLOT  16384u

static const struct sim_caps tag_caps = {
	.wr = 64, .sge = 8, .inline_bytes = 256, .cqe = 256, .tags = TAGS
};

static struct bench *open_tags(void)
{
	return bench_open_as(&sim_attr, &tag_caps);
}

static void add_tag(struct bench *b, uint64_t tag, uint32_t len)
{
	struct vb_sge sge = { (uintptr_t)b->mem[1] + LANDS + tag * SLOT, len,
			      b->mr[1]->key };
	struct vb_tag_op op = { .recv_wr_id = tag,
				.tag = tag,
				.mask = UINT64_MAX,
				.sge = &sge,
				.count = 1 };

	assert_int_equal(vb_tag_add(b->pair.srq[1], &op), 0);
}

static uint8_t *landed(struct bench *b, uint64_t tag)
{
	return b->mem[1] + LANDS + tag * SLOT;
}

static uint8_t *write_tmh(struct bench *b, uint32_t at, uint8_t op,
			  uint64_t tag)
{
	uint8_t *to = b->mem[0] + at;

	memset(to, 0, VB_TMH_BYTES);
	to[0] = op;
	vb_store_be(to + 8, tag, 8);
	return to + VB_TMH_BYTES;
}

static void send_eager(struct bench *b, uint64_t tag, uint32_t len)
{
	(void)write_tmh(b, 0, TM_OP_EAGER, tag);
	bench_post(b, 0, WR_SEND, 0, VB_TMH_BYTES + len, 0);
}

/* Give each request its own memory, because it may be sent again. */
static void send_rndv(struct bench *b, uint64_t tag, uint64_t va, uint32_t rkey,
		      uint32_t length)
{
	uint32_t at = (uint32_t)(tag + 1) * VB_RNDV_BYTES;
	uint8_t *rvh = write_tmh(b, at, TM_OP_RNDV, tag);

	vb_store_be(rvh, va, 8);
	vb_store_be(rvh + 8, rkey, 4);
	vb_store_be(rvh + 12, length, 4);
	bench_post(b, 0, WR_SEND, at, VB_RNDV_BYTES, 0);
}

static void offer(struct bench *b, uint64_t tag, uint32_t length)
{
	send_rndv(b, tag, (uintptr_t)b->mem[0] + SOURCE, b->mr[0]->key, length);
}

static void expect_tm(struct bench *b, uint64_t wr_id, enum vb_wc_status status,
		      uint8_t flags, uint32_t byte_len)
{
	struct vb_cqe e;

	assert_true(sim_poll(b->pair.recv_cq[1], &e));
	assert_int_equal(e.wr_id, wr_id);
	assert_int_equal(e.status, status);
	assert_int_equal(e.opcode, WC_OP_TM_RECV);
	if (status == WC_SUCCESS) {
		assert_int_equal(e.wc_flags, flags);
		assert_int_equal(e.byte_len, byte_len);
	}
}

static void expect_fin(struct bench *b, uint64_t wr_id, uint64_t tag,
		       uint32_t at)
{
	struct vb_cqe e;

	assert_true(sim_poll(b->pair.recv_cq[0], &e));
	assert_int_equal(e.wr_id, wr_id);
	assert_int_equal(e.status, WC_SUCCESS);
	assert_int_equal(e.byte_len, VB_RNDV_BYTES);
	assert_int_equal(b->mem[0][at], TM_OP_FIN);
	assert_int_equal(vb_load_be(b->mem[0] + at + 8, 8), tag);
}

static void eager__of_any_length(void **state)
{
	static const uint32_t lengths[] = { 0,	  1,	1007, 1008,
					    1009, 2031, 2032, 5000 };
	struct bench *b = open_tags();

	for (unsigned i = 0; i < VB_COUNT(lengths); i++) {
		uint32_t len = lengths[i];
		bool whole = len + VB_TMH_BYTES <= 1024;

		landed(b, i)[len] = 0x55;
		add_tag(b, i, SLOT);
		send_eager(b, i, len);
		bench_wait(b, 200);
		bench_expect_wc(b->pair.send_cq[0], i, WC_SUCCESS);
		if (!whole)
			expect_tm(b, i, WC_SUCCESS, WC_TM_MATCH, 0);
		expect_tm(b, i, WC_SUCCESS,
			  WC_TM_DATA_VALID | (whole ? WC_TM_MATCH : 0), len);
		assert_memory_equal(landed(b, i), b->mem[0] + VB_TMH_BYTES,
				    len);
		assert_int_equal(landed(b, i)[len], 0x55);
	}
	bench_expect_no_wc(b->pair.recv_cq[1]);
	bench_close(b);
}

static void eager__too_long_for_the_buffer(void **state)
{
	struct bench *b = open_tags();

	add_tag(b, 1, 100);
	send_eager(b, 1, 101);
	bench_wait(b, 100);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_REM_INV_REQ_ERR);
	bench_expect_wc(b->pair.recv_cq[1], 1, WC_LOC_LEN_ERR);
	bench_close(b);
}

/* A message that matches no tag goes, with its header, into a receive without a
 * tag. While there is no such receive, the message waits. */
static void eager__unexpected(void **state)
{
	struct bench *b = open_tags();

	add_tag(b, 1, 100);
	send_eager(b, 2, 3000);
	bench_wait(b, 300);
	bench_expect_no_wc(b->pair.recv_cq[1]);
	bench_post_recv(b, 1, 900, SPARE, 4000);
	bench_wait(b, 2000);
	expect_tm(b, 900, WC_SUCCESS, 0, 3000 + VB_TMH_BYTES);
	assert_memory_equal(b->mem[1] + SPARE, b->mem[0], 3000 + VB_TMH_BYTES);
	bench_close(b);
}

static void rndv__reads_and_ends_with_fin(void **state)
{
	struct bench *b = open_tags();

	bench_post_recv(b, 0, 700, 0x8000, 64);
	add_tag(b, 3, SLOT);
	offer(b, 3, 9999);
	bench_wait(b, 500);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	expect_tm(b, 3, WC_SUCCESS, WC_TM_MATCH, 9999);
	expect_tm(b, 3, WC_SUCCESS, WC_TM_DATA_VALID, 9999);
	expect_fin(b, 700, 3, 0x8000);
	assert_memory_equal(landed(b, 3), b->mem[0] + SOURCE, 9999);
	bench_expect_no_wc(b->pair.send_cq[1]);
	bench_close(b);
}

static void rndv__of_nothing(void **state)
{
	struct bench *b = open_tags();

	bench_post_recv(b, 0, 700, 0x8000, 64);
	add_tag(b, 3, SLOT);
	offer(b, 3, 0);
	bench_wait(b, 500);
	expect_tm(b, 3, WC_SUCCESS, WC_TM_MATCH, 0);
	expect_tm(b, 3, WC_SUCCESS, WC_TM_DATA_VALID, 0);
	expect_fin(b, 700, 3, 0x8000);
	bench_close(b);
}

/* Check that no FIN message arrives before the data that it reports. */
static bool fin_is_last(const struct bench *b)
{
	bool read = false;

	for (unsigned i = 0; i < b->logged; i++) {
		uint8_t code = b->log[i].pkt.bth.opcode;

		if (b->log[i].from == 0 && code == CODE_READ_RESP_LAST)
			read = true;
		if (b->log[i].from == 1 && code == CODE_SEND_ONLY && !read)
			return false;
	}
	return true;
}

static struct sim_rand dice;

static bool lose_some(struct bench *b, unsigned from,
		      const struct vb_ib_pkt *pkt)
{
	return sim_maybe(&dice, 1000);
}

/* Run 20 rendezvous transfers while one packet in ten is lost. */
static void lossy(uint64_t seed)
{
	struct bench *b = open_tags();
	const unsigned count = 20;

	dice.state = seed;
	b->lose = lose_some;
	for (unsigned i = 0; i < count; i++) {
		bench_post_recv(b, 0, 700 + i, 0x8000 + i * 64, 64);
		add_tag(b, i, SLOT);
	}
	for (unsigned i = count; i-- > 0;)
		offer(b, i, 3000 + 517 * i);
	bench_wait(b, 2000000);
	assert_true(b->lost > 10);
	assert_true(fin_is_last(b));
	for (unsigned i = 0; i < count; i++) {
		uint64_t tag = count - 1 - i;

		bench_expect_wc(b->pair.send_cq[0], i, WC_SUCCESS);
		expect_fin(b, 700 + i, tag, 0x8000 + i * 64);
		assert_memory_equal(landed(b, tag), b->mem[0] + SOURCE,
				    3000 + 517 * tag);
	}
	for (unsigned matched = 0, there = 0; there < count;) {
		struct vb_cqe e;

		assert_true(sim_poll(b->pair.recv_cq[1], &e));
		if (e.wc_flags == WC_TM_MATCH) {
			assert_int_equal(e.wr_id, count - 1 - matched++);
			continue;
		}
		assert_int_equal(e.wc_flags, WC_TM_DATA_VALID);
		assert_int_equal(e.wr_id, count - 1 - there++);
		assert_true(there <= matched);
	}
	bench_expect_no_wc(b->pair.recv_cq[1]);
	bench_close(b);
}

static void rndv__with_losses(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		lossy(seed);
}

/* The peer names memory that must not be read, or does not exist. */
static void rndv__a_peer_that_lies(void **state)
{
	struct {
		uint64_t shift;
		uint32_t key;
		uint32_t length;
	} rows[] = { { 0, 1, 100 },
		     { BENCH_MEM, 0, 1 },
		     { BENCH_MEM - 10, 0, 11 },
		     { UINT64_MAX / 2, 0, SLOT } };

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct bench *b = open_tags();
		uint8_t before[64];

		add_tag(b, 1, SLOT);
		memcpy(before, landed(b, 1), sizeof(before));
		send_rndv(b, 1, (uintptr_t)b->mem[0] + rows[i].shift,
			  b->mr[0]->key ^ rows[i].key, rows[i].length);
		bench_wait(b, 500);
		expect_tm(b, 1, WC_SUCCESS, WC_TM_MATCH, rows[i].length);
		expect_tm(b, 1, WC_REM_ACCESS_ERR, 0, 0);
		bench_expect_no_wc(b->pair.recv_cq[1]);
		assert_memory_equal(before, landed(b, 1), sizeof(before));
		assert_int_equal(atomic_load(&b->pair.qp[1]->state), QPS_ERR);
		assert_int_equal(sim_event(&b->sim, 1), EVENT_LAST_WQE);
		bench_close(b);
	}
}

/* A tap that loses the responses to READs. */
static bool lose_responses(struct bench *b, unsigned from,
			   const struct vb_ib_pkt *pkt)
{
	return from == 0 && pkt->op->kind == KIND_READ_RESP;
}

static void rndv__queue_pair_goes_meanwhile(void **state)
{
	static const enum vb_qp_state to[] = { QPS_ERR, QPS_RESET };

	for (unsigned i = 0; i < VB_COUNT(to); i++) {
		struct bench *b = open_tags();

		b->lose = lose_responses;
		for (unsigned j = 0; j < 3; j++) {
			add_tag(b, j, SLOT);
			offer(b, j, 5000);
		}
		bench_wait(b, 500);
		for (unsigned j = 0; j < 3; j++)
			expect_tm(b, j, WC_SUCCESS, WC_TM_MATCH, 5000);
		bench_expect_no_wc(b->pair.recv_cq[1]);
		sim_modify(&b->sim, b->pair.qp[1], to[i], 0, NULL);
		for (unsigned j = 0; j < 3; j++)
			expect_tm(b, j, WC_FLUSH_ERR, 0, 0);
		bench_expect_no_wc(b->pair.recv_cq[1]);
		bench_close(b);
	}
}

/* A queue pair that is not in RTS yet delays the READ of a rendezvous. */
static void rndv__before_it_may_send(void **state)
{
	struct vb_qp_attr attr = sim_attr;
	struct bench *b = open_tags();

	sim_modify(&b->sim, b->pair.qp[1], QPS_RESET, 0, NULL);
	sim_to_rtr(&b->sim, &b->pair, 1, &attr);
	bench_post_recv(b, 0, 700, 0x8000, 64);
	add_tag(b, 3, SLOT);
	offer(b, 3, 100);
	bench_wait(b, 500);
	expect_tm(b, 3, WC_SUCCESS, WC_TM_MATCH, 100);
	bench_expect_no_wc(b->pair.recv_cq[1]);
	sim_to_rts(&b->sim, &b->pair, 1, &attr);
	bench_wait(b, 500);
	expect_tm(b, 3, WC_SUCCESS, WC_TM_DATA_VALID, 100);
	expect_fin(b, 700, 3, 0x8000);
	bench_close(b);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(eager__of_any_length),
		TEST(eager__too_long_for_the_buffer),
		TEST(eager__unexpected),
		TEST(rndv__reads_and_ends_with_fin),
		TEST(rndv__of_nothing),
		TEST(rndv__with_losses),
		TEST(rndv__a_peer_that_lies),
		TEST(rndv__queue_pair_goes_meanwhile),
		TEST(rndv__before_it_may_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

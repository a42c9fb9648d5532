/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester and completer: errors, limits, states. */
#include "ib/rc.h"
#include "tests/support/bench.h"

#include <string.h>

#define MTU	    1024 /* bytes, as in sim_attr */
#define NOT_OUR_KEY 0x77777777u

static enum vb_qp_state state_of(const struct bench *b, unsigned side)
{
	return atomic_load(&b->pair.qp[side]->state);
}

static uint64_t counter(const struct bench *b, unsigned side, enum vb_counter c)
{
	return atomic_load(&b->sim.side[side].adapter.counters[c]);
}

static void inject_aeth(struct bench *b, uint8_t syndrome, int nth)
{
	struct vb_ib_pkt pkt = bench_response(b, CODE_ACK, nth, syndrome);

	bench_inject(b, 0, &pkt, 0, 0);
}

/* Lose everything that side 1 sends: the test sends its responses. */
static bool lose_answers(struct bench *b, unsigned from,
			 const struct vb_ib_pkt *pkt)
{
	return from == 1;
}

static bool lose_all(struct bench *b, unsigned from,
		     const struct vb_ib_pkt *pkt)
{
	return true;
}

static struct bench *open_alone(void)
{
	struct bench *b = bench_open();

	b->lose = lose_all;
	return b;
}

/* How a request ends. */

static void requester__nak_codes_become_statuses(void **state)
{
	static const struct {
		uint8_t syndrome;
		enum vb_wc_status status;
	} rows[] = {
		{ 0x61, WC_REM_INV_REQ_ERR }, { 0x62, WC_REM_ACCESS_ERR },
		{ 0x63, WC_REM_OP_ERR },      { 0x64, WC_REM_INV_RD_REQ_ERR },
		{ 0x7f, WC_REM_OP_ERR },
	};

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct bench *b = open_alone();

		for (int n = 0; n < 3; n++)
			bench_post(b, 0, WR_WRITE, 0, 8, 0);
		bench_wait(b, 10);
		inject_aeth(b, rows[i].syndrome, 1);
		bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
		bench_expect_wc(b->pair.send_cq[0], 1, rows[i].status);
		bench_expect_wc(b->pair.send_cq[0], 2, WC_FLUSH_ERR);
		assert_int_equal(state_of(b, 0), QPS_ERR);
		bench_post(b, 0, WR_WRITE, 0, 8, 0);
		bench_wait(b, 10);
		bench_expect_wc(b->pair.send_cq[0], 3, WC_FLUSH_ERR);
		bench_close(b);
	}
}

static void requester__nak_behind_a_lost_read(void **state)
{
	struct bench *b = open_alone();

	bench_post(b, 0, WR_READ, 0, 2 * MTU, 0);
	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	bench_wait(b, 10);
	inject_aeth(b, VB_SYN_NAK_ACCESS, 2);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_FLUSH_ERR);
	bench_expect_wc(b->pair.send_cq[0], 1, WC_REM_ACCESS_ERR);
	bench_close(b);
}

static void requester__ghosts_are_ignored(void **state)
{
	struct bench *b = open_alone();

	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	bench_wait(b, 10);
	inject_aeth(b, VB_SYN_ACK, -1);
	inject_aeth(b, VB_SYN_NAK_ACCESS, -1);
	inject_aeth(b, VB_SYN_NAK_PSN, -5);
	inject_aeth(b, VB_SYN_NAK_OP, 1);
	inject_aeth(b, VB_SYN_ACK, 1);
	inject_aeth(b, 0x40, 0);
	inject_aeth(b, 0xff, 0);
	bench_expect_no_wc(b->pair.send_cq[0]);
	assert_int_equal(state_of(b, 0), QPS_RTS);
	assert_int_equal(bench_count(b, 0, CODE_WRITE_ONLY), 1);
	inject_aeth(b, VB_SYN_ACK, 0);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	bench_close(b);
}

static void requester__answer_to_what_asked_for_none(void **state)
{
	struct bench *b = open_alone();
	struct vb_ib_pkt pkt;

	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	bench_post(b, 0, WR_READ, 0, 8, 0);
	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	bench_wait(b, 10);
	for (int i = 0; i <= 2; i += 2) {
		pkt = bench_response(b, CODE_READ_RESP_ONLY, i, VB_SYN_ACK);
		bench_inject(b, 0, &pkt, 8, 1);
		bench_expect_no_wc(b->pair.send_cq[0]);
	}
	assert_int_equal(state_of(b, 0), QPS_RTS);
	assert_int_equal(counter(b, 0, CNT_DROP_BAD_RESPONSE), 2);
	assert_int_equal(counter(b, 0, CNT_RETRANSMITS), 0);
	inject_aeth(b, VB_SYN_ACK, 0);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	bench_close(b);
}

static void requester__wrong_answers(void **state)
{
	static const struct {
		enum vb_wr_op op;
		uint32_t len;
		uint8_t code;
		uint32_t payload;
		enum vb_wc_status status;
	} rows[] = {
		{ WR_READ, 8, CODE_READ_RESP_ONLY, 7, WC_LOC_LEN_ERR },
		{ WR_READ, 8, CODE_READ_RESP_ONLY, 9, WC_LOC_LEN_ERR },
		{ WR_READ, 8, CODE_READ_RESP_FIRST, 8, WC_BAD_RESP_ERR },
		{ WR_READ, 2 * MTU, CODE_READ_RESP_ONLY, MTU, WC_BAD_RESP_ERR },
		{ WR_READ, 2 * MTU, CODE_READ_RESP_FIRST, 8, WC_LOC_LEN_ERR },
		{ WR_READ, 8, CODE_ATOMIC_ACK, 0, WC_BAD_RESP_ERR },
		{ WR_FETCH_ADD, 8, CODE_READ_RESP_ONLY, 8, WC_BAD_RESP_ERR },
	};

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct bench *b = open_alone();
		struct vb_ib_pkt pkt;

		bench_post(b, 0, rows[i].op, 0, rows[i].len, 0);
		bench_wait(b, 10);
		pkt = bench_response(b, rows[i].code, 0, VB_SYN_ACK);
		bench_inject(b, 0, &pkt, rows[i].payload, 1);
		bench_expect_wc(b->pair.send_cq[0], 0, rows[i].status);
		bench_close(b);
	}
}

/* Local errors. */

static void requester__bad_lkey_waits_its_turn(void **state)
{
	struct bench *b = bench_open();
	struct vb_sge sge[2] = { { (uintptr_t)b->mem[0], MTU, b->mr[0]->key },
				 { (uintptr_t)b->mem[0], 8, NOT_OUR_KEY } };
	struct vb_send_wqe wqe = {
		.wr_id = 1, .op = WR_SEND, .num_sge = 2, .length = MTU + 8
	};

	b->lose = lose_answers;
	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	sim_post_send(b->pair.qp[0], &wqe, sge);
	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	bench_wait(b, 10);
	bench_expect_no_wc(b->pair.send_cq[0]);
	/* Not even the packet whose memory is valid was sent. */
	assert_int_equal(bench_count(b, 0, CODE_SEND_FIRST), 0);
	b->lose = NULL;
	bench_wait(b, 20000);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	bench_expect_wc(b->pair.send_cq[0], 1, WC_LOC_PROT_ERR);
	bench_expect_wc(b->pair.send_cq[0], 2, WC_FLUSH_ERR);
	assert_int_equal(state_of(b, 0), QPS_ERR);
	bench_close(b);
}

static void requester__refuses_what_cannot_be(void **state)
{
	static const struct {
		enum vb_wr_op op;
		uint32_t len;
		enum vb_wc_status status;
	} rows[] = {
		{ WR_READ, 8, WC_LOC_QP_OP_ERR }, /* since max_rd_atomic is 0 */
		{ WR_CMP_SWAP, 8, WC_LOC_QP_OP_ERR },
		{ WR_LOCAL_INV, 0, WC_MW_BIND_ERR }, /* the key names no window */
		{ WR_BIND_MW, 0, WC_MW_BIND_ERR },
		{ 99, 0, WC_LOC_QP_OP_ERR },
		{ WR_WRITE, BENCH_MEM + 1, WC_LOC_PROT_ERR },
		{ WR_WRITE, VB_MAX_MSG + 1, WC_LOC_LEN_ERR },
	};
	struct vb_qp_attr attr = sim_attr;

	attr.max_rd_atomic = 0;
	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct bench *b = bench_open_as(&attr, &sim_caps);

		bench_post(b, 0, rows[i].op, 0, rows[i].len, 0);
		bench_wait(b, 10);
		bench_expect_wc(b->pair.send_cq[0], 0, rows[i].status);
		bench_expect_silence(b, 0);
		bench_close(b);
	}
}

static void requester__atomic_needs_room_for_the_result(void **state)
{
	struct bench *b = bench_open();

	bench_post(b, 0, WR_FETCH_ADD, 0, 7, 0);
	bench_wait(b, 10);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_LOC_LEN_ERR);
	bench_close(b);
}

static void requester__read_into_a_region_that_went(void **state)
{
	struct bench *b = bench_open();

	bench_post(b, 0, WR_READ, 0, 8, 0);
	sim_drive(&b->sim);
	assert_int_equal(vb_mr_deregister(b->mr[0]), 0);
	b->mr[0] = NULL;
	bench_wait(b, 20);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_LOC_PROT_ERR);
	bench_close(b);
}

/* Retries. */

static void requester__gives_up_after_retry_cnt(void **state)
{
	for (uint8_t retries = 0; retries <= 7; retries++) {
		struct vb_qp_attr attr = sim_attr;
		vb_time t = vb_ack_timeout_ns(attr.timeout);
		vb_time each = VB_MIN(4 * t, t + 250 * VB_MSEC);
		struct bench *b;

		attr.retry_cnt = retries;
		b = bench_open_as(&attr, &sim_caps);
		b->lose = lose_all;
		bench_post(b, 0, WR_WRITE, 0, 8, 0);
		sim_run(&b->sim, b->sim.now + each * (retries + 1) - 1);
		bench_expect_no_wc(b->pair.send_cq[0]);
		assert_int_equal(counter(b, 0, CNT_TIMEOUTS), retries);
		bench_wait(b, 1);
		bench_expect_wc(b->pair.send_cq[0], 0, WC_RETRY_EXC_ERR);
		assert_int_equal(counter(b, 0, CNT_RETRY_EXCEEDED), 1);
		bench_close(b);
	}
}

static void requester__no_timeout_never_gives_up(void **state)
{
	struct vb_qp_attr attr = sim_attr;
	struct bench *b;

	attr.timeout = 0;
	attr.retry_cnt = 0;
	b = bench_open_as(&attr, &sim_caps);
	b->lose = lose_all;
	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	sim_run(&b->sim, b->sim.now + 1000 * VB_SEC);
	bench_expect_no_wc(b->pair.send_cq[0]);
	assert_true(b->logged < 300); /* probes become rarer */
	b->lose = NULL;
	sim_run(&b->sim, b->sim.now + 20 * VB_SEC);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	bench_close(b);
}

/* A lost last packet, or a lost ACK of it, costs milliseconds and no retry. */
static bool lose_first(struct bench *b, unsigned from,
		       const struct vb_ib_pkt *pkt)
{
	return b->lost == 0;
}

static bool lose_first_answer(struct bench *b, unsigned from,
			      const struct vb_ib_pkt *pkt)
{
	return from == 1 && b->lost == 0;
}

static void requester__a_probe_spares_the_timeout(void **state)
{
	for (int i = 0; i < 4; i++) {
		struct bench *b = bench_open();

		b->lose = i & 1 ? lose_first : lose_first_answer;
		bench_post(b, 0, i & 2 ? WR_READ : WR_WRITE, 0, 8, 0);
		bench_wait(b, 12000);
		bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
		assert_int_equal(counter(b, 0, CNT_TIMEOUTS), 0);
		bench_close(b);
	}
}

static void requester__rnr_waits_as_told(void **state)
{
	struct bench *b = bench_open();
	vb_time wait = vb_rnr_ns(sim_attr.min_rnr_timer);

	bench_post(b, 0, WR_SEND, 0, 8, 0);
	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	sim_run(&b->sim, b->sim.now + wait);
	assert_int_equal(bench_count(b, 0, CODE_SEND_ONLY), 1);
	assert_int_equal(bench_count(b, 0, CODE_WRITE_ONLY), 1);
	bench_post_recv(b, 1, 0, 0, 64);
	bench_wait(b, 100);
	assert_int_equal(bench_count(b, 0, CODE_SEND_ONLY), 2);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	bench_expect_wc(b->pair.send_cq[0], 1, WC_SUCCESS);
	assert_int_equal(counter(b, 0, CNT_RCVD_RNR_ERR), 1);
	bench_close(b);
}

static void requester__rnr_nak_then_sequence_nak(void **state)
{
	struct bench *b = open_alone(); /* as Linux rxe does */

	bench_post(b, 0, WR_SEND, 0, 8, 0);
	bench_post(b, 0, WR_SEND, 0, 8, 0);
	bench_wait(b, 10);
	inject_aeth(b, VB_SYN_RNR | 14, 0); /* the code for 1.28 ms */
	inject_aeth(b, VB_SYN_NAK_PSN, 0);
	bench_wait(b, 1200);
	assert_int_equal(bench_count(b, 0, CODE_SEND_ONLY), 2);
	bench_wait(b, 100);
	assert_int_equal(bench_count(b, 0, CODE_SEND_ONLY), 4);
	bench_close(b);
}

static void requester__gives_up_after_rnr_retry(void **state)
{
	for (uint8_t retries = 0; retries < 7; retries++) {
		struct vb_qp_attr attr = sim_attr;
		struct bench *b;

		attr.rnr_retry = retries;
		b = bench_open_as(&attr, &sim_caps);
		bench_post(b, 0, WR_SEND, 0, 8, 0);
		bench_post(b, 0, WR_SEND, 0, 8, 0);
		bench_wait(b, 50000);
		bench_expect_wc(b->pair.send_cq[0], 0, WC_RNR_RETRY_EXC_ERR);
		bench_expect_wc(b->pair.send_cq[0], 1, WC_FLUSH_ERR);
		assert_int_equal(counter(b, 1, CNT_SEND_RNR_ERR), retries + 1);
		bench_close(b);
	}
}

static void requester__rnr_retry_7_is_without_end(void **state)
{
	struct bench *b = bench_open();

	bench_post(b, 0, WR_SEND, 0, 8, 0);
	bench_wait(b, 1000000);
	bench_expect_no_wc(b->pair.send_cq[0]);
	assert_int_equal(state_of(b, 0), QPS_RTS);
	bench_close(b);
}

/* A peer whose program posts no receive for a long time, behind a wire that
 * loses packets now and then, is not taken for dead. */
static void requester__rnr_for_long_on_a_bad_wire(void **state)
{
	for (unsigned lose = 50; lose <= 200; lose += 50) {
		struct bench *b = bench_open();

		b->sim.tap = NULL; /* the run exceeds the log */
		b->sim.wire.lose = lose;
		bench_post(b, 0, WR_SEND, 0, 8, 0);
		bench_wait(b, 8000000);
		bench_expect_no_wc(b->pair.send_cq[0]);
		bench_post_recv(b, 1, 0, 0, 64);
		bench_wait(b, 1000000);
		bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
		bench_close(b);
	}
}

/* Loss. */

static bool lose_third(struct bench *b, unsigned from,
		       const struct vb_ib_pkt *pkt)
{
	uint32_t third = vb_psn_add(b->attr.sq_psn, 2);

	return from == 0 && pkt->bth.psn == third && !b->lost;
}

static void requester__goes_back_to_what_was_lost(void **state)
{
	struct bench *b = bench_open();

	b->lose = lose_third;
	bench_post(b, 0, WR_WRITE, 0, 10 * MTU, 0);
	bench_wait(b, 100);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	assert_memory_equal(b->mem[0], b->mem[1], 10 * MTU);
	assert_int_equal(counter(b, 0, CNT_RCVD_SEQ_ERR), 1);
	assert_int_equal(counter(b, 0, CNT_RETRANSMITS), 8);
	bench_close(b);
}

/* A network that duplicates NAKs does not multiply retransmissions. */
static void requester__one_loss_is_repaired_once(void **state)
{
	struct bench *b = open_alone();

	bench_post(b, 0, WR_WRITE, 0, 10 * MTU, 0);
	bench_wait(b, 10);
	for (int i = 0; i < 5; i++)
		inject_aeth(b, VB_SYN_NAK_PSN, 2);
	assert_int_equal(counter(b, 0, CNT_RETRANSMITS), 8);
	inject_aeth(b, VB_SYN_NAK_PSN, 3);
	assert_int_equal(counter(b, 0, CNT_RETRANSMITS), 8 + 7);
	bench_close(b);
}

static bool lose_third_answer(struct bench *b, unsigned from,
			      const struct vb_ib_pkt *pkt)
{
	return lose_third(b, !from, pkt);
}

static void requester__a_read_goes_on_where_it_broke(void **state)
{
	struct bench *b = bench_open();
	const struct vb_ib_pkt *pkt = NULL;

	b->lose = lose_third_answer;
	bench_post(b, 0, WR_READ, 0, 10 * MTU, 0);
	bench_wait(b, 100);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	assert_memory_equal(b->mem[0], b->mem[1], 10 * MTU);
	for (int i = 0; i < 2; i++)
		pkt = bench_next(b, 0);
	assert_non_null(pkt);
	assert_int_equal(pkt->bth.opcode, CODE_READ_REQUEST);
	assert_int_equal(pkt->bth.psn, vb_psn_add(b->attr.sq_psn, 2));
	assert_true(pkt->reth.va == (uintptr_t)b->mem[1] + 2 * MTU);
	assert_int_equal(pkt->reth.length, 8 * MTU);
	bench_expect_silence(b, 0);
	bench_close(b);
}

/* While responses arrive, the missing ones are requested only once. */
static void requester__answers_put_off_the_probe(void **state)
{
	struct bench *b = open_alone();

	bench_post(b, 0, WR_READ, 0, 10 * MTU, 0);
	bench_wait(b, 10);
	for (int i = 1; i < 9; i++) {
		struct vb_ib_pkt pkt =
			bench_response(b, CODE_READ_RESP_MIDDLE, i, VB_SYN_ACK);

		bench_inject(b, 0, &pkt, MTU, 1);
		bench_wait(b, 6000);
	}
	assert_int_equal(bench_count(b, 0, CODE_READ_REQUEST), 2);
	bench_wait(b, 6000);
	assert_int_equal(bench_count(b, 0, CODE_READ_REQUEST), 3);
	bench_close(b);
}

static void requester__an_ack_does_not_complete_a_read(void **state)
{
	struct bench *b = open_alone();

	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	bench_post(b, 0, WR_READ, 0, 8, 0);
	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	bench_wait(b, 10);
	inject_aeth(b, VB_SYN_ACK, 2);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	bench_expect_no_wc(b->pair.send_cq[0]);
	/* The ACK shows that the response was lost. */
	assert_int_equal(bench_count(b, 0, CODE_READ_REQUEST), 2);
	bench_close(b);
}

static void requester__an_answer_acknowledges_what_is_before(void **state)
{
	struct bench *b = open_alone();
	struct vb_ib_pkt pkt;

	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	bench_post(b, 0, WR_FETCH_ADD, 64, 8, 0);
	bench_wait(b, 10);
	pkt = bench_response(b, CODE_ATOMIC_ACK, 1, VB_SYN_ACK);
	pkt.atomic_ack = 0x1122334455667788;
	bench_inject(b, 0, &pkt, 0, 0);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	bench_expect_wc(b->pair.send_cq[0], 1, WC_SUCCESS);
	assert_memory_equal(b->mem[0] + 64, &pkt.atomic_ack, 8);
	bench_close(b);
}

/* A peer that was merely slow acknowledges the oldest packet and then the
 * others; a peer that lost the oldest has dropped the others. */
static void requester__a_probe_acknowledged_may_be_slowness(void **state)
{
	for (int slow = 0; slow < 2; slow++) {
		struct bench *b = open_alone();

		for (int i = 0; i < 4; i++)
			bench_post(b, 0, WR_WRITE, 0, 8, 0);
		bench_wait(b, 11000);
		assert_int_equal(counter(b, 0, CNT_RETRANSMITS), 1);
		inject_aeth(b, VB_SYN_ACK, 0);
		for (int i = 1; slow && i < 4; i++)
			inject_aeth(b, VB_SYN_ACK, i);
		bench_wait(b, 1000);
		assert_int_equal(counter(b, 0, CNT_RETRANSMITS),
				 slow ? 1 : 1 + 3);
		bench_close(b);
	}
}

/* Limits. */

static void requester__no_more_reads_than_max_rd_atomic(void **state)
{
	struct bench *b = open_alone();
	struct vb_ib_pkt pkt;

	for (int i = 0; i < 8; i++)
		bench_post(b, 0, i & 1 ? WR_READ : WR_FETCH_ADD, 0, 8, 0);
	bench_wait(b, 10);
	assert_int_equal(b->logged, sim_attr.max_rd_atomic);
	pkt = bench_response(b, CODE_ATOMIC_ACK, 0, VB_SYN_ACK);
	bench_inject(b, 0, &pkt, 0, 0);
	assert_int_equal(b->logged, sim_attr.max_rd_atomic + 1);
	bench_close(b);
}

static void requester__a_long_read_is_asked_for_in_pieces(void **state)
{
	struct bench *b = bench_open();
	const struct vb_ib_pkt *pkt;
	uint32_t psn = b->attr.sq_psn, done = 0;

	bench_post(b, 0, WR_READ, 0, BENCH_MEM, 0);
	bench_wait(b, 10000);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	assert_memory_equal(b->mem[0], b->mem[1], BENCH_MEM);
	while ((pkt = bench_next(b, 0))) {
		assert_int_equal(pkt->bth.psn, psn);
		assert_true(pkt->reth.va == (uintptr_t)b->mem[1] + done);
		assert_true(pkt->reth.length <= 256u << 10);
		done += pkt->reth.length;
		psn = vb_psn_add(psn, pkt->reth.length / MTU);
	}
	assert_int_equal(done, BENCH_MEM);
	assert_int_equal(counter(b, 0, CNT_RETRANSMITS), 0);
	bench_close(b);
}

/* Packets in flight stay within the window, and the last one allowed carries
 * AckReq. */
static void requester__keeps_within_the_window(void **state)
{
	struct bench *b = open_alone();
	uint32_t first = 0;

	bench_post(b, 0, WR_WRITE, 0, BENCH_MEM, 0);
	for (int round = 0; round < 6; round++) {
		uint32_t sent;

		bench_wait(b, 10);
		sent = b->logged;
		assert_true((sent - first) * MTU <= 512u << 10);
		assert_true(b->log[sent - 1].pkt.bth.ack_req);
		inject_aeth(b, VB_SYN_ACK, (int)sent - 1);
		assert_true(b->logged > sent || sent == BENCH_MEM / MTU);
		first = sent;
	}
	assert_int_equal(counter(b, 0, CNT_RETRANSMITS), 0);
	bench_close(b);
}

static void requester__asks_for_acks_often_enough(void **state)
{
	struct bench *b = bench_open();
	unsigned since = 0;

	bench_post(b, 0, WR_WRITE, 0, BENCH_MEM, 0);
	bench_wait(b, 10000);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	for (unsigned i = 0; i < b->logged; i++) {
		if (b->log[i].from == 1)
			continue;
		since = b->log[i].pkt.bth.ack_req ? 0 : since + 1;
		assert_true(since < 32);
	}
	assert_int_equal(since, 0);
	bench_close(b);
}

static void requester__fence_waits_for_reads(void **state)
{
	struct bench *b = open_alone();
	struct vb_ib_pkt pkt;

	bench_post(b, 0, WR_READ, 0, 8, 0);
	bench_post(b, 0, WR_WRITE, 0, 8, SEND_FENCE);
	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	bench_wait(b, 10);
	assert_int_equal(b->logged, 1);
	pkt = bench_response(b, CODE_READ_RESP_ONLY, 0, VB_SYN_ACK);
	bench_inject(b, 0, &pkt, 8, 0x5a);
	assert_int_equal(b->logged, 3);
	bench_close(b);
}

static void requester__headers_are_right(void **state)
{
	struct bench *b = bench_open();
	const struct vb_ib_pkt *pkt;

	bench_post_recv(b, 1, 0, 0, 4 * MTU);
	bench_post(b, 0, WR_SEND_IMM, 0, MTU + 3, SEND_SOLICITED);
	bench_wait(b, 20);
	pkt = bench_next(b, 0);
	assert_int_equal(pkt->bth.opcode, CODE_SEND_FIRST);
	assert_int_equal(pkt->bth.pkey, 0xffff);
	assert_true(pkt->bth.migrated);
	assert_false(pkt->bth.solicited);
	assert_false(pkt->bth.ack_req);
	assert_int_equal(pkt->bth.dqpn, b->pair.qp[1]->qpn);
	pkt = bench_next(b, 0);
	assert_int_equal(pkt->bth.opcode, CODE_SEND_LAST_IMM);
	assert_true(pkt->bth.solicited);
	assert_true(pkt->bth.ack_req);
	assert_int_equal(pkt->bth.pad, 1);
	bench_close(b);
}

/* States. */

/* Runs of small messages. */

static void post_piece(struct bench *b, uint32_t lkey, uint32_t at,
		       uint32_t len, uint8_t op, uint8_t flags)
{
	struct vb_qp *qp = b->pair.qp[0];
	struct vb_sge sge = { (uintptr_t)b->mem[0] + at, len, lkey };
	struct vb_send_wqe wqe = {
		.wr_id = atomic_load(&qp->sq.posted),
		.op = op,
		.flags = flags,
		.length = len,
		.num_sge = 1,
		.remote_addr = (uintptr_t)b->mem[1] + at,
		.rkey = b->mr[1]->key,
	};

	if (flags & SEND_INLINE)
		sim_post_inline(qp, &wqe, b->mem[0] + at);
	else
		sim_post_send(qp, &wqe, &sge);
}

static uint32_t unsent(const struct bench *b)
{
	const struct vb_qp *qp = b->pair.qp[0];

	return vb_sq_end(&qp->sq) - vb_rc(qp)->req.cur;
}

static void post_write(struct bench *b, uint32_t len, uint8_t flags)
{
	post_piece(b, b->mr[0]->key, 0, len, WR_WRITE, flags);
	sim_drive(&b->sim);
}

/* A batch ends at 64 messages, or at the next signaled one; of longer messages,
 * at as many packets as are in flight. */
static void requester__small_messages_gather(void **state)
{
	static const struct {
		uint32_t len, signal_every, leave, under_way;
		bool sig_all;
	} rows[] = {
		{ 8, 1, 64, 8, false },	       { 8, 100, 100, 8, false },
		{ 8, 1000, 128, 8, false },    { 8, 1000, 64, 8, true },
		{ 256, 16, 64, 8, false },     { 256, 40, 80, 8, false },
		{ 2000, 1000, 66, 8, false },  { 2048, 1000, 8, 8, false },
		{ 2048, 1000, 12, 24, false }, { 15000, 1000, 2, 8, false },
		{ 20000, 1000, 1, 8, false },
	};
	struct sim_caps caps = sim_caps;

	caps.wr = 256;
	caps.cqe = 1024;
	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct bench *b = bench_open_as(&sim_attr, &caps);

		b->pair.qp[0]->sq.sig_all = rows[i].sig_all;
		post_write(b, 8, 0); /* to learn the round trip */
		bench_wait(b, 1000);
		for (unsigned n = 0; n < 7; n++)
			post_write(b, 8, 0);
		post_write(b, (rows[i].under_way - 7) * MTU, 0);
		for (uint32_t n = 1; n <= rows[i].leave; n++) {
			assert_int_equal(unsent(b), n - 1);
			post_write(b, rows[i].len,
				   n % rows[i].signal_every ? 0
							    : SEND_SIGNALED);
		}
		assert_true(unsent(b) < rows[i].leave);
		bench_close(b);
	}
}

static unsigned us_until_done(struct bench *b)
{
	unsigned us = 0;

	while (b->pair.qp[0]->sq.done != vb_sq_end(&b->pair.qp[0]->sq)) {
		bench_wait(b, 1);
		assert_true(++us < 100000);
	}
	return us;
}

/* A long message that the window has cut, and a short one behind it. */
static void requester__a_short_one_holds_up_nothing(void **state)
{
	unsigned us[2];

	for (unsigned i = 0; i < 2; i++) {
		struct bench *b = bench_open();

		b->sim.wire = (struct sim_wire){ .delay = 20 * VB_USEC,
						 .pace = VB_USEC };
		post_write(b, 8, 0);
		bench_wait(b, 1000);
		post_write(b, BENCH_MEM, 0);
		if (i)
			post_write(b, 8, 0);
		us[i] = us_until_done(b);
		bench_close(b);
	}
	assert_true(us[1] <= us[0] + us[0] / 20);
}

/* Operation, length and key change from one message to the next. */
static void requester__a_run_is_what_each_would_be(void **state)
{
	static const uint32_t lens[] = { 1, 64, 3, 0, MTU, 8, 31, 200, 5 };
	static const uint8_t ops[] = { WR_WRITE, WR_WRITE, WR_SEND, WR_WRITE,
				       WR_WRITE_IMM };
	static const uint8_t flags[] = { 0, SEND_INLINE, SEND_SOLICITED,
					 SEND_FENCE };
	struct bench *b = bench_open();
	struct vb_mr *inner;
	uint32_t at = 0;
	struct vb_cqe e;

	for (uint32_t i = 0; i < BENCH_MEM; i++)
		b->mem[0][i] = (uint8_t)(i * 7 + i / 251);
	assert_int_equal(vb_mr_register(b->sim.side[0].pd, b->mem[0] + 100,
					BENCH_MEM - 100,
					(uintptr_t)b->mem[0] + 100, 0, &inner),
			 0);
	for (unsigned i = 0; i < 48; i++)
		bench_post_recv(b, 1, i, BENCH_MEM - 4096, 4096);
	for (unsigned i = 0; i < 48; i++) {
		uint32_t len = lens[i % VB_COUNT(lens)];
		uint8_t flag = flags[i % VB_COUNT(flags)];

		if (len > 64)
			flag &= (uint8_t)~SEND_INLINE;
		post_piece(b, at >= 100 && i % 3 ? inner->key : b->mr[0]->key,
			   at, len, ops[i % VB_COUNT(ops)],
			   flag | SEND_SIGNALED);
		at += len;
	}
	bench_wait(b, 1000);
	for (unsigned i = 0; i < 48; i++)
		bench_expect_wc(b->pair.send_cq[0], i, WC_SUCCESS);
	/* Everything but the SENDs went to the same place. */
	at = 0;
	for (unsigned i = 0; i < 48; i++) {
		uint32_t len = lens[i % VB_COUNT(lens)];
		const struct vb_ib_pkt *pkt = bench_next(b, 0);

		assert_non_null(pkt);
		assert_true(pkt->bth.ack_req);
		assert_int_equal(pkt->bth.psn, vb_psn_add(b->attr.sq_psn, i));
		assert_int_equal(pkt->bth.pad, -len & 3);
		assert_int_equal(pkt->bth.solicited,
				 flags[i % VB_COUNT(flags)] == SEND_SOLICITED &&
					 ops[i % VB_COUNT(ops)] != WR_WRITE);
		if (ops[i % VB_COUNT(ops)] != WR_SEND)
			assert_memory_equal(b->mem[0] + at, b->mem[1] + at,
					    len);
		at += len;
	}
	while (sim_poll(b->pair.recv_cq[1], &e))
		assert_int_equal(e.status, WC_SUCCESS);
	assert_int_equal(vb_mr_deregister(inner), 0);
	bench_close(b);
}

/* The message with the wrong key ends the run after all earlier ones. */
static void requester__a_bad_key_in_a_run(void **state)
{
	for (unsigned bad = 0; bad < 4; bad++) {
		struct bench *b = bench_open();
		struct vb_mr *mr;
		uint32_t key;

		assert_int_equal(vb_mr_register(b->sim.side[0].pd, b->mem[0],
						64, (uintptr_t)b->mem[0], 0,
						&mr),
				 0);
		key = mr->key;
		for (unsigned i = 0; i < 6; i++)
			post_piece(b,
				   i == 3 ? bad == 0   ? 0
					    : bad == 1 ? NOT_OUR_KEY
						       : key
					  : b->mr[0]->key,
				   i == 3 && bad == 2 ? 60 : 8 * i, 8, WR_WRITE,
				   SEND_SIGNALED);
		if (bad == 3) /* the key was valid when posted */
			assert_int_equal(vb_mr_deregister(mr), 0);
		bench_wait(b, 100);
		for (unsigned i = 0; i < 3; i++)
			bench_expect_wc(b->pair.send_cq[0], i, WC_SUCCESS);
		bench_expect_wc(b->pair.send_cq[0], 3, WC_LOC_PROT_ERR);
		bench_expect_wc(b->pair.send_cq[0], 4, WC_FLUSH_ERR);
		assert_int_equal(bench_count(b, 0, CODE_WRITE_ONLY), 3);
		if (bad != 3)
			assert_int_equal(vb_mr_deregister(mr), 0);
		bench_close(b);
	}
}

static void requester__sqd_finishes_what_has_begun(void **state)
{
	struct bench *b = open_alone();
	struct vb_qp_attr attr = { .sqd_async_notify = true };

	bench_post(b, 0, WR_WRITE, 0, BENCH_MEM / 2, 0);
	bench_wait(b, 10);
	sim_modify(&b->sim, b->pair.qp[0], QPS_SQD, QPM_EN_SQD_ASYNC_NOTIFY,
		   &attr);
	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	assert_int_equal(sim_event(&b->sim, 0), -1);
	b->lose = NULL;
	bench_wait(b, 100000);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	bench_expect_no_wc(b->pair.send_cq[0]);
	assert_int_equal(sim_event(&b->sim, 0), EVENT_SQ_DRAINED);
	assert_int_equal(sim_event(&b->sim, 0), -1);
	vb_qp_query(b->pair.qp[0], &attr);
	assert_false(attr.sq_draining);
	sim_modify(&b->sim, b->pair.qp[0], QPS_RTS, 0, NULL);
	bench_wait(b, 100);
	bench_expect_wc(b->pair.send_cq[0], 1, WC_SUCCESS);
	bench_close(b);
}

static void requester__sqd_with_nothing_begun_is_drained_at_once(void **state)
{
	struct bench *b = bench_open();
	struct vb_qp_attr attr = { .sqd_async_notify = true };

	sim_modify(&b->sim, b->pair.qp[0], QPS_SQD, QPM_EN_SQD_ASYNC_NOTIFY,
		   &attr);
	assert_int_equal(sim_event(&b->sim, 0), EVENT_SQ_DRAINED);
	bench_close(b);
}

/* A new path in SQD; the interface's MTU has shrunk meanwhile. */
static void requester__packets_keep_their_size(void **state)
{
	struct bench *b = open_alone();
	struct vb_port_update news = { .up = true, .mtu = 600, .count = 1 };
	struct vb_qp_attr attr;

	bench_post(b, 0, WR_WRITE, 0, BENCH_MEM / 2, 0);
	bench_wait(b, 10);
	news.addresses[0] = b->pair.qp[0]->route.sgid;
	vb_port_update(&b->sim.side[0].adapter.port, &news);
	sim_modify(&b->sim, b->pair.qp[0], QPS_SQD, 0, NULL);
	vb_qp_query(b->pair.qp[0], &attr);
	sim_modify(&b->sim, b->pair.qp[0], QPS_SQD, QPM_AV, &attr);
	b->lose = NULL;
	bench_wait(b, 100000);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	assert_memory_equal(b->mem[0], b->mem[1], BENCH_MEM / 2);
	bench_close(b);
}

static void requester__err_flushes_all(void **state)
{
	struct bench *b = open_alone();

	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	bench_post_recv(b, 0, 9, 0, 8);
	bench_wait(b, 10);
	sim_modify(&b->sim, b->pair.qp[0], QPS_ERR, 0, NULL);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_FLUSH_ERR);
	bench_expect_wc(b->pair.recv_cq[0], 9, WC_FLUSH_ERR);
	b->read = b->logged;
	bench_post_recv(b, 0, 10, 0, 8);
	bench_wait(b, 1000000);
	bench_expect_wc(b->pair.recv_cq[0], 10, WC_FLUSH_ERR);
	bench_expect_silence(b, 0);
	bench_close(b);
}

static void requester__lives_again_after_reset(void **state)
{
	struct bench *b = bench_open();

	for (int life = 0; life < 3; life++) {
		b->lose = lose_all;
		bench_post(b, 0, WR_READ, 0, 9 * MTU, 0);
		bench_post_recv(b, 1, 3, 0, 8);
		bench_wait(b, 300);
		for (unsigned i = 0; i < SIM_SIDES; i++) {
			sim_modify(&b->sim, b->pair.qp[i], QPS_RESET, 0, NULL);
			bench_expect_no_wc(b->pair.send_cq[i]);
			bench_expect_no_wc(b->pair.recv_cq[i]);
			sim_to_rtr(&b->sim, &b->pair, i, &sim_attr);
			sim_to_rts(&b->sim, &b->pair, i, &sim_attr);
		}
		b->lose = NULL;
		memset(b->mem[0], 0, 9 * MTU);
		bench_post(b, 0, WR_READ, 0, 9 * MTU, 0);
		bench_wait(b, 300);
		bench_expect_wc(b->pair.send_cq[0], (uint64_t)life * 2 + 1,
				WC_SUCCESS);
		assert_memory_equal(b->mem[0], b->mem[1], 9 * MTU);
	}
	bench_close(b);
}

/* A completion queue that is too small ends the connection, and nothing
 * else. */
static void requester__completion_queue_overrun(void **state)
{
	struct sim_caps caps = sim_caps;
	struct bench *b;
	struct vb_cqe e;

	caps.cqe = 4;
	b = bench_open_as(&sim_attr, &caps);
	for (int i = 0; i < 12; i++)
		bench_post(b, 0, WR_WRITE, 0, 8, 0);
	bench_wait(b, 100);
	assert_int_equal(state_of(b, 0), QPS_ERR);
	for (int i = 0; i < 4; i++)
		bench_expect_wc(b->pair.send_cq[0], (uint64_t)i, WC_SUCCESS);
	assert_int_equal(vb_cq_poll(b->pair.send_cq[0], 1, &e), -5); /* -EIO */
	assert_int_equal(sim_event(&b->sim, 0), EVENT_CQ_ERR);
	assert_int_equal(sim_event(&b->sim, 0), EVENT_QP_FATAL);
	bench_close(b);
}

static void requester__atomic_write_on_a_bad_wire(void **state)
{
	struct bench *b = bench_open();
	struct vb_cqe e;

	b->sim.wire.lose = 1000;
	for (unsigned i = 0; i < 200; i++) {
		bench_post(b, 0, WR_ATOMIC_WRITE, 8 * i, 8, 0);
		bench_post(b, 0, WR_READ, 0x8000, 8, 0);
		bench_wait(b, 200000);
		for (unsigned n = 0; n < 2; n++) {
			assert_true(sim_poll(b->pair.send_cq[0], &e));
			assert_int_equal(e.status, WC_SUCCESS);
			assert_int_equal(e.opcode,
					 n ? WC_OP_READ : WC_OP_ATOMIC_WRITE);
		}
		assert_memory_equal(b->mem[1], b->mem[0] + 8 * i, 8);
		assert_memory_equal(b->mem[0] + 0x8000, b->mem[1], 8);
	}
	bench_close(b);
}

static void requester__atomic_write_of_another_length(void **state)
{
	static const uint32_t lengths[] = { 0, 4, 9, 16 };

	for (size_t i = 0; i < VB_COUNT(lengths); i++) {
		struct bench *b = bench_open();

		bench_post(b, 0, WR_ATOMIC_WRITE, 0, lengths[i], 0);
		bench_wait(b, 10);
		bench_expect_wc(b->pair.send_cq[0], 0, WC_LOC_LEN_ERR);
		bench_expect_silence(b, 0);
		bench_close(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requester__nak_codes_become_statuses),
		cmocka_unit_test(requester__nak_behind_a_lost_read),
		cmocka_unit_test(requester__ghosts_are_ignored),
		cmocka_unit_test(requester__answer_to_what_asked_for_none),
		cmocka_unit_test(requester__wrong_answers),
		cmocka_unit_test(requester__bad_lkey_waits_its_turn),
		cmocka_unit_test(requester__refuses_what_cannot_be),
		cmocka_unit_test(requester__atomic_needs_room_for_the_result),
		cmocka_unit_test(requester__read_into_a_region_that_went),
		cmocka_unit_test(requester__gives_up_after_retry_cnt),
		cmocka_unit_test(requester__no_timeout_never_gives_up),
		cmocka_unit_test(requester__a_probe_spares_the_timeout),
		cmocka_unit_test(requester__rnr_waits_as_told),
		cmocka_unit_test(requester__rnr_nak_then_sequence_nak),
		cmocka_unit_test(requester__gives_up_after_rnr_retry),
		cmocka_unit_test(requester__rnr_retry_7_is_without_end),
		cmocka_unit_test(requester__rnr_for_long_on_a_bad_wire),
		cmocka_unit_test(requester__goes_back_to_what_was_lost),
		cmocka_unit_test(requester__one_loss_is_repaired_once),
		cmocka_unit_test(requester__a_read_goes_on_where_it_broke),
		cmocka_unit_test(requester__answers_put_off_the_probe),
		cmocka_unit_test(requester__an_ack_does_not_complete_a_read),
		cmocka_unit_test(
			requester__an_answer_acknowledges_what_is_before),
		cmocka_unit_test(
			requester__a_probe_acknowledged_may_be_slowness),
		cmocka_unit_test(requester__no_more_reads_than_max_rd_atomic),
		cmocka_unit_test(requester__a_long_read_is_asked_for_in_pieces),
		cmocka_unit_test(requester__keeps_within_the_window),
		cmocka_unit_test(requester__asks_for_acks_often_enough),
		cmocka_unit_test(requester__fence_waits_for_reads),
		cmocka_unit_test(requester__headers_are_right),
		cmocka_unit_test(requester__small_messages_gather),
		cmocka_unit_test(requester__a_short_one_holds_up_nothing),
		cmocka_unit_test(requester__a_run_is_what_each_would_be),
		cmocka_unit_test(requester__a_bad_key_in_a_run),
		cmocka_unit_test(requester__sqd_finishes_what_has_begun),
		cmocka_unit_test(
			requester__sqd_with_nothing_begun_is_drained_at_once),
		cmocka_unit_test(requester__packets_keep_their_size),
		cmocka_unit_test(requester__err_flushes_all),
		cmocka_unit_test(requester__lives_again_after_reset),
		cmocka_unit_test(requester__completion_queue_overrun),
		cmocka_unit_test(requester__atomic_write_on_a_bad_wire),
		cmocka_unit_test(requester__atomic_write_of_another_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

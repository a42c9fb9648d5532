/* SPDX-License-Identifier: BSD-2-Clause */
/* The RC requester: errors, limits and states of a queue pair. */
#include "tests/protocol/rc_fixture.h"

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
	/* No packet of the SEND left, not even one with valid memory. */
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
		/* refused, because max_rd_atomic is 0 */
		{ WR_READ, 8, WC_LOC_QP_OP_ERR },
		{ WR_CMP_SWAP, 8, WC_LOC_QP_OP_ERR },
		{ WR_LOCAL_INV, 0, WC_MW_BIND_ERR },
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

/* A new path is set in SQD after the interface's MTU has become smaller: the
 * connection's packets keep their size. */
static void requester__packets_keep_their_size(void **state)
{
	struct bench *b = open_alone();
	struct vb_port_update update = { .up = true, .mtu = 600, .count = 1 };
	struct vb_qp_attr attr;

	bench_post(b, 0, WR_WRITE, 0, BENCH_MEM / 2, 0);
	bench_wait(b, 10);
	update.addresses[0] = b->pair.qp[0]->route.sgid;
	vb_port_update(&b->sim.side[0].adapter.ports[0], &update);
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

/* A completion queue that is too small ends the connection, and has no other
 * effect. */
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
	/* -5 is -EIO, the error of a completion queue that has overrun */
	assert_int_equal(vb_cq_poll(b->pair.send_cq[0], 1, &e), -5);
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
		cmocka_unit_test(requester__no_more_reads_than_max_rd_atomic),
		cmocka_unit_test(requester__a_long_read_is_asked_for_in_pieces),
		cmocka_unit_test(requester__keeps_within_the_window),
		cmocka_unit_test(requester__asks_for_acks_often_enough),
		cmocka_unit_test(requester__fence_waits_for_reads),
		cmocka_unit_test(requester__headers_are_right),
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

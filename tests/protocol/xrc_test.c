/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC on the wire (IBA annex A14): side 0 is the initiator, side 1 the target,
 * which has a second domain and a second protection domain.
 */
#include "tests/protocol/xrc_fixture.h"

static void send__to_the_queue_that_it_names(void **state)
{
	struct xrc t;
	struct vb_cqe e;

	open_xrc(&t);
	bench_post_recv(t.b, 1, 7, 0, 4096);
	post_recv(&t, 8, 8192, 4096);
	post(&t, 0, WR_SEND_IMM, 100, 0, 3000);
	bench_post(t.b, 0, WR_SEND, 5000, 2000, 0);
	bench_wait(t.b, 1000);
	bench_expect_wc(t.b->pair.send_cq[0], 0, WC_SUCCESS);
	bench_expect_wc(t.b->pair.send_cq[0], 1, WC_SUCCESS);
	assert_true(sim_poll(t.cq, &e));
	assert_int_equal(e.wr_id, 8);
	assert_int_equal(e.status, WC_SUCCESS);
	assert_int_equal(e.byte_len, 3000);
	assert_int_equal(e.imm, 0x11223344);
	assert_int_equal(e.wc_flags, WC_WITH_IMM);
	assert_int_equal(e.qpn, atomic_load(&t.b->pair.qp[1]->qpn));
	assert_int_equal(e.src_qp, atomic_load(&t.b->pair.qp[0]->qpn));
	assert_true(sim_poll(t.b->pair.recv_cq[1], &e));
	assert_int_equal(e.wr_id, 7);
	assert_int_equal(e.byte_len, 2000);
	assert_memory_equal(t.b->mem[1] + 8192, t.b->mem[0] + 100, 3000);
	assert_memory_equal(t.b->mem[1], t.b->mem[0] + 5000, 2000);
	close_xrc(&t);
}

/* Each request packet carries the number of the SRQ, and no response does (IBA
 * annex A14). */
static void wire__has_the_class_and_the_queue(void **state)
{
	static const enum vb_wr_op ops[] = { WR_WRITE, WR_READ, WR_FETCH_ADD };
	struct xrc t;

	open_xrc(&t);
	for (unsigned i = 0; i < VB_COUNT(ops); i++)
		post(&t, i, ops[i], 64 * i, 64 * i, 8);
	bench_wait(t.b, 1000);
	for (unsigned i = 0; i < t.b->logged; i++) {
		const struct bench_packet *p = &t.b->log[i];

		assert_int_equal(p->pkt.bth.opcode >> 5, CLASS_XRC);
		assert_int_equal(p->pkt.xrc_srqn, p->from ? 0 : t.srq->number);
	}
	for (unsigned i = 0; i < VB_COUNT(ops); i++)
		bench_expect_wc(t.b->pair.send_cq[0], i, WC_SUCCESS);
	close_xrc(&t);
}

static void rnr__the_named_queue_is_empty(void **state)
{
	struct xrc t;

	open_xrc(&t);
	/* This RECV of the bench's own SRQ must stay unused. */
	bench_post_recv(t.b, 1, 7, 0, 4096);
	post(&t, 0, WR_SEND, 0, 0, 100);
	bench_wait(t.b, 100);
	bench_expect_aeth(t.b, 1, VB_SYN_RNR | 12, 0);
	post_recv(&t, 8, 8192, 4096);
	bench_wait(t.b, 20000);
	bench_expect_wc(t.cq, 8, WC_SUCCESS);
	bench_expect_wc(t.b->pair.send_cq[0], 0, WC_SUCCESS);
	bench_expect_no_wc(t.b->pair.recv_cq[1]);
	close_xrc(&t);
}

static void limit__raises_its_event(void **state)
{
	struct xrc t;

	open_xrc(&t);
	for (unsigned i = 0; i < 3; i++)
		post_recv(&t, i, 8192, 4096);
	vb_srq_set_limit(t.srq, 2);
	post(&t, 0, WR_SEND, 0, 0, 100);
	post(&t, 1, WR_SEND, 0, 0, 100);
	bench_wait(t.b, 1000);
	assert_int_equal(sim_event(&t.b->sim, 1), EVENT_SRQ_LIMIT);
	assert_int_equal(sim_event(&t.b->sim, 1), -1);
	close_xrc(&t);
}

/* Every operation to two SRQs in turn, on a wire that loses, duplicates and
 * reorders packets: memory and completions are as on a perfect wire. */
static void data__on_a_bad_wire(void **state)
{
	static const enum vb_wr_op ops[] = { WR_SEND,	   WR_WRITE,
					     WR_READ,	   WR_SEND_IMM,
					     WR_FETCH_ADD, WR_WRITE_IMM };
	enum { ROUNDS = 12, STEP = 8192 };
	struct xrc t;
	uint64_t before;

	open_xrc(&t);
	t.b->sim.wire = (struct sim_wire){ .lose = 500,
					   .copy = 500,
					   .swap = 1000,
					   .delay = 5 * VB_USEC,
					   .jitter = 50 * VB_USEC };
	for (unsigned r = 0; r < ROUNDS; r++) {
		uint32_t base = 65536 + r * 6 * STEP, len = 1 + 700 * r;

		memcpy(&before, t.b->mem[1] + base + 4 * STEP, 8);
		post_recv(&t, 100, base, STEP);
		post_recv(&t, 101, base + 3 * STEP, STEP);
		post_recv(&t, 102, 0, 0);
		bench_post_recv(t.b, 1, 7, 0, 4096);
		for (unsigned i = 0; i < VB_COUNT(ops); i++)
			post(&t, i, ops[i], base + i * STEP, base + i * STEP,
			     ops[i] == WR_FETCH_ADD ? 8 : len);
		bench_post(t.b, 0, WR_SEND, 200, 4000, 0);
		bench_wait(t.b, 2000000);
		t.b->logged = t.b->read = 0;
		for (unsigned i = 0; i < VB_COUNT(ops); i++) {
			struct vb_cqe e;

			assert_true(sim_poll(t.b->pair.send_cq[0], &e));
			assert_int_equal(e.wr_id, i);
			assert_int_equal(e.status, WC_SUCCESS);
			if (ops[i] == WR_FETCH_ADD)
				assert_memory_equal(
					&before, t.b->mem[0] + base + i * STEP,
					8);
			else
				assert_memory_equal(
					t.b->mem[0] + base + i * STEP,
					t.b->mem[1] + base + i * STEP, len);
		}
		before++;
		assert_memory_equal(&before, t.b->mem[1] + base + 4 * STEP, 8);
		assert_true(
			sim_poll(t.b->pair.send_cq[0], &(struct vb_cqe){ 0 }));
		for (unsigned i = 0; i < 3; i++)
			bench_expect_wc(t.cq, 100 + i, WC_SUCCESS);
		bench_expect_wc(t.b->pair.recv_cq[1], 7, WC_SUCCESS);
		assert_memory_equal(t.b->mem[1], t.b->mem[0] + 200, 4000);
	}
	assert_true(t.b->sim.sent > 100);
	close_xrc(&t);
}

/* SENDs to several SRQs go between the responses to READs. */
static void read__answers_by_the_queue_of_its_request(void **state)
{
	struct xrc t;

	open_xrc(&t);
	post_recv(&t, 8, 8192, 65536);
	post(&t, 0, WR_READ, 400000, 300000, 60000);
	bench_post(t.b, 0, WR_READ, 500000, 50000, 0);
	post(&t, 2, WR_SEND, 0, 0, 60000);
	bench_wait(t.b, 20000);
	for (unsigned i = 0; i < 3; i++)
		bench_expect_wc(t.b->pair.send_cq[0], i, WC_SUCCESS);
	assert_memory_equal(t.b->mem[0] + 400000, t.b->mem[1] + 300000, 60000);
	assert_memory_equal(t.b->mem[0] + 500000, t.b->mem[1], 8192);
	bench_expect_wc(t.cq, 8, WC_SUCCESS);
	close_xrc(&t);
}

/* Expect a NAK with @syndrome, and the event @event at side 1. */

static void expect_refused(struct xrc *t, uint8_t syndrome, int event)
{
	bench_expect_aeth(t->b, 1, syndrome, 0);
	assert_int_equal(atomic_load(&t->b->pair.qp[1]->state), QPS_ERR);
	assert_int_equal(sim_event(&t->b->sim, 1), event);
	bench_expect_no_wc(t->cq);
	bench_expect_no_wc(t->b->pair.recv_cq[1]);
}

/* Each kind of request to each SRQ that it must not reach is refused. */
static void fault__no_such_queue_or_anothers(void **state)
{
	static const uint8_t codes[] = { CODE_SEND_ONLY, CODE_SEND_FIRST,
					 CODE_WRITE_ONLY, CODE_READ_REQUEST,
					 CODE_FETCH_ADD };

	for (unsigned i = 0; i < 2 * VB_COUNT(codes); i++) {
		struct xrc t;
		struct vb_ib_pkt pkt;
		uint8_t code = codes[i / 2];
		bool data = code != CODE_READ_REQUEST && code != CODE_FETCH_ADD;
		uint32_t len = code == CODE_SEND_FIRST ? 1024 : data ? 8 : 0;

		open_xrc(&t);
		post_recv(&t, 8, 8192, 4096);
		pkt = bench_request(t.b, code, 0);
		pkt.reth.length = 8;
		pkt.xrc_srqn =
			i & 1 ? t.strange->number : t.strange->number ^ 0x2000;
		bench_inject(t.b, 1, &pkt, len, 1);
		expect_refused(&t, VB_SYN_NAK_INVALID, EVENT_QP_REQ_ERR);
		close_xrc(&t);
	}
}

/* When the target detects a fault, the initiator's program gets the status of
 * that fault. */
static void fault__the_initiator_hears(void **state)
{
	struct xrc t;

	open_xrc(&t);
	post(&t, 0, WR_SEND, 0, 0, 100);
	vb_sq_at(&t.b->pair.qp[0]->sq, 0)->srqn = t.strange->number;
	post(&t, 1, WR_SEND, 0, 0, 100);
	bench_wait(t.b, 1000);
	bench_expect_wc(t.b->pair.send_cq[0], 0, WC_REM_INV_REQ_ERR);
	bench_expect_wc(t.b->pair.send_cq[0], 1, WC_FLUSH_ERR);
	close_xrc(&t);
}

/* The request's key is valid in another protection domain than the SRQ's. */
static void fault__the_queues_protection_domain_counts(void **state)
{
	static const enum vb_wr_op ops[] = { WR_WRITE, WR_READ, WR_FETCH_ADD };

	for (unsigned i = 0; i < VB_COUNT(ops); i++) {
		struct xrc t;
		struct vb_send_wqe *wqe;

		open_xrc(&t);
		post(&t, 0, ops[i], 0, 0, 8);
		wqe = vb_sq_at(&t.b->pair.qp[0]->sq, 0);
		wqe->rkey = t.b->mr[1]->key;
		bench_wait(t.b, 1000);
		expect_refused(&t, VB_SYN_NAK_ACCESS, EVENT_QP_ACCESS_ERR);
		bench_expect_wc(t.b->pair.send_cq[0], 0, WC_REM_ACCESS_ERR);
		close_xrc(&t);
	}
}

static void fault__receive_with_a_key_of_another_domain(void **state)
{
	struct xrc t;
	struct vb_sge sge;

	open_xrc(&t);
	sge = (struct vb_sge){ (uintptr_t)t.b->mem[1], 64, t.b->mr[1]->key };
	assert_int_equal(vb_rq_post(&t.srq->rq, 8, &sge, 1), 0);
	post(&t, 0, WR_SEND, 0, 0, 8);
	bench_wait(t.b, 1000);
	bench_expect_wc(t.cq, 8, WC_LOC_PROT_ERR);
	bench_expect_wc(t.b->pair.send_cq[0], 0, WC_REM_OP_ERR);
	close_xrc(&t);
}

static void fault__receive_too_small(void **state)
{
	struct xrc t;

	open_xrc(&t);
	post_recv(&t, 8, 0, 64);
	post(&t, 0, WR_SEND, 0, 0, 65);
	bench_wait(t.b, 1000);
	bench_expect_wc(t.cq, 8, WC_LOC_LEN_ERR);
	bench_expect_wc(t.b->pair.send_cq[0], 0, WC_REM_INV_REQ_ERR);
	close_xrc(&t);
}

/* All packets of a message must name one SRQ. Its receive completes in the SRQ
 * from which it was taken. */
static void fault__a_message_changes_its_queue(void **state)
{
	struct xrc t;
	struct vb_ib_pkt pkt;

	open_xrc(&t);
	post_recv(&t, 8, 8192, 4096);
	bench_post_recv(t.b, 1, 7, 0, 4096);
	pkt = bench_request(t.b, CODE_SEND_FIRST, 0);
	pkt.xrc_srqn = t.srq->number;
	bench_inject(t.b, 1, &pkt, 1024, 1);
	bench_expect_aeth(t.b, 1, VB_SYN_ACK, 0);
	pkt = bench_request(t.b, CODE_SEND_LAST, 1);
	bench_inject(t.b, 1, &pkt, 8, 1);
	bench_expect_aeth(t.b, 1, VB_SYN_NAK_INVALID, 1);
	bench_expect_wc(t.cq, 8, WC_REM_INV_REQ_ERR);
	bench_expect_no_wc(t.b->pair.recv_cq[1]);
	close_xrc(&t);
}

static void fault__the_queue_goes_in_the_middle(void **state)
{
	struct xrc t;
	struct vb_ib_pkt pkt;

	open_xrc(&t);
	post_recv(&t, 8, 8192, 4096);
	pkt = bench_request(t.b, CODE_SEND_FIRST, 0);
	pkt.xrc_srqn = t.srq->number;
	bench_inject(t.b, 1, &pkt, 1024, 1);
	bench_expect_aeth(t.b, 1, VB_SYN_ACK, 0);
	assert_int_equal(vb_srq_destroy(t.srq), 0);
	t.srq = NULL;
	pkt.bth = bench_request(t.b, CODE_SEND_LAST, 1).bth;
	bench_inject(t.b, 1, &pkt, 8, 1);
	bench_expect_aeth(t.b, 1, VB_SYN_NAK_INVALID, 1);
	bench_expect_no_wc(t.cq);
	close_xrc(&t);
}

/* The responses still wait to be sent when the SRQ is destroyed. */
static void fault__the_queue_goes_before_the_answer(void **state)
{
	struct xrc t;
	struct vb_ib_pkt pkt;

	open_xrc(&t);
	pkt = bench_request(t.b, CODE_READ_REQUEST, 0);
	pkt.xrc_srqn = t.srq->number;
	pkt.reth.rkey = t.mr->key;
	pkt.reth.length = 8;
	pkt.op = vb_ib_op(pkt.bth.opcode);
	vb_mutex_lock(&t.b->pair.qp[1]->drive);
	vb_transport_recv(t.b->pair.qp[1], &pkt, t.b->sim.now);
	vb_mutex_unlock(&t.b->pair.qp[1]->drive);
	assert_int_equal(vb_srq_destroy(t.srq), 0);
	t.srq = NULL;
	bench_wait(t.b, 10);
	bench_expect_aeth(t.b, 1, VB_SYN_NAK_INVALID, 0);
	assert_int_equal(atomic_load(&t.b->pair.qp[1]->state), QPS_ERR);
	close_xrc(&t);
}

/* The program moves the queue pair to ERR: the receive in progress is flushed
 * to its own SRQ, and the receives of other SRQs stay. */
static void err__flushes_the_message_under_way(void **state)
{
	struct xrc t;
	struct vb_ib_pkt pkt;

	open_xrc(&t);
	post_recv(&t, 8, 8192, 4096);
	post_recv(&t, 9, 8192, 4096);
	pkt = bench_request(t.b, CODE_SEND_FIRST, 0);
	pkt.xrc_srqn = t.srq->number;
	bench_inject(t.b, 1, &pkt, 1024, 1);
	sim_modify(&t.b->sim, t.b->pair.qp[1], QPS_ERR, 0, NULL);
	bench_expect_wc(t.cq, 8, WC_FLUSH_ERR);
	bench_expect_no_wc(t.cq);
	assert_int_equal(sim_event(&t.b->sim, 1), -1);
	close_xrc(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__to_the_queue_that_it_names),
		cmocka_unit_test(wire__has_the_class_and_the_queue),
		cmocka_unit_test(rnr__the_named_queue_is_empty),
		cmocka_unit_test(limit__raises_its_event),
		cmocka_unit_test(data__on_a_bad_wire),
		cmocka_unit_test(read__answers_by_the_queue_of_its_request),
		cmocka_unit_test(fault__no_such_queue_or_anothers),
		cmocka_unit_test(fault__the_initiator_hears),
		cmocka_unit_test(fault__the_queues_protection_domain_counts),
		cmocka_unit_test(fault__receive_with_a_key_of_another_domain),
		cmocka_unit_test(fault__receive_too_small),
		cmocka_unit_test(fault__a_message_changes_its_queue),
		cmocka_unit_test(fault__the_queue_goes_in_the_middle),
		cmocka_unit_test(fault__the_queue_goes_before_the_answer),
		cmocka_unit_test(err__flushes_the_message_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

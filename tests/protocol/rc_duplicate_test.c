/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder: duplicate requests, and the order of its answers. */
#include "tests/protocol/rc_fixture.h"

static void responder__duplicates_are_acked_with_the_newest(void **state)
{
	struct bench *b = bench_open();

	for (int i = 0; i < 3; i++)
		inject_code(b, CODE_WRITE_ONLY, i, 8, 8);
	bench_wait(b, 10);
	b->read = b->logged;
	memset(b->mem[1], 0, 8);
	inject_code(b, CODE_WRITE_ONLY, 1, 8, 8);
	bench_expect_aeth(b, 1, VB_SYN_ACK, 2);
	/* The responder does not execute the duplicate request again. */
	assert_int_equal(b->mem[1][0], 0);
	bench_post_recv(b, 1, 0, 0, 64);
	inject_code(b, CODE_SEND_ONLY, 0, 0, 8);
	bench_expect_aeth(b, 1, VB_SYN_ACK, 2);
	bench_expect_no_wc(b->pair.recv_cq[1]);
	bench_close(b);
}

static void receive(struct bench *b, const struct vb_ib_pkt *pkt)
{
	struct vb_qp *qp = b->pair.qp[1];

	vb_mutex_lock(&qp->drive);
	vb_transport_recv(qp, pkt, b->sim.now);
	vb_mutex_unlock(&qp->drive);
}

/* An ACK must not have the PSN of a READ or atomic: some peers would take it
 * for the completion of that request, without the data. */
static void responder__acks_never_name_what_is_answered(void **state)
{
	static const uint8_t codes[] = { CODE_READ_REQUEST, CODE_FETCH_ADD };

	for (unsigned i = 0; i < VB_COUNT(codes); i++) {
		struct bench *b = bench_open();

		inject_code(b, codes[i], 0, 8, 0);
		b->read = b->logged;
		inject_code(b, CODE_WRITE_ONLY, -1, 8, 8);
		bench_expect_aeth(b, 1, VB_SYN_ACK, -1);
		inject_code(b, CODE_WRITE_ONLY, 1, 8, 8);
		inject_code(b, codes[i], 2, 8, 0);
		b->read = b->logged;
		inject_code(b, CODE_WRITE_ONLY, 1, 8, 8);
		bench_expect_aeth(b, 1, VB_SYN_ACK, 1);
		bench_close(b);
	}
}

/* A repeated READ response acknowledges the WRITE before the READ, and not the
 * WRITE behind it. */
static void responder__repeats_acknowledge_what_is_before(void **state)
{
	static const struct {
		int write;
		bool acked;
	} rows[] = { { 0, false }, { 3, true } };

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct bench *b = bench_open();
		struct vb_ib_pkt read = bench_request(b, CODE_READ_REQUEST, 1);
		struct vb_ib_pkt write =
			bench_request(b, CODE_WRITE_ONLY, rows[i].write);

		read.reth.length = 8;
		for (int n = 0; n < 4; n++)
			inject_code(b,
				    n == rows[i].write ? CODE_WRITE_ONLY
						       : CODE_READ_REQUEST,
				    n, 8, n == rows[i].write ? 8 : 0);
		b->read = b->logged;
		receive(b, &write);
		receive(b, &read);
		bench_wait(b, 10);
		assert_int_equal(bench_next(b, 1)->bth.psn, read.bth.psn);
		if (rows[i].acked)
			bench_expect_aeth(b, 1, VB_SYN_ACK, 3);
		bench_expect_silence(b, 1);
		bench_close(b);
	}
}

static void expect_responses(struct bench *b, int nth, const uint8_t *codes,
			     unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const struct vb_ib_pkt *pkt = bench_next(b, 1);
		uint32_t psn = b->attr.rq_psn + (uint32_t)nth + i;

		assert_non_null(pkt);
		assert_int_equal(pkt->bth.opcode, codes[i]);
		assert_int_equal(pkt->bth.psn, psn & VB_PSN_MASK);
	}
	bench_expect_silence(b, 1);
}

static const uint8_t three[] = { CODE_READ_RESP_FIRST, CODE_READ_RESP_MIDDLE,
				 CODE_READ_RESP_LAST };
static const uint8_t two[] = { CODE_READ_RESP_FIRST, CODE_READ_RESP_LAST };

static void responder__reads_are_executed_again(void **state)
{
	struct bench *b = bench_open();
	struct vb_ib_pkt pkt = bench_request(b, CODE_READ_REQUEST, 0);

	pkt.reth.length = 2 * MTU + 8;
	bench_inject(b, 1, &pkt, 0, 0);
	expect_responses(b, 0, three, 3);
	bench_inject(b, 1, &pkt, 0, 0);
	expect_responses(b, 0, three, 3);
	/* Repeat the READ for all bytes behind its first packet. */
	pkt.bth.psn = vb_psn_add(pkt.bth.psn, 1);
	pkt.reth.va += MTU;
	pkt.reth.length -= MTU;
	bench_inject(b, 1, &pkt, 0, 0);
	expect_responses(b, 1, two, 2);
	/* A request is no duplicate of the READ if it is longer than the rest
	 * of the READ, has another key, or reads other memory. */
	pkt.reth.length += MTU;
	bench_inject(b, 1, &pkt, 0, 0);
	pkt.reth.length -= MTU;
	pkt.reth.rkey ^= 1;
	bench_inject(b, 1, &pkt, 0, 0);
	pkt.reth.rkey ^= 1;
	pkt.reth.va -= 2 * MTU;
	bench_inject(b, 1, &pkt, 0, 0);
	bench_expect_silence(b, 1);
	assert_int_equal(state_of(b, 1), QPS_RTS);
	bench_close(b);
}

static void responder__a_read_under_way_is_not_begun_again(void **state)
{
	struct bench *b = bench_open();
	struct vb_ib_pkt pkt = bench_request(b, CODE_READ_REQUEST, 0);

	pkt.reth.length = 2 * MTU + 8;
	receive(b, &pkt);
	pkt.bth.psn = vb_psn_add(pkt.bth.psn, 1);
	pkt.reth.va += MTU;
	pkt.reth.length -= MTU;
	receive(b, &pkt);
	bench_wait(b, 10);
	expect_responses(b, 0, three, 3);
	bench_close(b);
}

static void responder__forgotten_reads_are_dropped(void **state)
{
	struct bench *b = bench_open();

	for (int i = 0; i < 5; i++)
		inject_code(b, CODE_READ_REQUEST, i, 8, 0);
	b->read = b->logged;
	inject_code(b, CODE_READ_REQUEST, 0, 8, 0);
	bench_expect_silence(b, 1);
	inject_code(b, CODE_READ_REQUEST, 1, 8, 0);
	assert_int_equal(bench_next(b, 1)->bth.opcode, CODE_READ_RESP_ONLY);
	bench_close(b);
}

/* The responder cannot repeat a READ because its region is gone. If the
 * requester does not need that repetition, the connection must not end. */
static void responder__repeat_of_a_read_whose_region_is_gone(void **state)
{
	struct bench *b = bench_open();
	struct vb_ib_pkt pkt = bench_request(b, CODE_READ_REQUEST, 0);

	pkt.reth.length = 8;
	bench_inject(b, 1, &pkt, 0, 0);
	b->read = b->logged;
	assert_int_equal(vb_mr_deregister(b->mr[1]), 0);
	b->mr[1] = NULL;
	bench_inject(b, 1, &pkt, 0, 0);
	bench_expect_aeth(b, 1, VB_SYN_NAK_ACCESS, 0);
	assert_int_equal(state_of(b, 1), QPS_RTS);
	bench_close(b);
}

static void responder__atomics_are_replayed(void **state)
{
	struct bench *b = bench_open();
	struct vb_ib_pkt pkt = bench_request(b, CODE_FETCH_ADD, 0);
	const struct vb_ib_pkt *ack;
	uint64_t now, first = 40;

	memcpy(b->mem[1], &first, 8);
	pkt.atomic.swap_add = 2;
	for (int i = 0; i < 3; i++) {
		bench_inject(b, 1, &pkt, 0, 0);
		ack = bench_next(b, 1);
		assert_int_equal(ack->bth.opcode, CODE_ATOMIC_ACK);
		assert_int_equal(ack->bth.psn, pkt.bth.psn);
		assert_true(ack->atomic_ack == 40);
		memcpy(&now, b->mem[1], 8);
		assert_true(now == 42);
	}
	bench_close(b);
}

static void responder__ack_does_not_overtake_responses(void **state)
{
	struct bench *b = bench_open();
	struct vb_ib_pkt read = bench_request(b, CODE_READ_REQUEST, 0);
	struct vb_ib_pkt write = bench_request(b, CODE_WRITE_ONLY, 200);
	const struct vb_ib_pkt *pkt;

	/* the response has more packets than one batch */
	read.reth.length = 200 * MTU;
	vb_mutex_lock(&b->pair.qp[1]->drive);
	vb_transport_recv(b->pair.qp[1], &read, 0);
	vb_transport_recv(b->pair.qp[1], &write, 0);
	vb_mutex_unlock(&b->pair.qp[1]->drive);
	bench_wait(b, 10);
	for (int i = 0; i < 200; i++) {
		pkt = bench_next(b, 1);
		assert_int_equal(pkt->op->kind, KIND_READ_RESP);
		assert_int_equal(pkt->bth.psn,
				 vb_psn_add(b->attr.rq_psn, (uint32_t)i));
	}
	bench_expect_aeth(b, 1, VB_SYN_ACK, 200);
	bench_close(b);
}

/* Requests before the faulty one are answered before the NAK is sent, also when
 * the queue pair is in ERR. */
static void responder__answers_before_it_dies(void **state)
{
	struct bench *b = bench_open();
	struct vb_ib_pkt read = bench_request(b, CODE_READ_REQUEST, 0);
	struct vb_ib_pkt bad = bench_request(b, CODE_WRITE_ONLY, 100);

	read.reth.length = 100 * MTU;
	bad.reth.length = 5;
	vb_mutex_lock(&b->pair.qp[1]->drive);
	vb_transport_recv(b->pair.qp[1], &read, 0);
	vb_transport_recv(b->pair.qp[1], &bad, 0);
	vb_mutex_unlock(&b->pair.qp[1]->drive);
	assert_int_equal(state_of(b, 1), QPS_ERR);
	bench_wait(b, 10);
	for (int i = 0; i < 100; i++)
		assert_int_equal(bench_next(b, 1)->op->kind, KIND_READ_RESP);
	bench_expect_aeth(b, 1, VB_SYN_NAK_INVALID, 100);
	bench_wait(b, 10);
	bench_expect_silence(b, 1);
	bench_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			responder__duplicates_are_acked_with_the_newest),
		cmocka_unit_test(responder__acks_never_name_what_is_answered),
		cmocka_unit_test(responder__repeats_acknowledge_what_is_before),
		cmocka_unit_test(responder__reads_are_executed_again),
		cmocka_unit_test(
			responder__a_read_under_way_is_not_begun_again),
		cmocka_unit_test(responder__forgotten_reads_are_dropped),
		cmocka_unit_test(
			responder__repeat_of_a_read_whose_region_is_gone),
		cmocka_unit_test(responder__atomics_are_replayed),
		cmocka_unit_test(responder__ack_does_not_overtake_responses),
		cmocka_unit_test(responder__answers_before_it_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The RC requester: retries, timeouts and lost packets. */
#include "tests/protocol/rc_fixture.h"

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

/* The link holds back the frames that were sent. Then no timeout counts, and
 * nothing is sent again, for 10 s. If the link sends the frames in this time,
 * the request completes; if it never does, the retries end the request. */
static void requester__waits_for_a_link_that_is_stuck(void **state)
{
	struct vb_qp_attr attr = sim_attr;
	struct bench *b;

	attr.retry_cnt = 0;
	b = bench_open_as(&attr, &sim_caps);
	b->lose = lose_all;
	b->sim.side[0].carries_nothing = true;
	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	sim_run(&b->sim, b->sim.now + 9 * VB_SEC);
	bench_expect_no_wc(b->pair.send_cq[0]);
	assert_int_equal(b->logged, 1);
	assert_int_equal(counter(b, 0, CNT_TIMEOUTS), 0);
	b->lose = NULL;
	b->sim.side[0].carries_nothing = false;
	sim_run(&b->sim, b->sim.now + VB_SEC);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);

	b->lose = lose_all;
	b->sim.side[0].carries_nothing = true;
	bench_post(b, 0, WR_WRITE, 1, 8, 0);
	sim_run(&b->sim, b->sim.now + 9 * VB_SEC);
	bench_expect_no_wc(b->pair.send_cq[0]);
	sim_run(&b->sim, b->sim.now + 3 * VB_SEC);
	bench_expect_wc(b->pair.send_cq[0], 1, WC_RETRY_EXC_ERR);
	bench_close(b);
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
	/* The requester sends few packets, as its probes become rarer. */
	assert_true(b->logged < 300);
	b->lose = NULL;
	sim_run(&b->sim, b->sim.now + 20 * VB_SEC);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	bench_close(b);
}

/* The loss of the last packet, or of its ACK, costs milliseconds and no
 * retry. */
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
	/* The test itself plays the responder, as Linux rxe would answer. */
	struct bench *b = open_alone();

	bench_post(b, 0, WR_SEND, 0, 8, 0);
	bench_post(b, 0, WR_SEND, 0, 8, 0);
	bench_wait(b, 10);
	/* RNR NAK with the timer code for 1.28 ms */
	inject_aeth(b, VB_SYN_RNR | 14, 0);
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
 * loses packets now and then, is not considered dead. */
static void requester__rnr_for_long_on_a_bad_wire(void **state)
{
	for (unsigned lose = 50; lose <= 200; lose += 50) {
		struct bench *b = bench_open();

		/* Record no packets: the run has more than the log holds. */
		b->sim.tap = NULL;
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

/* While responses arrive, the requester asks for the missing ones only once. */
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
	/* The ACK of a later WRITE shows that the READ response was lost. */
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

/* A probe is acknowledged. A peer that was only slow acknowledges the oldest
 * packet and then the others; a peer that lost the oldest packet has dropped
 * the others. */
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

/* Memory that a program deregisters before its WRITE has completed. */

/* Start with three messages in flight and a probe sent: a WRITE, a WRITE from
 * separate memory, and @last with @bytes. */
static struct bench *open_probed(enum vb_wr_op last, uint32_t bytes,
				 struct vb_mr **mr)
{
	struct bench *b = open_alone();
	struct vb_sge sge = { (uintptr_t)b->mem[0], 8, 0 };
	struct vb_send_wqe wqe = {
		.wr_id = 1,
		.op = WR_WRITE,
		.flags = SEND_SIGNALED,
		.length = 8,
		.num_sge = 1,
		.remote_addr = (uintptr_t)b->mem[1],
		.rkey = b->mr[1]->key,
	};

	assert_int_equal(vb_mr_register(b->sim.side[0].pd, b->mem[0], 64,
					(uintptr_t)b->mem[0], 0, mr),
			 0);
	sge.lkey = (*mr)->key;
	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	sim_post_send(b->pair.qp[0], &wqe, &sge);
	bench_post(b, 0, last, 0, bytes, 0);
	bench_wait(b, 11000);
	assert_int_equal(counter(b, 0, CNT_RETRANSMITS), 1);
	return b;
}

/* The peer acknowledges only the first message, so the requester does not know
 * whether the others were lost or are late. */
static void let_guess(struct bench *b)
{
	inject_aeth(b, VB_SYN_ACK, 0);
	bench_expect_wc(b->pair.send_cq[0], 0, WC_SUCCESS);
	bench_wait(b, 1000);
	bench_expect_no_wc(b->pair.send_cq[0]);
	assert_int_equal(state_of(b, 0), QPS_RTS);
}

static struct bench *open_gone(enum vb_wr_op last, uint32_t bytes)
{
	struct vb_mr *mr;
	struct bench *b = open_probed(last, bytes, &mr);

	assert_int_equal(vb_mr_deregister(mr), 0);
	let_guess(b);
	return b;
}

static void requester__gone_memory_of_what_arrived(void **state)
{
	struct bench *b = open_gone(WR_WRITE, 8);

	/* A WRITE posted at this time leaves before the ACK arrives. */
	bench_post(b, 0, WR_WRITE, 0, 8, 0);
	bench_wait(b, 10);
	assert_int_equal(bench_count(b, 0, CODE_WRITE_ONLY), 3 + 1 + 1);
	inject_aeth(b, VB_SYN_ACK, 3);
	for (unsigned i = 1; i < 4; i++)
		bench_expect_wc(b->pair.send_cq[0], i, WC_SUCCESS);
	bench_close(b);
}

static void VB_UNCHECKED requester__gone_memory_before_a_read(void **state)
{
	struct bench *b = open_gone(WR_READ, 8);
	const struct vb_req *req = &vb_rc(b->pair.qp[0])->req;
	struct vb_ib_pkt pkt;

	assert_int_equal(req->asked_at, req->asked_tail);
	bench_post(b, 0, WR_READ, 64, 8, 0);
	bench_wait(b, 10);
	assert_int_equal(bench_count(b, 0, CODE_READ_REQUEST), 2);
	for (int i = 2; i < 4; i++) {
		pkt = bench_response(b, CODE_READ_RESP_ONLY, i, VB_SYN_ACK);
		bench_inject(b, 0, &pkt, 8, (uint8_t)(0x70 + i));
	}
	for (unsigned i = 1; i < 4; i++)
		bench_expect_wc(b->pair.send_cq[0], i, WC_SUCCESS);
	assert_int_equal(b->mem[0][0], 0x72);
	assert_int_equal(b->mem[0][64], 0x73);
	bench_close(b);
}

/* The window stops the long WRITE, which continues later where it stopped. */
static void VB_UNCHECKED
requester__gone_memory_before_a_long_write(void **state)
{
	const uint32_t packets = 512;
	struct bench *b = open_gone(WR_WRITE, packets * MTU);
	const struct vb_req *req = &vb_rc(b->pair.qp[0])->req;
	uint32_t sent = bench_count(b, 0, CODE_WRITE_MIDDLE);

	assert_true(sent > 0 && sent < packets - 2);
	for (int rounds = 0; rounds < 1000 && req->una != req->next; rounds++) {
		inject_aeth(b, VB_SYN_ACK,
			    vb_psn_diff(req->next, sim_attr.sq_psn) - 1);
		bench_wait(b, 10);
	}
	for (unsigned i = 1; i < 3; i++)
		bench_expect_wc(b->pair.send_cq[0], i, WC_SUCCESS);
	assert_int_equal(bench_count(b, 0, CODE_WRITE_MIDDLE), packets - 2);
	bench_close(b);
}

/* The peer, or this program, does not run for longer than the ACK timeout. The
 * window then lets one packet go at a time, so an ACK comes before the
 * requester repeats the packet whose memory is gone. */
static void requester__gone_memory_when_all_is_late(void **state)
{
	for (int at_once = 0; at_once < 2; at_once++) {
		struct vb_mr *mr;
		struct bench *b = open_probed(WR_WRITE, 8, &mr);

		assert_int_equal(vb_mr_deregister(mr), 0);
		sim_run(&b->sim, b->sim.now + 300 * VB_MSEC);
		assert_int_equal(counter(b, 0, CNT_TIMEOUTS), 1);
		for (int i = at_once ? 2 : 0; i < 3; i++) {
			inject_aeth(b, VB_SYN_ACK, i);
			bench_wait(b, 10);
		}
		for (unsigned i = 0; i < 3; i++)
			bench_expect_wc(b->pair.send_cq[0], i, WC_SUCCESS);
		assert_int_equal(state_of(b, 0), QPS_RTS);
		bench_close(b);
	}
}

/* Memory is about to be deregistered. Posted requests must leave before that,
 * although the window lets only one packet go, as it does after a timeout. */
static void VB_UNCHECKED requester__what_is_posted_leaves_in_time(void **state)
{
	for (int widens = 0; widens < 2; widens++) {
		struct bench *b = open_alone();
		struct vb_qp *qp = b->pair.qp[0];
		struct vb_window *w = &vb_rc(qp)->req.window;
		uint32_t before;

		vb_window_collapse(w, vb_rc(qp)->req.next);
		before = w->pkts;
		for (int i = 0; i < 3; i++)
			bench_post(b, 0, WR_WRITE, 0, 8, 0);
		bench_wait(b, 1);
		assert_true(vb_rc_has_unsent(qp));
		if (widens)
			assert_int_equal(vb_rc_widen(qp, 64), before);
		sim_drive(&b->sim);
		assert_int_equal(vb_rc_has_unsent(qp), !widens);
		vb_rc_narrow(qp, before);
		assert_int_equal(w->pkts, before);
		bench_close(b);
	}
}

/* A lost packet whose memory is deregistered cannot be sent again. */
static void requester__gone_memory_of_what_was_lost(void **state)
{
	for (int told = 0; told < 2; told++) {
		struct bench *b = open_gone(WR_WRITE, 8);

		if (told)
			inject_aeth(b, VB_SYN_NAK_PSN, 1);
		else
			sim_run(&b->sim, b->sim.now + 4 * VB_SEC);
		bench_expect_wc(b->pair.send_cq[0], 1, WC_LOC_PROT_ERR);
		bench_expect_wc(b->pair.send_cq[0], 2, WC_FLUSH_ERR);
		assert_int_equal(counter(b, 0, CNT_TIMEOUTS),
				 told ? 0 : sim_attr.retry_cnt);
		bench_close(b);
	}
}

/* A packet was sent again while its memory was registered, because it seemed
 * lost. Only after the deregistration it turns out that it was lost. */
static void requester__gone_memory_after_a_guess(void **state)
{
	for (int told = 0; told < 2; told++) {
		struct vb_mr *mr;
		struct bench *b = open_probed(WR_WRITE, 8, &mr);

		let_guess(b);
		assert_int_equal(counter(b, 0, CNT_RETRANSMITS), 1 + 2);
		assert_int_equal(vb_mr_deregister(mr), 0);
		if (told)
			inject_aeth(b, VB_SYN_RNR | 14, 1);
		sim_run(&b->sim, b->sim.now + 4 * VB_SEC);
		bench_expect_wc(b->pair.send_cq[0], 1, WC_LOC_PROT_ERR);
		bench_expect_wc(b->pair.send_cq[0], 2, WC_FLUSH_ERR);
		assert_int_equal(counter(b, 0, CNT_TIMEOUTS),
				 told ? 0 : sim_attr.retry_cnt);
		bench_close(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requester__gives_up_after_retry_cnt),
		cmocka_unit_test(requester__waits_for_a_link_that_is_stuck),
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
		cmocka_unit_test(requester__gone_memory_of_what_arrived),
		cmocka_unit_test(requester__gone_memory_before_a_read),
		cmocka_unit_test(requester__gone_memory_before_a_long_write),
		cmocka_unit_test(requester__gone_memory_when_all_is_late),
		cmocka_unit_test(requester__what_is_posted_leaves_in_time),
		cmocka_unit_test(requester__gone_memory_of_what_was_lost),
		cmocka_unit_test(requester__gone_memory_after_a_guess),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

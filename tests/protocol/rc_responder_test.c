/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder, packet by packet: faults, PSNs, acknowledgements. */
#include "tests/protocol/rc_fixture.h"

/* One faulty request, and the NAK and event that it must cause. */

struct bad {
	uint8_t code;
	uint32_t length, payload, va_off, access;
	bool other_key;
	uint8_t syndrome;
	int event;
};

#define ALL                                                                    \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |       \
	 ACCESS_REMOTE_ATOMIC)

// clang-format off
static const struct bad bad_requests[] = {
	/* code, RETH length, payload, VA offset, QP access, key, NAK, event */
	/* Packets out of the order of a message: */
	{ CODE_SEND_MIDDLE, 0, MTU, 0, ALL, false, 0x61, EVENT_QP_REQ_ERR },
	{ CODE_SEND_LAST, 0, 8, 0, ALL, false, 0x61, EVENT_QP_REQ_ERR },
	{ CODE_WRITE_MIDDLE, 0, MTU, 0, ALL, false, 0x61, EVENT_QP_REQ_ERR },
	{ CODE_WRITE_LAST_IMM, 0, 8, 0, ALL, false, 0x61, EVENT_QP_REQ_ERR },
	/* Requests for which the queue pair lacks the access flag: */
	{ CODE_WRITE_ONLY, 8, 8, 0, 0, false, 0x61, EVENT_QP_REQ_ERR },
	{ CODE_READ_REQUEST, 8, 0, 0, 0, false, 0x61, EVENT_QP_REQ_ERR },
	{ CODE_FETCH_ADD, 0, 0, 0, 0, false, 0x61, EVENT_QP_REQ_ERR },
	/* Packets of a wrong length: */
	{ CODE_SEND_FIRST, 0, MTU - 4, 0, ALL, false, 0x61, EVENT_QP_REQ_ERR },
	{ CODE_SEND_ONLY, 0, MTU + 4, 0, ALL, false, 0x61, EVENT_QP_REQ_ERR },
	{ CODE_WRITE_ONLY, 8, 7, 0, ALL, false, 0x61, EVENT_QP_REQ_ERR },
	{ CODE_WRITE_ONLY, 7, 8, 0, ALL, false, 0x61, EVENT_QP_REQ_ERR },
	{ CODE_WRITE_FIRST, MTU, MTU, 0, ALL, false, 0x61, EVENT_QP_REQ_ERR },
	{ CODE_WRITE_FIRST, VB_MAX_MSG + 1, MTU, 0, ALL, false, 0x61, EVENT_QP_REQ_ERR },
	{ CODE_READ_REQUEST, VB_MAX_MSG + 1, 0, 0, ALL, false, 0x61, EVENT_QP_REQ_ERR },
	{ CODE_READ_REQUEST, 8, 4, 0, ALL, false, 0x61, EVENT_QP_REQ_ERR },
	/* Atomics at an address that is no multiple of 8: */
	{ CODE_CMP_SWAP, 0, 0, 4, ALL, false, 0x61, EVENT_QP_REQ_ERR },
	/* Requests with a wrong key, or outside of the region: */
	{ CODE_WRITE_ONLY, 8, 8, 0, ALL, true, 0x62, EVENT_QP_ACCESS_ERR },
	{ CODE_WRITE_ONLY, 8, 8, BENCH_MEM - 7, ALL, false, 0x62, EVENT_QP_ACCESS_ERR },
	{ CODE_WRITE_FIRST, BENCH_MEM + 1, MTU, 0, ALL, false, 0x62, EVENT_QP_ACCESS_ERR },
	{ CODE_READ_REQUEST, BENCH_MEM, 0, 1, ALL, false, 0x62, EVENT_QP_ACCESS_ERR },
	{ CODE_READ_REQUEST, 1, 0, 0, ALL, true, 0x62, EVENT_QP_ACCESS_ERR },
	{ CODE_FETCH_ADD, 0, 0, BENCH_MEM, ALL, false, 0x62, EVENT_QP_ACCESS_ERR },
};
// clang-format on

static void check_bad(const struct bad *bad)
{
	struct vb_qp_attr attr = sim_attr;
	static uint8_t before[BENCH_MEM];
	struct vb_ib_pkt pkt;
	struct bench *b;

	attr.access_flags = bad->access;
	b = bench_open_as(&attr, &sim_caps);
	memcpy(before, b->mem[1], BENCH_MEM);
	pkt = bench_request(b, bad->code, 0);
	pkt.reth.length = bad->length;
	pkt.reth.va += bad->va_off;
	pkt.atomic.va = pkt.reth.va;
	if (bad->other_key)
		pkt.reth.rkey = NOT_OUR_KEY;
	bench_inject(b, 1, &pkt, bad->payload, 0xee);
	bench_expect_aeth(b, 1, bad->syndrome, 0);
	bench_expect_silence(b, 1);
	assert_int_equal(state_of(b, 1), QPS_ERR);
	assert_int_equal(sim_event(&b->sim, 1), bad->event);
	assert_int_equal(sim_event(&b->sim, 1), -1);
	assert_memory_equal(before, b->mem[1], BENCH_MEM);
	bench_close(b);
}

static void responder__refuses_bad_requests(void **state)
{
	for (unsigned i = 0; i < VB_COUNT(bad_requests); i++)
		check_bad(&bad_requests[i]);
}

static void responder__refuses_first_before_last(void **state)
{
	struct bench *b = bench_open();

	bench_post_recv(b, 1, 7, 0, 4 * MTU);
	inject_code(b, CODE_SEND_FIRST, 0, 0, MTU);
	bench_expect_aeth(b, 1, VB_SYN_ACK, 0);
	inject_code(b, CODE_SEND_ONLY, 1, 0, 8);
	bench_expect_aeth(b, 1, VB_SYN_NAK_INVALID, 1);
	/* The receive in progress reports the fault, so no event is raised. */
	bench_expect_wc(b->pair.recv_cq[1], 7, WC_REM_INV_REQ_ERR);
	assert_int_equal(sim_event(&b->sim, 1), -1);
	bench_close(b);
}

static void responder__send_longer_than_the_receive(void **state)
{
	struct bench *b = bench_open();

	bench_post_recv(b, 1, 7, 0, MTU + 7);
	bench_post_recv(b, 1, 8, 0, 9);
	inject_code(b, CODE_SEND_FIRST, 0, 0, MTU);
	inject_code(b, CODE_SEND_LAST, 1, 0, 8);
	bench_expect_aeth(b, 1, VB_SYN_ACK, 0);
	bench_expect_aeth(b, 1, VB_SYN_NAK_INVALID, 1);
	bench_expect_wc(b->pair.recv_cq[1], 7, WC_LOC_LEN_ERR);
	bench_expect_wc(b->pair.recv_cq[1], 8, WC_FLUSH_ERR);
	bench_close(b);
}

static void responder__receive_with_a_bad_lkey(void **state)
{
	struct bench *b = bench_open();
	struct vb_sge sge = { (uintptr_t)b->mem[1], 64, NOT_OUR_KEY };

	sim_post_recv(b->pair.qp[1], 5, &sge, 1);
	inject_code(b, CODE_SEND_ONLY, 0, 0, 8);
	bench_expect_aeth(b, 1, VB_SYN_NAK_OP, 0);
	bench_expect_wc(b->pair.recv_cq[1], 5, WC_LOC_PROT_ERR);
	assert_int_equal(state_of(b, 1), QPS_ERR);
	bench_close(b);
}

static void responder__invalidate_of_a_region_is_refused(void **state)
{
	struct bench *b = bench_open();
	struct vb_ib_pkt pkt = bench_request(b, CODE_SEND_ONLY_INV, 0);

	bench_post_recv(b, 1, 5, 0, 64);
	pkt.ieth_rkey = b->mr[1]->key;
	bench_inject(b, 1, &pkt, 8, 1);
	bench_expect_silence(b, 1);
	bench_expect_wc(b->pair.recv_cq[1], 5, WC_REM_INV_REQ_ERR);
	assert_int_equal(state_of(b, 1), QPS_ERR);
	bench_close(b);
}

static void responder__region_gone_in_mid_message(void **state)
{
	struct bench *b = bench_open();

	inject_code(b, CODE_WRITE_FIRST, 0, 3 * MTU, MTU);
	bench_expect_aeth(b, 1, VB_SYN_ACK, 0);
	assert_int_equal(vb_mr_deregister(b->mr[1]), 0);
	inject_code(b, CODE_WRITE_MIDDLE, 1, 0, MTU);
	bench_expect_aeth(b, 1, VB_SYN_NAK_ACCESS, 1);
	b->mr[1] = NULL;
	bench_close(b);
}

static void responder__write_imm_faults_end_its_receive(void **state)
{
	struct bench *b = bench_open();

	bench_post_recv(b, 1, 3, 0, 0);
	inject_code(b, CODE_WRITE_FIRST, 0, 2 * MTU, MTU);
	bench_expect_aeth(b, 1, VB_SYN_ACK, 0);
	assert_int_equal(vb_mr_deregister(b->mr[1]), 0);
	inject_code(b, CODE_WRITE_LAST_IMM, 1, 0, MTU);
	bench_expect_aeth(b, 1, VB_SYN_NAK_ACCESS, 1);
	bench_expect_wc(b->pair.recv_cq[1], 3, WC_LOC_ACCESS_ERR);
	b->mr[1] = NULL;
	bench_close(b);
}

static void responder__zero_length_checks_no_key(void **state)
{
	struct bench *b = bench_open();
	struct vb_ib_pkt pkt = bench_request(b, CODE_WRITE_ONLY, 0);

	pkt.reth.rkey = NOT_OUR_KEY;
	bench_inject(b, 1, &pkt, 0, 0);
	bench_expect_aeth(b, 1, VB_SYN_ACK, 0);
	pkt = bench_request(b, CODE_READ_REQUEST, 1);
	pkt.reth.rkey = NOT_OUR_KEY;
	bench_inject(b, 1, &pkt, 0, 0);
	assert_int_equal(bench_next(b, 1)->bth.opcode, CODE_READ_RESP_ONLY);
	bench_close(b);
}

static void responder__no_read_resources(void **state)
{
	struct vb_qp_attr attr = sim_attr;
	struct bench *b;

	attr.max_dest_rd_atomic = 0;
	b = bench_open_as(&attr, &sim_caps);
	inject_code(b, CODE_READ_REQUEST, 0, 8, 0);
	bench_expect_aeth(b, 1, VB_SYN_NAK_INVALID, 0);
	bench_close(b);
}

static void responder__more_reads_than_it_can_remember(void **state)
{
	struct bench *b = bench_open();
	struct vb_ib_pkt pkt;

	/* Five READs arrive before one is answered; only four are permitted. */
	for (int i = 0; i < 5; i++) {
		pkt = bench_request(b, CODE_READ_REQUEST, i);
		pkt.reth.length = 8;
		vb_mutex_lock(&b->pair.qp[1]->drive);
		vb_transport_recv(b->pair.qp[1], &pkt, b->sim.now);
		vb_mutex_unlock(&b->pair.qp[1]->drive);
	}
	bench_wait(b, 10);
	for (int i = 0; i < 4; i++)
		assert_int_equal(bench_next(b, 1)->bth.opcode,
				 CODE_READ_RESP_ONLY);
	bench_expect_aeth(b, 1, VB_SYN_NAK_INVALID, 4);
	assert_int_equal(state_of(b, 1), QPS_ERR);
	bench_close(b);
}

static void responder__one_nak_for_a_gap(void **state)
{
	struct bench *b = bench_open();

	for (int i = 1; i < 4; i++)
		inject_code(b, CODE_WRITE_ONLY, i, 8, 8);
	bench_expect_aeth(b, 1, VB_SYN_NAK_PSN, 0);
	bench_expect_silence(b, 1);
	inject_code(b, CODE_WRITE_ONLY, 0, 8, 8);
	bench_expect_aeth(b, 1, VB_SYN_ACK, 0);
	/* The next gap in the PSNs gets a NAK of its own. */
	inject_code(b, CODE_WRITE_ONLY, 2, 8, 8);
	bench_expect_aeth(b, 1, VB_SYN_NAK_PSN, 1);
	bench_close(b);
}

static void responder__silent_about_gaps_behind_an_rnr_nak(void **state)
{
	struct bench *b = bench_open();

	inject_code(b, CODE_SEND_ONLY, 0, 0, 8);
	bench_expect_aeth(b, 1, VB_SYN_RNR | sim_attr.min_rnr_timer, 0);
	inject_code(b, CODE_SEND_ONLY, 1, 0, 8);
	inject_code(b, CODE_WRITE_ONLY, 2, 8, 8);
	bench_expect_silence(b, 1);
	inject_code(b, CODE_SEND_ONLY, 0, 0, 8);
	bench_expect_aeth(b, 1, VB_SYN_RNR | sim_attr.min_rnr_timer, 0);
	bench_post_recv(b, 1, 1, 0, 64);
	inject_code(b, CODE_SEND_ONLY, 0, 0, 8);
	bench_expect_aeth(b, 1, VB_SYN_ACK, 0);
	bench_expect_wc(b->pair.recv_cq[1], 1, WC_SUCCESS);
	bench_close(b);
}

static void responder__write_imm_without_receive(void **state)
{
	struct bench *b = bench_open();
	struct vb_cqe e;

	inject_code(b, CODE_WRITE_FIRST, 0, MTU + 8, MTU);
	bench_expect_aeth(b, 1, VB_SYN_ACK, 0);
	inject_code(b, CODE_WRITE_LAST_IMM, 1, 0, 8);
	bench_expect_aeth(b, 1, VB_SYN_RNR | sim_attr.min_rnr_timer, 1);
	bench_post_recv(b, 1, 1, 0, 0);
	inject_code(b, CODE_WRITE_LAST_IMM, 1, 0, 8);
	bench_expect_aeth(b, 1, VB_SYN_ACK, 1);
	assert_true(sim_poll(b->pair.recv_cq[1], &e));
	assert_int_equal(e.opcode, WC_OP_RECV_WRITE_IMM);
	assert_int_equal(e.byte_len, MTU + 8);
	assert_int_equal(e.wc_flags, WC_WITH_IMM);
	bench_close(b);
}

static void responder__one_ack_for_a_run(void **state)
{
	struct bench *b = bench_open();
	struct vb_ib_pkt pkt;

	for (int i = 0; i < 6; i++) {
		pkt = bench_request(b, CODE_WRITE_ONLY, i);
		vb_mutex_lock(&b->pair.qp[1]->drive);
		vb_transport_recv(b->pair.qp[1], &pkt, b->sim.now);
		vb_mutex_unlock(&b->pair.qp[1]->drive);
	}
	bench_wait(b, 10);
	bench_expect_aeth(b, 1, VB_SYN_ACK, 5);
	bench_expect_silence(b, 1);
	assert_int_equal(b->log[0].pkt.aeth.msn, 6);
	bench_close(b);
}

/* Let a WRITE arrive while no packet is sent yet. Returns whether its ACK is
 * sent now, delayed, or not due. */
static enum vb_delayed_ack write_arrives(struct bench *b, int nth, bool polls)
{
	struct vb_ib_pkt pkt = bench_request(b, CODE_WRITE_ONLY, nth);
	struct vb_qp *qp = b->pair.qp[1];
	enum vb_delayed_ack delayed_ack;

	vb_mutex_lock(&qp->drive);
	vb_transport_recv(qp, &pkt, b->sim.now);
	delayed_ack = qp->ops->delayed_ack(qp, polls);
	vb_mutex_unlock(&qp->drive);
	return delayed_ack;
}

static bool polled_again(struct bench *b)
{
	struct vb_qp *qp = b->pair.qp[1];
	bool due;

	vb_mutex_lock(&qp->drive);
	due = qp->ops->unreplied(qp);
	vb_mutex_unlock(&qp->drive);
	return due;
}

static void replies(struct bench *b)
{
	struct vb_cqe e;

	bench_post(b, 1, WR_WRITE, 0, 8, SEND_SIGNALED);
	bench_wait(b, 100);
	assert_true(sim_poll(b->pair.send_cq[1], &e));
}

/* Let the program reply promptly to each WRITE, until the responder expects a
 * reply and delays its ACK. Returns the number of the next WRITE. */
static int always_replies(struct bench *b)
{
	int n = 0;

	for (; n < 8; n++) {
		assert_int_equal(write_arrives(b, n, false), ACK_NOW);
		replies(b);
	}
	return n;
}

static void responder__ack_waits_for_a_prompt_reply(void **state)
{
	struct bench *b = bench_open();
	int n = always_replies(b);

	assert_int_equal(write_arrives(b, n++, false), ACK_DELAYED);
	b->read = b->logged;
	replies(b);
	/* The ACK and the reply leave as one train of packets, of which the
	 * receiver handles the ACK first. */
	assert_int_equal(bench_next(b, 1)->op->kind, KIND_WRITE);
	bench_expect_aeth(b, 1, VB_SYN_ACK, n - 1);
	/* A program that polls again has not replied to the message, so the ACK
	 * no longer waits. */
	assert_int_equal(write_arrives(b, n++, false), ACK_DELAYED);
	assert_true(polled_again(b));
	assert_false(polled_again(b));
	/* The responder delays ACKs again after several prompt replies. */
	for (int i = 0; i < 4; i++) {
		assert_int_equal(write_arrives(b, n++, false), ACK_NOW);
		replies(b);
	}
	assert_int_equal(write_arrives(b, n++, false), ACK_DELAYED);
	bench_close(b);
}

/* The program has got the WRITE's completion. So the peer must get the ACK,
 * even if the reply for which the ACK waited fails. */
static void responder__ack_survives_a_reply_that_fails(void **state)
{
	struct bench *b = bench_open();
	int n = always_replies(b);
	struct vb_cqe e;

	assert_int_equal(write_arrives(b, n++, false), ACK_DELAYED);
	b->read = b->logged;
	bench_post(b, 1, WR_WRITE, 1u << 30, 8, SEND_SIGNALED);
	bench_wait(b, 100);
	assert_true(sim_poll(b->pair.send_cq[1], &e));
	assert_int_equal(e.status, WC_LOC_PROT_ERR);
	bench_expect_aeth(b, 1, VB_SYN_ACK, n - 1);
	bench_close(b);
}

static void responder__ack_does_not_wait_for_nothing(void **state)
{
	struct bench *b = bench_open();

	always_replies(b);
	/* A program that polled without a completion sends no reply, so the ACK
	 * does not wait. */
	assert_int_equal(write_arrives(b, 8, true), ACK_NONE);
	/* A NAK for the missing packet is due, so no ACK waits for a reply. */
	write_arrives(b, 10, false);
	assert_int_equal(write_arrives(b, 11, false), ACK_NONE);
	bench_close(b);
}

/* A WRITE arrives twice. The program does not reply to the second copy, so the
 * ACK does not wait for a reply. */
static void responder__ack_of_a_repeated_request_does_not_wait(void **state)
{
	struct bench *b = bench_open();
	int n = always_replies(b);

	assert_int_equal(write_arrives(b, n, false), ACK_DELAYED);
	assert_int_equal(write_arrives(b, n, false), ACK_NONE);
	replies(b);
	assert_int_equal(write_arrives(b, n + 1, false), ACK_DELAYED);
	bench_close(b);
}

static void responder__no_ack_unless_asked(void **state)
{
	struct bench *b = bench_open();

	for (int i = 0; i < 64; i++) {
		struct vb_ib_pkt pkt = bench_request(b, CODE_WRITE_ONLY, i);

		bench_expect_silence(b, 1);
		pkt.bth.ack_req = false;
		bench_inject(b, 1, &pkt, 0, 0);
	}
	/* The responder sends this ACK although no packet has AckReq. */
	bench_expect_aeth(b, 1, VB_SYN_ACK, 63);
	bench_close(b);
}

static void responder__says_communication_established_once(void **state)
{
	static struct bench b;
	struct sim *s = &b.sim;
	struct vb_ib_pkt pkt;

	sim_open(s, 1);
	sim_create(s, &b.pair, &sim_caps);
	sim_to_rtr(s, &b.pair, 1, &sim_attr);
	pkt = (struct vb_ib_pkt){ .bth = { .opcode = CODE_WRITE_ONLY,
					   .dqpn = b.pair.qp[1]->qpn,
					   .psn = sim_attr.rq_psn } };
	sim_inject(s, 1, &pkt);
	sim_inject(s, 1, &pkt);
	sim_run(s, s->now + VB_MSEC);
	assert_int_equal(sim_event(s, 1), EVENT_COMM_EST);
	assert_int_equal(sim_event(s, 1), -1);
	sim_disconnect(s, &b.pair);
	sim_close(s);
}

/* Make the packet of an ATOMIC WRITE of 8 bytes, the @nth of a test. */

static struct vb_ib_pkt atomic_write(const struct bench *b, int nth)
{
	struct vb_ib_pkt pkt = bench_request(b, CODE_ATOMIC_WRITE, nth);

	pkt.reth.length = 8;
	return pkt;
}

static void expect_done(struct bench *b, int nth)
{
	const struct vb_ib_pkt *pkt = bench_next(b, 1);

	assert_non_null(pkt);
	assert_int_equal(pkt->bth.opcode, CODE_READ_RESP_ONLY);
	assert_int_equal(pkt->bth.psn,
			 vb_psn_add(b->attr.rq_psn, (uint32_t)nth));
	assert_int_equal(pkt->aeth.syndrome, VB_SYN_ACK);
	assert_int_equal(pkt->payload_bytes, 0);
}

static void responder__atomic_write_is_written_once(void **state)
{
	struct bench *b = bench_open();
	struct vb_ib_pkt pkt = atomic_write(b, 0);

	bench_inject(b, 1, &pkt, 8, 0x11);
	expect_done(b, 0);
	assert_memory_equal(b->mem[1], "\x11\x11\x11\x11\x11\x11\x11\x11", 8);
	/* A duplicate ATOMIC WRITE is answered, and writes nothing. */
	pkt = atomic_write(b, 1);
	bench_inject(b, 1, &pkt, 8, 0x22);
	expect_done(b, 1);
	pkt = atomic_write(b, 0);
	bench_inject(b, 1, &pkt, 8, 0x11);
	expect_done(b, 0);
	assert_int_equal(b->mem[1][0], 0x22);
	bench_close(b);
}

static void responder__atomic_write_faults(void **state)
{
	static const struct {
		uint32_t shift, length, payload;
		uint8_t syndrome;
	} rows[] = {
		{ 1, 8, 8, VB_SYN_NAK_INVALID },
		{ 4, 8, 8, VB_SYN_NAK_INVALID },
		{ 0, 16, 16, VB_SYN_NAK_INVALID },
		{ 0, 8, 4, VB_SYN_NAK_INVALID },
		{ 0, 4, 4, VB_SYN_NAK_INVALID },
		{ BENCH_MEM, 8, 8, VB_SYN_NAK_ACCESS },
	};

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		struct bench *b = bench_open();
		struct vb_ib_pkt pkt = atomic_write(b, 0);
		uint8_t before[32];

		memcpy(before, b->mem[1], sizeof(before));
		/* Align the address to 8 bytes, whatever the alignment of the
		 * test's memory. */
		pkt.reth.va += (-pkt.reth.va & 7) + rows[i].shift;
		pkt.reth.length = rows[i].length;
		bench_inject(b, 1, &pkt, rows[i].payload, 0x11);
		bench_expect_aeth(b, 1, rows[i].syndrome, 0);
		assert_memory_equal(b->mem[1], before, sizeof(before));
		bench_close(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(responder__refuses_bad_requests),
		cmocka_unit_test(responder__refuses_first_before_last),
		cmocka_unit_test(responder__send_longer_than_the_receive),
		cmocka_unit_test(responder__receive_with_a_bad_lkey),
		cmocka_unit_test(responder__invalidate_of_a_region_is_refused),
		cmocka_unit_test(responder__region_gone_in_mid_message),
		cmocka_unit_test(responder__write_imm_faults_end_its_receive),
		cmocka_unit_test(responder__zero_length_checks_no_key),
		cmocka_unit_test(responder__no_read_resources),
		cmocka_unit_test(responder__more_reads_than_it_can_remember),
		cmocka_unit_test(responder__one_nak_for_a_gap),
		cmocka_unit_test(
			responder__silent_about_gaps_behind_an_rnr_nak),
		cmocka_unit_test(responder__write_imm_without_receive),
		cmocka_unit_test(responder__one_ack_for_a_run),
		cmocka_unit_test(responder__ack_waits_for_a_prompt_reply),
		cmocka_unit_test(
			responder__ack_of_a_repeated_request_does_not_wait),
		cmocka_unit_test(responder__ack_survives_a_reply_that_fails),
		cmocka_unit_test(responder__ack_does_not_wait_for_nothing),
		cmocka_unit_test(responder__no_ack_unless_asked),
		cmocka_unit_test(
			responder__says_communication_established_once),
		cmocka_unit_test(responder__atomic_write_is_written_once),
		cmocka_unit_test(responder__atomic_write_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

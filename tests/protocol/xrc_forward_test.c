/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC packets for an SRQ that belongs to another process of the host. */
#include "core/lock_order.h"
#include "core/why.h"
#include "tests/protocol/xrc_fixture.h"

/* The test plays two processes of one host: side 1 is this process, and also
 * stands for the process that owns the other SRQ. The numbers of that process's
 * SRQs have this additional bit. */
#define FAR_AWAY 0x10000u

static struct {
	struct vb_forward_qp guest;
	struct vb_qp *qp;
	uint64_t serial, xrc_read_serial;
	unsigned count;
	bool under_way, is_down;
	enum vb_fault refusal;
	struct vb_ib_pkt pkt;
	uint8_t payload[4096];
	bool fetching;
	unsigned fetches;
	struct vb_forward_piece piece;
} far;

static enum vb_fault hand_over(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
			       uint64_t serial, uint64_t *session)
{
	if (far.refusal)
		return far.refusal;
	assert_false(far.under_way);
	assert_true(serial > far.serial);
	far.under_way = true;
	far.count++;
	far.qp = qp;
	far.serial = serial;
	far.pkt = *pkt;
	if (pkt->payload_bytes)
		memcpy(far.payload, pkt->payload, pkt->payload_bytes);
	far.pkt.payload = far.payload;
	far.pkt.xrc_srqn ^= FAR_AWAY;
	*session = 5;
	return FAULT_NONE;
}

static enum vb_fault fetch(struct vb_qp *qp,
			   const struct vb_forward_piece *piece,
			   uint64_t serial, uint64_t *session)
{
	if (far.refusal)
		return far.refusal;
	assert_false(far.fetching);
	far.fetching = true;
	far.fetches++;
	far.xrc_read_serial = serial;
	far.piece = *piece;
	far.piece.srqn ^= FAR_AWAY;
	*session = 5;
	return FAULT_NONE;
}

static bool is_up(uint64_t session)
{
	assert_int_equal(session, 5);
	return !far.is_down;
}

static const struct vb_forward_ops forward_ops = { hand_over, fetch, is_up };

static void open_far_as(struct xrc *t, const struct vb_qp_attr *attr)
{
	struct vb_xrc_domain *d;

	open_xrc_as(t, attr);
	memset(&far, 0, sizeof(far));
	d = t->b->pair.xrcd->domain;
	d->has_key = true;
	d->key = (struct vb_xrc_key){ 1, 2 };
	vb_chain_add(&t->b->sim.side[1].adapter.xrc_domains, &d->link);
	t->b->sim.side[1].adapter.forward_ops = &forward_ops;
	vb_mutex_init(&far.guest.qp.drive, RANK_DRIVE);
	far.guest.qp.adapter = &t->b->sim.side[1].adapter;
	far.guest.qp.type = QPT_XRC_RECV;
	far.guest.qp.mtu = t->b->pair.qp[1]->mtu;
	far.guest.qp.attr.access_flags = UINT32_MAX;
	atomic_store(&far.guest.qp.state, QPS_RTS);
	atomic_store(&far.guest.qp.qpn, 0x4711);
}

static void open_far(struct xrc *t)
{
	open_far_as(t, &sim_attr);
}

static void say(enum vb_fault fault, uint64_t value)
{
	far.under_way = false;
	vb_mutex_lock(&far.qp->drive);
	vb_forward_verdict(far.qp, far.serial, fault, value);
	vb_mutex_unlock(&far.qp->drive);
}

static void judge_far(void)
{
	const struct vb_xrc_key key = { 1, 2 };
	enum vb_fault fault;
	uint64_t value = 0;

	vb_mutex_lock(&far.guest.qp.drive);
	fault = vb_forward_take(&far.guest, &key, &far.pkt, &value);
	vb_mutex_unlock(&far.guest.qp.drive);
	say(fault, value);
}

static void give(struct bench *b, enum vb_fault fault, const uint8_t *bytes)
{
	struct vb_qp *qp = b->pair.qp[1];

	far.fetching = false;
	vb_mutex_lock(&qp->drive);
	vb_forward_bytes(qp, far.xrc_read_serial, fault, bytes,
			 far.piece.length);
	vb_mutex_unlock(&qp->drive);
}

static void fetch_far(struct bench *b)
{
	const struct vb_xrc_key key = { 1, 2 };
	uint8_t bytes[VB_FORWARD_BYTES];
	enum vb_fault fault;

	vb_mutex_lock(&far.guest.qp.drive);
	fault = vb_forward_read(&far.guest, &key, &far.piece, bytes);
	vb_mutex_unlock(&far.guest.qp.drive);
	give(b, fault, bytes);
}

/* Advance the time by @us; the other process answers every 20 us. */
static void wait_far(struct bench *b, unsigned us)
{
	for (unsigned i = 0; i < us; i += 20) {
		bench_wait(b, 20);
		if (far.under_way)
			judge_far();
		if (far.fetching)
			fetch_far(b);
	}
}

static void post_far(struct xrc *t, uint64_t wr_id, enum vb_wr_op op,
		     uint32_t from, uint32_t to, uint32_t len)
{
	struct vb_sq *sq = &t->b->pair.qp[0]->sq;

	post(t, wr_id, op, from, to, len);
	vb_sq_at(sq, vb_sq_end(sq) - 1)->srqn ^= FAR_AWAY;
}

static void far__data_on_a_bad_wire(void **state)
{
	static const enum vb_wr_op ops[] = { WR_SEND,	  WR_WRITE,
					     WR_SEND_IMM, WR_FETCH_ADD,
					     WR_READ,	  WR_WRITE_IMM };
	enum { ROUNDS = 8, STEP = 8192 };
	struct xrc t;
	struct vb_cqe e;

	open_far(&t);
	t.b->sim.wire = (struct sim_wire){ .lose = 300,
					   .copy = 300,
					   .swap = 500,
					   .delay = 5 * VB_USEC,
					   .jitter = 50 * VB_USEC };
	for (unsigned r = 0; r < ROUNDS; r++) {
		uint32_t base = 65536 + r * 8 * STEP, len = 1 + 900 * r;

		post_recv(&t, 100, base, STEP);
		post_recv(&t, 101, base + 2 * STEP, STEP);
		post_recv(&t, 102, 0, 0);
		bench_post_recv(t.b, 1, 7, 0, 4096);
		for (unsigned i = 0; i < VB_COUNT(ops); i++)
			post_far(&t, i, ops[i], base + i * STEP,
				 base + i * STEP,
				 ops[i] == WR_FETCH_ADD ? 8 : len);
		/* between the forwarded requests, a SEND to an SRQ of this
		 * process; behind them, a READ */
		bench_post(t.b, 0, WR_SEND, 200, 4000, 0);
		post(&t, 9, WR_READ, base + 6 * STEP, base + 6 * STEP, len);
		wait_far(t.b, 1000000);
		t.b->logged = t.b->read = 0;
		for (unsigned i = 0; i < VB_COUNT(ops) + 2; i++) {
			assert_true(sim_poll(t.b->pair.send_cq[0], &e));
			assert_int_equal(e.status, WC_SUCCESS);
		}
		for (unsigned i = 0; i < 7; i++)
			if (i != 3)
				assert_memory_equal(
					t.b->mem[0] + base + i * STEP,
					t.b->mem[1] + base + i * STEP, len);
		for (unsigned i = 0; i < 3; i++) {
			assert_true(sim_poll(t.cq, &e));
			assert_int_equal(e.wr_id, 100 + i);
			assert_int_equal(e.status, WC_SUCCESS);
			assert_int_equal(e.qpn, 0x4711);
		}
		bench_expect_wc(t.b->pair.recv_cq[1], 7, WC_SUCCESS);
	}
	assert_true(far.count >= ROUNDS * VB_COUNT(ops));
	close_xrc(&t);
}

static void far__verdicts_become_answers(void **state)
{
	static const struct {
		enum vb_fault fault;
		uint8_t syndrome;
		int event;
		/* the cause of the error that this process reports; it does not
		 * know the keys of the other process */
		enum vb_why why;
	} rows[] = {
		{ FAULT_NONE, VB_SYN_ACK, -1, WHY_NONE },
		{ FAULT_NO_RQE, VB_SYN_RNR | 12, -1, WHY_NONE },
		{ FAULT_RKEY, VB_SYN_NAK_ACCESS, EVENT_QP_ACCESS_ERR,
		  WHY_XRC_FORWARD },
		{ FAULT_RQE_LKEY, VB_SYN_NAK_OP, -1, WHY_XRC_FORWARD },
		{ FAULT_RQE_TOO_SMALL, VB_SYN_NAK_INVALID, EVENT_QP_REQ_ERR,
		  WHY_XRC_FORWARD },
		{ FAULT_XRC_SRQ, VB_SYN_NAK_INVALID, EVENT_QP_REQ_ERR,
		  WHY_XRC_SRQ },
		{ FAULT_XRC_DOMAIN, VB_SYN_NAK_INVALID, EVENT_QP_REQ_ERR,
		  WHY_XRC_SRQ },
		{ FAULT_XRC_FORWARD, VB_SYN_NAK_OP, EVENT_QP_FATAL,
		  WHY_XRC_SRQ },
	};

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct xrc t;

		open_far(&t);
		post_far(&t, 0, WR_SEND, 0, 0, 100);
		bench_wait(t.b, 100);
		/* The responder waits for the other process's answer. */
		bench_expect_silence(t.b, 1);
		say(rows[i].fault, 0);
		bench_wait(t.b, 10);
		bench_expect_aeth(t.b, 1, rows[i].syndrome, 0);
		assert_int_equal(sim_event(&t.b->sim, 1), rows[i].event);
		assert_int_equal(t.b->pair.qp[1]->why, rows[i].why);
		close_xrc(&t);
	}
}

static void far__the_message_ends_with_its_receive(void **state)
{
	struct xrc t;
	struct vb_cqe e;

	open_far(&t);
	post_recv(&t, 8, 8192, 64);
	post_far(&t, 0, WR_SEND, 0, 0, 65);
	wait_far(t.b, 1000);
	assert_true(sim_poll(t.cq, &e));
	assert_int_equal(e.wr_id, 8);
	assert_int_equal(e.status, WC_LOC_LEN_ERR);
	assert_int_equal(e.why, WHY_RECV_SHORT);
	assert_int_equal(t.b->pair.qp[1]->why, WHY_XRC_FORWARD);
	/* the other process's queue pair has cleared the cause of the error, so
	 * that the next request does not report it */
	assert_int_equal(far.guest.qp.why, WHY_NONE);
	bench_expect_wc(t.b->pair.send_cq[0], 0, WC_REM_INV_REQ_ERR);
	close_xrc(&t);
}

static void far__a_message_broken_off_is_flushed(void **state)
{
	const struct vb_xrc_key key = { 1, 2 };
	struct xrc t;
	struct vb_cqe e;
	uint64_t value;

	open_far(&t);
	post_recv(&t, 8, 8192, 4096);
	post_recv(&t, 9, 8192, 4096);
	post_far(&t, 0, WR_SEND, 0, 0, 3000);
	bench_wait(t.b, 100);
	assert_true(far.under_way);
	for (unsigned i = 0; i < 2;
	     /* Deliver the first packet twice: the message begins anew. */
	     i++) {
		vb_mutex_lock(&far.guest.qp.drive);
		assert_int_equal(
			vb_forward_take(&far.guest, &key, &far.pkt, &value),
			FAULT_NONE);
		vb_mutex_unlock(&far.guest.qp.drive);
	}
	assert_true(sim_poll(t.cq, &e));
	assert_int_equal(e.wr_id, 8);
	assert_int_equal(e.status, WC_FLUSH_ERR);
	vb_mutex_lock(&far.guest.qp.drive);
	vb_forward_end(&far.guest);
	vb_mutex_unlock(&far.guest.qp.drive);
	bench_expect_wc(t.cq, 9, WC_FLUSH_ERR);
	close_xrc(&t);
}

/* A message that continues here but did not begin here: its destination is
 * unknown. */
static void far__a_message_goes_on_elsewhere(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		uint8_t first = i ? CODE_WRITE_FIRST : CODE_SEND_FIRST;
		uint8_t before[BENCH_MEM / 64];
		struct vb_ib_pkt pkt;
		struct xrc t;

		open_far(&t);
		post_recv(&t, 8, 0, 4096);
		pkt = bench_request(t.b, first, 0);
		pkt.xrc_srqn = t.srq->number ^ FAR_AWAY;
		pkt.reth.length = 2000;
		bench_inject(t.b, 1, &pkt, 1024, 1);
		say(FAULT_NONE, 0);
		memcpy(before, t.b->mem[1], sizeof(before));
		pkt = bench_request(t.b, first + 1, 1);
		pkt.xrc_srqn = t.srq->number;
		bench_inject(t.b, 1, &pkt, 1024, 2);
		bench_expect_aeth(t.b, 1, VB_SYN_ACK, 0);
		bench_expect_aeth(t.b, 1, VB_SYN_NAK_INVALID, 1);
		assert_memory_equal(before, t.b->mem[1], sizeof(before));
		close_xrc(&t);
	}
}

/* A READ longer than one block of bytes that is fetched from the other process
 * at a time; and a READ of 0 bytes. */
static void far__reads_come_piece_by_piece(void **state)
{
	enum {
		LEN = 100000,
		PIECES = (LEN + VB_FORWARD_BYTES - 1) / VB_FORWARD_BYTES
	};
	struct xrc t;

	for (unsigned bad = 0; bad < 2; bad++) {
		open_far(&t);
		if (bad)
			t.b->sim.wire =
				(struct sim_wire){ .lose = 50,
						   .copy = 50,
						   .swap = 50,
						   .delay = 5 * VB_USEC,
						   .jitter = 50 * VB_USEC };
		post_far(&t, 0, WR_READ, 0, 0, LEN);
		post_far(&t, 1, WR_READ, LEN, LEN, 0);
		post_far(&t, 2, WR_READ, 2 * LEN, 2 * LEN, LEN);
		wait_far(t.b, 3000000);
		t.b->logged = t.b->read = 0;
		for (unsigned i = 0; i < 3; i++)
			bench_expect_wc(t.b->pair.send_cq[0], i, WC_SUCCESS);
		assert_memory_equal(t.b->mem[0], t.b->mem[1], LEN);
		assert_memory_equal(t.b->mem[0] + 2 * LEN,
				    t.b->mem[1] + 2 * LEN, LEN);
		assert_true(far.fetches >= 2 * PIECES);
		close_xrc(&t);
	}
}

/* Bytes that were fetched for one READ are not used for another READ of that
 * memory. */
static void far__each_read_sees_memory_anew(void **state)
{
	struct xrc t;

	open_far(&t);
	for (uint8_t i = 1; i < 4; i++) {
		memset(t.b->mem[1], i, 5000);
		post_far(&t, i, WR_READ, 0, 0, 5000);
		wait_far(t.b, 1000);
		assert_int_equal(t.b->mem[0][0], i);
		assert_int_equal(t.b->mem[0][4999], i);
		bench_expect_wc(t.b->pair.send_cq[0], i, WC_SUCCESS);
	}
	t.b->logged = t.b->read = 0;
	close_xrc(&t);
}

/* The response of an ATOMIC WRITE carries no bytes and needs no key. */
static void atomic_write__here_and_far(void **state)
{
	struct xrc t;

	open_far(&t);
	post(&t, 0, WR_ATOMIC_WRITE, 64, 64, 8);
	wait_far(t.b, 1000);
	bench_expect_wc(t.b->pair.send_cq[0], 0, WC_SUCCESS);
	assert_memory_equal(t.b->mem[0] + 64, t.b->mem[1] + 64, 8);
	assert_int_equal(far.count, 0);
	post_far(&t, 1, WR_ATOMIC_WRITE, 128, 128, 8);
	wait_far(t.b, 1000);
	bench_expect_wc(t.b->pair.send_cq[0], 1, WC_SUCCESS);
	assert_memory_equal(t.b->mem[0] + 128, t.b->mem[1] + 128, 8);
	t.b->logged = t.b->read = 0;
	close_xrc(&t);
}

/* The key is revoked while the other process fetches the READ's bytes. */
static void far__a_read_that_fails_in_the_middle(void **state)
{
	static const struct {
		enum vb_fault fault;
		uint8_t syndrome;
		enum vb_wc_status status;
		int event;
		enum vb_why why;
	} rows[] = {
		{ FAULT_RKEY, VB_SYN_NAK_ACCESS, WC_REM_ACCESS_ERR,
		  EVENT_QP_ACCESS_ERR, WHY_XRC_FORWARD },
		{ FAULT_XRC_SRQ, VB_SYN_NAK_INVALID, WC_REM_INV_REQ_ERR,
		  EVENT_QP_REQ_ERR, WHY_XRC_SRQ },
	};

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct xrc t;

		open_far(&t);
		post_far(&t, 0, WR_READ, 0, 0, 3 * VB_FORWARD_BYTES);
		while (far.fetches < 2)
			wait_far(t.b, 20);
		while (!far.fetching)
			bench_wait(t.b, 20);
		t.b->logged = t.b->read = 0;
		give(t.b, rows[i].fault, NULL);
		bench_wait(t.b, 100);
		bench_expect_aeth(
			t.b, 1, rows[i].syndrome,
			far.fetches * VB_FORWARD_BYTES / t.b->pair.qp[1]->mtu -
				VB_FORWARD_BYTES / t.b->pair.qp[1]->mtu);
		bench_expect_wc(t.b->pair.send_cq[0], 0, rows[i].status);
		assert_int_equal(sim_event(&t.b->sim, 1), rows[i].event);
		assert_int_equal(t.b->pair.qp[1]->why, rows[i].why);
		close_xrc(&t);
	}
}

/* The other process has no room, or has ended: the requester retries. */
static void far__a_read_is_asked_for_again(void **state)
{
	struct xrc t;

	open_far(&t);
	post_far(&t, 0, WR_READ, 0, 0, 100);
	while (!far.fetching)
		far.under_way ? judge_far() : bench_wait(t.b, 20);
	give(t.b, FAULT_NO_RQE, NULL);
	bench_expect_silence(t.b, 1);
	wait_far(t.b, 1000000);
	assert_int_equal(far.fetches, 2);
	bench_expect_wc(t.b->pair.send_cq[0], 0, WC_SUCCESS);
	t.b->logged = t.b->read = 0;

	post_far(&t, 1, WR_READ, 0, 0, 100);
	while (!far.fetching)
		far.under_way ? judge_far() : bench_wait(t.b, 20);
	bench_expect_silence(t.b, 1);
	far.is_down = true;
	bench_wait(t.b, 1000000);
	bench_expect_wc(t.b->pair.send_cq[0], 1, WC_REM_INV_REQ_ERR);
	/* The fetched bytes are dropped, as the request has failed. */
	give(t.b, FAULT_NONE, t.b->mem[1]);
	t.b->logged = t.b->read = 0;
	close_xrc(&t);
}

static void far__nobody_is_there(void **state)
{
	struct xrc t;

	open_far(&t);
	far.refusal = FAULT_XRC_SRQ;
	post_far(&t, 0, WR_SEND, 0, 0, 100);
	bench_wait(t.b, 1000);
	bench_expect_aeth(t.b, 1, VB_SYN_NAK_INVALID, 0);
	bench_expect_wc(t.b->pair.send_cq[0], 0, WC_REM_INV_REQ_ERR);
	close_xrc(&t);
}

/* The other process ends with a request in progress: the next retransmission
 * detects it. */
static void far__the_other_process_ends(void **state)
{
	struct xrc t;

	open_far(&t);
	post_far(&t, 0, WR_SEND, 0, 0, 100);
	bench_wait(t.b, 100);
	assert_true(far.under_way);
	bench_expect_silence(t.b, 1);
	far.is_down = true;
	bench_wait(t.b, 1000000);
	bench_expect_aeth(t.b, 1, VB_SYN_NAK_INVALID, 0);
	bench_expect_wc(t.b->pair.send_cq[0], 0, WC_REM_INV_REQ_ERR);
	close_xrc(&t);
}

/* The other process's verdict about a message is ignored if it belongs to an
 * earlier connection or comes twice. */
static void VB_UNCHECKED far__a_late_verdict_is_nothing(void **state)
{
	struct xrc t;
	struct vb_resp *resp;

	open_far(&t);
	post_far(&t, 0, WR_SEND, 0, 0, 100);
	bench_wait(t.b, 100);
	resp = &vb_rc(t.b->pair.qp[1])->resp;
	far.serial++;
	say(FAULT_NONE, 0);
	assert_true(resp->forwarded.pending);
	far.serial--;
	sim_modify(&t.b->sim, t.b->pair.qp[1], QPS_RESET, 0, NULL);
	say(FAULT_NONE, 0);
	assert_int_equal(resp->msn, 0);
	sim_to_rtr(&t.b->sim, &t.b->pair, 1, &sim_attr);
	say(FAULT_NONE, 0);
	assert_int_equal(resp->msn, 0);
	close_xrc(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(far__data_on_a_bad_wire),
		cmocka_unit_test(far__verdicts_become_answers),
		cmocka_unit_test(far__the_message_ends_with_its_receive),
		cmocka_unit_test(far__a_message_broken_off_is_flushed),
		cmocka_unit_test(far__a_message_goes_on_elsewhere),
		cmocka_unit_test(far__reads_come_piece_by_piece),
		cmocka_unit_test(far__each_read_sees_memory_anew),
		cmocka_unit_test(atomic_write__here_and_far),
		cmocka_unit_test(far__a_read_that_fails_in_the_middle),
		cmocka_unit_test(far__a_read_is_asked_for_again),
		cmocka_unit_test(far__nobody_is_there),
		cmocka_unit_test(far__the_other_process_ends),
		cmocka_unit_test(far__a_late_verdict_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP: how a stream ends, coalescing, full queues, and peers on one host. */
#include <errno.h>

#include "tests/protocol/iwarp_fixture.h"

static void VB_UNCHECKED iwarp__fin_between_messages(void **state)
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

static void VB_UNCHECKED iwarp__lost(void **state)
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

/* The program moves the queue pair to ERR while an FPDU is sent only in part:
 * the rest of the FPDU is sent, and no Terminate. */
static void VB_UNCHECKED iwarp__to_err_by_the_program(void **state)
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

static void VB_UNCHECKED iwarp__again_after_reset(void **state)
{
	const uint32_t init = QPM_PKEY_INDEX | QPM_PORT | QPM_ACCESS_FLAGS;
	struct pipe *p = pipe_open(&pipe_terms);

	for (unsigned round = 0; round < 3; round++) {
		pipe_post_recv(p, 1, HALF, 5000);
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

/* Small messages are coalesced while nothing arrives, but only for a short
 * time. */
static void iwarp__small_messages_gather(void **state)
{
	const struct vb_transport_ops *t = &vb_iwarp_ops;
	struct pipe *p = pipe_open(&pipe_terms);
	struct vb_qp *qp = p->pair.qp[0];

	for (unsigned i = 0; i < 8; i++) {
		/* The queue pair's only deadline is that for a silent peer. */
		assert_true(t->deadline(qp) > p->sim.now + 10 * VB_MSEC);
		pipe_post(p, 0, wr(WR_WRITE, 8), 0, 1);
		assert_false(t->can_wait(qp));
		pipe_settle(p);
		expect_sent(p, 0, WC_SUCCESS);
	}
	/* the send queue is empty, so no request may wait to be coalesced */
	assert_false(t->can_wait(qp));
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
	/* A WRITE of 20000 bytes is long enough to be sent alone. */
	pipe_post(p, 0, wr(WR_WRITE, 20000), 0, 1);
	assert_false(t->can_wait(qp));
	pipe_settle(p);
	/* After 200 us a small message is sent although it is alone, and the
	 * next one does not wait. */
	pipe_post(p, 0, wr(WR_WRITE, 8), 0, 1);
	assert_true(t->can_wait(qp));
	p->sim.now += 200 * VB_USEC;
	pipe_settle(p);
	pipe_post(p, 0, wr(WR_WRITE, 8), 0, 1);
	assert_false(t->can_wait(qp));
	/* While responses arrive, the program is assumed to wait for each, so
	 * no request waits. */
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
		pipe_post_recv(p, 1, HALF + i * 100, 100);
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
		pipe_post_recv(p, 1, HALF + i * 5000, 5000);
		pipe_post(p, 0, wr(WR_SEND, 4000), i, 1);
	}
	pipe_settle(p);
	for (unsigned i = 0; i < 3; i++) {
		expect_recv(p, 1, WC_SUCCESS);
		assert_memory_equal(p->mem[1] + HALF + i * 5000, p->mem[0] + i,
				    4000);
	}
	pipe_post(p, 0, wr(WR_SEND, 4000), 0, 1);
	pipe_settle(p);
	expect_term(p, 1, 2, 2);
	assert_int_equal(sim_event(&p->sim, 1), EVENT_LAST_WQE);
	pipe_close(p);
}

/* A fake socket that accepts only a part of the bytes. The end of the message
 * was not accepted, so the message is not complete. */
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
	pipe_post_recv(p, 1, HALF, 3000);
	pipe_post(p, 0, wr(WR_SEND, 1200), 0, 1);
	pipe_turn(p);
	assert_false(sim_poll(p->pair.send_cq[0], &e));
	/* Half of the FPDU was sent, and the rest copied: a change of the
	 * memory no longer has an effect. */
	memset(p->mem[0] + 900, 0x55, 400);
	pipe_turn(p);
	expect_sent(p, 0, WC_SUCCESS);
	expect_recv(p, 1, WC_SUCCESS);
	assert_int_not_equal(p->mem[1][HALF + 1100], 0x55);
	pipe_close(p);
}

/* The batch already contains a bad WQE when the socket accepts only the
 * beginning of the good message before it. */
static void iwarp__bad_behind_what_is_not_taken(void **state)
{
	struct pipe *p = pipe_open(&pipe_terms);
	uint32_t key = p->key[0];
	size_t room = 1000;

	p->cut = take_some;
	p->arg = &room;
	pipe_post_recv(p, 1, HALF, 9000);
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

/* Pieces that are adjacent in memory form one iovec entry, but each memory
 * region of a piece stays referenced. */
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

static struct pipe VB_UNCHECKED *open_near(void)
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

/* The ends exchange cards (messages by which two queue pairs of one host meet)
 * before anything else, until it is decided whether requests go by the stream
 * or by shared memory. */
static void VB_UNCHECKED iwarp__cards_first(void **state)
{
	struct pipe *p = open_near();
	struct vb_rdmap_card card;

	for (unsigned i = 0; i < SIM_SIDES; i++) {
		assert_false(vb_iw_is_idle(p->pair.qp[i], p->sim.now));
		assert_false(vb_iw_has_card(p->pair.qp[i], &card));
		pipe_post_recv(p, i, HALF, 100);
		pipe_post(p, i, wr(WR_SEND, 100), 0, 1);
	}
	pipe_settle(p);
	expect_idle(p);
	for (unsigned i = 0; i < SIM_SIDES; i++) {
		assert_true(vb_iw_is_idle(p->pair.qp[i], p->sim.now));
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

/* While requests go by shared memory, the end of the stream still ends the
 * requests and the queue pair. */
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
		expect_idle(p);
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

/* The peer's queue pair has failed for a reason of its own, and sends a
 * Terminate. */
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

/* Cards (messages by which two queue pairs of one host meet) that are not
 * allowed: one without terms.near, and a second one. */
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester: runs of small messages, and how they are coalesced. */
#include "tests/protocol/rc_fixture.h"

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

static uint32_t VB_UNCHECKED unsent(const struct bench *b)
{
	const struct vb_qp *qp = b->pair.qp[0];

	return vb_sq_end(&qp->sq) - vb_rc(qp)->req.cur;
}

static void post_write(struct bench *b, uint32_t len, uint8_t flags)
{
	post_piece(b, b->mr[0]->key, 0, len, WR_WRITE, flags);
	sim_drive(&b->sim);
}

/* A batch ends at 64 messages, or at the next signaled one; a batch of longer
 * messages ends at as many packets as are in flight. */
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
		/* one WRITE, with which the requester measures the round-trip
		 * time */
		post_write(b, 8, 0);
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

/* A short message behind a long one that the window has stopped must not wait
 * for the whole long one. */
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
	/* All messages except the SENDs were written to one address. */
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

/* The message with the wrong key ends the run of small messages, after all
 * messages before it were sent. */
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
		/* case 3: the key becomes invalid after posting */
		if (bad == 3)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requester__small_messages_gather),
		cmocka_unit_test(requester__a_short_one_holds_up_nothing),
		cmocka_unit_test(requester__a_run_is_what_each_would_be),
		cmocka_unit_test(requester__a_bad_key_in_a_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

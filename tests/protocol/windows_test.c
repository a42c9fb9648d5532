/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows as work requests, and as peers see them: side 1 binds and
 * invalidates, side 0 is the peer. */
#include "core/mw.h"
#include "ib/rc.h"
#include "tests/support/bench.h"

#define RW (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ)

struct window {
	struct bench *b;
	struct vb_mr *region, *mw;
	uint32_t key;
	uint64_t wr_id; /* wr_id of the next request that side 1 posts */
};

static void open_on(struct window *w, struct bench *b, unsigned type)
{
	*w = (struct window){ .b = b };
	assert_int_equal(vb_mr_register(b->sim.side[1].pd, b->mem[1], BENCH_MEM,
					(uintptr_t)b->mem[1],
					ACCESS_LOCAL_WRITE | ACCESS_MW_BIND,
					&w->region),
			 0);
	assert_int_equal(vb_mw_alloc(b->sim.side[1].pd, type, &w->mw, &w->key),
			 0);
}

static void open_window(struct window *w, unsigned type)
{
	open_on(w, bench_open(), type);
}

static void close_window(struct window *w)
{
	vb_mw_free(w->mw);
	assert_int_equal(vb_mr_deregister(w->region), 0);
	bench_close(w->b);
}

static void post(struct window *w, unsigned op, uint32_t at, uint64_t len,
		 uint8_t flags)
{
	struct vb_send_wqe wqe = {
		.wr_id = w->wr_id++,
		.op = (uint8_t)op,
		.flags = flags | SEND_SIGNALED,
		.imm = op == WR_BIND_MW ? RW : w->key,
		.rkey = w->key,
		.swap = w->region->key,
		.remote_addr = (uintptr_t)w->b->mem[1] + at,
		.compare_add = len,
	};

	sim_post_send(w->b->pair.qp[1], &wqe, NULL);
}

static void expect_wc(struct window *w, uint64_t wr_id,
		      enum vb_wc_status status)
{
	bench_expect_wc(w->b->pair.send_cq[1], wr_id, status);
}

/* Side 0 writes @len bytes to offset @at of side 1's memory, with the window's
 * key. */
static void write_by_key(struct window *w, uint32_t at, uint32_t len)
{
	struct vb_ib_pkt pkt = bench_request(w->b, CODE_WRITE_ONLY, 0);

	pkt.reth.va += at;
	pkt.reth.rkey = w->key;
	pkt.reth.length = len;
	bench_inject(w->b, 1, &pkt, len, 0xee);
}

static void bind__completes_without_a_packet(void **state)
{
	struct window w;

	open_window(&w, 2);
	post(&w, WR_BIND_MW, 64, 8, 0);
	bench_wait(w.b, 10);
	expect_wc(&w, 0, WC_SUCCESS);
	bench_expect_silence(w.b, 1);
	assert_int_equal(w.mw->key, w.key);
	write_by_key(&w, 64, 8);
	bench_expect_aeth(w.b, 1, VB_SYN_ACK, 0);
	assert_int_equal(w.b->mem[1][64], 0xee);
	close_window(&w);
}

/* A byte in the region, but outside of the window, is refused. */
static void access__bounds_are_the_windows(void **state)
{
	static const struct {
		uint32_t at, len;
	} rows[] = { { 63, 8 }, { 65, 8 }, { 64, 9 }, { 72, 1 }, { 63, 1 } };

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		struct window w;
		uint8_t before[128];

		open_window(&w, 2);
		post(&w, WR_BIND_MW, 64, 8, 0);
		bench_wait(w.b, 10);
		memcpy(before, w.b->mem[1], sizeof(before));
		write_by_key(&w, rows[i].at, rows[i].len);
		bench_expect_aeth(w.b, 1, VB_SYN_NAK_ACCESS, 0);
		assert_memory_equal(w.b->mem[1], before, sizeof(before));
		close_window(&w);
	}
}

static void access__only_by_the_queue_pair_that_bound_it(void **state)
{
	struct window w;
	struct sim_pair other;
	struct vb_ib_pkt pkt;

	for (unsigned type = 1; type <= 2; type++) {
		open_window(&w, type);
		sim_connect(&w.b->sim, &other, &sim_attr, &sim_caps);
		post(&w, WR_BIND_MW, 64, 8, 0);
		bench_wait(w.b, 10);
		pkt = bench_request(w.b, CODE_WRITE_ONLY, 0);
		pkt.bth.dqpn = atomic_load(&other.qp[1]->qpn);
		pkt.reth.va += 64;
		pkt.reth.rkey = w.key;
		pkt.reth.length = 8;
		bench_inject(w.b, 1, &pkt, 8, 0xee);
		bench_expect_aeth(
			w.b, 1, type == 1 ? VB_SYN_ACK : VB_SYN_NAK_ACCESS, 0);
		sim_disconnect(&w.b->sim, &other);
		close_window(&w);
	}
}

static void bind__refused_ends_the_queue_pair(void **state)
{
	struct window w;

	open_window(&w, 2);
	post(&w, WR_BIND_MW, 0, BENCH_MEM + 1, 0);
	post(&w, WR_BIND_MW, 0, 8, 0);
	bench_wait(w.b, 10);
	expect_wc(&w, 0, WC_MW_BIND_ERR);
	expect_wc(&w, 1, WC_FLUSH_ERR);
	assert_int_equal(atomic_load(&w.b->pair.qp[1]->state), QPS_ERR);
	assert_int_equal(w.mw->key, 0);
	close_window(&w);
}

/* Window operations keep their order among messages, and so do their
 * completions (IBA 10.8.3.3). */
static void local__between_messages_on_a_bad_wire(void **state)
{
	struct window w;

	open_window(&w, 2);
	w.b->sim.wire.lose = 1000;
	for (unsigned i = 0; i < 40; i++) {
		bench_post(w.b, 1, WR_WRITE, 0, 3000, 0);
		post(&w, WR_BIND_MW, 8 * i, 8, 0);
		bench_post(w.b, 1, WR_READ, 4096, 3000, 0);
		post(&w, WR_LOCAL_INV, 0, 0, i & 1 ? SEND_FENCE : 0);
		bench_wait(w.b, 200000);
		w.wr_id = 0;
		for (unsigned n = 0; n < 4; n++) {
			struct vb_cqe e;
			static const uint8_t ops[] = {
				WC_OP_WRITE,
				WC_OP_BIND_MW,
				WC_OP_READ,
				WC_OP_LOCAL_INV,
			};

			assert_true(sim_poll(w.b->pair.send_cq[1], &e));
			assert_int_equal(e.status, WC_SUCCESS);
			assert_int_equal(e.opcode, ops[n]);
		}
		assert_int_equal(w.mw->key, 0);
	}
	close_window(&w);
}

static void local__fence_waits_for_the_answer(void **state)
{
	struct window w;

	open_window(&w, 2);
	bench_post(w.b, 1, WR_READ, 0, 8, 0);
	post(&w, WR_BIND_MW, 0, 8, SEND_FENCE);
	sim_drive(&w.b->sim);
	assert_int_equal(w.mw->key, 0);
	bench_wait(w.b, 1000);
	assert_int_equal(w.mw->key, w.key);
	close_window(&w);
}

static struct vb_ib_pkt send_inv(const struct window *w, int nth)
{
	struct vb_ib_pkt pkt = bench_request(w->b, CODE_SEND_ONLY_INV, nth);

	pkt.ieth_rkey = w->key;
	return pkt;
}

static void send_inv__the_receive_tells_which(void **state)
{
	struct window w;
	struct vb_ib_pkt pkt;
	struct vb_cqe e;

	open_window(&w, 2);
	post(&w, WR_BIND_MW, 64, 8, 0);
	bench_post_recv(w.b, 1, 5, 1024, 64);
	bench_wait(w.b, 10);
	pkt = send_inv(&w, 0);
	bench_inject(w.b, 1, &pkt, 8, 1);
	bench_expect_aeth(w.b, 1, VB_SYN_ACK, 0);
	assert_true(sim_poll(w.b->pair.recv_cq[1], &e));
	assert_int_equal(e.status, WC_SUCCESS);
	assert_int_equal(e.wc_flags, WC_WITH_INV);
	assert_int_equal(e.imm, w.key);
	assert_int_equal(e.byte_len, 8);
	assert_int_equal(w.mw->key, 0);
	/* A duplicate of the invalidating SEND is answered without an error. */
	pkt = send_inv(&w, 0);
	bench_inject(w.b, 1, &pkt, 8, 1);
	bench_expect_aeth(w.b, 1, VB_SYN_ACK, 0);
	assert_int_equal(atomic_load(&w.b->pair.qp[1]->state), QPS_RTS);
	close_window(&w);
}

/* The window is invalidated while a run of packets uses it: the run releases
 * the window, and later packets are refused. */
static void send_inv__in_a_run(void **state)
{
	struct vb_ib_pkt write, inv;
	struct window w;
	struct vb_qp *qp;

	open_window(&w, 2);
	qp = w.b->pair.qp[1];
	post(&w, WR_BIND_MW, 64, 8, 0);
	bench_post_recv(w.b, 1, 5, 1024, 64);
	bench_wait(w.b, 10);
	write = bench_request(w.b, CODE_WRITE_ONLY, 0);
	write.reth = (struct vb_reth){ (uintptr_t)w.b->mem[1] + 64, w.key, 8 };
	qp->ops->run(qp, true);
	bench_inject(w.b, 1, &write, 8, 7);
	bench_expect_aeth(w.b, 1, VB_SYN_ACK, 0);
	assert_int_equal(w.b->mem[1][64], 7);
	vb_mutex_lock(&qp->drive);
	assert_ptr_equal(vb_rc(qp)->resp.in.run.mr, w.mw);
	vb_mutex_unlock(&qp->drive);
	inv = send_inv(&w, 1);
	bench_inject(w.b, 1, &inv, 8, 1);
	bench_expect_aeth(w.b, 1, VB_SYN_ACK, 1);
	assert_int_equal(w.mw->key, 0);
	write.bth.psn = vb_psn_add(write.bth.psn, 2);
	bench_inject(w.b, 1, &write, 8, 9);
	bench_expect_aeth(w.b, 1, VB_SYN_NAK_ACCESS, 2);
	assert_int_equal(w.b->mem[1][64], 7);
	qp->ops->run(qp, false);
	close_window(&w);
}

static void send_inv__of_what_is_not_its_own(void **state)
{
	for (unsigned type = 1; type <= 2; type++) {
		struct window w;
		struct vb_ib_pkt pkt;

		open_window(&w, type);
		if (type == 1)
			post(&w, WR_BIND_MW, 64, 8, 0);
		bench_post_recv(w.b, 1, 5, 1024, 64);
		bench_wait(w.b, 10);
		pkt = send_inv(&w, 0);
		bench_inject(w.b, 1, &pkt, 8, 1);
		bench_expect_wc(w.b->pair.recv_cq[1], 5, WC_REM_INV_REQ_ERR);
		assert_int_equal(atomic_load(&w.b->pair.qp[1]->state), QPS_ERR);
		assert_int_equal(w.mw->key, type == 1 ? w.key : 0);
		close_window(&w);
	}
}

static void send_inv__from_a_work_request(void **state)
{
	struct window w;
	struct vb_cqe e;
	struct vb_send_wqe wqe = { .op = WR_SEND_INV,
				   .flags = SEND_SIGNALED,
				   .length = 3000 };
	struct vb_sge sge;

	open_window(&w, 2);
	sge = (struct vb_sge){ (uintptr_t)w.b->mem[0], 3000, w.b->mr[0]->key };
	post(&w, WR_BIND_MW, 64, 8, 0);
	bench_post_recv(w.b, 1, 5, 4096, 4096);
	bench_wait(w.b, 10);
	wqe.imm = w.key;
	wqe.num_sge = 1;
	sim_post_send(w.b->pair.qp[0], &wqe, &sge);
	bench_wait(w.b, 1000);
	bench_expect_wc(w.b->pair.send_cq[0], 0, WC_SUCCESS);
	assert_true(sim_poll(w.b->pair.recv_cq[1], &e));
	assert_int_equal(e.wc_flags, WC_WITH_INV);
	assert_int_equal(e.imm, w.key);
	assert_int_equal(w.mw->key, 0);
	close_window(&w);
}

/* UC queue pairs can bind, use and invalidate windows (IBA 10.8.3). */
static void unreliable__bind_use_invalidate(void **state)
{
	struct sim_caps caps = sim_caps;
	struct window w;
	struct vb_send_wqe wqe = { .op = WR_WRITE,
				   .flags = SEND_SIGNALED,
				   .length = 8,
				   .num_sge = 1 };
	struct vb_sge sge;

	caps.type = QPT_UC;
	open_on(&w, bench_open_as(&sim_attr, &caps), 2);
	sge = (struct vb_sge){ (uintptr_t)w.b->mem[0], 8, w.b->mr[0]->key };
	wqe.remote_addr = (uintptr_t)w.b->mem[1] + 64;
	wqe.rkey = w.key;
	post(&w, WR_BIND_MW, 64, 8, 0);
	/* the second bind fails, because the window is already bound */
	post(&w, WR_BIND_MW, 64, 8, 0);
	post(&w, WR_LOCAL_INV, 0, 0, 0);
	bench_wait(w.b, 10);
	expect_wc(&w, 0, WC_SUCCESS);
	expect_wc(&w, 1, WC_MW_BIND_ERR);
	assert_int_equal(w.mw->key, w.key);
	sim_post_send(w.b->pair.qp[0], &wqe, &sge);
	bench_wait(w.b, 100);
	assert_memory_equal(w.b->mem[1] + 64, w.b->mem[0], 8);
	close_window(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bind__completes_without_a_packet),
		cmocka_unit_test(access__bounds_are_the_windows),
		cmocka_unit_test(access__only_by_the_queue_pair_that_bound_it),
		cmocka_unit_test(bind__refused_ends_the_queue_pair),
		cmocka_unit_test(local__between_messages_on_a_bad_wire),
		cmocka_unit_test(local__fence_waits_for_the_answer),
		cmocka_unit_test(send_inv__the_receive_tells_which),
		cmocka_unit_test(send_inv__in_a_run),
		cmocka_unit_test(send_inv__of_what_is_not_its_own),
		cmocka_unit_test(send_inv__from_a_work_request),
		cmocka_unit_test(unreliable__bind_use_invalidate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

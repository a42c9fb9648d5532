/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC on the wire (IBA annex A14): side 0 is the initiator, side 1 the target,
 * which has a second domain and a second protection domain. */
#include <string.h>

#include "core/lock_order.h"
#include "ib/xrc_forward.h"
#include "tests/support/bench.h"

struct xrc {
	struct bench *b;
	struct vb_pd *pd;	/* a second one of side 1 */
	struct vb_mr *mr;	/* the same memory, in that pd */
	struct vb_srq *srq;	/* of the first XRC domain, in that pd */
	struct vb_cq *cq;	/* its completion queue */
	struct vb_xrcd *far;	/* another XRC domain... */
	struct vb_srq *strange; /* ...and an SRQ of it */
};

static struct vb_srq *make_srq(struct sim_side *side, struct vb_pd *pd,
			       struct vb_xrcd *x, struct vb_cq *cq)
{
	struct vb_srq *srq;

	assert_int_equal(vb_srq_create(pd, 64, 2, &side->async, NULL, &srq), 0);
	srq->owner = srq;
	assert_int_equal(vb_xrc_srq_join(srq, x, cq), 0);
	return srq;
}

static void open_xrc_as(struct xrc *t, const struct vb_qp_attr *attr)
{
	struct sim_caps caps = sim_caps;
	struct sim_side *side;

	caps.type = QPT_XRC_SEND;
	*t = (struct xrc){ .b = bench_open_as(attr, &caps) };
	side = &t->b->sim.side[1];
	assert_int_equal(vb_pd_create(&side->adapter, &t->pd), 0);
	assert_int_equal(
		vb_mr_register(
			t->pd, t->b->mem[1], BENCH_MEM, (uintptr_t)t->b->mem[1],
			ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
				ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
			&t->mr),
		0);
	assert_int_equal(
		vb_cq_create(&side->adapter, 64, NULL, &side->async, &t->cq),
		0);
	t->srq = make_srq(side, t->pd, t->b->pair.xrcd, t->cq);
	assert_int_equal(vb_xrcd_open(&side->adapter, NULL, 0, &t->far), 0);
	t->strange = make_srq(side, t->pd, t->far, t->cq);
}

static void open_xrc(struct xrc *t)
{
	open_xrc_as(t, &sim_attr);
}

static void close_xrc(struct xrc *t)
{
	if (t->srq)
		assert_int_equal(vb_srq_destroy(t->srq), 0);
	assert_int_equal(vb_srq_destroy(t->strange), 0);
	assert_int_equal(vb_cq_destroy(t->cq), 0);
	assert_int_equal(vb_xrcd_close(t->far), 0);
	assert_int_equal(vb_mr_deregister(t->mr), 0);
	assert_int_equal(vb_pd_destroy(t->pd), 0);
	bench_close(t->b);
}

static void post_recv(struct xrc *t, uint64_t wr_id, uint32_t at, uint32_t len)
{
	struct vb_sge sge = { (uintptr_t)t->b->mem[1] + at, len, t->mr->key };

	assert_int_equal(vb_rq_post(&t->srq->rq, wr_id, &sge, 1), 0);
}

/* Like bench_post(), to the second SRQ. */
static void post(struct xrc *t, uint64_t wr_id, enum vb_wr_op op, uint32_t from,
		 uint32_t to, uint32_t len)
{
	struct vb_sge sge = { (uintptr_t)t->b->mem[0] + from, len,
			      t->b->mr[0]->key };
	struct vb_send_wqe wqe = {
		.wr_id = wr_id,
		.op = (uint8_t)op,
		.flags = SEND_SIGNALED,
		.imm = 0x11223344,
		.length = len,
		.num_sge = 1,
		.remote_addr = (uintptr_t)t->b->mem[1] + to,
		.rkey = t->mr->key,
		.compare_add = 1,
		.srqn = t->srq->number,
	};

	sim_post_send(t->b->pair.qp[0], &wqe, &sge);
}

/* Regular operation. */

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

/* Each request carries the SRQ's number, no response does (IBA annex A14). */
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
	bench_post_recv(t.b, 1, 7, 0, 4096); /* of another SRQ: not taken */
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

/* Messages to several SRQs overlap with responses to READs. */
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

/* Faults. */

static void expect_refused(struct xrc *t, uint8_t syndrome, int event)
{
	bench_expect_aeth(t->b, 1, syndrome, 0);
	assert_int_equal(atomic_load(&t->b->pair.qp[1]->state), QPS_ERR);
	assert_int_equal(sim_event(&t->b->sim, 1), event);
	bench_expect_no_wc(t->cq);
	bench_expect_no_wc(t->b->pair.recv_cq[1]);
}

/* Each kind of request, to each SRQ that it must not reach. */
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

/* The status that the initiator's program gets. */
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

/* The key is valid in the other protection domain only. */
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

/* A message must keep its SRQ; its receive completes in the SRQ it came
 * from. */
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

/* The responses wait for the batch, and the SRQ is destroyed meanwhile. */
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
	t.b->sim.side[1].adapter.transport->recv(t.b->pair.qp[1], &pkt,
						 t.b->sim.now);
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

/* An SRQ of another process: what is forwarded, and what comes back. Side 1
 * plays the other process, too; the SRQ's number has this bit in addition. */
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

/* Advance the time; the other process answers every 20 us. */
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
		/* A request to an SRQ of this process between them, and a
		 * READ. */
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
	} rows[] = {
		{ FAULT_NONE, VB_SYN_ACK, -1 },
		{ FAULT_NO_RQE, VB_SYN_RNR | 12, -1 },
		{ FAULT_RKEY, VB_SYN_NAK_ACCESS, EVENT_QP_ACCESS_ERR },
		{ FAULT_RQE_LKEY, VB_SYN_NAK_OP, -1 },
		{ FAULT_RQE_TOO_SMALL, VB_SYN_NAK_INVALID, EVENT_QP_REQ_ERR },
		{ FAULT_XRC_SRQ, VB_SYN_NAK_INVALID, EVENT_QP_REQ_ERR },
		{ FAULT_XRC_DOMAIN, VB_SYN_NAK_INVALID, EVENT_QP_REQ_ERR },
		{ FAULT_XRC_FAR, VB_SYN_NAK_OP, EVENT_QP_FATAL },
	};

	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct xrc t;

		open_far(&t);
		post_far(&t, 0, WR_SEND, 0, 0, 100);
		bench_wait(t.b, 100);
		bench_expect_silence(t.b, 1); /* no answer before the verdict */
		say(rows[i].fault, 0);
		bench_wait(t.b, 10);
		bench_expect_aeth(t.b, 1, rows[i].syndrome, 0);
		assert_int_equal(sim_event(&t.b->sim, 1), rows[i].event);
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
	for (unsigned i = 0; i < 2; i++) { /* the first packet twice, each time from the beginning */
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

/* A READ longer than one piece; and one of 0 bytes. */
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

/* Bytes fetched for one READ do not serve another of the same memory. */
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

/* The response of an ATOMIC WRITE needs no bytes and no key. */
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

/* The key is revoked while the bytes are fetched. */
static void far__a_read_that_fails_in_the_middle(void **state)
{
	static const struct {
		enum vb_fault fault;
		uint8_t syndrome;
		enum vb_wc_status status;
		int event;
	} rows[] = {
		{ FAULT_RKEY, VB_SYN_NAK_ACCESS, WC_REM_ACCESS_ERR,
		  EVENT_QP_ACCESS_ERR },
		{ FAULT_XRC_SRQ, VB_SYN_NAK_INVALID, WC_REM_INV_REQ_ERR,
		  EVENT_QP_REQ_ERR },
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
		close_xrc(&t);
	}
}

/* The other process has no room, or is gone: the requester tries again. */
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
	/* The bytes arrive too late. */
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

/* A verdict for an earlier connection, or a second one. */
static void far__a_late_verdict_is_nothing(void **state)
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

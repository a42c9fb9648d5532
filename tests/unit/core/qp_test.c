/* SPDX-License-Identifier: BSD-2-Clause */
/* core/qp: create and destroy, completions, flush, full completion queue. */
#include "qp_fixture.h"

#include <pthread.h>

static void create__refusals(void **state)
{
	struct fixture *f = *state;
	struct vb_adapter other = { 0 };
	struct vb_pd foreign_pd = { .adapter = &other };
	struct vb_cq foreign_cq = { .adapter = &other };
	struct vb_srq foreign_srq = { .pd = &foreign_pd };
	struct vb_qp *qp = NULL;
	struct vb_qp_init i;

#define REFUSED(rc, ...)                                                       \
	do {                                                                   \
		i = init_of(f);                                                \
		__VA_ARGS__;                                                   \
		assert_int_equal(vb_qp_create(&f->a, &i, &qp), (rc));          \
	} while (0)
	REFUSED(-EINVAL, i.type = QPT_XRC_SEND, i.send_cq = NULL);
	REFUSED(-EINVAL, i.type = QPT_XRC_SEND, i.pd = NULL);
	REFUSED(-EINVAL, i.type = QPT_XRC_RECV);
	REFUSED(-EOPNOTSUPP, i.type = 0);
	REFUSED(-EOPNOTSUPP, i.type = 255);
	REFUSED(-EINVAL, i.pd = NULL);
	REFUSED(-EINVAL, i.send_cq = NULL);
	REFUSED(-EINVAL, i.recv_cq = NULL);
	REFUSED(-EINVAL, i.pd = &foreign_pd);
	REFUSED(-EINVAL, i.send_cq = &foreign_cq);
	REFUSED(-EINVAL, i.recv_cq = &foreign_cq);
	REFUSED(-EINVAL, i.srq = &foreign_srq);
	REFUSED(-EINVAL, i.max_send_wr = 32769);
	REFUSED(-EINVAL, i.max_recv_wr = 32769);
	REFUSED(-EINVAL, i.max_send_sge = 33);
	REFUSED(-EINVAL, i.max_recv_sge = 33);
	REFUSED(-EINVAL, i.max_inline = 1025);
	REFUSED(-EINVAL, i.max_send_wr = UINT32_MAX);
	REFUSED(-ENOMEM, told.attach_rc = -ENOMEM);
	told.attach_rc = 0;
	REFUSED(-ENOMEM, atomic_store(&f->a.n_qp, vb_limits.max_qp));
	atomic_store(&f->a.n_qp, 0);
#undef REFUSED
	assert_null(qp);
	assert_int_equal(f->pd->refs, 0);
	assert_int_equal(f->cq->refs, 0);
	assert_int_equal(vb_idtab_used(f->a.qps), 0);
	assert_int_equal(told.attached, told.detached);
}

static void create__full_table(void **state)
{
	struct fixture *f = *state;
	struct vb_idtab *small = vb_idtab_create(1, 0), *qps = f->a.qps;
	struct vb_qp_init i = init_of(f);
	struct vb_qp *qp, *second;

	f->a.qps = small;
	qp = make(f, i);
	assert_int_equal(vb_qp_create(&f->a, &i, &second), -ENOMEM);
	assert_int_equal(told.detached, 1);
	assert_int_equal(f->pd->refs, 1);
	assert_int_equal(f->a.n_qp, 1);
	vb_qp_destroy(qp);
	qp = make(f, i);
	vb_qp_destroy(qp);
	f->a.qps = qps;
	vb_idtab_destroy(small);
}

static void create__caps_given_are_at_least_asked(void **state)
{
	struct fixture *f = *state;
	struct vb_qp_init i = init_of(f);
	struct vb_qp *qp;

	i.max_send_wr = 100;
	i.max_recv_wr = 33;
	i.max_send_sge = 3;
	i.max_recv_sge = 5;
	i.max_inline = 50;
	assert_int_equal(vb_qp_create(&f->a, &i, &qp), 0);
	assert_int_equal(i.max_send_wr, 128);
	assert_int_equal(i.max_recv_wr, 64);
	assert_int_equal(i.max_send_sge, 3);
	assert_int_equal(i.max_recv_sge, 5);
	assert_int_equal(i.max_inline, 64);
	vb_qp_destroy(qp);

	i = init_of(f);
	i.max_send_wr = i.max_recv_wr = i.max_send_sge = i.max_recv_sge = 0;
	assert_int_equal(vb_qp_create(&f->a, &i, &qp), 0);
	assert_int_equal(i.max_send_wr + i.max_recv_wr + i.max_inline, 0);
	/* ERR flushes nothing from queues without requests */
	bring_to(qp, QPS_ERR);
	vb_qp_destroy(qp);
}

/* Thousands of idle connections must need little memory. */
static void create__idle_memory(void **state)
{
	struct fixture *f = *state;
	struct vb_qp_init i = init_of(f);
	struct vb_qp *qp;

	i.max_send_wr = i.max_recv_wr = 64;
	qp = make(f, i);
	assert_true(sizeof(*qp) + qp->sq.cap * qp->sq.stride +
			    qp->rq.cap * qp->rq.stride <
		    10 * 1024);
	vb_qp_destroy(qp);
}

static void VB_UNCHECKED create__references(void **state)
{
	struct fixture *f = *state;
	struct vb_qp_init i = init_of(f);
	struct vb_qp *qp;

	assert_int_equal(vb_srq_create(f->pd, 4, 1, &f->async, NULL, &i.srq),
			 0);
	/* ignored, because the queue pair has an SRQ */
	i.max_recv_wr = UINT32_MAX;
	assert_int_equal(vb_qp_create(&f->a, &i, &qp), 0);
	assert_int_equal(i.max_recv_wr, 0);
	assert_int_equal(vb_pd_destroy(f->pd), -EBUSY);
	assert_int_equal(vb_cq_destroy(f->cq), -EBUSY);
	assert_int_equal(vb_srq_destroy(i.srq), -EBUSY);
	assert_ptr_equal(vb_idtab_get(f->a.qps, qp->index), qp);
	assert_int_equal(qp->qpn, QPN_BASE | qp->index);
	assert_int_equal(qp->state, QPS_RESET);
	vb_qp_event(qp, EVENT_COMM_EST);
	vb_qp_destroy(qp);
	assert_int_equal(told.detached, 1);
	/* Destroying the queue pair also dropped its asynchronous events. */
	assert_false(is_readable(f->async.fd));
	assert_int_equal(vb_srq_destroy(i.srq), 0);
	assert_int_equal(f->cq->refs, 0);
}

static void VB_UNCHECKED destroy__memory_is_recycled_and_clean(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f)), *again;
	uint32_t index = qp->index;

	bring_to(qp, QPS_RTS);
	post_send(qp, 1, WR_SEND, SEND_SIGNALED);
	post_recv(qp, 2);
	assert_true(vb_qp_recv_begin(qp));
	vb_qp_send_done(qp, WC_SUCCESS);
	qp->comm_est_sent = true;
	qp->priv[PRIV_ENGINE] = qp;
	vb_qp_destroy(qp);
	assert_null(vb_idtab_get(f->a.qps, index));
	assert_int_equal(qp->qpn, 0);
	/* destroying the queue pair removed its completions */
	assert_empty(f->cq);

	again = make(f, init_of(f));
	assert_ptr_equal(again, qp);
	assert_int_not_equal(again->index, index);
	assert_int_equal(again->state, QPS_RESET);
	assert_int_equal(again->sq.posted | again->sq.done | again->rq.posted |
				 again->mtu | again->attr.dest_qp_num,
			 0);
	assert_false(again->recv_busy || again->comm_est_sent);
	/* Core does not change the private pointers, which other parts of the
	 * library set. */
	assert_ptr_equal(again->priv[PRIV_ENGINE], qp);
	again->priv[PRIV_ENGINE] = NULL;
	vb_qp_destroy(again);
}

static void VB_UNCHECKED send_done__opcodes(void **state)
{
	static const struct {
		uint8_t wr, wc;
	} rows[] = {
		{ WR_WRITE, WC_OP_WRITE },
		{ WR_WRITE_IMM, WC_OP_WRITE },
		{ WR_SEND, WC_OP_SEND },
		{ WR_SEND_IMM, WC_OP_SEND },
		{ WR_READ, WC_OP_READ },
		{ WR_CMP_SWAP, WC_OP_CMP_SWAP },
		{ WR_FETCH_ADD, WC_OP_FETCH_ADD },
		{ WR_LOCAL_INV, WC_OP_LOCAL_INV },
		{ WR_BIND_MW, WC_OP_BIND_MW },
		{ WR_SEND_INV, WC_OP_SEND },
	};
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));

	for (size_t i = 0; i < VB_COUNT(rows); i++) {
		struct vb_cqe e;

		post_send(qp, i, rows[i].wr, SEND_SIGNALED);
		vb_qp_send_done(qp, WC_SUCCESS);
		e = polled(f->cq);
		assert_int_equal(e.wr_id, i);
		assert_int_equal(e.status, WC_SUCCESS);
		assert_int_equal(e.opcode, rows[i].wc);
		assert_int_equal(e.byte_len, 40);
		assert_int_equal(e.qpn, qp->qpn);
		assert_false(vb_cqe_is_recv(&e));
	}
	vb_qp_destroy(qp);
}

static void VB_UNCHECKED
send_done__unsignalled_are_silent_unless_bad(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));

	post_send(qp, 1, WR_SEND, 0);
	post_send(qp, 2, WR_SEND, 0);
	vb_qp_send_done(qp, WC_SUCCESS);
	assert_empty(f->cq);
	vb_qp_send_done(qp, WC_RETRY_EXC_ERR);
	assert_cqe(f->cq, 2, WC_RETRY_EXC_ERR, WC_OP_SEND);
	assert_int_equal(qp->state,
			 /* the transport, not core, then moves it to ERR */
			 QPS_RESET);
	vb_qp_destroy(qp);
}

static void VB_UNCHECKED send_done__sig_all(void **state)
{
	struct fixture *f = *state;
	struct vb_qp_init i = init_of(f);
	struct vb_qp *qp;

	i.sig_all = true;
	qp = make(f, i);
	post_send(qp, 1, WR_READ, 0);
	vb_qp_send_done(qp, WC_SUCCESS);
	assert_cqe(f->cq, 1, WC_SUCCESS, WC_OP_READ);
	/* The send queue is empty, so the call completes no request. */
	vb_qp_send_done(qp, WC_SUCCESS);
	assert_empty(f->cq);
	vb_qp_destroy(qp);
}

static void VB_UNCHECKED send_done__slots_free_with_the_polled_one(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));

	/* Indices of the send queue near their 32-bit wrap: */
	qp->sq.done = UINT32_MAX - 1;
	qp->sq.posted = UINT32_MAX - 1;
	qp->sq.released = UINT32_MAX - 1;
	for (int i = 0; i < 4; i++)
		post_send(qp, i, WR_WRITE, i == 2 ? SEND_SIGNALED : 0);
	assert_null(vb_sq_begin(&qp->sq));
	for (int i = 0; i < 4; i++)
		vb_qp_send_done(qp, WC_SUCCESS);
	/* A completed request keeps its slot until the program polls. */
	assert_null(vb_sq_begin(&qp->sq));
	assert_cqe(f->cq, 2, WC_SUCCESS, WC_OP_WRITE);
	for (int i = 0; i < 3; i++)
		post_send(qp, i, WR_WRITE, 0);
	/* the last request keeps its slot until its completion is polled */
	assert_null(vb_sq_begin(&qp->sq));
	vb_qp_destroy(qp);
}

static void VB_UNCHECKED recv_done__everything_in_the_entry(void **state)
{
	const struct vb_recv_done d = {
		.opcode = WC_OP_RECV_WRITE_IMM,
		.byte_len = 1 << 30,
		.imm = 0x01020304,
		.src_qp = 9,
		.wc_flags = WC_WITH_IMM,
	};
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));
	struct vb_cqe e;

	assert_false(vb_qp_recv_begin(qp));
	assert_false(qp->recv_busy);
	/* No receive is in progress, so the call completes none. */
	vb_qp_recv_done(qp, &d);
	assert_empty(f->cq);
	for (int i = 0; i < 4; i++)
		post_recv(qp, 50 + i);
	assert_true(vb_qp_recv_begin(qp));
	assert_true(qp->recv_busy);
	assert_int_equal(qp->recv.wr_id, 50);
	vb_qp_recv_done(qp, &d);
	assert_false(qp->recv_busy);
	assert_int_equal(vb_rq_post(&qp->rq, 1, NULL, 0), -ENOMEM);
	e = polled(f->cq);
	assert_int_equal(vb_rq_post(&qp->rq, 1, NULL, 0), 0);
	assert_int_equal(e.wr_id, 50);
	assert_int_equal(e.opcode, WC_OP_RECV_WRITE_IMM);
	assert_int_equal(e.byte_len, 1 << 30);
	assert_int_equal(e.imm, 0x01020304);
	assert_int_equal(e.src_qp, 9);
	assert_int_equal(e.wc_flags, WC_WITH_IMM);
	assert_true(vb_cqe_is_recv(&e));
	vb_qp_destroy(qp);
}

static void VB_UNCHECKED recv_done__solicited_wakes(void **state)
{
	struct vb_recv_done d = { .opcode = WC_OP_RECV };
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));

	vb_cq_arm(f->cq, true);
	post_recv(qp, 1);
	post_recv(qp, 2);
	assert_true(vb_qp_recv_begin(qp));
	vb_qp_recv_done(qp, &d);
	assert_false(is_readable(f->channel.fd));
	d.solicited = true;
	assert_true(vb_qp_recv_begin(qp));
	vb_qp_recv_done(qp, &d);
	assert_true(is_readable(f->channel.fd));
	vb_qp_destroy(qp);
}

static void VB_UNCHECKED fail__flushes_in_order(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));

	bring_to(qp, QPS_RTS);
	post_send(qp, 1, WR_SEND, 0);
	/* This request is not signaled, but when flushed it makes an entry. */
	post_send(qp, 2, WR_READ, 0);
	post_send(qp, 3, WR_WRITE, SEND_SIGNALED);
	for (int i = 0; i < 3; i++)
		post_recv(qp, 10 + i);
	assert_true(vb_qp_recv_begin(qp));
	vb_qp_send_done(qp, WC_REM_ACCESS_ERR);
	vb_qp_fail(qp, EVENT_QP_ACCESS_ERR);
	assert_int_equal(qp->state, QPS_ERR);
	assert_event(f, EVENT_QP_ACCESS_ERR);
	assert_cqe(f->cq, 1, WC_REM_ACCESS_ERR, WC_OP_SEND);
	assert_cqe(f->cq, 2, WC_FLUSH_ERR, WC_OP_READ);
	assert_cqe(f->cq, 3, WC_FLUSH_ERR, WC_OP_WRITE);
	for (int i = 0; i < 3; i++)
		assert_cqe(f->cq, 10 + i, WC_FLUSH_ERR, WC_OP_RECV);
	assert_empty(f->cq);
	/* this call has no effect, because the queue pair is in ERR already */
	vb_qp_fail(qp, EVENT_QP_FATAL);
	assert_false(is_readable(f->async.fd));
	vb_qp_destroy(qp);
}

static void VB_UNCHECKED
fail__receive_completed_before_is_not_flushed_again(void **state)
{
	const struct vb_recv_done d = { .status = WC_LOC_LEN_ERR,
					.opcode = WC_OP_RECV };
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));

	bring_to(qp, QPS_RTR);
	post_recv(qp, 1);
	post_recv(qp, 2);
	assert_true(vb_qp_recv_begin(qp));
	vb_qp_recv_done(qp, &d);
	vb_qp_fail(qp, -1);
	assert_false(is_readable(f->async.fd));
	assert_cqe(f->cq, 1, WC_LOC_LEN_ERR, WC_OP_RECV);
	assert_cqe(f->cq, 2, WC_FLUSH_ERR, WC_OP_RECV);
	assert_empty(f->cq);
	vb_qp_destroy(qp);
}

static void VB_UNCHECKED flush__what_was_posted_since(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));

	post_recv(qp, 1);
	/* The queue pair is not in ERR, so nothing is flushed. */
	vb_qp_flush(qp);
	assert_empty(f->cq);
	bring_to(qp, QPS_ERR);
	/* RESET, on the way to ERR, emptied the queue without completions. */
	assert_empty(f->cq);
	post_send(qp, 2, WR_SEND, 0);
	post_recv(qp, 3);
	vb_qp_flush(qp);
	assert_cqe(f->cq, 2, WC_FLUSH_ERR, WC_OP_SEND);
	assert_cqe(f->cq, 3, WC_FLUSH_ERR, WC_OP_RECV);
	vb_qp_flush(qp);
	assert_empty(f->cq);
	vb_qp_destroy(qp);
}

static void VB_UNCHECKED fail__shared_receives_stay_for_others(void **state)
{
	struct fixture *f = *state;
	struct vb_qp_init i = init_of(f);
	struct vb_qp *qp;
	struct vb_recv_wqe w;

	assert_int_equal(vb_srq_create(f->pd, 4, 1, NULL, NULL, &i.srq), 0);
	qp = make(f, i);
	bring_to(qp, QPS_RTR);
	post_recv(qp, 1);
	post_recv(qp, 2);
	assert_true(vb_qp_recv_begin(qp));
	vb_qp_fail(qp, -1);
	assert_cqe(f->cq, 1, WC_FLUSH_ERR, WC_OP_RECV);
	assert_empty(f->cq);
	assert_event(f, EVENT_LAST_WQE);
	vb_qp_flush(qp);
	/* The event LAST_WQE_REACHED is raised only once. */
	assert_false(is_readable(f->async.fd));
	assert_true(vb_srq_take(i.srq, &w));
	assert_int_equal(w.wr_id, 2);
	/* RESET makes a second LAST_WQE_REACHED possible */
	bring_to(qp, QPS_RTR);
	assert_int_equal(modify(qp, QPS_ERR, QPM_STATE), 0);
	assert_event(f, EVENT_LAST_WQE);
	vb_qp_destroy(qp);
	assert_int_equal(vb_srq_destroy(i.srq), 0);
}

static void VB_UNCHECKED overrun__kills_the_queue_pair_once(void **state)
{
	struct fixture *f = *state;
	struct vb_qp_init i = init_of(f);
	struct vb_cq *cq;
	struct vb_qp *qp;

	assert_int_equal(vb_cq_create_in(&f->a, 1, NULL, &f->async, NULL, &cq),
			 0);
	cq->owner = cq;
	i.send_cq = cq;
	qp = make(f, i);
	bring_to(qp, QPS_RTS);
	for (int n = 0; n < 4; n++)
		post_send(qp, n, WR_SEND, SEND_SIGNALED);
	post_recv(qp, 9);
	for (int n = 0; n < 4;
	     /* Complete all four requests; the second overruns the CQ. */
	     n++)
		vb_qp_send_done(qp, WC_SUCCESS);
	assert_int_equal(qp->state, QPS_ERR);
	assert_int_equal(qp->sq.done, qp->sq.posted);
	assert_cqe(cq, 0, WC_SUCCESS, WC_OP_SEND);
	assert_cqe(f->cq, 9, WC_FLUSH_ERR, WC_OP_RECV);
	assert_event(f, EVENT_CQ_ERR);
	assert_event(f, EVENT_QP_FATAL);
	assert_false(is_readable(f->async.fd));
	vb_qp_destroy(qp);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void VB_UNCHECKED overrun__by_a_receive(void **state)
{
	const struct vb_recv_done d = { .opcode = WC_OP_RECV };
	struct fixture *f = *state;
	struct vb_qp_init i = init_of(f);
	struct vb_cq *cq;
	struct vb_qp *qp;

	assert_int_equal(vb_cq_create_in(&f->a, 1, NULL, NULL, NULL, &cq), 0);
	i.recv_cq = cq;
	qp = make(f, i);
	bring_to(qp, QPS_RTS);
	post_send(qp, 7, WR_SEND, 0);
	for (int n = 0; n < 3; n++)
		post_recv(qp, n);
	for (int n = 0; n < 2; n++) {
		assert_true(vb_qp_recv_begin(qp));
		vb_qp_recv_done(qp, &d);
	}
	assert_int_equal(qp->state, QPS_ERR);
	assert_false(qp->recv_busy);
	assert_cqe(f->cq, 7, WC_FLUSH_ERR, WC_OP_SEND);
	assert_event(f, EVENT_QP_FATAL);
	vb_qp_destroy(qp);
	assert_int_equal(vb_cq_destroy(cq), 0);
}

static void VB_UNCHECKED query__snapshot(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));
	struct vb_qp_attr attr;

	vb_qp_query(qp, &attr);
	assert_int_equal(attr.qp_state, QPS_RESET);
	bring_to(qp, QPS_RTS);
	vb_qp_query(qp, &attr);
	assert_int_equal(attr.qp_state, QPS_RTS);
	assert_int_equal(attr.cur_qp_state, QPS_RTS);
	assert_int_equal(attr.path_mtu, 3);
	assert_int_equal(attr.dest_qp_num, 0x777);
	assert_int_equal(attr.sq_psn, 0xabcdef);
	assert_int_equal(attr.av.sgid_index, 1);
	assert_false(attr.sq_draining);
	vb_qp_fail(qp, -1);
	vb_qp_query(qp, &attr);
	assert_int_equal(attr.qp_state, QPS_ERR);
	vb_qp_destroy(qp);
}

static void VB_UNCHECKED drained__event_only_when_asked(void **state)
{
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));
	struct vb_qp_attr attr = { .qp_state = QPS_SQD,
				   .sqd_async_notify = true };

	bring_to(qp, QPS_RTS);
	assert_int_equal(
		vb_qp_modify(qp, &attr, QPM_STATE | QPM_EN_SQD_ASYNC_NOTIFY, 0),
		0);
	vb_qp_query(qp, &attr);
	assert_true(attr.sq_draining);
	vb_qp_drained(qp);
	vb_qp_drained(qp);
	assert_event(f, EVENT_SQ_DRAINED);
	assert_false(is_readable(f->async.fd));
	vb_qp_query(qp, &attr);
	assert_false(attr.sq_draining);
	assert_int_equal(modify(qp, QPS_RTS, QPM_STATE), 0);
	/* This transition to SQD asks for no SQ_DRAINED event. */
	assert_int_equal(modify(qp, QPS_SQD, QPM_STATE), 0);
	vb_qp_drained(qp);
	assert_false(is_readable(f->async.fd));
	vb_qp_destroy(qp);
}

static void state_name__each(void **state)
{
	assert_string_equal(vb_qp_state_name(QPS_RESET), "RESET");
	assert_string_equal(vb_qp_state_name(QPS_ERR), "ERR");
	assert_string_equal(vb_qp_state_name(99), "unknown");
}

/* A thread that does what the dispatcher does: find a queue pair, lock it, and
 * check that its number still is the one that was looked for. */
struct finder {
	struct vb_idtab *qps;
	_Atomic bool stop;
	_Atomic uint32_t found;
};

static void *keep_finding(void *arg)
{
	struct finder *r = arg;

	while (!atomic_load(&r->stop))
		for (uint32_t i = 0; i < 64; i++) {
			struct vb_qp *qp = vb_idtab_get(r->qps, i);

			if (!qp)
				continue;
			vb_mutex_lock(&qp->drive);
			if (atomic_load(&qp->qpn) == (QPN_BASE | i)) {
				vb_qp_flush(qp);
				atomic_fetch_add(&r->found, 1);
			}
			vb_mutex_unlock(&qp->drive);
		}
	return NULL;
}

static void destroy__beside_a_thread_that_looks(void **state)
{
	struct fixture *f = *state;
	struct finder r = { .qps = vb_idtab_create(64, 0) };
	struct vb_idtab *qps = f->a.qps;
	pthread_t thread;

	f->a.qps = r.qps;
	assert_int_equal(pthread_create(&thread, NULL, keep_finding, &r), 0);
	for (int i = 0; i < 2000 || !atomic_load(&r.found); i++) {
		struct vb_qp *a = make(f, init_of(f)), *b = make(f, init_of(f));
		struct vb_cqe e[8];

		assert_int_equal(modify(a, QPS_ERR, QPM_STATE), 0);
		post_recv(a, 1);
		vb_cq_poll(f->cq, 8, e);
		vb_qp_destroy(a);
		vb_qp_destroy(b);
	}
	atomic_store(&r.stop, true);
	pthread_join(thread, NULL);
	assert_empty(f->cq);
	f->a.qps = qps;
	vb_idtab_destroy(r.qps);
}

/* The cause of an error and the application context of a tagged message share a
 * field of the completion. */
static void tag_fill__an_error_keeps_its_cause(void **state)
{
	static const struct {
		enum vb_wc_status status;
		uint32_t field;
	} rows[] = {
		{ WC_SUCCESS, 0xabc },
		{ WC_TM_RNDV_INCOMPLETE, 0xabc },
		{ WC_LOC_PROT_ERR, 113 },
		{ WC_FLUSH_ERR, 113 },
	};
	struct fixture *f = *state;
	struct vb_qp *qp = make(f, init_of(f));

	vb_mutex_lock(&qp->drive);
	for (unsigned i = 0; i < VB_COUNT(rows); i++) {
		struct vb_cqe e = { .status = (uint8_t)rows[i].status,
				    .why = 113 };

		qp->tagged.kind = TAG_WHOLE;
		qp->tagged.app_ctx = 0xabc;
		vb_tag_fill(qp, &e);
		assert_int_equal(e.why, rows[i].field);
		assert_int_equal(vb_cqe_failed(&e), i >= 2);
	}
	vb_mutex_unlock(&qp->drive);
	vb_qp_destroy(qp);
}

/* Without a GRH, the GID index of an address is not the cause of an error. */
static void av_why__looks_at_the_index_with_a_grh_only(void **state)
{
	struct fixture *f = *state;
	struct vb_port *port = &f->a.ports[0];
	struct vb_av av = good_attr(QPS_RTR).av;

	assert_int_equal(vb_av_why(-EINVAL, &av, port), WHY_ADDRESS);
	av.sgid_index = 200;
	assert_int_equal(vb_av_why(-EINVAL, &av, port), WHY_GID_INDEX);
	assert_int_equal(vb_av_why(-ENETUNREACH, &av, port), WHY_ROUTE);
	assert_int_equal(vb_av_why(-EINVAL, &av, NULL), WHY_ADDRESS);
	av.is_global = false;
	assert_int_equal(vb_av_why(-EINVAL, &av, port), WHY_ADDRESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(av_why__looks_at_the_index_with_a_grh_only),
		TEST(tag_fill__an_error_keeps_its_cause),
		TEST(create__refusals),
		TEST(create__full_table),
		TEST(create__caps_given_are_at_least_asked),
		TEST(create__idle_memory),
		TEST(create__references),
		TEST(destroy__memory_is_recycled_and_clean),
		TEST(send_done__opcodes),
		TEST(send_done__unsignalled_are_silent_unless_bad),
		TEST(send_done__sig_all),
		TEST(send_done__slots_free_with_the_polled_one),
		TEST(recv_done__everything_in_the_entry),
		TEST(recv_done__solicited_wakes),
		TEST(fail__flushes_in_order),
		TEST(fail__receive_completed_before_is_not_flushed_again),
		TEST(flush__what_was_posted_since),
		TEST(fail__shared_receives_stay_for_others),
		TEST(overrun__kills_the_queue_pair_once),
		TEST(overrun__by_a_receive),
		TEST(query__snapshot),
		TEST(drained__event_only_when_asked),
		cmocka_unit_test(state_name__each),
		TEST(destroy__beside_a_thread_that_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

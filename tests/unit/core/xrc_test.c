/* SPDX-License-Identifier: BSD-2-Clause */
/* core/xrc: domains, SRQ numbers, the use of an SRQ for a packet, and
 * handles. */
#include "qp_fixture.h"

struct xrc {
	struct vb_xrcd *x;
	struct vb_srq *srq;
	struct vb_qp_share share;
	struct vb_qp *qp;
};

static struct vb_srq *make_srq(struct fixture *f, struct vb_xrcd *x)
{
	struct vb_srq *srq;

	assert_int_equal(vb_srq_create(f->pd, 4, 1, &f->async, NULL, &srq), 0);
	srq->owner = srq;
	assert_int_equal(vb_xrc_srq_join(srq, x, f->cq), 0);
	return srq;
}

static void open_all(struct fixture *f, struct xrc *t)
{
	struct vb_qp_init init = init_of(f);

	assert_int_equal(vb_xrcd_open(&f->a, NULL, 0, &t->x), 0);
	t->srq = make_srq(f, t->x);
	t->share = (struct vb_qp_share){ .async = &f->async,
					 .owner = t,
					 .xrcd = t->x };
	init.type = QPT_XRC_RECV;
	init.share = &t->share;
	t->qp = make(f, init);
}

static void close_all(struct xrc *t)
{
	assert_true(vb_qp_unshare(t->qp, &t->share));
	vb_qp_destroy(t->qp);
	if (t->srq)
		assert_int_equal(vb_srq_destroy(t->srq), 0);
	assert_int_equal(vb_xrcd_close(t->x), 0);
}

static void domain__of_an_inode_is_shared(void **state)
{
	struct fixture *f = *state;
	const struct vb_xrc_key key = { 1, 2 }, other = { 2, 2 };
	struct vb_xrcd *a, *b, *c, *d;

	assert_int_equal(vb_xrcd_open(&f->a, &key, 0, &a), -EAGAIN);
	assert_int_equal(vb_xrcd_open(&f->a, &key, XRCD_CREATE, &a), 0);
	assert_int_equal(vb_xrcd_open(&f->a, &key, 0, &b), 0);
	assert_ptr_equal(a->domain, b->domain);
	assert_int_equal(
		vb_xrcd_open(&f->a, &key, XRCD_CREATE | XRCD_EXCLUSIVE, &c),
		-EINVAL);
	assert_int_equal(
		vb_xrcd_open(&f->a, &other, XRCD_CREATE | XRCD_EXCLUSIVE, &c),
		0);
	assert_ptr_not_equal(a->domain, c->domain);
	assert_int_equal(vb_xrcd_open(&f->a, NULL, 0, &d), 0);
	assert_ptr_not_equal(a->domain, d->domain);
	assert_int_equal(vb_xrcd_close(a), 0);
	assert_int_equal(vb_xrcd_open(&f->a, &key, 0, &a), 0);
	assert_ptr_equal(a->domain, b->domain);
	assert_int_equal(vb_xrcd_close(a), 0);
	assert_int_equal(vb_xrcd_close(b), 0);
	assert_int_equal(vb_xrcd_open(&f->a, &key, 0, &a), -EAGAIN);
	assert_int_equal(vb_xrcd_close(c), 0);
	assert_int_equal(vb_xrcd_close(d), 0);
}

static void domain__another_process_has_it(void **state)
{
	struct fixture *f = *state;
	const struct vb_xrc_key key = { 1, 2 };
	struct vb_xrcd *x;

	assert_int_equal(
		vb_xrcd_open(&f->a, &key,
			     XRCD_CREATE | XRCD_EXCLUSIVE | XRCD_ELSEWHERE, &x),
		-EINVAL);
	assert_int_equal(vb_xrcd_open(&f->a, &key, XRCD_ELSEWHERE, &x), 0);
	assert_int_equal(vb_xrcd_close(x), 0);
}

static void domain__is_busy_while_it_is_used(void **state)
{
	struct fixture *f = *state;
	struct xrc t;

	open_all(f, &t);
	assert_int_equal(vb_xrcd_close(t.x), -EBUSY);
	assert_int_equal(vb_srq_destroy(t.srq), 0);
	t.srq = NULL;
	assert_int_equal(vb_xrcd_close(t.x), -EBUSY);
	close_all(&t);
}

static void srq__numbers_tell_whose_they_are(void **state)
{
	struct fixture *f = *state;
	struct vb_srq *a, *b;
	struct vb_xrcd *x;

	assert_int_equal(vb_xrcd_open(&f->a, NULL, 0, &x), 0);
	a = make_srq(f, x);
	b = make_srq(f, x);
	assert_int_not_equal(a->number, b->number);
	assert_int_equal(a->number & ~0x7fffu, QPN_BASE);
	assert_int_equal(b->number & ~0x7fffu, QPN_BASE);
	assert_int_equal(atomic_load(&f->cq->refs), 2);
	assert_int_equal(vb_srq_destroy(a), 0);
	assert_int_equal(vb_srq_destroy(b), 0);
	assert_int_equal(atomic_load(&f->cq->refs), 0);
	assert_int_equal(vb_xrcd_close(x), 0);
}

static void VB_UNCHECKED enter__what_the_packet_names(void **state)
{
	struct fixture *f = *state;
	struct vb_xrcd *other;
	struct vb_srq *strange;
	struct xrc t;

	open_all(f, &t);
	assert_int_equal(vb_xrcd_open(&f->a, NULL, 0, &other), 0);
	strange = make_srq(f, other);
	assert_null(t.qp->pd);
	assert_int_equal(vb_xrc_enter(t.qp, t.srq->number), FAULT_NONE);
	assert_ptr_equal(t.qp->srq, t.srq);
	assert_ptr_equal(t.qp->pd, f->pd);
	assert_ptr_equal(t.qp->recv_cq, f->cq);
	vb_xrc_leave(t.qp);
	assert_null(t.qp->srq);
	assert_null(t.qp->pd);
	assert_null(t.qp->recv_cq);
	/* no effect: the queue pair left the XRC domain before */
	vb_xrc_leave(t.qp);
	assert_int_equal(atomic_load(&t.srq->users), 0);
	assert_int_equal(vb_xrc_enter(t.qp, strange->number), FAULT_XRC_DOMAIN);
	assert_int_equal(vb_xrc_enter(t.qp, t.srq->number + 77), FAULT_XRC_SRQ);
	assert_int_equal(vb_xrc_enter(t.qp, t.srq->number & 0x7fff),
			 FAULT_XRC_SRQ);
	assert_int_equal(vb_xrc_enter(t.qp, 0xffffffff), FAULT_XRC_SRQ);
	assert_null(t.qp->srq);
	assert_int_equal(vb_srq_destroy(strange), 0);
	assert_int_equal(vb_xrcd_close(other), 0);
	close_all(&t);
}

/* The receive of a message in progress completes in the SRQ from which it
 * came. */
static void VB_UNCHECKED recv__ends_in_its_own_queue(void **state)
{
	struct fixture *f = *state;
	struct vb_cqe e;
	struct xrc t;

	open_all(f, &t);
	assert_int_equal(vb_rq_post(&t.srq->rq, 5, NULL, 0), 0);
	assert_int_equal(vb_xrc_enter(t.qp, t.srq->number), FAULT_NONE);
	assert_true(vb_qp_recv_begin(t.qp));
	vb_xrc_leave(t.qp);
	assert_int_equal(modify(t.qp, QPS_ERR, QPM_STATE), 0);
	e = polled(f->cq);
	assert_int_equal(e.wr_id, 5);
	assert_int_equal(e.status, WC_FLUSH_ERR);
	assert_int_equal(e.qpn, atomic_load(&t.qp->qpn));
	assert_null(e.qp);
	/* An XRC target raises no LAST_WQE_REACHED event (IBA annex A14). */
	assert_false(is_readable(f->async.fd));
	close_all(&t);
}

static void VB_UNCHECKED recv__is_lost_with_its_queue(void **state)
{
	struct fixture *f = *state;
	struct xrc t;

	open_all(f, &t);
	assert_int_equal(vb_rq_post(&t.srq->rq, 5, NULL, 0), 0);
	assert_int_equal(vb_xrc_enter(t.qp, t.srq->number), FAULT_NONE);
	assert_true(vb_qp_recv_begin(t.qp));
	vb_xrc_leave(t.qp);
	assert_int_equal(vb_srq_destroy(t.srq), 0);
	t.srq = make_srq(f, t.x);
	assert_false(vb_xrc_enter_home(t.qp));
	assert_int_equal(modify(t.qp, QPS_ERR, QPM_STATE), 0);
	assert_false(t.qp->recv_busy);
	assert_empty(f->cq);
	close_all(&t);
}

/* Completions of received messages stay in the queue when the queue pair is
 * destroyed. */
static void VB_UNCHECKED completions__outlive_their_queue_pair(void **state)
{
	static const struct vb_recv_done done = { .status = WC_SUCCESS,
						  .opcode = WC_OP_RECV };
	struct fixture *f = *state;
	struct xrc t;

	open_all(f, &t);
	assert_int_equal(vb_rq_post(&t.srq->rq, 5, NULL, 0), 0);
	assert_int_equal(vb_xrc_enter(t.qp, t.srq->number), FAULT_NONE);
	assert_true(vb_qp_recv_begin(t.qp));
	vb_qp_recv_done(t.qp, &done);
	vb_xrc_leave(t.qp);
	close_all(&t);
	assert_cqe(f->cq, 5, WC_SUCCESS, WC_OP_RECV);
}

static void share__holders_hear_and_the_last_destroys(void **state)
{
	struct fixture *f = *state;
	struct vb_qp_share second = { .async = &f->async, .owner = &second };
	struct vb_xrcd *other;
	struct vb_qp *qp;
	struct vb_event e;
	struct xrc t;
	uint32_t qpn;

	open_all(f, &t);
	qpn = atomic_load(&t.qp->qpn);
	assert_int_equal(vb_xrcd_open(&f->a, NULL, 0, &other), 0);
	second.xrcd = other;
	assert_int_equal(vb_qp_open(&second, qpn, &qp), -EINVAL);
	second.xrcd = t.x;
	assert_int_equal(vb_qp_open(&second, qpn + 1, &qp), -EINVAL);
	assert_int_equal(vb_qp_open(&second, 0, &qp), -EINVAL);
	assert_int_equal(vb_qp_open(&second, qpn, &qp), 0);
	assert_ptr_equal(qp, t.qp);
	vb_mutex_lock(&qp->drive);
	vb_qp_event(qp, EVENT_COMM_EST);
	vb_mutex_unlock(&qp->drive);
	assert_int_equal(vb_async_take(&f->async, &e), 0);
	assert_ptr_equal(e.object, &second);
	assert_int_equal(vb_async_take(&f->async, &e), 0);
	assert_ptr_equal(e.object, &t);
	assert_false(vb_qp_unshare(qp, &t.share));
	assert_int_equal(atomic_load(&qp->qpn), qpn);
	assert_true(vb_qp_unshare(qp, &second));
	assert_int_equal(atomic_load(&qp->qpn), 0);
	vb_qp_destroy(qp);
	assert_int_equal(vb_srq_destroy(t.srq), 0);
	assert_int_equal(vb_xrcd_close(t.x), 0);
	assert_int_equal(vb_xrcd_close(other), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(domain__of_an_inode_is_shared),
		TEST(domain__another_process_has_it),
		TEST(domain__is_busy_while_it_is_used),
		TEST(srq__numbers_tell_whose_they_are),
		TEST(enter__what_the_packet_names),
		TEST(recv__ends_in_its_own_queue),
		TEST(recv__is_lost_with_its_queue),
		TEST(completions__outlive_their_queue_pair),
		TEST(share__holders_hear_and_the_last_destroys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: create, flush, destroy. Their completions are in core/cq.c. */
#include "core/lock_order.h"
#include "core/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/log.h"
#include "core/mw.h"
#include "core/transport.h"

/* The destroyed queue pairs of all adapters. A thread that found one in the
 * process's table a moment ago may outlive the adapter, so this memory is never
 * freed. */
static struct {
	struct vb_mutex lock;
	struct vb_qp *first;
} pool = { .lock = VB_MUTEX_INITIALIZER(VB_RANK_LEAF) };

/* All types of queue pairs that this file can create; core/qp_state.c says
 * which of these an adapter has. */
static const enum vb_qp_type known_types[] = { QPT_RC,	     QPT_UC,
					       QPT_UD,	     QPT_RAW_PACKET,
					       QPT_XRC_SEND, QPT_XRC_RECV,
					       QPT_WQ };

/* Names of the states, in the order of enum vb_qp_state (IBA 10.2.4.4,
 * 10.3.1). */
static const char *const state_names[] = { "RESET", "INIT", "RTR", "RTS",
					   "SQD",   "SQE",  "ERR" };
_Static_assert(VB_COUNT(state_names) == QPS_COUNT, "a name for each");

const char *vb_qp_state_name(enum vb_qp_state s)
{
	return (unsigned)s < QPS_COUNT ? state_names[s] : "unknown";
}

static enum vb_qp_state state_of(const struct vb_qp *qp)
{
	/* Relaxed: the state is written only under drive, which the caller
	 * holds. */
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

static bool is_known(enum vb_qp_type type)
{
	for (size_t i = 0; i < VB_COUNT(known_types); i++)
		if (known_types[i] == type)
			return true;
	return false;
}

/* Do all objects belong to adapter @a and have the right kind? An XRC target
 * needs no SRQ, since each packet names one. */
static bool parts_fit(const struct vb_adapter *a, const struct vb_qp_init *i)
{
	if (i->type == QPT_XRC_RECV)
		return i->share && i->share->xrcd->adapter == a;
	if (!i->pd || i->pd->adapter != a || !i->send_cq ||
	    i->send_cq->adapter != a)
		return false;
	if (i->type == QPT_XRC_SEND)
		return true;
	/* Only RC and UD may have an SRQ (ibv_create_qp(3)). */
	if (i->srq && (i->srq->pd->adapter != a || i->srq->xrcd ||
		       (i->type != QPT_RC && i->type != QPT_UD) ||
		       (i->srq->tags && i->type != QPT_RC)))
		return false;
	return i->recv_cq && i->recv_cq->adapter == a;
}

/* Returns the parameters of a queue pair without the sides that an XRC queue
 * pair lacks, even if the program asked for them. */
static struct vb_qp_init sides_of(const struct vb_qp_init *init)
{
	struct vb_qp_init i = *init;

	if (i.type == QPT_XRC_SEND || i.type == QPT_XRC_RECV) {
		i.recv_cq = NULL;
		i.srq = NULL;
		i.max_recv_wr = i.max_recv_sge = 0;
	}
	if (i.type != QPT_XRC_RECV) {
		i.share = NULL;
	} else {
		i.pd = NULL;
		i.send_cq = NULL;
		i.async = NULL;
		i.max_send_wr = i.max_send_sge = i.max_inline = 0;
	}
	return i;
}

static int core_check_init(const struct vb_adapter *a,
			   const struct vb_qp_init *i)
{
	const struct vb_limits *max = &vb_limits;

	if (!is_known(i->type) || (a->rnic && i->type != QPT_RC))
		return -EOPNOTSUPP;
	if (!parts_fit(a, i))
		return -EINVAL;
	if (i->max_send_wr > max->max_qp_wr || i->max_send_sge > max->max_sge ||
	    i->max_inline > max->max_inline)
		return -EINVAL;
	if (i->srq) /* the SRQ has its own capacities */
		return 0;
	if (i->max_recv_wr > max->max_qp_wr || i->max_recv_sge > max->max_sge)
		return -EINVAL;
	return 0;
}

static struct vb_qp *core_take_memory(void)
{
	struct vb_qp *qp;

	vb_mutex_lock(&pool.lock);
	qp = pool.first;
	if (qp)
		pool.first = qp->next_free;
	vb_mutex_unlock(&pool.lock);
	if (qp)
		return qp;
	qp = calloc(1, sizeof(*qp));
	if (qp)
		vb_mutex_init(&qp->drive, RANK_DRIVE);
	return qp;
}

static void give_memory(struct vb_qp *qp)
{
	vb_mutex_lock(&pool.lock);
	qp->next_free = pool.first;
	pool.first = qp;
	vb_mutex_unlock(&pool.lock);
}

/* Runs in the child of a fork: forget the pool of destroyed queue pairs, since
 * timers of the parent may still hold some of them. */
static void forget_pool(void)
{
	vb_mutex_init(&pool.lock, VB_RANK_LEAF);
	pool.first = NULL;
}
VB_FORGET_AT_FORK(forget_pool)

static int init_sq(struct vb_qp *qp, const struct vb_qp_init *init)
{
	int rc;

	if (VB_LIKELY(
		    !vb_tag_owns_sends(init->srq, init->pd, init->max_send_wr)))
		return vb_sq_init(&qp->sq, init->max_send_wr,
				  init->max_send_sge, init->max_inline,
				  init->sig_all, init->type == QPT_UD,
				  init->memory);
	rc = vb_sq_init(&qp->sq, VB_TAG_SEND_SLOTS, VB_TAG_MAX_SGE,
			VB_RNDV_BYTES, false, false, NULL);
	qp->sq.open = qp->sq.max_sge = qp->sq.max_inline = 0;
	return rc;
}

static int init_queues(struct vb_qp *qp, struct vb_qp_init *init)
{
	int rc = init_sq(qp, init);

	if (rc)
		return rc;
	if (init->srq)
		init->max_recv_wr = init->max_recv_sge = 0;
	rc = vb_rq_init(&qp->rq, init->max_recv_wr, init->max_recv_sge,
			init->memory);
	if (rc) {
		vb_sq_fini(&qp->sq);
		return rc;
	}
	init->max_send_wr = qp->sq.open;
	init->max_inline = qp->sq.max_inline;
	init->max_recv_wr = qp->rq.cap;
	return 0;
}

static void fini_queues(struct vb_qp *qp)
{
	vb_sq_fini(&qp->sq);
	vb_rq_fini(&qp->rq);
}

static void core_forget_peer(struct vb_qp *qp)
{
	memset(&qp->attr, 0, sizeof(qp->attr));
	memset(&qp->route, 0, sizeof(qp->route));
	memset(&qp->alt_route, 0, sizeof(qp->alt_route));
	atomic_store(&qp->alt_port, NULL);
	qp->mtu = 0;
	qp->comm_est_sent = false;
	qp->last_wqe_sent = false;
	qp->why = 0;
	qp->recv_busy = qp->recv_lent = false;
	qp->way = WAY_PACKETS;
}

/* Initialize a new or recycled queue pair, which is not in the table yet. A
 * recycled queue pair keeps its lock and priv. The caller holds drive. */
static void init_fields(struct vb_qp *qp, struct vb_adapter *a,
			const struct vb_qp_init *init)
{
	qp->adapter = a;
	atomic_store(&qp->port, &a->ports[0]);
	qp->pd = init->pd;
	qp->send_cq = init->send_cq;
	qp->recv_cq =
		init->srq && init->srq->tags ? init->srq->cq : init->recv_cq;
	qp->srq = init->srq;
	qp->async = init->async;
	qp->link = init->link;
	qp->rss = init->rss;
	qp->owner = init->owner;
	qp->type = init->type;
	qp->xrc_domain = NULL;
	qp->shares = NULL;
	qp->windows = NULL;
	qp->row = 0;
	qp->local_at = VB_NEVER;
	qp->migrations = 0;
	qp->now = 0;
	atomic_store(&qp->state, QPS_RESET);
	core_forget_peer(qp);
}

/* Add @by to the reference counts of the objects that the queue pair uses: 1,
 * or UINT32_MAX to subtract 1. */
static void count_parts(struct vb_qp *qp, uint32_t by)
{
	if (qp->pd)
		(by == 1 ? vb_pd_get : vb_pd_put)(qp->pd);
	if (qp->send_cq)
		atomic_fetch_add(&qp->send_cq->refs, by);
	if (qp->recv_cq)
		atomic_fetch_add(&qp->recv_cq->refs, by);
	if (qp->srq)
		atomic_fetch_add(&qp->srq->refs, by);
}

static void purge(struct vb_qp *qp)
{
	if (qp->send_cq)
		vb_cq_purge(qp->send_cq, qp);
	if (qp->recv_cq)
		vb_cq_purge(qp->recv_cq, qp);
}

static struct vb_roster_row core_qp_row_of(const struct vb_qp *qp)
{
	const struct vb_qp_attr *a = &qp->attr;

	return (struct vb_roster_row){
		.kind = ROSTER_QP,
		.type = (uint8_t)qp->type,
		.state = (uint8_t)state_of(qp),
		.port = a->port_num,
		.number = atomic_load(&qp->qpn),
		.peer = a->dest_qp_num,
		.sq_psn = a->sq_psn,
		.rq_psn = a->rq_psn,
		.pd = qp->pd ? qp->pd->row : 0,
		.send_cq = qp->send_cq ? qp->send_cq->row : 0,
		.recv_cq = qp->recv_cq ? qp->recv_cq->row : 0,
		.srq = qp->srq ? qp->srq->row : 0,
	};
}

void vb_qp_note(const struct vb_qp *qp)
{
	struct vb_roster_row row;

	if (qp->row == 0)
		return;
	row = core_qp_row_of(qp);
	vb_roster_set(&qp->adapter->roster, qp->row, &row);
}

/* A work queue (QPT_WQ) gets no row in the roster, since the ABI does not count
 * it as a queue pair. */
static void enter_roster(struct vb_qp *qp)
{
	struct vb_roster_row row = core_qp_row_of(qp);

	if (qp->type != QPT_WQ)
		qp->row = vb_roster_add(&qp->adapter->roster, &row);
}

static void leave_roster(struct vb_qp *qp)
{
	if (qp->type != QPT_WQ)
		vb_roster_del(&qp->adapter->roster, ROSTER_QP, qp->row);
	qp->row = 0;
}

/* Attach the transport, enter the table, and only then set the number: a thread
 * that finds the queue pair earlier reads the number 0 and takes the queue pair
 * for a free one. The caller holds drive. */
static int bring_up(struct vb_qp *qp, struct vb_qp_share *share)
	VB_REQUIRES(qp->drive)
{
	struct vb_adapter *a = qp->adapter;
	int rc = a->transport->attach(qp);

	if (rc)
		return rc;
	rc = vb_idtab_add(a->qps, qp, &qp->index);
	if (rc) {
		a->transport->detach(qp);
		return rc;
	}
	count_parts(qp, 1);
	if (share)
		vb_qp_share(qp, share);
	atomic_store(&qp->qpn, a->qpn_base | qp->index);
	enter_roster(qp);
	return 0;
}

static int make_qp(struct vb_adapter *a, struct vb_qp_init *init,
		   struct vb_qp **out)
{
	struct vb_qp *qp = core_take_memory();
	int rc;

	if (!qp)
		return -ENOMEM;
	vb_mutex_lock(&qp->drive);
	init_fields(qp, a, init);
	rc = init_queues(qp, init);
	if (rc == 0) {
		if (init->type == QPT_XRC_RECV)
			qp->xrc_domain = init->share->xrcd->domain;
		rc = bring_up(qp, init->share);
		if (rc)
			fini_queues(qp);
	}
	vb_mutex_unlock(&qp->drive);
	if (rc) {
		give_memory(qp);
		return rc;
	}
	*out = qp;
	return 0;
}

int vb_qp_create(struct vb_adapter *a, struct vb_qp_init *init,
		 struct vb_qp **out)
{
	struct vb_qp_init given = sides_of(init);
	int rc = core_check_init(a, &given);

	if (rc)
		return rc;
	if (!vb_limit_take(&a->n_qp, vb_limits.max_qp))
		return -ENOMEM;
	rc = make_qp(a, &given, out);
	if (rc) {
		vb_limit_give(&a->n_qp);
		return rc == -ENOSPC ? -ENOMEM
				     /* the queue pairs of other adapters fill
				      * the table */
				     : rc;
	}
	init->max_send_wr = given.max_send_wr;
	init->max_send_sge = given.max_send_sge;
	init->max_inline = given.max_inline;
	init->max_recv_wr = given.max_recv_wr;
	init->max_recv_sge = given.max_recv_sge;
	return 0;
}

void vb_qp_destroy(struct vb_qp *qp)
{
	struct vb_adapter *a = qp->adapter;

	vb_mutex_lock(&qp->drive);
	leave_roster(qp);
	if (qp->srq && qp->srq->tags)
		vb_tag_cancel(qp);
	vb_mw_shut_all(qp); /* from now on another queue pair may get the QPN */
	atomic_store(&qp->qpn, 0);
	atomic_store(&qp->state, QPS_RESET);
	vb_idtab_del(a->qps, qp->index);
	a->transport->detach(qp);
	/* After the purge no polling thread can reach this queue pair. */
	purge(qp);
	fini_queues(qp);
	count_parts(qp, UINT32_MAX);
	vb_mutex_unlock(&qp->drive);
	if (a->transport->settle)
		a->transport->settle(a, qp->index);
	vb_mw_detach_all(qp);
	if (qp->async && qp->owner)
		vb_async_forget(qp->async, qp->owner);
	give_memory(qp);
	vb_limit_give(&a->n_qp);
}

void vb_qp_query(struct vb_qp *qp, struct vb_qp_attr *attr)
{
	vb_mutex_lock(&qp->drive);
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = state_of(qp);
	attr->sq_draining = attr->qp_state == QPS_SQD && attr->sq_draining;
	vb_mutex_unlock(&qp->drive);
}

void vb_qp_event(struct vb_qp *qp, enum vb_event_type type)
{
	/* a work queue (QPT_WQ) raises no other event */
	if (qp->type == QPT_WQ)
		type = EVENT_WQ_FATAL;
	if (qp->async)
		vb_async_post(qp->async, type, qp->owner);
	for (const struct vb_qp_share *s = qp->shares; s; s = s->next)
		vb_async_post(s->async, type, s->owner);
}

void vb_qp_drained(struct vb_qp *qp)
{
	if (!qp->attr.sq_draining)
		return;
	qp->attr.sq_draining = false;
	if (qp->attr.sqd_async_notify)
		vb_qp_event(qp, EVENT_SQ_DRAINED);
}

static void flush_recv(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	const struct vb_recv_done flushed = { .status = WC_FLUSH_ERR,
					      .opcode = WC_OP_RECV,
					      .why = qp->why };

	/* The other receives of a shared queue are not flushed, because they
	 * belong to its other queue pairs. */
	if (!qp->recv_busy && (qp->srq || !vb_qp_recv_begin(qp)))
		return;
	do
		vb_qp_recv_done(qp, &flushed);
	while (!qp->srq && vb_qp_recv_begin(qp));
}

static void flush_sends(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	while (qp->sq.done != vb_sq_end(&qp->sq))
		vb_qp_send_done(qp, WC_FLUSH_ERR);
}

void vb_qp_flush(struct vb_qp *qp)
{
	if (state_of(qp) == QPS_SQE)
		flush_sends(qp);
	if (state_of(qp) != QPS_ERR)
		return;
	flush_sends(qp);
	if (qp->recv_lent)
		return;
	flush_recv(qp);
	/* Raise LAST_WQE: the queue pair takes no more receives from the SRQ
	 * (IBA 11.6.3.2). An XRC target has no SRQ of its own (annex A14). */
	if (qp->srq && !qp->srq->xrcd && !qp->last_wqe_sent) {
		qp->last_wqe_sent = true;
		vb_qp_event(qp, EVENT_LAST_WQE);
	}
}

void vb_qp_fail(struct vb_qp *qp, int event)
{
	if (state_of(qp) == QPS_ERR)
		return;
	atomic_store(&qp->state, QPS_ERR);
	vb_qp_note(qp);
	vb_qp_flush(qp);
	if (event >= 0)
		vb_qp_event(qp, (enum vb_event_type)event);
}

void vb_qp_stop_sends(struct vb_qp *qp)
{
	if (state_of(qp) == QPS_ERR)
		return;
	atomic_store(&qp->state, QPS_SQE);
	vb_qp_note(qp);
	flush_sends(qp);
}

static void empty_queues(struct vb_qp *qp)
{
	struct vb_sq *sq = &qp->sq;
	struct vb_rq *rq = &qp->rq;

	vb_mutex_lock(&sq->lock);
	vb_sq_resume_doorbell(sq);
	sq->done = atomic_load(&sq->posted);
	atomic_store(&sq->released, sq->done);
	vb_mutex_unlock(&sq->lock);
	vb_mutex_lock(&rq->lock);
	atomic_store(&rq->taken, atomic_load(&rq->posted));
	atomic_store(&rq->released, atomic_load(&rq->posted));
	vb_mutex_unlock(&rq->lock);
}

void vb_qp_clear(struct vb_qp *qp)
{
	if (qp->srq && qp->srq->tags)
		vb_tag_cancel(qp);
	/* Purge first, so that no polling thread changes the released index
	 * afterwards. */
	purge(qp);
	empty_queues(qp);
	core_forget_peer(qp);
	atomic_store(&qp->port, &qp->adapter->ports[0]);
}

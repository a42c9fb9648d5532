/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive-side scaling: work queues, indirection tables of work queues, and the
 * queue pairs that spread arriving packets over a table. */
#include "front/verbs/front.h"

#include <stdlib.h>

#include "base/log.h"
#include "core/rss.h"

#define MAX_LOG_TABLE 9
_Static_assert(1u << MAX_LOG_TABLE == VB_RSS_MAX_TABLE, "core's limit");

struct vb_front_rwq_table {
	struct ibv_rwq_ind_table ibv;
	struct vb_front_live live;
	_Atomic uint32_t refs; /* number of queue pairs over this table */
	uint32_t count;
	struct vb_front_wq *queues[];
};

static struct vb_front_rwq_table *table_of(struct ibv_rwq_ind_table *t)
{
	return VB_CONTAINER_OF(t, struct vb_front_rwq_table, ibv);
}

/* Functions for work queues. */

static int check_wq(const struct ibv_wq_init_attr *a)
{
	if (a->comp_mask & ~(uint32_t)IBV_WQ_INIT_ATTR_FLAGS)
		return -EINVAL;
	if (a->comp_mask & IBV_WQ_INIT_ATTR_FLAGS && a->create_flags)
		return -EOPNOTSUPP;
	if (a->wq_type != IBV_WQT_RQ || !a->pd || !a->cq || a->max_wr == 0)
		return -EINVAL;
	return vb_front_live(FRONT_PD, a->pd) || vb_front_live(FRONT_CQ, a->cq)
		       ? -ENOENT
		       : 0;
}

static int create_core_wq(struct vb_front_wq *wq, struct ibv_context *context,
			  struct ibv_wq_init_attr *a)
{
	struct vb_front_context *c = vb_front_context(context);
	struct vb_qp_init init = {
		.type = QPT_WQ,
		.pd = vb_front_pd(a->pd)->core,
		.send_cq = vb_front_cq(a->cq)->core,
		.recv_cq = vb_front_cq(a->cq)->core,
		.max_recv_wr = a->max_wr,
		.max_recv_sge = a->max_sge,
		.memory = vb_front_memory(a->pd),
		.async = &c->async,
		.owner = &wq->ibv,
	};
	int rc = vb_qp_create(c->adapter, &init, &wq->core);

	if (rc)
		return rc;
	a->max_wr = init.max_recv_wr;
	a->max_sge = init.max_recv_sge;
	return 0;
}

struct ibv_wq *vb_front_create_wq(struct ibv_context *context,
				  struct ibv_wq_init_attr *a)
{
	struct vb_front_wq *wq = calloc(1, sizeof(*wq));
	int rc = wq ? check_wq(a) : -ENOMEM;

	if (!rc)
		rc = create_core_wq(wq, context, a);
	if (rc) {
		VB_FRONT_TELL(rc, WHY_CREATE, context,
		       "%s: cannot create a work queue of %u entries of %u SGEs: %s",
		       context->device->name, a->max_wr, a->max_sge,
		       strerror(-rc));
		free(wq);
		return vb_front_null(rc);
	}
	wq->ibv.context = context;
	wq->ibv.wq_context = a->wq_context;
	wq->ibv.pd = a->pd;
	wq->ibv.cq = a->cq;
	wq->ibv.wq_num = atomic_load(&wq->core->qpn);
	wq->ibv.handle = vb_front_handle();
	wq->ibv.state = IBV_WQS_RESET;
	wq->ibv.wq_type = IBV_WQT_RQ;
	wq->ibv.post_recv = vb_front_post_wq_recv;
	pthread_mutex_init(&wq->ibv.mutex, NULL);
	pthread_cond_init(&wq->ibv.cond, NULL);
	vb_front_live_add(&wq->live, FRONT_WQ, &wq->ibv, &wq->ibv.handle);
	vb_front_context_get(context);
	return &wq->ibv;
}

static enum ibv_wq_state wq_state(const struct vb_front_wq *wq)
{
	switch (atomic_load(&wq->core->state)) {
	case QPS_RESET:
		return IBV_WQS_RESET;
	case QPS_ERR:
		return IBV_WQS_ERR;
	default:
		return IBV_WQS_RDY;
	}
}

static int check_wq_attr(const struct vb_front_wq *wq,
			 const struct ibv_wq_attr *a)
{
	const uint32_t known =
		IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE | IBV_WQ_ATTR_FLAGS;

	if (a->attr_mask & ~known)
		return -EINVAL;
	if (a->attr_mask & IBV_WQ_ATTR_FLAGS && a->flags_mask)
		return -EOPNOTSUPP;
	if (a->attr_mask & IBV_WQ_ATTR_CURR_STATE &&
	    a->curr_wq_state != wq_state(wq))
		return -EINVAL;
	return a->attr_mask & IBV_WQ_ATTR_STATE && a->wq_state > IBV_WQS_ERR
		       ? -EINVAL
		       : 0;
}

int vb_front_modify_wq(struct ibv_wq *ibv, struct ibv_wq_attr *a)
{
	static const enum vb_qp_state states[] = {
		[IBV_WQS_RESET] = QPS_RESET,
		[IBV_WQS_RDY] = QPS_RTR,
		[IBV_WQS_ERR] = QPS_ERR,
	};
	struct vb_front_wq *wq = vb_front_wq(ibv);
	struct vb_qp_attr to = { 0 };
	int cancel, rc = vb_front_live(FRONT_WQ, ibv);

	if (rc)
		return vb_front_errno(rc);
	rc = check_wq_attr(wq, a);
	if (rc)
		VB_FRONT_TELL(
			rc, WHY_REFUSED, ibv,
			"wq 0x%x: ibv_modify_wq with attr_mask 0x%x, "
			"wq_state %d and curr_wq_state %d, in state %d: %s",
			ibv->wq_num, a->attr_mask, (int)a->wq_state,
			(int)a->curr_wq_state, (int)wq_state(wq),
			strerror(-rc));
	if (rc || !(a->attr_mask & IBV_WQ_ATTR_STATE))
		return vb_front_errno(rc);
	to.qp_state = states[a->wq_state];
	cancel = vb_cancel_off();
	rc = vb_qp_modify(wq->core, &to, QPM_STATE, vb_now());
	vb_drive(wq->core);
	vb_cancel_back(cancel);
	if (rc)
		return vb_front_errno(rc);
	ibv->state = a->wq_state;
	return 0;
}

int vb_front_destroy_wq(struct ibv_wq *ibv)
{
	struct vb_front_wq *wq = vb_front_wq(ibv);
	int cancel, rc = vb_front_claim(FRONT_WQ, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return vb_front_keep(&wq->live, 0);
	if (atomic_load(&wq->refs)) {
		vb_why(WHY_BUSY, ibv->wq_num,
		       "wq 0x%x: not destroyed: tables of work queues have it",
		       ibv->wq_num);
		return vb_front_keep(&wq->live, -EBUSY);
	}
	vb_front_live_del(&wq->live);
	cancel = vb_cancel_off();
	vb_drive_forget(wq->core);
	vb_qp_destroy(wq->core);
	vb_cancel_back(cancel);
	vb_front_drain_async(ibv->context, ibv, &wq->async_taken, &ibv->mutex,
			     &ibv->cond, &ibv->events_completed);
	vb_front_context_put(ibv->context);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	free(wq);
	return 0;
}

/* Functions for indirection tables. */

static int check_table(struct ibv_context *context,
		       const struct ibv_rwq_ind_table_init_attr *a)
{
	if (a->comp_mask || !a->ind_tbl || a->log_ind_tbl_size > MAX_LOG_TABLE)
		return -EINVAL;
	for (uint32_t i = 0; i < 1u << a->log_ind_tbl_size; i++)
		if (!a->ind_tbl[i] || vb_front_live(FRONT_WQ, a->ind_tbl[i]) ||
		    a->ind_tbl[i]->context != context)
			return -EINVAL;
	return 0;
}

struct ibv_rwq_ind_table *
vb_front_create_rwq_table(struct ibv_context *context,
			  struct ibv_rwq_ind_table_init_attr *a)
{
	struct vb_front_rwq_table *t;
	uint32_t count;
	int rc = check_table(context, a);

	if (rc) {
		vb_why(WHY_CREATE, (uintptr_t)context,
		       "%s: cannot create a table of 2^%u work queues (2^%u at "
		       "most), which all must be of its context",
		       context->device->name, a->log_ind_tbl_size,
		       MAX_LOG_TABLE);
		return vb_front_null(rc);
	}
	count = 1u << a->log_ind_tbl_size;
	t = calloc(1, sizeof(*t) + count * sizeof(t->queues[0]));
	if (!t)
		return vb_front_null(-ENOMEM);
	t->count = count;
	for (uint32_t i = 0; i < count; i++) {
		t->queues[i] = vb_front_wq(a->ind_tbl[i]);
		atomic_fetch_add(&t->queues[i]->refs, 1);
	}
	t->ibv.context = context;
	t->ibv.ind_tbl_handle = t->ibv.ind_tbl_num = (int)vb_front_handle();
	vb_front_live_add(&t->live, FRONT_TABLE, &t->ibv,
			  (const uint32_t *)&t->ibv.ind_tbl_handle);
	vb_front_context_get(context);
	return &t->ibv;
}

int vb_front_destroy_rwq_table(struct ibv_rwq_ind_table *ibv)
{
	struct vb_front_rwq_table *t = table_of(ibv);
	int rc = vb_front_claim(FRONT_TABLE, ibv);

	if (rc)
		return rc;
	if (vb_front_is_inherited(ibv->context))
		return vb_front_keep(&t->live, 0);
	if (atomic_load(&t->refs)) {
		vb_why(WHY_BUSY, (uintptr_t)ibv,
		       "table of work queues %d: not destroyed: queue pairs "
		       "still use it",
		       ibv->ind_tbl_num);
		return vb_front_keep(&t->live, -EBUSY);
	}
	vb_front_live_del(&t->live);
	for (uint32_t i = 0; i < t->count; i++)
		atomic_fetch_sub(&t->queues[i]->refs, 1);
	vb_front_context_put(ibv->context);
	free(t);
	return 0;
}

/* Queue pairs over a table: they only receive, into the table's work queues. */

int vb_front_rss_check(const struct ibv_qp_init_attr_ex *a)
{
	const uint32_t both =
		IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
	const struct ibv_rx_hash_conf *h = &a->rx_hash_conf;

	if ((a->comp_mask & both) != both || !a->rwq_ind_tbl || a->srq ||
	    a->cap.max_send_wr || a->cap.max_recv_wr)
		return -EINVAL;
	if (a->qp_type != IBV_QPT_RAW_PACKET ||
	    h->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ)
		return -EOPNOTSUPP;
	if (!h->rx_hash_key || h->rx_hash_key_len != VB_TOEPLITZ_KEY_BYTES)
		return -EINVAL;
	return vb_rss_check(h->rx_hash_fields_mask);
}

int vb_front_rss_take(const struct ibv_qp_init_attr_ex *a,
		      struct vb_qp_init *init)
{
	struct vb_front_rwq_table *t = table_of(a->rwq_ind_tbl);
	struct vb_rss *rss;

	rss = calloc(1, sizeof(*rss) + t->count * sizeof(rss->queues[0]));
	if (!rss)
		return -ENOMEM;
	memcpy(rss->key, a->rx_hash_conf.rx_hash_key, sizeof(rss->key));
	rss->fields = (uint32_t)a->rx_hash_conf.rx_hash_fields_mask;
	rss->count = t->count;
	for (uint32_t i = 0; i < t->count; i++)
		rss->queues[i] = t->queues[i]->core;
	init->rss = rss;
	/* The queue pair itself makes no completions, but core requires a
	 * queue. */
	init->send_cq = init->recv_cq = rss->queues[0]->recv_cq;
	return 0;
}

void vb_front_rss_hold(struct ibv_rwq_ind_table *ibv, int by)
{
	atomic_fetch_add(&table_of(ibv)->refs, (uint32_t)by);
}

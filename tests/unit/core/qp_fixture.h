/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs for unit tests: create, post requests, change the state. */
#ifndef UNIT_CORE_QP_FIXTURE_H
#define UNIT_CORE_QP_FIXTURE_H

#include "fixture.h"

#define TO_INIT (QPM_STATE | QPM_PKEY_INDEX | QPM_PORT | QPM_ACCESS_FLAGS)
#define TO_RTR                                                                 \
	(QPM_STATE | QPM_AV | QPM_PATH_MTU | QPM_DEST_QPN | QPM_RQ_PSN |       \
	 QPM_MAX_DEST_RD_ATOMIC | QPM_MIN_RNR_TIMER)
#define TO_RTS                                                                 \
	(QPM_STATE | QPM_TIMEOUT | QPM_RETRY_CNT | QPM_RNR_RETRY |             \
	 QPM_SQ_PSN | QPM_MAX_QP_RD_ATOMIC)

#define UC_TO_RTR                                                              \
	(TO_RTR & ~(uint32_t)(QPM_MAX_DEST_RD_ATOMIC | QPM_MIN_RNR_TIMER))
#define UC_TO_RTS  (QPM_STATE | QPM_SQ_PSN)
#define XRC_TO_RTS (QPM_STATE | QPM_TIMEOUT | QPM_SQ_PSN)
#define UD_TO_INIT (QPM_STATE | QPM_PKEY_INDEX | QPM_PORT | QPM_QKEY)

static inline struct vb_qp_init init_of(struct fixture *f)
{
	return (struct vb_qp_init){
		.type = QPT_RC,
		.pd = f->pd,
		.send_cq = f->cq,
		.recv_cq = f->cq,
		.max_send_wr = 4,
		.max_recv_wr = 4,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.async = &f->async,
		.owner = f,
	};
}

static inline struct vb_qp *make(struct fixture *f, struct vb_qp_init init)
{
	struct vb_qp *qp = NULL;

	assert_int_equal(vb_qp_create(&f->a, &init, &qp), 0);
	return qp;
}

/* Returns attributes that are valid for the transition to any state. */
static inline struct vb_qp_attr good_attr(enum vb_qp_state to)
{
	return (struct vb_qp_attr){
		.qp_state = to,
		.path_mtu = 3,
		.rq_psn = 0x123456,
		.sq_psn = 0xabcdef,
		.dest_qp_num = 0x777,
		.access_flags = ACCESS_REMOTE_WRITE,
		.av = { .dgid = IPV4_GID,
			.dlid = 5,
			.sgid_index = 1,
			.port_num = 1,
			.is_global = true },
		.alt_av = { .dlid = 6, .port_num = 1 },
		.alt_port_num = 1,
		.port_num = 1,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 8,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 6,
	};
}

static inline int modify(struct vb_qp *qp, enum vb_qp_state to, uint32_t mask)
{
	struct vb_qp_attr attr = good_attr(to);

	attr.cur_qp_state = atomic_load(&qp->state);
	return vb_qp_modify(qp, &attr, mask, 1000);
}

/* Returns the mask that a transition to @to needs, by type of queue pair. */
static inline uint32_t way_up(enum vb_qp_type type, enum vb_qp_state to)
{
	static const uint32_t masks[][3] = {
		[QPT_RC] = { TO_INIT, TO_RTR, TO_RTS },
		[QPT_UC] = { TO_INIT, UC_TO_RTR, UC_TO_RTS },
		[QPT_UD] = { UD_TO_INIT, QPM_STATE, UC_TO_RTS },
		[QPT_RAW_PACKET] = { QPM_STATE | QPM_PORT, QPM_STATE,
				     QPM_STATE },
		[QPT_XRC_SEND] = { TO_INIT, UC_TO_RTR, TO_RTS },
		[QPT_XRC_RECV] = { TO_INIT, TO_RTR, XRC_TO_RTS },
	};

	return masks[type][to - QPS_INIT];
}

/* Move the queue pair from any state to @to, by way of RESET. */
static inline void bring_to(struct vb_qp *qp, enum vb_qp_state to)
{
	static const enum vb_qp_state steps[] = { QPS_INIT, QPS_RTR, QPS_RTS };

	assert_int_equal(modify(qp, QPS_RESET, QPM_STATE), 0);
	if (to == QPS_RESET)
		return;
	if (to == QPS_ERR) {
		assert_int_equal(modify(qp, QPS_ERR, QPM_STATE), 0);
		return;
	}
	for (size_t i = 0; i < VB_COUNT(steps) && steps[i] <= to; i++)
		assert_int_equal(
			modify(qp, steps[i], way_up(qp->type, steps[i])), 0);
	if (to == QPS_SQD)
		assert_int_equal(modify(qp, QPS_SQD, QPM_STATE), 0);
	if (to == QPS_SQE) {
		vb_mutex_lock(&qp->drive);
		vb_qp_stop_sends(qp);
		vb_mutex_unlock(&qp->drive);
	}
}

static inline void post_send(struct vb_qp *qp, uint64_t wr_id, uint8_t op,
			     uint8_t flags)
{
	struct vb_send_wqe *w;

	vb_mutex_lock(&qp->sq.lock);
	w = vb_sq_begin(&qp->sq);
	assert_non_null(w);
	*w = (struct vb_send_wqe){
		.wr_id = wr_id, .op = op, .flags = flags, .length = 40
	};
	vb_sq_commit(&qp->sq);
	vb_mutex_unlock(&qp->sq.lock);
}

static inline void post_recv(struct vb_qp *qp, uint64_t wr_id)
{
	struct vb_rq *rq = qp->srq ? &qp->srq->rq : &qp->rq;

	assert_int_equal(vb_rq_post(rq, wr_id, NULL, 0), 0);
}

static inline struct vb_cqe polled(struct vb_cq *cq)
{
	struct vb_cqe e;

	assert_int_equal(vb_cq_poll(cq, 1, &e), 1);
	return e;
}

static inline void assert_cqe(struct vb_cq *cq, uint64_t wr_id,
			      enum vb_wc_status status, enum vb_wc_op op)
{
	struct vb_cqe e = polled(cq);

	assert_int_equal(e.wr_id, wr_id);
	assert_int_equal(e.status, status);
	assert_int_equal(e.opcode, op);
}

static inline void assert_empty(struct vb_cq *cq)
{
	struct vb_cqe e;

	assert_int_equal(vb_cq_poll(cq, 1, &e), 0);
}

static inline void assert_event(struct fixture *f, enum vb_event_type type)
{
	struct vb_event e;

	assert_true(is_readable(f->async.fd));
	assert_int_equal(vb_async_take(&f->async, &e), 0);
	assert_int_equal(e.type, type);
}

#endif

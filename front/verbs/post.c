/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting: sends, receives, binds of windows, and the operations on a shared
 * queue's tagged buffers. A request is checked and translated straight into its
 * slot of the queue (wqe.h); a list is followed by one vb_drive(), in which the
 * caller's thread sends what may be sent.
 */
#include "base/log.h"
#include "front/verbs/wqe.h"

#include <stdarg.h>
#include <stdio.h>

int vb_wqe_refuse(const struct vb_front_qp *qp, int err, enum vb_why why,
		  const char *format, ...)
{
	char text[200];
	va_list args;

	/* Do not format a text that no one reads: the caller may hold sq->lock,
	 * for which other threads wait. */
	if (!vb_why_wanted())
		return err;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	vb_why(why, qp->ibv.qp_num, "qp 0x%x: work request refused: %s",
	       qp->ibv.qp_num, text);
	return err;
}

int vb_wqe_refuse_state(const struct vb_front_qp *qp, const char *call)
{
	enum vb_qp_state s = atomic_load(&qp->core->state);

	vb_why(WHY_STATE, qp->ibv.qp_num,
	       "qp 0x%x: %s refused: the queue pair is in %s", qp->ibv.qp_num,
	       call, vb_qp_state_name(s));
	return EINVAL;
}

int vb_wqe_refuse_full(const struct vb_front_qp *qp)
{
	const struct vb_sq *sq = &qp->core->sq;

	/* It is the program's mistake only if the queue has never released an
	 * entry: many programs post until the queue is full, and then wait for
	 * a completion. */
	if (atomic_load(&sq->released) == 0)
		return vb_wqe_refuse(qp, ENOMEM, WHY_SEND_FULL,
				     "the send queue is full: max_send_wr is "
				     "%u",
				     sq->open);
	vb_log(LOG_INFO,
	       "qp 0x%x: work request refused: the send queue is full: "
	       "max_send_wr is %u",
	       qp->ibv.qp_num, sq->open);
	return ENOMEM;
}

static int put_inline_list(const struct vb_front_qp *qp,
			   struct vb_send_wqe *wqe, const struct ibv_sge *list,
			   int count, uint64_t *total)
{
	*total = 0;
	for (int i = 0; i < count; i++) {
		int err = vb_wqe_put_inline(qp, wqe, (const void *)list[i].addr,
					    list[i].length, total);

		if (err)
			return err;
	}
	wqe->num_sge = 0;
	return 0;
}

static void put_remote(struct vb_send_wqe *wqe, const struct ibv_send_wr *wr,
		       enum send_remote remote)
{
	switch (remote) {
	case NO_REMOTE:
	case WINDOW:
		return;
	case REMOTE_RDMA:
	case REMOTE_WORD:
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		return;
	case REMOTE_ATOMIC:
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
		return;
	}
}

static int fill_window_wqe(const struct vb_front_qp *qp,
			   struct vb_send_wqe *wqe,
			   const struct ibv_send_wr *wr)
{
	wqe->length = 0;
	if (wr->opcode == IBV_WR_LOCAL_INV)
		return 0;
	if (!wr->bind_mw.mw || wr->bind_mw.mw->type != IBV_MW_TYPE_2)
		return vb_wqe_refuse(qp, EINVAL, WHY_FLAGS,
				     "ibv_post_send binds windows of type 2 "
				     "only");
	return vb_wqe_put_bind(qp, wqe, wr->bind_mw.mw, wr->bind_mw.rkey,
			       &wr->bind_mw.bind_info);
}

static int fill_wqe(const struct vb_front_qp *qp, struct vb_send_wqe *wqe,
		    const struct ibv_send_wr *wr)
{
	const struct send_rule *r = vb_wqe_rule(qp, wr->opcode);
	uint64_t total = 0;
	int err;

	if (!r)
		return vb_wqe_refuse(
			qp, EINVAL,
			(int)wr->opcode == VB_FRONT_WR_FLUSH ? WHY_NO_SUPPORT
							     : WHY_OPCODE,
			"opcode %d (%s) is not possible on a "
			"queue pair of type %d",
			(int)wr->opcode, vb_front_wr_name(wr->opcode),
			(int)qp->ibv.qp_type);
	if (wr->send_flags & ~SEND_FLAGS)
		return vb_wqe_refuse(qp, EINVAL, WHY_FLAGS,
				     "unknown bits in send_flags 0x%x",
				     wr->send_flags);
	if (wr->num_sge < 0)
		return vb_wqe_refuse(qp, EINVAL, WHY_SGES, "num_sge is %d",
				     wr->num_sge);
	if (wr->send_flags & SEND_INLINE && !r->inline_ok)
		return vb_wqe_refuse(qp, EINVAL, WHY_FLAGS,
				     "IBV_SEND_INLINE with opcode %d, which "
				     "sends no data",
				     (int)wr->opcode);
	vb_wqe_begin(wqe, wr->wr_id, wr->opcode, wr->send_flags);
	put_remote(wqe, wr, r->remote);
	if (r->imm)
		wqe->imm = wr->imm_data;
	if (r->remote == WINDOW)
		return fill_window_wqe(qp, wqe, wr);
	if (wr->send_flags & SEND_INLINE)
		err = put_inline_list(qp, wqe, wr->sg_list, wr->num_sge,
				      &total);
	else
		err = vb_wqe_put_sges(qp, wqe, wr->sg_list, (size_t)wr->num_sge,
				      &total);
	if (!err && qp->core->type == QPT_UD)
		err = vb_wqe_put_dest(qp, wqe, wr->wr.ud.ah,
				      wr->wr.ud.remote_qpn,
				      wr->wr.ud.remote_qkey);
	if (qp->core->type == QPT_XRC_SEND)
		wqe->srqn = wr->qp_type.xrc.remote_srqn;
	if (!err)
		err = vb_wqe_set_length(qp, wqe, total);
	if (!err && r->remote == REMOTE_WORD && wr->send_flags & SEND_INLINE)
		memcpy(&wqe->swap, wqe->inline_data, ATOMIC_BYTES);
	return err;
}

/* Is the request a WRITE or a SEND on a reliable connection, with one buffer
 * and no special flag? Most work requests are, and need only the checks
 * here. */
static bool is_common_wr(const struct vb_front_qp *qp,
			 const struct ibv_send_wr *wr)
{
	return (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_SEND) &&
	       !(wr->send_flags & ~(SEND_SIGNALED | SEND_SOLICITED)) &&
	       wr->num_sge == 1 && wr->sg_list->length <= VB_MAX_MSG &&
	       qp->core->type == QPT_RC && qp->core->sq.max_sge;
}

static void fill_common_wr(struct vb_send_wqe *wqe,
			   const struct ibv_send_wr *wr)
{
	const struct ibv_sge *sge = wr->sg_list;

	vb_wqe_begin(wqe, wr->wr_id, wr->opcode, wr->send_flags);
	/* a SEND ignores this field */
	wqe->remote_addr = wr->wr.rdma.remote_addr;
	wqe->rkey = wr->wr.rdma.rkey;
	wqe->length = sge->length;
	wqe->num_sge = 1;
	wqe->sge[0] = (struct vb_sge){ sge->addr, sge->length, sge->lkey };
}

static int post_one(const struct vb_front_qp *qp, struct vb_sq *sq,
		    const struct ibv_send_wr *wr) VB_REQUIRES(sq->lock)
{
	struct vb_send_wqe *wqe = vb_sq_begin(sq);
	int err = 0;

	if (!wqe)
		return vb_wqe_refuse_full(qp);
	if (VB_LIKELY(is_common_wr(qp, wr)))
		fill_common_wr(wqe, wr);
	else
		err = fill_wqe(qp, wqe, wr);
	if (!err)
		vb_sq_commit(sq);
	return err;
}

static bool is_short(const struct ibv_send_wr *wr)
{
	return !wr->next && wr->num_sge == 1 &&
	       wr->sg_list->length <= VB_DEFER_BYTES;
}

int vb_front_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr,
		       struct ibv_send_wr **bad_wr)
{
	struct vb_front_qp *qp = vb_front_qp(ibv);
	struct vb_sq *sq = &qp->core->sq;
	struct ibv_send_wr *first = wr;
	int err = 0;

	if (VB_UNLIKELY(!vb_wqe_may_post(qp->core))) {
		*bad_wr = wr;
		return vb_wqe_refuse_state(qp, "post_send");
	}
	vb_mutex_lock(&sq->lock);
	for (; wr; wr = wr->next) {
		err = post_one(qp, sq, wr);
		if (VB_UNLIKELY(err))
			break;
	}
	vb_mutex_unlock(&sq->lock);
	if (VB_UNLIKELY(err))
		*bad_wr = wr;
	if (wr != first && is_short(first))
		vb_drive_short(qp->core);
	else if (wr != first)
		vb_drive(qp->core);
	return err;
}

int vb_front_bind_mw(struct ibv_qp *ibv, struct ibv_mw *mw,
		     struct ibv_mw_bind *bind)
{
	struct vb_front_qp *qp = vb_front_qp(ibv);
	struct vb_sq *sq = &qp->core->sq;
	struct vb_send_wqe *wqe;
	int err;

	if (!vb_wqe_may_post(qp->core))
		return vb_wqe_refuse_state(qp, "bind_mw");
	if (!vb_wqe_rule(qp, WR_BIND_MW) ||
	    bind->send_flags & ~(SEND_FENCE | SEND_SIGNALED))
		return vb_wqe_refuse(qp, EINVAL, WHY_FLAGS,
				     "ibv_bind_mw on a queue pair that has no "
				     "windows, or with flags other than "
				     "IBV_SEND_FENCE and IBV_SEND_SIGNALED");
	vb_mutex_lock(&sq->lock);
	wqe = vb_sq_begin(sq);
	err = wqe ? 0 : vb_wqe_refuse_full(qp);
	if (!err) {
		vb_wqe_begin(wqe, bind->wr_id, WR_BIND_MW, bind->send_flags);
		err = vb_wqe_put_bind(qp, wqe, mw, mw->rkey + 1,
				      &bind->bind_info);
	}
	if (!err)
		vb_sq_commit(sq);
	vb_mutex_unlock(&sq->lock);
	if (!err)
		vb_drive(qp->core);
	return err;
}

static void refuse_recv(const struct vb_rq *rq, const char *object,
			uint32_t number, const struct ibv_recv_wr *wr, int rc)
{
	/* It is the program's mistake only if the queue has never released an
	 * entry: some programs (libfabric) post until the queue is full. */
	if (rc == -ENOMEM && atomic_load(&rq->released) == 0)
		vb_why(WHY_RECV_FULL, (uintptr_t)rq,
		       "%s 0x%x: receive refused: the queue of %u entries is "
		       "full",
		       object, number, rq->cap);
	else if (rc == -ENOMEM)
		vb_log(LOG_INFO,
		       "%s 0x%x: receive refused: the queue of %u entries is "
		       "full",
		       object, number, rq->cap);
	else
		vb_why(WHY_SGES, (uintptr_t)rq,
		       "%s 0x%x: receive refused: num_sge is %d, and at most "
		       "%u are possible",
		       object, number, wr->num_sge, rq->max_sge);
}

static int post_recv_list(struct vb_rq *rq, const char *object, uint32_t number,
			  struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	for (; wr; wr = wr->next) {
		int rc =
			wr->num_sge < 0
				? -EINVAL
				: vb_rq_post(rq, wr->wr_id,
					     (const struct vb_sge *)wr->sg_list,
					     (unsigned)wr->num_sge);

		if (VB_LIKELY(rc == 0))
			continue;
		*bad_wr = wr;
		refuse_recv(rq, object, number, wr, rc);
		return -rc;
	}
	return 0;
}

/* Is @type a type of XRC queue pairs? They have no receive queue. */
static bool is_xrc(enum vb_qp_type type)
{
	return type == QPT_XRC_SEND || type == QPT_XRC_RECV;
}

int vb_front_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr)
{
	struct vb_front_qp *qp = vb_front_qp(ibv);
	uint8_t state =
		atomic_load_explicit(&qp->core->state, memory_order_relaxed);
	int err;

	if (VB_UNLIKELY(state == QPS_RESET)) {
		*bad_wr = wr;
		return vb_wqe_refuse_state(qp, "post_recv");
	}
	if (VB_UNLIKELY(qp->ibv.srq || is_xrc(qp->core->type))) {
		*bad_wr = wr;
		return vb_wqe_refuse(qp, EINVAL, WHY_RECV_SRQ,
				     "ibv_post_recv, and the queue pair's "
				     "receives come from a shared queue");
	}
	err = post_recv_list(&qp->core->rq, "qp", ibv->qp_num, wr, bad_wr);
	/* Read the state again: a thread that moved the queue pair to ERR
	 * meanwhile may have flushed the queue before these entries were in it.
	 * If so, vb_drive() flushes them. */
	if (VB_UNLIKELY(atomic_load(&qp->core->state) == QPS_ERR))
		vb_drive(qp->core);
	return err;
}

int vb_front_post_wq_recv(struct ibv_wq *ibv, struct ibv_recv_wr *wr,
			  struct ibv_recv_wr **bad_wr)
{
	struct vb_qp *core = vb_front_wq(ibv)->core;
	int err;

	if (VB_UNLIKELY(atomic_load(&core->state) == QPS_RESET)) {
		*bad_wr = wr;
		vb_why(WHY_STATE, ibv->wq_num,
		       "wq 0x%x: receive refused: the work queue is in RESET",
		       ibv->wq_num);
		return EINVAL;
	}
	err = post_recv_list(&core->rq, "wq", ibv->wq_num, wr, bad_wr);
	/* A thread may have flushed the queue before these entries came: see
	 * vb_front_post_recv(). */
	if (VB_UNLIKELY(atomic_load(&core->state) == QPS_ERR))
		vb_drive(core);
	return err;
}

int vb_front_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr,
			   struct ibv_recv_wr **bad_wr)
{
	return post_recv_list(&vb_front_srq(ibv)->core->rq, "srq", ibv->handle,
			      wr, bad_wr);
}

/*
 * Tag matching: a shared queue's list of tagged buffers (core/tag.h).
 */

static struct vb_tag_op op_in(const struct ibv_ops_wr *wr)
{
	return (struct vb_tag_op){
		.wr_id = wr->wr_id,
		.now = vb_now(),
		.signaled = wr->flags & IBV_OPS_SIGNALED,
		.sync = wr->flags & IBV_OPS_TM_SYNC ||
			wr->opcode == IBV_WR_TAG_SYNC,
		.seen = wr->tm.unexpected_cnt,
		.handle = wr->tm.handle,
		.recv_wr_id = wr->tm.add.recv_wr_id,
		.tag = wr->tm.add.tag,
		.mask = wr->tm.add.mask,
		.sge = (const struct vb_sge *)wr->tm.add.sg_list,
		.count = (unsigned)wr->tm.add.num_sge,
	};
}

static int run_op(struct vb_srq *srq, struct ibv_ops_wr *wr)
{
	struct vb_tag_op op = op_in(wr);
	int rc;

	if (wr->flags & ~(IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC))
		return -EINVAL;
	switch (wr->opcode) {
	case IBV_WR_TAG_ADD:
		rc = vb_tag_add(srq, &op);
		wr->tm.handle = op.handle;
		return rc;
	case IBV_WR_TAG_DEL:
		return vb_tag_del(srq, &op);
	case IBV_WR_TAG_SYNC:
		vb_tag_sync(srq, &op);
		return 0;
	default:
		return -EINVAL;
	}
}

int vb_front_post_srq_ops(struct ibv_srq *ibv, struct ibv_ops_wr *wr,
			  struct ibv_ops_wr **bad_wr)
{
	if (!vb_front_srq(ibv)->core->tags) {
		*bad_wr = wr;
		vb_why(WHY_TAGS, (uintptr_t)ibv,
		       "srq %u: ibv_post_srq_ops on a shared queue without tag "
		       "matching (IBV_SRQT_TM)",
		       ibv->handle);
		return EINVAL;
	}
	for (; wr; wr = wr->next) {
		int rc = run_op(vb_front_srq(ibv)->core, wr);

		if (VB_LIKELY(rc == 0))
			continue;
		*bad_wr = wr;
		vb_why(WHY_TAGS, (uintptr_t)ibv,
		       "srq %u: operation %d on tags refused: %s", ibv->handle,
		       (int)wr->opcode,
		       rc == -ENOMEM ? "the list is full"
				     : "invalid flags, opcode or arguments");
		return -rc;
	}
	return 0;
}

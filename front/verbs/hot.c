/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs that are fast: post, poll, arm, and the ibv_wr_* builder. Work
 * requests are checked and translated in place, into the queue's own slots;
 * one vb_drive() follows for the whole list.
 */
#include "front/verbs/front.h"

#include "base/clock.h"
#include "base/guard.h"
#include "base/log.h"
#include "core/sge.h"

#define POLL_BATCH   16
#define ATOMIC_BYTES 8

enum send_remote {
	NO_REMOTE,
	REMOTE_RDMA,
	REMOTE_ATOMIC,
	REMOTE_WORD,
	WINDOW,
};

/* What this adapter does with a work request, by its opcode. */
// clang-format off
static const struct send_rule {
	bool known, rc_only, inline_ok, imm; /* imm: or a key to give up */
	enum send_remote remote;
} send_rules[] = {
#define ROW(op, rc_only, inline_ok, imm, remote) \
	[op] = { true, rc_only, inline_ok, imm, remote }
	/*  operation    RC only  inline  imm    remote side */
	ROW(WR_WRITE,     false,  true,   false, REMOTE_RDMA),
	ROW(WR_WRITE_IMM, false,  true,   true,  REMOTE_RDMA),
	ROW(WR_SEND,      false,  true,   false, NO_REMOTE),
	ROW(WR_SEND_IMM,  false,  true,   true,  NO_REMOTE),
	ROW(WR_SEND_INV,  true,   true,   true,  NO_REMOTE),
	ROW(WR_READ,      true,   false,  false, REMOTE_RDMA),
	ROW(WR_CMP_SWAP,  true,   false,  false, REMOTE_ATOMIC),
	ROW(WR_FETCH_ADD, true,   false,  false, REMOTE_ATOMIC),
	ROW(WR_ATOMIC_WRITE, true, true,  false, REMOTE_WORD),
	ROW(WR_LOCAL_INV, false,  false,  true,  WINDOW),
	ROW(WR_BIND_MW,   false,  false,  false, WINDOW),
#undef ROW
};
// clang-format on

#define SEND_FLAGS (SEND_FENCE | SEND_SIGNALED | SEND_SOLICITED | SEND_INLINE)

static const struct send_rule *rule_of(const struct vb_front_qp *qp,
				       unsigned op)
{
	const struct send_rule *r;

	if (op >= VB_COUNT(send_rules))
		return NULL;
	r = &send_rules[op];
	if (!r->known || qp->core->type == QPT_XRC_RECV ||
	    (r->rc_only && !vb_qp_type_is_reliable(qp->core->type)))
		return NULL;
	if (qp->core->type == QPT_UD && r->remote != NO_REMOTE)
		return NULL;
	if (qp->core->type == QPT_RAW_PACKET && op != WR_SEND)
		return NULL;
	return r;
}

/* Say what is wrong, for a person; returns @err. */
static int refuse(const struct vb_front_qp *qp, int err, const char *what)
{
	vb_log(LOG_INFO, "qp 0x%x: work request refused: %s", qp->ibv.qp_num,
	       what);
	return err;
}

/* In SQD, SQE and ERR work is taken: it waits there or is flushed. */
static bool may_send(const struct vb_qp *qp)
{
	/* A stale answer is what a program gets that races with itself. */
	switch (atomic_load_explicit(&qp->state, memory_order_relaxed)) {
	case QPS_RTS:
	case QPS_SQD:
	case QPS_SQE:
	case QPS_ERR:
		return true;
	default:
		return false;
	}
}

static int refuse_state(const struct vb_front_qp *qp, const char *queue)
{
	enum vb_qp_state s = atomic_load(&qp->core->state);

	vb_log(LOG_INFO, "qp 0x%x: %s: the queue pair is in %s", qp->ibv.qp_num,
	       queue, vb_qp_state_name(s));
	return EINVAL;
}

/* The length of the whole message, and what an operation asks of it. */
static int seal(const struct vb_front_qp *qp, struct vb_send_wqe *wqe,
		uint64_t total)
{
	if (total > VB_MAX_MSG)
		return refuse(qp, EINVAL, "message longer than 1 GiB");
	wqe->length = (uint32_t)total;
	if (send_rules[wqe->op].remote == REMOTE_WORD && total != ATOMIC_BYTES)
		return refuse(qp, EINVAL, "atomic write of not 8 bytes");
	if (send_rules[wqe->op].remote != REMOTE_ATOMIC)
		return 0;
	if (total < ATOMIC_BYTES)
		return refuse(qp, EINVAL, "atomic with less than 8 bytes");
	wqe->length = ATOMIC_BYTES;
	return 0;
}

static int put_sges(const struct vb_front_qp *qp, struct vb_send_wqe *wqe,
		    const struct ibv_sge *list, size_t count, uint64_t *total)
{
	if (count > qp->core->sq.max_sge)
		return refuse(qp, EINVAL, "more SGEs than max_send_sge");
	*total = 0;
	for (size_t i = 0; i < count; i++) {
		wqe->sge[i] = (struct vb_sge){ list[i].addr, list[i].length,
					       list[i].lkey };
		*total += list[i].length;
	}
	wqe->num_sge = (uint8_t)count;
	return 0;
}

/* Add a piece behind the *@total bytes that are there. */
static int put_inline(const struct vb_front_qp *qp, struct vb_send_wqe *wqe,
		      const void *from, size_t len, uint64_t *total)
{
	if (len > qp->core->sq.max_inline - *total)
		return refuse(qp, EINVAL,
			      "more inline bytes than max_inline_data");
	if (vb_guard_copy(wqe->inline_data + *total, from, len) != 0)
		return refuse(qp, EFAULT, "inline data that is not mapped");
	*total += len;
	return 0;
}

static int put_inline_list(const struct vb_front_qp *qp,
			   struct vb_send_wqe *wqe, const struct ibv_sge *list,
			   int count, uint64_t *total)
{
	*total = 0;
	for (int i = 0; i < count; i++) {
		int err = put_inline(qp, wqe, (const void *)list[i].addr,
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

/* A datagram's address. */
static int put_dest(const struct vb_front_qp *qp, struct vb_send_wqe *wqe,
		    struct ibv_ah *ibv_ah, uint32_t qpn, uint32_t qkey)
{
	struct vb_send_dest *dest = vb_sq_dest(&qp->core->sq, wqe);
	const struct vb_ah *ah;

	if (!ibv_ah)
		return refuse(qp, EINVAL, "datagram without address handle");
	ah = vb_front_ah(ibv_ah)->core;
	if (ah->pd != qp->core->pd)
		return refuse(qp, EINVAL,
			      "address handle of another protection domain");
	if (qpn > 0xffffff)
		return refuse(qp, EINVAL, "no such queue pair number");
	dest->qkey = qkey;
	return -vb_ah_aim(ah, qp->ibv.qp_num, qpn, &dest->route);
}

/* What the transport expects of a fresh slot. */
static void begin_wqe(struct vb_send_wqe *wqe, uint64_t wr_id, unsigned op,
		      unsigned flags)
{
	wqe->wr_id = wr_id;
	wqe->op = (uint8_t)op;
	wqe->flags = (uint8_t)flags;
	wqe->num_sge = 0;
	wqe->psn_count = 0;
}

#define WINDOW_ACCESS                                                          \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |       \
	 ACCESS_REMOTE_ATOMIC | ACCESS_ZERO_BASED)

/*
 * What the bind's rules are about is asked when its turn comes (core/mw.c):
 * the region may come and go until then, and is named by its key. The program
 * finds the whole key in mw->rkey: programs give a key of which they mean the
 * low 8 bits, and adapters (irdma) give back what it comes to.
 */
static int put_bind(const struct vb_front_qp *qp, struct vb_send_wqe *wqe,
		    struct ibv_mw *mw, uint32_t key,
		    const struct ibv_mw_bind_info *info)
{
	if (info->mw_access_flags & ~WINDOW_ACCESS)
		return refuse(qp, EINVAL, "unknown access flags");
	wqe->rkey = mw->rkey = vb_mw_key(mw->rkey, key);
	wqe->swap = info->mr ? info->mr->rkey : 0;
	wqe->remote_addr = info->addr;
	wqe->compare_add = info->length;
	wqe->imm = info->mw_access_flags;
	wqe->length = 0;
	return 0;
}

static int fill_window_wqe(const struct vb_front_qp *qp,
			   struct vb_send_wqe *wqe,
			   const struct ibv_send_wr *wr)
{
	wqe->length = 0;
	if (wr->opcode == IBV_WR_LOCAL_INV)
		return 0;
	if (!wr->bind_mw.mw || wr->bind_mw.mw->type != IBV_MW_TYPE_2)
		return refuse(qp, EINVAL, "bind of no window of type 2");
	return put_bind(qp, wqe, wr->bind_mw.mw, wr->bind_mw.rkey,
			&wr->bind_mw.bind_info);
}

static int fill_wqe(const struct vb_front_qp *qp, struct vb_send_wqe *wqe,
		    const struct ibv_send_wr *wr)
{
	const struct send_rule *r = rule_of(qp, wr->opcode);
	uint64_t total;
	int err;

	if (!r)
		return refuse(qp, EINVAL, "operation not supported");
	if (wr->send_flags & ~SEND_FLAGS)
		return refuse(qp, EINVAL, "unknown send flags");
	if (wr->num_sge < 0)
		return refuse(qp, EINVAL, "negative num_sge");
	if (wr->send_flags & SEND_INLINE && !r->inline_ok)
		return refuse(qp, EINVAL,
			      "inline with an operation that "
			      "sends no data");
	begin_wqe(wqe, wr->wr_id, wr->opcode, wr->send_flags);
	put_remote(wqe, wr, r->remote);
	if (r->imm)
		wqe->imm = wr->imm_data;
	if (r->remote == WINDOW)
		return fill_window_wqe(qp, wqe, wr);
	if (wr->send_flags & SEND_INLINE)
		err = put_inline_list(qp, wqe, wr->sg_list, wr->num_sge,
				      &total);
	else
		err = put_sges(qp, wqe, wr->sg_list, (size_t)wr->num_sge,
			       &total);
	if (!err && qp->core->type == QPT_UD)
		err = put_dest(qp, wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
			       wr->wr.ud.remote_qkey);
	if (qp->core->type == QPT_XRC_SEND)
		wqe->srqn = wr->qp_type.xrc.remote_srqn;
	if (!err)
		err = seal(qp, wqe, total);
	if (!err && r->remote == REMOTE_WORD && wr->send_flags & SEND_INLINE)
		memcpy(&wqe->swap, wqe->inline_data, ATOMIC_BYTES);
	return err;
}

/* Most are: nothing is asked of them but what stands here. */
static bool is_plain(const struct vb_front_qp *qp, const struct ibv_send_wr *wr)
{
	return (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_SEND) &&
	       !(wr->send_flags & ~(SEND_SIGNALED | SEND_SOLICITED)) &&
	       wr->num_sge == 1 && wr->sg_list->length <= VB_MAX_MSG &&
	       qp->core->type == QPT_RC && qp->core->sq.max_sge;
}

static void fill_plain(struct vb_send_wqe *wqe, const struct ibv_send_wr *wr)
{
	const struct ibv_sge *sge = wr->sg_list;

	begin_wqe(wqe, wr->wr_id, wr->opcode, wr->send_flags);
	wqe->remote_addr = wr->wr.rdma.remote_addr; /* a SEND looks at none */
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
		return refuse(qp, ENOMEM, "the send queue is full");
	if (VB_LIKELY(is_plain(qp, wr)))
		fill_plain(wqe, wr);
	else
		err = fill_wqe(qp, wqe, wr);
	if (!err)
		vb_sq_commit(sq);
	return err;
}

static bool is_short(const struct ibv_send_wr *wr)
{
	return !wr->next && wr->num_sge == 1 &&
	       wr->sg_list->length <= VB_QUIET_BYTES;
}

int vb_front_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr,
		       struct ibv_send_wr **bad_wr)
{
	struct vb_front_qp *qp = vb_front_qp(ibv);
	struct vb_sq *sq = &qp->core->sq;
	struct ibv_send_wr *first = wr;
	int err = 0;

	if (VB_UNLIKELY(!may_send(qp->core))) {
		*bad_wr = wr;
		return refuse_state(qp, "post_send");
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

	if (!may_send(qp->core))
		return refuse_state(qp, "bind_mw");
	if (!rule_of(qp, WR_BIND_MW) ||
	    bind->send_flags & ~(SEND_FENCE | SEND_SIGNALED))
		return refuse(qp, EINVAL,
			      "bind with flags, or on a queue pair, "
			      "that cannot");
	vb_mutex_lock(&sq->lock);
	wqe = vb_sq_begin(sq);
	err = wqe ? 0 : refuse(qp, ENOMEM, "the send queue is full");
	if (!err) {
		begin_wqe(wqe, bind->wr_id, WR_BIND_MW, bind->send_flags);
		err = put_bind(qp, wqe, mw, mw->rkey + 1, &bind->bind_info);
	}
	if (!err)
		vb_sq_commit(sq);
	vb_mutex_unlock(&sq->lock);
	if (!err)
		vb_drive(qp->core);
	return err;
}

static int post_receives(struct vb_rq *rq, const char *object, uint32_t number,
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
		vb_log(LOG_INFO, "%s 0x%x: receive of %d SGEs refused: %s",
		       object, number, wr->num_sge,
		       rc == -ENOMEM ? "the queue is full"
				     : "more than were promised");
		return -rc;
	}
	return 0;
}

/* XRC: it has no receive queue. */
static bool is_half(enum vb_qp_type type)
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
		return refuse_state(qp, "post_recv");
	}
	if (VB_UNLIKELY(qp->ibv.srq || is_half(qp->core->type))) {
		*bad_wr = wr;
		return refuse(qp, EINVAL, "its receives come from an SRQ");
	}
	err = post_receives(&qp->core->rq, "qp", ibv->qp_num, wr, bad_wr);
	/* The state again: whoever moved to ERR meanwhile may have flushed
	 * before our entries were there. */
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
		vb_log(LOG_INFO, "wq 0x%x: receive refused: it is in RESET",
		       ibv->wq_num);
		return EINVAL;
	}
	err = post_receives(&core->rq, "wq", ibv->wq_num, wr, bad_wr);
	/* As above. */
	if (VB_UNLIKELY(atomic_load(&core->state) == QPS_ERR))
		vb_drive(core);
	return err;
}

int vb_front_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr,
			   struct ibv_recv_wr **bad_wr)
{
	return post_receives(&vb_front_srq(ibv)->core->rq, "srq", ibv->handle,
			     wr, bad_wr);
}

/*
 * A shared queue's list of tagged buffers.
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
		return EINVAL;
	}
	for (; wr; wr = wr->next) {
		int rc = run_op(vb_front_srq(ibv)->core, wr);

		if (VB_LIKELY(rc == 0))
			continue;
		*bad_wr = wr;
		vb_log(LOG_INFO, "srq %u: operation %d on tags refused: %s",
		       ibv->handle, (int)wr->opcode,
		       rc == -ENOMEM ? "the list is full"
				     : "not as it should be");
		return -rc;
	}
	return 0;
}

/*
 * Completion queues.
 */

/* Waiting entries are taken without a system call, most often; an empty queue
 * is the reason to look at the link, and then once more. */
static int poll_core(struct vb_cq *cq, int n, struct vb_cqe *e)
{
	if (atomic_load_explicit(&cq->count, memory_order_relaxed) == 0)
		vb_engine_poll();
	else
		vb_engine_poll_hint(cq);
	return vb_cq_poll(cq, n, e);
}

static void wc_out(const struct vb_cqe *e, struct ibv_wc *wc)
{
	*wc = (struct ibv_wc){
		.wr_id = e->wr_id,
		.status = (enum ibv_wc_status)e->status,
		.opcode = (enum ibv_wc_opcode)e->opcode,
		.byte_len = e->byte_len,
		.imm_data = e->imm,
		.qp_num = e->qpn,
		.src_qp = e->src_qp,
		.wc_flags = e->wc_flags,
		.sl = e->sl,
	};
}

int vb_front_poll_cq(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
	struct vb_cq *cq = vb_front_cq(ibv)->core;
	struct vb_cqe batch[POLL_BATCH];
	int done = 0;

	while (done < count) {
		int want = VB_MIN(count - done, POLL_BATCH);
		int got = done ? vb_cq_poll(cq, want, batch)
			       : poll_core(cq, want, batch);

		if (VB_UNLIKELY(got < 0))
			return done ? done : got;
		for (int i = 0; i < got; i++)
			wc_out(&batch[i], &wc[done + i]);
		done += got;
		if (got < want)
			break;
	}
	return done;
}

int vb_front_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	vb_cq_arm(vb_front_cq(ibv)->core, solicited_only != 0);
	vb_engine_armed();
	return 0;
}

/*
 * Extended completion queues: one entry at a time, under the poll lock from
 * start_poll to end_poll.
 */

static struct vb_front_cq *cq_of(struct ibv_cq_ex *ex)
{
	return VB_CONTAINER_OF(ex, struct vb_front_cq, ex);
}

static int next_entry(struct vb_front_cq *cq, bool look_at_link)
{
	int got = look_at_link ? poll_core(cq->core, 1, &cq->at)
			       : vb_cq_poll(cq->core, 1, &cq->at);

	if (got <= 0)
		return got ? -got : ENOENT;
	cq->ex.wr_id = cq->at.wr_id;
	cq->ex.status = (enum ibv_wc_status)cq->at.status;
	return 0;
}

static int VB_UNCHECKED cq_start_poll(struct ibv_cq_ex *ex,
				      struct ibv_poll_cq_attr *attr)
{
	struct vb_front_cq *cq = cq_of(ex);
	int rc;

	if (attr->comp_mask)
		return EINVAL;
	vb_mutex_lock(&cq->poll);
	rc = next_entry(cq, true);
	if (rc)
		vb_mutex_unlock(&cq->poll);
	return rc;
}

static int cq_next_poll(struct ibv_cq_ex *ex)
{
	return next_entry(cq_of(ex), false);
}

static void VB_UNCHECKED cq_end_poll(struct ibv_cq_ex *ex)
{
	vb_mutex_unlock(&cq_of(ex)->poll);
}

static enum ibv_wc_opcode cq_read_opcode(struct ibv_cq_ex *ex)
{
	return (enum ibv_wc_opcode)cq_of(ex)->at.opcode;
}

static uint32_t cq_read_byte_len(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.byte_len;
}

static __be32 cq_read_imm_data(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.imm;
}

static uint32_t cq_read_qp_num(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.qpn;
}

static uint32_t cq_read_src_qp(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.src_qp;
}

static unsigned int cq_read_wc_flags(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.wc_flags;
}

static uint8_t cq_read_sl(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.sl;
}

static uint32_t cq_read_flow_tag(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.flow_tag;
}

/* RoCE has no LIDs, this adapter takes no VLAN tags off, and the status says
 * all there is to say about an error: zeros. */
static uint32_t cq_read_zero32(struct ibv_cq_ex *ex)
{
	return 0;
}

static uint16_t cq_read_zero16(struct ibv_cq_ex *ex)
{
	return 0;
}

static uint8_t cq_read_zero8(struct ibv_cq_ex *ex)
{
	return 0;
}

static void cq_read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
	*info = (struct ibv_wc_tm_info){ cq_of(ex)->at.tm_tag,
					 cq_of(ex)->at.tm_app_ctx };
}

static uint64_t cq_read_completion_ts(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->at.timestamp;
}

static uint64_t cq_read_wallclock(struct ibv_cq_ex *ex)
{
	return vb_clock_wall(cq_of(ex)->at.timestamp);
}

void vb_front_cq_ex_init(struct vb_front_cq *cq)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = cq_start_poll;
	ex->next_poll = cq_next_poll;
	ex->end_poll = cq_end_poll;
	ex->read_opcode = cq_read_opcode;
	ex->read_vendor_err = cq_read_zero32;
	ex->read_byte_len = cq_read_byte_len;
	ex->read_imm_data = cq_read_imm_data;
	ex->read_qp_num = cq_read_qp_num;
	ex->read_src_qp = cq_read_src_qp;
	ex->read_wc_flags = cq_read_wc_flags;
	ex->read_slid = cq_read_zero32;
	ex->read_sl = cq_read_sl;
	ex->read_dlid_path_bits = cq_read_zero8;
	ex->read_completion_ts = cq_read_completion_ts;
	ex->read_cvlan = cq_read_zero16;
	ex->read_flow_tag = cq_read_flow_tag;
	ex->read_tm_info = cq_read_tm_info;
	ex->read_completion_wallclock_ns = cq_read_wallclock;
}

/*
 * The ibv_wr_* builder. Work requests are written into the free slots beyond
 * what is posted and published together by wr_complete; the first mistake is
 * remembered, what follows it is ignored, and nothing is posted.
 */

static struct vb_front_qp *qp_of(struct ibv_qp_ex *ex)
{
	return VB_CONTAINER_OF(ex, struct vb_front_qp, ex);
}

static void fail_build(struct vb_front_qp *qp, int err)
{
	qp->build.wqe = NULL;
	if (!qp->build.error)
		qp->build.error = err;
}

static bool needs_address(const struct vb_front_qp *qp,
			  const struct vb_send_wqe *wqe)
{
	return qp->core->type == QPT_UD ||
	       (qp->core->type == QPT_XRC_SEND &&
		send_rules[wqe->op].remote != WINDOW);
}

/* The newest request is finished: it got its data setter, or has none. */
static void end_wr(struct vb_front_qp *qp)
{
	struct vb_send_wqe *wqe = qp->build.wqe;
	int err;

	if (!wqe)
		return;
	err = seal(qp, wqe, wqe->length);
	if (!err && !qp->build.addressed && needs_address(qp, wqe))
		err = refuse(qp, EINVAL,
			     "without address handle or shared queue");
	if (err)
		fail_build(qp, err);
}

static struct vb_send_wqe *begin_wr(struct vb_front_qp *qp, unsigned op)
{
	struct vb_front_builder *b = &qp->build;

	end_wr(qp);
	if (b->error)
		return NULL;
	b->wqe = NULL;
	if (!rule_of(qp, op) || qp->ex.wr_flags & ~SEND_FLAGS) {
		fail_build(qp, refuse(qp, EINVAL,
				      "operation or flags not "
				      "supported"));
		return NULL;
	}
	b->wqe = vb_sq_peek(&qp->core->sq, b->count);
	if (!b->wqe) {
		fail_build(qp, refuse(qp, ENOMEM, "the send queue is full"));
		return NULL;
	}
	b->count++;
	b->addressed = false;
	begin_wqe(b->wqe, qp->ex.wr_id, op, qp->ex.wr_flags & ~SEND_INLINE);
	b->wqe->length = 0;
	return b->wqe;
}

static void begin_rdma(struct ibv_qp_ex *ex, unsigned op, uint32_t rkey,
		       uint64_t remote_addr, __be32 imm)
{
	struct vb_send_wqe *wqe = begin_wr(qp_of(ex), op);

	if (!wqe)
		return;
	wqe->rkey = rkey;
	wqe->remote_addr = remote_addr;
	wqe->imm = imm;
}

static void begin_atomic(struct ibv_qp_ex *ex, unsigned op, uint32_t rkey,
			 uint64_t remote_addr, uint64_t compare_add,
			 uint64_t swap)
{
	struct vb_send_wqe *wqe = begin_wr(qp_of(ex), op);

	if (!wqe)
		return;
	wqe->rkey = rkey;
	wqe->remote_addr = remote_addr;
	wqe->compare_add = compare_add;
	wqe->swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	begin_atomic(ex, WR_CMP_SWAP, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey,
				uint64_t remote_addr, uint64_t add)
{
	begin_atomic(ex, WR_FETCH_ADD, rkey, remote_addr, add, 0);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey,
			 uint64_t remote_addr)
{
	begin_rdma(ex, WR_READ, rkey, remote_addr, 0);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey,
			  uint64_t remote_addr)
{
	begin_rdma(ex, WR_WRITE, rkey, remote_addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, __be32 imm_data)
{
	begin_rdma(ex, WR_WRITE_IMM, rkey, remote_addr, imm_data);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin_rdma(ex, WR_SEND, 0, 0, 0);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	begin_rdma(ex, WR_SEND_IMM, 0, 0, imm_data);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin_rdma(ex, WR_SEND_INV, 0, 0, invalidate_rkey);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin_rdma(ex, WR_LOCAL_INV, 0, 0, invalidate_rkey);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *bind_info)
{
	struct vb_front_qp *qp = qp_of(ex);
	struct vb_send_wqe *wqe = begin_wr(qp, WR_BIND_MW);
	int err;

	if (!wqe)
		return;
	err = mw->type == IBV_MW_TYPE_2
		      ? put_bind(qp, wqe, mw, rkey, bind_info)
		      : refuse(qp, EINVAL, "bind of no window of type 2");
	if (err)
		fail_build(qp, err);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey,
			    uint64_t remote_addr, const void *atomic_wr)
{
	struct vb_front_qp *qp = qp_of(ex);
	struct vb_send_wqe *wqe = begin_wr(qp, WR_ATOMIC_WRITE);

	if (!wqe)
		return;
	wqe->rkey = rkey;
	wqe->remote_addr = remote_addr;
	wqe->flags |= SEND_INLINE;
	wqe->length = ATOMIC_BYTES;
	if (vb_guard_copy(&wqe->swap, atomic_wr, ATOMIC_BYTES))
		fail_build(qp, refuse(qp, EFAULT, "a word that is not mapped"));
}

/* Operations of adapters that have more; create_qp_ex refused to promise
 * them, and a program that calls them all the same gets an error. */
static void refuse_wr(struct ibv_qp_ex *ex)
{
	struct vb_front_qp *qp = qp_of(ex);

	fail_build(qp, refuse(qp, EINVAL, "operation not supported"));
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz,
			uint16_t mss)
{
	refuse_wr(ex);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct vb_front_qp *qp = qp_of(ex);
	int err;

	if (qp->core->type != QPT_UD) {
		refuse_wr(ex);
		return;
	}
	if (!qp->build.wqe)
		return;
	err = put_dest(qp, qp->build.wqe, ah, remote_qpn, remote_qkey);
	if (err)
		fail_build(qp, err);
	qp->build.addressed = true;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct vb_front_qp *qp = qp_of(ex);

	if (qp->core->type != QPT_XRC_SEND) {
		refuse_wr(ex);
		return;
	}
	if (!qp->build.wqe)
		return;
	qp->build.wqe->srqn = remote_srqn;
	qp->build.addressed = true;
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr,
		     size_t len, uint8_t type, uint8_t level)
{
	refuse_wr(ex);
}

static void set_length(struct vb_front_qp *qp, int err, uint64_t total)
{
	if (!err && total > VB_MAX_MSG)
		err = refuse(qp, EINVAL, "message longer than 1 GiB");
	if (err)
		fail_build(qp, err);
	else
		qp->build.wqe->length = (uint32_t)total;
}

/* A request gets its data once: a list over bytes that are in its slot would be
 * read as both. Windows have none, and ATOMIC WRITE brought its word. */
static bool takes_sges(const struct vb_send_wqe *wqe)
{
	return send_rules[wqe->op].remote != WINDOW &&
	       !(wqe->flags & SEND_INLINE);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge,
			    const struct ibv_sge *sg_list)
{
	struct vb_front_qp *qp = qp_of(ex);
	uint64_t total = 0;
	int err;

	if (!qp->build.wqe)
		return;
	if (!takes_sges(qp->build.wqe)) {
		refuse_wr(ex);
		return;
	}
	err = put_sges(qp, qp->build.wqe, sg_list, num_sge, &total);
	set_length(qp, err, total);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct ibv_sge one = { addr, length, lkey };

	wr_set_sge_list(ex, 1, &one);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct vb_front_qp *qp = qp_of(ex);
	struct vb_send_wqe *wqe = qp->build.wqe;
	uint64_t total = 0;
	int err = 0;

	if (!wqe)
		return;
	if (!send_rules[wqe->op].inline_ok)
		err = refuse(qp, EINVAL,
			     "inline with an operation that "
			     "sends no data");
	for (size_t i = 0; !err && i < num_buf; i++)
		err = put_inline(qp, wqe, buf_list[i].addr, buf_list[i].length,
				 &total);
	wqe->flags |= SEND_INLINE;
	set_length(qp, err, total);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf one = { addr, length };

	wr_set_inline_data_list(ex, 1, &one);
}

static void VB_UNCHECKED wr_start(struct ibv_qp_ex *ex)
{
	struct vb_front_qp *qp = qp_of(ex);

	vb_mutex_lock(&qp->core->sq.lock);
	qp->build = (struct vb_front_builder){ 0 };
	if (VB_UNLIKELY(!may_send(qp->core)))
		qp->build.error = refuse_state(qp, "wr_start");
}

static int VB_UNCHECKED wr_complete(struct ibv_qp_ex *ex)
{
	struct vb_front_qp *qp = qp_of(ex);
	struct vb_sq *sq = &qp->core->sq;
	uint32_t count;
	int err;

	end_wr(qp);
	err = qp->build.error;
	count = err ? 0 : qp->build.count;
	for (uint32_t i = 0; i < count; i++)
		vb_sq_commit(sq);
	vb_mutex_unlock(&sq->lock);
	if (count)
		vb_drive(qp->core);
	return err;
}

static void VB_UNCHECKED wr_abort(struct ibv_qp_ex *ex)
{
	vb_mutex_unlock(&qp_of(ex)->core->sq.lock);
}

void vb_front_builder_init(struct vb_front_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->ex;

	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_atomic_write = wr_atomic_write;
	qp->wr_flush = wr_flush;
}

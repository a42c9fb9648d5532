/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ibv_wr_* calls (ibv_wr_post(3)). Requests are written into the free slots
 * behind those that are posted, and ibv_wr_complete() publishes them together.
 * After the first mistake the calls up to ibv_wr_complete() do nothing;
 * ibv_wr_complete() then returns that mistake's errno and posts nothing.
 *
 * The send queue's lock is held from ibv_wr_start() to ibv_wr_complete() or
 * ibv_wr_abort().
 */
#include "front/verbs/wqe.h"

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

/* The program begins the next request or completes the list: check the newest
 * request, which has all of its parts now. */
static void end_wr(struct vb_front_qp *qp)
{
	struct vb_send_wqe *wqe = qp->build.wqe;
	int err;

	if (!wqe)
		return;
	err = vb_wqe_set_length(qp, wqe, wqe->length);
	if (!err && !qp->build.addressed && needs_address(qp, wqe))
		err = vb_wqe_refuse(qp, EINVAL, WHY_AH,
				    "request without ibv_wr_set_ud_addr() or "
				    "ibv_wr_set_xrc_srqn()");
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
	if (!vb_wqe_rule(qp, op) || qp->ex.wr_flags & ~SEND_FLAGS) {
		fail_build(qp, vb_wqe_refuse(qp, EINVAL, WHY_OPCODE,
					     "opcode %u with wr_flags 0x%x is "
					     "not possible on a queue pair of "
					     "type %d",
					     op, qp->ex.wr_flags,
					     (int)qp->ibv.qp_type));
		return NULL;
	}
	/* ibv_wr_start() has locked the send queue */
	vb_mutex_assert_held(&qp->core->sq.lock);
	b->wqe = vb_sq_peek(&qp->core->sq, b->count);
	if (!b->wqe) {
		fail_build(qp,
			   vb_wqe_refuse_full(qp));
		return NULL;
	}
	b->count++;
	b->addressed = false;
	vb_wqe_begin(b->wqe, qp->ex.wr_id, op, qp->ex.wr_flags & ~SEND_INLINE);
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
		      ? vb_wqe_put_bind(qp, wqe, mw, rkey, bind_info)
		      : vb_wqe_refuse(qp, EINVAL, WHY_FLAGS,
				      "ibv_wr_bind_mw binds windows of type 2 "
				      "only");
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
		fail_build(qp, vb_wqe_refuse(qp, EFAULT, WHY_INLINE_ADDRESS,
					     "atomic write from an address "
					     "that is not mapped"));
}

/* Refuses calls that the queue pair does not have: operations of other
 * adapters, which ibv_create_qp_ex() refuses to promise, and setters that do
 * not fit the queue pair's type or the request. A program that calls them gets
 * EINVAL from ibv_wr_complete(). */
static void refuse_wr(struct ibv_qp_ex *ex)
{
	struct vb_front_qp *qp = qp_of(ex);

	fail_build(qp, vb_wqe_refuse(qp, EINVAL, WHY_OPCODE,
				     "ibv_wr_* call not supported by this "
				     "queue pair, or not for this request"));
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
	err = vb_wqe_put_dest(qp, qp->build.wqe, ah, remote_qpn, remote_qkey);
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
	struct vb_front_qp *qp = qp_of(ex);

	fail_build(qp, vb_wqe_refuse(qp, EINVAL, WHY_NO_SUPPORT,
				     "ibv_wr_flush of %zu bytes, and the "
				     "device has no FLUSH: device_cap_flags_ex "
				     "does not announce it",
				     len));
}

static void set_length(struct vb_front_qp *qp, int err, uint64_t total)
{
	if (!err && total > VB_MAX_MSG)
		err = vb_wqe_refuse(qp, EINVAL, WHY_MESSAGE_LENGTH,
				    "a message of %llu bytes, and at most %u "
				    "are possible",
				    (unsigned long long)total, VB_MAX_MSG);
	if (err)
		fail_build(qp, err);
	else
		qp->build.wqe->length = (uint32_t)total;
}

/* May the request get a scatter/gather list? A request about a window has no
 * data. Inline data is where the list would be, so a request has one or the
 * other; an ATOMIC WRITE already has its word and is marked as inline. */
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
	err = vb_wqe_put_sges(qp, qp->build.wqe, sg_list, num_sge, &total);
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
		err = vb_wqe_refuse(qp, EINVAL, WHY_FLAGS,
				    "inline data for an operation that sends "
				    "none");
	for (size_t i = 0; !err && i < num_buf; i++)
		err = vb_wqe_put_inline(qp, wqe, buf_list[i].addr,
					buf_list[i].length, &total);
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
	if (VB_UNLIKELY(!vb_wqe_may_post(qp->core)))
		qp->build.error = vb_wqe_refuse_state(qp, "wr_start");
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

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A work request on its way into the send queue: it is checked and translated
 * in place, into its slot of the queue (struct vb_send_wqe). post.c does this
 * for ibv_post_send(), wr_builder.c for the ibv_wr_* calls.
 *
 * All functions are inline, and so is the table: a post pays for no call, and
 * an operation that the compiler knows (ibv_wr_send() and its like) for no
 * lookup.
 */
#ifndef FRONT_VERBS_WQE_H
#define FRONT_VERBS_WQE_H

#include "base/guard.h"
#include "core/sge.h"
#include "front/verbs/front.h"

#define ATOMIC_BYTES 8 /* an atomic operation works on one 64-bit word */

/* The part of a work request that concerns the peer's memory. */
enum send_remote {
	NO_REMOTE,   /* the request names no memory of the peer */
	REMOTE_RDMA, /* the request names an address and a key of the peer */
	/* an address, a key and one or two operands of an atomic operation */
	REMOTE_ATOMIC,
	/* an address, a key and the 8 bytes that an ATOMIC WRITE stores */
	REMOTE_WORD,
	/* the request binds or invalidates a memory window on this side */
	WINDOW,
};

/* The rules of a work request's operation, by its opcode. */
// clang-format off
static const struct send_rule {
	bool known, rc_only, inline_ok;
	/* the request uses imm_data: immediate data, or a key to invalidate */
	bool imm;
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

/* Returns the rule of operation @op (enum vb_wr_op, or any number) on @qp;
 * NULL: queue pairs of its type do not have that operation. */
static inline const struct send_rule *vb_wqe_rule(const struct vb_front_qp *qp,
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

/* Functions of post.c that tell the user why a work request is refused
 * (core/why.h) and return a positive errno. vb_wqe_refuse() returns @err.
 * vb_wqe_refuse_state() is for a @call that the state of @qp forbids, and
 * returns EINVAL. */
int vb_wqe_refuse(const struct vb_front_qp *qp, int err, enum vb_why why,
		  const char *format, ...) VB_PRINTF(4, 5);
int vb_wqe_refuse_state(const struct vb_front_qp *qp, const char *call);
/* Tells the user that the send queue of @qp is full. Returns ENOMEM. */
int vb_wqe_refuse_full(const struct vb_front_qp *qp);

/* Does the queue pair's state permit posting? SQD, SQE and ERR do: a request
 * waits there, or the queue pair flushes it (IBA 10.3.1). The state is read
 * without a lock: only a program that moves the queue pair and posts to it at
 * one time can see the state before the move. */
static inline bool vb_wqe_may_post(const struct vb_qp *qp)
{
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

/* Set the length of the whole message to @total bytes, if the operation allows
 * that length. An atomic operation has 8 bytes, however long its list is.
 * Returns 0 or EINVAL. */
static inline int vb_wqe_set_length(const struct vb_front_qp *qp,
				    struct vb_send_wqe *wqe, uint64_t total)
{
	if (total > VB_MAX_MSG)
		return vb_wqe_refuse(qp, EINVAL, WHY_MESSAGE_LENGTH,
				     "a message of %llu bytes, and at most %u "
				     "are possible",
				     (unsigned long long)total, VB_MAX_MSG);
	wqe->length = (uint32_t)total;
	if (send_rules[wqe->op].remote == REMOTE_WORD && total != ATOMIC_BYTES)
		return vb_wqe_refuse(qp, EINVAL, WHY_MESSAGE_LENGTH,
				     "an ATOMIC WRITE of %llu bytes instead "
				     "of 8",
				     (unsigned long long)total);
	if (send_rules[wqe->op].remote != REMOTE_ATOMIC)
		return 0;
	if (total < ATOMIC_BYTES)
		return vb_wqe_refuse(qp, EINVAL, WHY_MESSAGE_LENGTH,
				     "an atomic operation with a buffer of "
				     "%llu bytes instead of 8",
				     (unsigned long long)total);
	wqe->length = ATOMIC_BYTES;
	return 0;
}

/* Copy the scatter/gather list into the slot; *@total is its length in bytes.
 * Returns 0 or EINVAL. */
static inline int vb_wqe_put_sges(const struct vb_front_qp *qp,
				  struct vb_send_wqe *wqe,
				  const struct ibv_sge *list, size_t count,
				  uint64_t *total)
{
	if (count > qp->core->sq.max_sge)
		return vb_wqe_refuse(qp, EINVAL, WHY_SGES,
				     "%zu SGEs, and max_send_sge is %u", count,
				     qp->core->sq.max_sge);
	*total = 0;
	for (size_t i = 0; i < count; i++) {
		wqe->sge[i] = (struct vb_sge){ list[i].addr, list[i].length,
					       list[i].lkey };
		*total += list[i].length;
	}
	wqe->num_sge = (uint8_t)count;
	return 0;
}

/* Copy @len bytes into the slot, behind the *@total inline bytes that are there
 * already. Returns 0, EINVAL, or EFAULT when @from is not mapped. */
static inline int vb_wqe_put_inline(const struct vb_front_qp *qp,
				    struct vb_send_wqe *wqe, const void *from,
				    size_t len, uint64_t *total)
{
	if (len > qp->core->sq.max_inline - *total)
		return vb_wqe_refuse(qp, EINVAL, WHY_INLINE,
				     "%llu inline bytes, and max_inline_data "
				     "is %u",
				     (unsigned long long)(*total + len),
				     qp->core->sq.max_inline);
	if (vb_guard_copy(wqe->inline_data + *total, from, len) != 0)
		return vb_wqe_refuse(qp, EFAULT, WHY_INLINE_ADDRESS,
				     "%zu inline bytes at %p, which is not "
				     "mapped",
				     len, from);
	*total += len;
	return 0;
}

/* Write a datagram's destination into the slot. Returns 0 or a positive errno:
 * EINVAL, or the error of resolving the address. */
static inline int vb_wqe_put_dest(const struct vb_front_qp *qp,
				  struct vb_send_wqe *wqe,
				  struct ibv_ah *ibv_ah, uint32_t qpn,
				  uint32_t qkey)
{
	struct vb_send_dest *dest = vb_sq_dest(&qp->core->sq, wqe);
	const struct vb_ah *ah;

	if (!ibv_ah)
		return vb_wqe_refuse(qp, EINVAL, WHY_AH,
				     "a datagram without address handle");
	ah = vb_front_ah(ibv_ah)->core;
	if (ah->pd != qp->core->pd)
		return vb_wqe_refuse(qp, EINVAL, WHY_AH,
				     "an address handle of pd %u, and the "
				     "queue pair is of pd %u",
				     ibv_ah->pd->handle, qp->ibv.pd->handle);
	if (ah->port != vb_qp_port(qp->core))
		return vb_wqe_refuse(qp, EINVAL, WHY_AH,
				     "an address handle of port %u, and the "
				     "queue pair is at port %u",
				     ah->port->number,
				     vb_qp_port(qp->core)->number);
	if (qpn > 0xffffff)
		return vb_wqe_refuse(qp, EINVAL, WHY_FLAGS,
				     "remote_qpn 0x%x has more than 24 bits",
				     qpn);
	dest->qkey = qkey;
	return -vb_ah_aim(ah, qp->ibv.qp_num, qpn, &dest->route);
}

/* Initialize the members of a free slot that the transport reads in every work
 * request; the slot's previous request left its own values there. */
static inline void vb_wqe_begin(struct vb_send_wqe *wqe, uint64_t wr_id,
				unsigned op, unsigned flags)
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
 * Write the binding of window @mw into the slot. The rules of binding are
 * checked when the request is carried out (core/mw.c): the region may be
 * registered or deregistered until then, so the slot names the region by its
 * key.
 *
 * The program chooses only the low 8 bits of @key. mw->rkey is set to the whole
 * new key at once, as irdma does: programs post the next request with it.
 */
static inline int vb_wqe_put_bind(const struct vb_front_qp *qp,
				  struct vb_send_wqe *wqe, struct ibv_mw *mw,
				  uint32_t key,
				  const struct ibv_mw_bind_info *info)
{
	if (info->mw_access_flags & ~WINDOW_ACCESS)
		return vb_wqe_refuse(qp, EINVAL, WHY_FLAGS,
				     "a bind with unknown access flags 0x%x",
				     (unsigned)info->mw_access_flags);
	wqe->rkey = mw->rkey = vb_mw_key(mw->rkey, key);
	wqe->swap = info->mr ? info->mr->rkey : 0;
	wqe->remote_addr = info->addr;
	wqe->compare_add = info->length;
	wqe->imm = info->mw_access_flags;
	wqe->length = 0;
	return 0;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder: requests that a peer has put on its lane, carried out in
 * order. Judged in the order of IBA 9.7.4, as packets are; the first fault
 * ends it, and core/fault.c says how.
 */
#include "base/guard.h"
#include "core/fault.h"
#include "core/mw.h"
#include "core/sge.h"
#include "near/near_priv.h"
#include "near/cma.h"
#include "wire/ib_hdr.h"

#define SPLIT_LEAST (128u * 1024) /* of a message; less is quickly fetched */
#define SLAB	    (1u << 20)	  /* so much at a time */

/* What is being carried out. */
struct job {
	struct vb_near *near;
	struct vb_peer *peer;
	struct vb_qp *qp;
	const struct vb_request *r;
	const uint8_t *data; /* theirs to change */
	struct vb_answer_note *a;
};

static bool takes_requests(const struct vb_qp *qp)
{
	enum vb_qp_state s = vb_near_state(qp);

	return s == QPS_RTR || s == QPS_RTS || s == QPS_SQD || s == QPS_SQE;
}

static uint32_t own_qpn(const struct vb_qp *qp)
{
	/* Written under drive, which the caller holds. */
	return atomic_load_explicit(&qp->qpn, memory_order_relaxed);
}

static bool is_for(const struct job *j)
{
	const struct vb_near_qp *nq = vb_nq(j->qp);

	return nq && nq->life && j->r->life == nq->life &&
	       takes_requests(j->qp) && nq->far_number == j->r->sqpn &&
	       vb_peer_has(j->peer, j->r->sqpn >> VB_QPN_BITS);
}

/*
 * SEND.
 */

static void near_complete_recv(const struct job *j, enum vb_wc_op opcode,
			       uint32_t byte_len)
{
	bool imm = j->r->flags & REQUEST_IMM;
	bool inv = j->r->flags & REQUEST_INV;
	const struct vb_recv_done done = {
		.status = WC_SUCCESS,
		.opcode = opcode,
		.byte_len = byte_len,
		.imm = imm || inv ? j->r->imm : 0,
		.src_qp = j->qp->attr.dest_qp_num,
		.wc_flags = imm	  ? WC_WITH_IMM
			    : inv ? WC_WITH_INV
				  : 0,
		.solicited = j->r->flags & REQUEST_SOLICITED,
	};

	vb_qp_recv_done(j->qp, &done);
}

static bool is_tagged(const struct vb_qp *qp)
{
	return VB_UNLIKELY(qp->srq && qp->srq->tags);
}

/* One that a message had which never came whole is the next one's. */
static bool has_recv(struct vb_qp *qp)
{
	return qp->recv_busy || vb_qp_recv_begin(qp);
}

/* @head: what the message begins with, if that is to be looked at. *@skip: so
 * many of its first bytes are for nobody. */
static enum vb_fault begin_recv(const struct job *j, const void *head,
				uint32_t *skip)
{
	enum vb_fault fault = FAULT_NONE;

	*skip = 0;
	if (is_tagged(j->qp))
		fault = vb_tag_begin(j->qp, head, j->r->length, true, skip);
	else if (!has_recv(j->qp))
		fault = FAULT_NO_RQE;
	if (fault)
		return fault;
	if (j->r->length - *skip > j->qp->recv.length ||
	    j->r->length > VB_MAX_MSG)
		return FAULT_RQE_TOO_SMALL;
	return FAULT_NONE;
}

static struct vb_pd *recv_pd(const struct vb_qp *qp)
{
	return qp->srq ? qp->srq->pd : qp->pd;
}

static enum vb_fault end_send(const struct job *j, uint32_t byte_len)
{
	if (j->r->flags & REQUEST_INV && !vb_mw_invalidate(j->qp, j->r->imm))
		return FAULT_INV_RKEY;
	near_complete_recv(j, WC_OP_RECV, byte_len);
	return FAULT_NONE;
}

static enum vb_fault near_take_send(const struct job *j)
{
	const struct vb_recv_wqe *recv = &j->qp->recv;
	enum vb_fault fault;
	uint32_t skip;

	if (j->r->bytes != j->r->length)
		return FAULT_LENGTH;
	fault = begin_recv(j, j->data, &skip);
	if (fault)
		return fault;
	if (vb_sge_place(recv_pd(j->qp), recv->sge, recv->num_sge, 0,
			 j->data + skip, j->r->length - skip))
		return FAULT_RQE_LKEY;
	return end_send(j, j->r->length - skip);
}

static enum vb_cma put_zeros(const struct vb_near_side *near, uint64_t len)
{
	static const uint8_t zeros[4096];

	for (uint64_t done = 0, part; done < len; done += part) {
		part = VB_MIN(len - done, sizeof(zeros));
		if (vb_sge_place(near->pd, near->sge, near->count,
				 near->offset + done, zeros, (uint32_t)part))
			return CMA_LOCAL;
	}
	return CMA_OK;
}

/* Where the data of a message is. */
struct source {
	struct vb_sge pieces[VB_MAX_SGE];
	unsigned count;
	struct vb_registry_view view; /* of whose it is */
};

static enum vb_cma pull_piece(const struct job *j, const struct source *s,
			      const struct vb_near_side *near, unsigned i,
			      uint64_t skip, uint64_t len)
{
	const struct vb_far_side far = vb_far_side_by(
		&s->view, s->pieces[i].lkey, s->pieces[i].addr + skip, 0);

	if (far.key != NEAR_ZEROS)
		return vb_cma(j->peer, near, &far, len, false);
	if (!near->plain)
		return put_zeros(near, len);
	memset(near->plain, 0, len);
	return CMA_OK;
}

/* The bytes of the message from @from on and before @end: from their memory,
 * by their own keys. */
static enum vb_cma pull(const struct job *j, const struct source *s,
			struct vb_near_side near, uint64_t from, uint64_t end)
{
	enum vb_cma result = CMA_OK;
	uint64_t at = 0;

	for (unsigned i = 0; i < s->count && result == CMA_OK; i++) {
		uint64_t first = VB_MAX(at, from);
		uint64_t behind = VB_MIN(at + s->pieces[i].length, end);

		if (first < behind) {
			result = pull_piece(j, s, &near, i, first - at,
					    behind - first);
			near.offset += behind - first;
		}
		at += s->pieces[i].length;
	}
	return result;
}

/* What the message begins with, where that has to be looked at. */
static enum vb_cma pull_head(const struct job *j, const struct source *s,
			     uint8_t *head)
{
	uint32_t len = VB_MIN(j->r->length, VB_RNDV_BYTES), done = 0;
	enum vb_cma result = CMA_OK;

	for (unsigned i = 0; i < s->count && done < len && !result; i++) {
		uint32_t part = VB_MIN(len - done, s->pieces[i].length);

		result = pull_piece(
			j, s, &(struct vb_near_side){ .plain = head + done }, i,
			0, part);
		done += part;
	}
	return result;
}

/*
 * Together with the sender (near/split_copy.h).
 */

static bool is_shareable(const struct job *j)
{
	const struct vb_recv_wqe *recv = &j->qp->recv;

	return j->r->length >= SPLIT_LEAST && recv->num_sge == 1 &&
	       !is_tagged(j->qp) && recv_pd(j->qp) == j->qp->pd &&
	       !j->peer->is_self;
}

/* What the sender has now is all of it from @from on, or what is behind. */
static void go_on_later(const struct job *j, uint64_t if_done, uint64_t if_not)
{
	struct vb_split_copy *sh = &j->peer->share;
	struct vb_qp *qp = j->qp;

	sh->waits = true;
	sh->since = qp->now;
	sh->qpn = j->r->dqpn;
	sh->life = vb_nq(qp)->life;
	sh->if_done = if_done;
	sh->if_not = if_not;
	/* Nobody completes the receive, whatever befalls the queue pair, while
	 * another program writes into it. */
	sh->recv = qp->recv;
	qp->recv_busy = false;
	j->a->kind = ANSWER_LATER;
}

/* The bytes from @from on and before @end: the sender copies one half. */
static enum vb_cma pull_half(const struct job *j, const struct source *s,
			     struct vb_near_side near, uint64_t from,
			     uint64_t end)
{
	uint64_t middle = from + (end - from) / 2;
	const struct vb_copy_part part = {
		.qpn = j->r->sqpn,
		.life = j->r->src_life,
		.seq = j->r->seq,
		.offset = (uint32_t)middle,
		.len = (uint32_t)(end - middle),
		.key = near.sge->lkey,
		.iova = near.sge->addr + middle,
	};
	bool shared = vb_split_copy_make(&j->peer->share, &part);
	enum vb_cma result;

	near.helped = shared;
	near.offset = from;
	result = pull(j, s, near, from, shared ? middle : end);
	if (!shared)
		return result;
	switch (vb_split_copy_end(&j->peer->share)) {
	case SPLIT_DONE:
		return result;
	case SPLIT_OURS:
		near.offset = middle;
		return result ? result : pull(j, s, near, middle, end);
	default:
		go_on_later(j, result ? from : end, result ? from : middle);
		return result;
	}
}

/* Others have their turn, then it goes on from @at. Nobody is at it meanwhile,
 * and the receive stays the queue pair's. */
static void put_off(const struct job *j, uint64_t at)
{
	j->peer->share.at = at;
	j->a->kind = ANSWER_LATER;
}

static enum vb_cma pull_slab(const struct job *j, const struct source *s,
			     struct vb_near_side near, uint64_t from,
			     uint64_t end)
{
	if (is_shareable(j))
		return pull_half(j, s, near, from, end);
	near.offset = from;
	return pull(j, s, near, from, end);
}

/* From where it was left on, as much as there is time for. */
static enum vb_cma pull_slabs(const struct job *j, const struct source *s,
			      const struct vb_near_side *near)
{
	uint32_t *left = &j->near->pull_left;
	enum vb_cma result = CMA_OK;
	uint64_t at = j->peer->share.at, end;

	for (; at < j->r->length && !result && j->a->kind != ANSWER_LATER;
	     at = end) {
		end = VB_MIN(at + SLAB, j->r->length);
		if (*left == 0) {
			put_off(j, at);
			break;
		}
		result = pull_slab(j, s, *near, at, end);
		*left -= VB_MIN(*left, end - at);
	}
	return result;
}

/* The receive is the queue pair's again; or it had to do without. */
static void give_back_recv(const struct vb_split_copy *sh, struct vb_qp *qp)
{
	static const struct vb_recv_done flushed = { .status = WC_FLUSH_ERR,
						     .opcode = WC_OP_RECV };

	if (!qp || !vb_near_is_called(qp, sh->qpn) ||
	    vb_nq(qp)->life != sh->life)
		return; /* it has begun anew, and its queues with it */
	if (qp->recv_busy)
		vb_qp_fail(qp, -1);
	qp->recv = sh->recv;
	qp->recv_busy = true;
	if (vb_near_state(qp) == QPS_ERR)
		vb_qp_recv_done(qp, &flushed);
}

void vb_near_abandon(struct vb_peer *p, struct vb_qp *qp)
{
	vb_split_copy_drop(&p->share);
	p->share.waits = false;
	give_back_recv(&p->share, qp);
}

bool vb_near_resume(struct vb_peer *p, struct vb_qp *qp)
{
	struct vb_split_copy *sh = &p->share;
	enum vb_split_copy_end end = vb_split_copy_look(sh);

	if (end == SPLIT_SLOW)
		return false;
	sh->waits = false;
	sh->at = end == SPLIT_DONE ? sh->if_done : sh->if_not;
	give_back_recv(sh, qp);
	return true;
}

/* Into what was posted here. */
static enum vb_cma pull_message(const struct job *j, const struct source *s,
				uint32_t skip)
{
	const struct vb_recv_wqe *recv = &j->qp->recv;
	const struct vb_near_side near = { .pd = recv_pd(j->qp),
					   .sge = recv->sge,
					   .count = recv->num_sge };

	/* One that was found by its tag cannot be found again. */
	return is_tagged(j->qp) ? pull(j, s, near, skip, j->r->length)
				: pull_slabs(j, s, &near);
}

static enum vb_fault end_pull(const struct job *j, enum vb_cma result,
			      uint32_t byte_len)
{
	if (VB_UNLIKELY(j->a->kind == ANSWER_LATER))
		return FAULT_NONE;
	switch (result) {
	case CMA_OK:
		j->a->kind = ANSWER_DONE;
		return end_send(j, byte_len);
	case CMA_LOCAL:
		return FAULT_RQE_LKEY;
	case CMA_REMOTE:
		j->a->kind = ANSWER_SOURCE;
		return FAULT_NONE;
	case CMA_UNSEEN:
		j->a->kind =
			j->qp->adapter->rnic ? ANSWER_SOURCE : ANSWER_DENIED;
		return FAULT_NONE;
	case CMA_DENIED:
		j->a->kind = ANSWER_DENIED;
		return FAULT_NONE;
	case CMA_GONE:
	case CMA_LAPSED:
		return FAULT_NONE; /* answered as nobody's */
	}
	return FAULT_NONE;
}

static enum vb_fault read_pieces(const struct job *j, struct source *s)
{
	s->count = j->r->bytes / sizeof(struct vb_sge);
	if (s->count > VB_MAX_SGE)
		return FAULT_LENGTH;
	memcpy(s->pieces, j->data, s->count * sizeof(s->pieces[0]));
	/* What was copied stays what it is. */
	__asm__ volatile("" : : "r"(s->pieces) : "memory");
	return vb_sge_total(s->pieces, s->count) == j->r->length ? FAULT_NONE
								 : FAULT_LENGTH;
}

static enum vb_fault take_pull(const struct job *j)
{
	enum vb_cma result = CMA_OK;
	uint8_t head[VB_RNDV_BYTES];
	struct source s;
	enum vb_fault fault = read_pieces(j, &s);
	uint32_t skip;

	if (fault)
		return fault;
	if (!vb_registry_view(j->peer->registry, j->r->sqpn, &s.view) ||
	    s.view.life != j->r->src_life)
		return FAULT_NONE; /* answered as nobody's */
	if (is_tagged(j->qp))
		result = pull_head(j, &s, head);
	if (result != CMA_OK)
		return end_pull(j, result, 0);
	fault = begin_recv(j, head, &skip);
	if (fault)
		return fault;
	return end_pull(j, pull_message(j, &s, skip), j->r->length - skip);
}

/*
 * WRITE, and the end of one that the requester placed.
 */

static enum vb_fault finish_write(const struct job *j)
{
	if (!(j->r->flags & REQUEST_IMM))
		return FAULT_NONE;
	if (!has_recv(j->qp))
		return FAULT_NO_RQE;
	near_complete_recv(j, WC_OP_RECV_WRITE_IMM, j->r->length);
	return FAULT_NONE;
}

/* As packets would: one packet takes the receive before its key is asked (IBA
 * 9.7.4), of several only the last says that there is immediate data, and
 * on a stream that is a message of its own, behind the WRITE (RFC 7306 s6). */
static bool takes_recv_first(const struct job *j)
{
	return j->r->flags & REQUEST_IMM && !j->qp->adapter->rnic &&
	       j->r->length <= j->qp->mtu;
}

static enum vb_fault near_take_write(const struct job *j)
{
	const struct vb_request *r = j->r;
	struct vb_qp *qp = j->qp;
	enum vb_fault fault;

	if (!(qp->attr.access_flags & ACCESS_REMOTE_WRITE) &&
	    !(qp->adapter->rnic && r->length == 0)) /* as in near/here.c */
		return FAULT_ACCESS_FLAGS;
	if (r->length > VB_MAX_MSG ||
	    (r->op == NEAR_WRITE && r->bytes != r->length))
		return FAULT_LENGTH;
	if (takes_recv_first(j) && !has_recv(qp))
		return FAULT_NO_RQE;
	if (r->op == NEAR_WRITE)
		fault = vb_mr_write(qp->adapter, qp->pd, own_qpn(qp), r->rkey,
				    r->va, j->data, r->length);
	else
		fault = vb_mr_check(qp->adapter, qp->pd, own_qpn(qp), r->rkey,
				    r->va, r->length, ACCESS_REMOTE_WRITE);
	return fault ? fault : finish_write(j);
}

/*
 * Many of them. A region is held for those in a row that are in it.
 */

struct many {
	const uint8_t *at, *end; /* theirs to change */
	struct vb_mr_use use;
	uint32_t rkey;
};

static uint8_t *near_resp_find_held(const struct many *m,
				    const struct vb_near_write *w)
{
	const struct vb_mr *mr = m->use.mr;

	if (!mr || m->rkey != w->rkey || mr->kind == MR_NULL ||
	    w->va - mr->iova > mr->length ||
	    w->length > mr->length - (w->va - mr->iova))
		return NULL;
	return mr->base + (w->va - mr->iova);
}

static uint8_t *near_resp_hold(const struct job *j, struct many *m,
			       const struct vb_near_write *w)
{
	struct vb_qp *qp = j->qp;
	uint8_t *at = near_resp_find_held(m, w);

	if (VB_LIKELY(at))
		return at;
	vb_mr_end(&m->use);
	m->rkey = w->rkey;
	return vb_mr_begin(qp->adapter, qp->pd, own_qpn(qp), w->rkey, w->va,
			   w->length, ACCESS_REMOTE_WRITE,
			   &m->use) == FAULT_NONE
		       ? m->use.at
		       : NULL;
}

static enum vb_fault near_resp_take_one(const struct job *j, struct many *m)
{
	struct vb_near_write w;
	uint8_t *to;

	if ((size_t)(m->end - m->at) < sizeof(w))
		return FAULT_LENGTH;
	memcpy(&w, m->at, sizeof(w));
	/* What was copied stays what it is. */
	__asm__ volatile("" : : "r"(&w) : "memory");
	if (w.length == 0 || w.length > VB_REQUEST_MAX ||
	    vb_near_write_size(w.length) > (size_t)(m->end - m->at))
		return FAULT_LENGTH;
	to = near_resp_hold(j, m, &w);
	if (!to)
		return FAULT_RKEY;
	if (vb_guard_copy(to, m->at + sizeof(w), w.length))
		return FAULT_REMOTE_MEMORY;
	m->at += vb_near_write_size(w.length);
	return FAULT_NONE;
}

/* The first that may not be done ends it: of those before it the requester
 * hears, and that one comes again as the first. */
static enum vb_fault take_many(const struct job *j)
{
	struct many m = { .at = j->data, .end = j->data + j->r->bytes };
	enum vb_fault fault = FAULT_NONE;
	uint32_t done = 0;

	if (!(j->qp->attr.access_flags & ACCESS_REMOTE_WRITE))
		return FAULT_ACCESS_FLAGS;
	while (m.at != m.end && !fault) {
		fault = near_resp_take_one(j, &m);
		done += !fault;
	}
	vb_mr_end(&m.use);
	if (done == 0)
		return fault ? fault : FAULT_LENGTH;
	if (fault)
		j->a->kind = ANSWER_PART;
	j->a->seq += done - 1;
	return FAULT_NONE;
}

static enum vb_fault near_take_atomic(const struct job *j)
{
	struct vb_qp *qp = j->qp;
	struct vb_near_atomic op;
	enum vb_fault fault;

	if (!(qp->attr.access_flags & ACCESS_REMOTE_ATOMIC))
		return FAULT_ACCESS_FLAGS;
	if (j->r->bytes != sizeof(op))
		return FAULT_LENGTH;
	if (qp->attr.max_dest_rd_atomic == 0)
		return FAULT_TOO_MANY_READS;
	if (j->r->va & 7)
		return FAULT_ALIGNMENT;
	memcpy(&op, j->data, sizeof(op));
	fault = vb_mr_atomic(qp->adapter, qp->pd, own_qpn(qp), j->r->rkey,
			     j->r->va, j->r->op == NEAR_CMP_SWAP, op.swap_add,
			     op.compare, &j->a->value);
	if (fault == FAULT_NONE)
		j->a->kind = ANSWER_VALUE;
	return fault;
}

/* IBA annex A19. */
static enum vb_fault take_store(const struct job *j)
{
	struct vb_qp *qp = j->qp;
	uint64_t word;

	if (!(qp->attr.access_flags & ACCESS_REMOTE_WRITE))
		return FAULT_ACCESS_FLAGS;
	if (j->r->bytes != sizeof(word) || j->r->length != sizeof(word))
		return FAULT_LENGTH;
	if (qp->attr.max_dest_rd_atomic == 0)
		return FAULT_TOO_MANY_READS;
	if (j->r->va & 7)
		return FAULT_ALIGNMENT;
	memcpy(&word, j->data, sizeof(word));
	return vb_mr_store64(qp->adapter, qp->pd, own_qpn(qp), j->r->rkey,
			     j->r->va, &word);
}

/* What the requester found that it may not do. It is believed: it harms but
 * its own connection. */
static enum vb_fault take_fault(const struct job *j)
{
	uint32_t fault = j->r->imm;

	if (fault < FAULT_RKEY || fault >= FAULT_COUNT ||
	    vb_fault_rc((enum vb_fault)fault)->action != ACT_NAK_AND_DIE)
		return FAULT_RKEY;
	return (enum vb_fault)fault;
}

static enum vb_fault execute(const struct job *j)
{
	switch (j->r->op) {
	case NEAR_SEND:
		j->a->kind = ANSWER_DONE;
		return near_take_send(j);
	case NEAR_PULL:
		return take_pull(j);
	case NEAR_WRITE:
	case NEAR_PLACED:
		j->a->kind = ANSWER_DONE;
		return near_take_write(j);
	case NEAR_MANY:
		j->a->kind = ANSWER_DONE;
		return take_many(j);
	case NEAR_CMP_SWAP:
	case NEAR_FETCH_ADD:
		return near_take_atomic(j);
	case NEAR_STORE:
		j->a->kind = ANSWER_DONE;
		return take_store(j);
	default:
		return take_fault(j);
	}
}

static void die(struct vb_qp *qp, const struct vb_fault_row *row)
{
	const struct vb_recv_done done = { .status = row->status };
	int event = row->event;

	if (qp->recv_busy) {
		vb_qp_recv_done(qp, &done);
		event = -1; /* the completion tells */
	}
	vb_qp_fail(qp, event);
}

/* What iwarp/term.c says: there is no second try. */
static const struct vb_fault_row *stream_row(enum vb_fault fault)
{
	static const struct vb_fault_row no_rqe = {
		.action = ACT_NAK_AND_DIE,
		.syndrome = VB_SYN_RNR,
		.status = WC_REM_INV_REQ_ERR,
		.event = EVENT_QP_REQ_ERR,
		.counter = CNT_SEND_RNR_ERR,
	};
	static const struct vb_fault_row inv_rkey = {
		.action = ACT_NAK_AND_DIE,
		.syndrome = VB_SYN_NAK_ACCESS,
		.status = WC_REM_INV_REQ_ERR,
		.event = EVENT_QP_REQ_ERR,
		.counter = CNT_NAK_ACCESS,
	};

	switch (fault) {
	case FAULT_NO_RQE:
		return &no_rqe;
	case FAULT_INV_RKEY:
		return &inv_rkey;
	case FAULT_ACCESS_FLAGS:
		return vb_fault_rc(FAULT_RKEY);
	default:
		return vb_fault_rc(fault);
	}
}

static void near_refuse(const struct job *j, enum vb_fault fault)
{
	struct vb_qp *qp = j->qp;
	const struct vb_fault_row *row =
		qp->adapter->rnic ? stream_row(fault) : vb_fault_rc(fault);

	j->a->kind = ANSWER_NOBODY; /* it goes into ERR without a word */
	if (row->action != ACT_DIE) {
		vb_count(qp->adapter, row->counter, 1);
		j->a->kind =
			row->syndrome == VB_SYN_RNR ? ANSWER_RNR : ANSWER_NAK;
		j->a->syndrome = row->syndrome;
	}
	if (row->action != ACT_NAK_ONCE) {
		die(qp, row);
		return;
	}
	j->a->kind = ANSWER_RNR;
	j->a->syndrome |= qp->attr.min_rnr_timer & 0x1f;
}

static void note_established(struct vb_qp *qp)
{
	if (vb_near_state(qp) != QPS_RTR || qp->comm_est_sent)
		return;
	qp->comm_est_sent = true;
	vb_qp_event(qp, EVENT_COMM_EST);
}

/* Is it the next in its requester's order? */
static bool is_next(const struct job *j)
{
	struct vb_near_qp *nq = vb_nq(j->qp);

	if (nq->src_life != j->r->src_life) {
		nq->src_life = j->r->src_life;
		nq->expected = 0;
	}
	return j->r->op != NEAR_NEWS && j->r->seq == nq->expected;
}

void vb_near_request(struct vb_near *n, struct vb_peer *p, struct vb_qp *qp,
		     const struct vb_request *r, const uint8_t *data,
		     struct vb_answer_note *a)
{
	const struct job j = { n, p, qp, r, data, a };
	enum vb_fault fault;

	if (!is_for(&j))
		return;
	note_established(qp);
	if (!is_next(&j)) {
		a->kind = ANSWER_PASSED;
		return;
	}
	fault = execute(&j);
	if (fault)
		near_refuse(&j, fault);
	else if (a->kind == ANSWER_DONE || a->kind == ANSWER_VALUE ||
		 a->kind == ANSWER_PART)
		vb_nq(qp)->expected = a->seq + 1;
}

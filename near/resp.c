/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder: it carries out the requests that a peer has put on its lane,
 * in order. It checks them in the order of IBA 9.7.4, as ib/resp.c checks
 * packets. The first fault ends a request; core/fault.c says what follows from
 * the fault.
 */
#include "base/guard.h"
#include "core/fault.h"
#include "core/mw.h"
#include "core/sge.h"
#include "core/why_qp.h"
#include "near/resp_priv.h"
#include "wire/ib_hdr.h"

#define REMOTE_ACCESS                                                          \
	(ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC)

static bool takes_requests(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	enum vb_qp_state s = vb_near_state(qp);

	return s == QPS_RTR || s == QPS_RTS || s == QPS_SQD || s == QPS_SQE;
}

static uint32_t own_qpn(const struct vb_qp *qp)
{
	/* Relaxed: the QPN is written only under drive, which the caller
	 * holds. */
	return atomic_load_explicit(&qp->qpn, memory_order_relaxed);
}

static bool is_for_connection(const struct vb_near_job *j)
	VB_REQUIRES(j->qp->drive)
{
	const struct vb_near_qp *nq = vb_nq(j->qp);

	return nq && nq->life && !nq->away && j->r->life == nq->life &&
	       takes_requests(j->qp) && nq->remote_number == j->r->sqpn &&
	       vb_peer_has(j->peer, j->r->sqpn >> VB_QPN_BITS);
}

/* Receiving SENDs. */

static void near_complete_recv(const struct vb_near_job *j,
			       enum vb_wc_op opcode, uint32_t byte_len)
	VB_REQUIRES(j->qp->drive)
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

/* Is there a receive for the next message? A receive of an earlier message that
 * never arrived whole is reused. */
static bool has_recv(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return qp->recv_busy || vb_qp_recv_begin(qp);
}

enum vb_fault vb_resp_check_recv(const struct vb_near_job *j, uint32_t skip)
{
	if (skip > j->r->length)
		return FAULT_LENGTH;
	return j->r->length - skip > j->qp->recv.length ||
			       j->r->length > VB_MAX_MSG
		       ? FAULT_RQE_TOO_SMALL
		       : FAULT_NONE;
}

enum vb_fault vb_resp_begin_recv(const struct vb_near_job *j, const void *head,
				 uint32_t *skip)
{
	enum vb_fault fault = FAULT_NONE;

	*skip = 0;
	if (vb_resp_is_tagged(j->qp))
		fault = vb_tag_begin(j->qp, head, j->r->length, true, skip);
	else if (!has_recv(j->qp))
		fault = FAULT_NO_RQE;
	return fault ? fault : vb_resp_check_recv(j, *skip);
}

enum vb_fault vb_resp_end_send(const struct vb_near_job *j, uint32_t byte_len)
{
	if (j->r->flags & REQUEST_INV && !vb_mw_invalidate(j->qp, j->r->imm))
		return FAULT_INV_RKEY;
	near_complete_recv(j, WC_OP_RECV, byte_len);
	return FAULT_NONE;
}

static enum vb_fault near_take_send(const struct vb_near_job *j)
	VB_REQUIRES(j->peer->claim, j->qp->drive)
{
	const struct vb_recv_wqe *recv = &j->qp->recv;
	enum vb_fault fault;
	uint32_t skip;

	if (j->r->bytes != j->r->length)
		return FAULT_LENGTH;
	fault = vb_resp_begin_recv(j, j->data, &skip);
	if (fault)
		return fault;
	if (vb_sge_place(vb_resp_recv_pd(j->qp), recv->sge, recv->num_sge, 0,
			 j->data + skip, j->r->length - skip))
		return FAULT_RQE_LKEY;
	return vb_resp_end_send(j, j->r->length - skip);
}

/* WRITEs, and notifications of WRITEs that the requester placed itself. */

static enum vb_fault finish_write(const struct vb_near_job *j)
	VB_REQUIRES(j->qp->drive)
{
	if (!(j->r->flags & REQUEST_IMM))
		return FAULT_NONE;
	if (!has_recv(j->qp))
		return FAULT_NO_RQE;
	near_complete_recv(j, WC_OP_RECV_WRITE_IMM, j->r->length);
	return FAULT_NONE;
}

/* Does a WRITE with immediate consume its receive before its key is checked?
 * With packets a WRITE of one packet does so (IBA 9.7.4); of several packets
 * only the last one says that there is immediate data; on an iWARP stream the
 * immediate data is a message of its own behind the WRITE (RFC 7306 s6).
 * Requests on the lane behave likewise. */
static bool takes_recv_first(const struct vb_near_job *j)
{
	return j->r->flags & REQUEST_IMM && !j->qp->adapter->rnic &&
	       j->r->length <= j->qp->mtu;
}

static enum vb_fault near_take_write(const struct vb_near_job *j)
	VB_REQUIRES(j->qp->drive)
{
	const struct vb_request *r = j->r;
	struct vb_qp *qp = j->qp;
	enum vb_fault fault;

	/* an empty first message needs no right; near/here.c has the reason */
	if (!(qp->attr.access_flags & ACCESS_REMOTE_WRITE) &&
	    !(qp->adapter->rnic && r->length == 0))
		return FAULT_ACCESS_FLAGS;
	if (r->length > VB_MAX_MSG ||
	    (r->op == NEAR_WRITE && r->bytes != r->length))
		return FAULT_LENGTH;
	if (takes_recv_first(j) && !has_recv(j->qp))
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
 * Many small WRITEs in one record. The region of one WRITE stays referenced for
 * the next one, which most often is in the same region.
 */

struct many {
	/* the bytes of a record, which the peer may still change */
	const uint8_t *at, *end;
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

static uint8_t *near_resp_hold(const struct vb_near_job *j, struct many *m,
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

static enum vb_fault near_resp_take_one(const struct vb_near_job *j,
					struct many *m)
{
	struct vb_near_write w;
	uint8_t *to;

	if ((size_t)(m->end - m->at) < sizeof(w))
		return FAULT_LENGTH;
	memcpy(&w, m->at, sizeof(w));
	/* A compiler barrier: the peer's bytes must not be read again after the
	 * check, because they may have changed since. */
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

/* Place the WRITEs up to the first one that is refused. The answer covers those
 * before it; the requester sends the refused one again as the first of a
 * record, and then learns the fault. */
static enum vb_fault take_many(const struct vb_near_job *j)
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

static enum vb_fault near_take_atomic(const struct vb_near_job *j)
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

/* Carry out an ATOMIC WRITE (IBA annex A19). */
static enum vb_fault take_store(const struct vb_near_job *j)
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

/* The requester reports a request that it has no right to make. The responder
 * believes the report: a false report harms only the requester's own
 * connection. */
static enum vb_fault take_fault(const struct vb_near_job *j)
{
	uint32_t fault = j->r->imm & 0xff;

	if (fault < FAULT_RKEY || fault >= FAULT_COUNT ||
	    vb_fault_rc((enum vb_fault)fault)->action != ACT_NAK_AND_DIE)
		return FAULT_RKEY;
	return (enum vb_fault)fault;
}

static enum vb_fault take_pull(const struct vb_near_job *j)
	VB_REQUIRES(j->peer->claim, j->qp->drive)
{
	enum vb_fault fault;

	vb_near_set_copies(j->qp, true);
	fault = vb_pull_take(j);
	vb_near_set_copies(j->qp, false);
	return fault;
}

static enum vb_fault execute(const struct vb_near_job *j)
	VB_REQUIRES(j->peer->claim, j->qp->drive)
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

static void near_resp_die(struct vb_qp *qp, const struct vb_fault_row *row)
	VB_REQUIRES(qp->drive)
{
	const struct vb_recv_done done = { .status = row->status,
					   .why = qp->why };
	int event = row->event;

	if (qp->recv_busy) {
		vb_qp_recv_done(qp, &done);
		/* no event is raised: the flushed receive tells the program */
		event = -1;
	}
	vb_qp_fail(qp, event);
}

/* Returns a row for iWARP, where a fault always ends the stream, so that there
 * is no retry (iwarp/term.c). */
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

/* Tell why the request is refused; its key and range are in the record. */
static void near_explain(const struct vb_near_job *j, enum vb_fault fault)
	VB_REQUIRES(j->qp->drive)
{
	static const struct {
		const char *what;
		uint32_t need;
	} ops[] = {
		[NEAR_SEND] = { "SEND", 0 },
		[NEAR_PULL] = { "SEND", 0 },
		[NEAR_WRITE] = { "RDMA WRITE", ACCESS_REMOTE_WRITE },
		[NEAR_PLACED] = { "RDMA WRITE", ACCESS_REMOTE_WRITE },
		[NEAR_MANY] = { "RDMA WRITE", ACCESS_REMOTE_WRITE },
		[NEAR_CMP_SWAP] = { "atomic", ACCESS_REMOTE_ATOMIC },
		[NEAR_FETCH_ADD] = { "atomic", ACCESS_REMOTE_ATOMIC },
		[NEAR_STORE] = { "ATOMIC WRITE", ACCESS_REMOTE_WRITE },
	};
	const struct vb_request *r = j->r;
	uint32_t need = r->imm >> 8 & REMOTE_ACCESS;
	struct vb_why_ask ask = {
		.what = "request",
		.key = r->rkey,
		.va = r->va,
		.len = r->length,
	};

	if (r->op == NEAR_FAULT) {
		ask.need = need;
		ask.what = need == ACCESS_REMOTE_READ ? "RDMA READ"
						      : "RDMA WRITE";
	} else if (r->op < VB_COUNT(ops) && ops[r->op].what) {
		ask.what = ops[r->op].what;
		ask.need = ops[r->op].need;
	}
	(void)vb_qp_why_fault(j->qp, fault, &ask);
}

static void near_refuse(const struct vb_near_job *j, enum vb_fault fault)
	VB_REQUIRES(j->qp->drive)
{
	struct vb_qp *qp = j->qp;
	const struct vb_fault_row *row =
		qp->adapter->rnic ? stream_row(fault) : vb_fault_rc(fault);

	/* ACT_DIE: no NAK is sent, and the requester learns that @qp accepts no
	 * requests */
	j->a->kind = ANSWER_NOBODY;
	if (row->action != ACT_DIE) {
		vb_count(qp->adapter, row->counter, 1);
		j->a->kind =
			row->syndrome == VB_SYN_RNR ? ANSWER_RNR : ANSWER_NAK;
		j->a->syndrome = row->syndrome;
	}
	if (row->action != ACT_NAK_ONCE) {
		near_explain(j, fault);
		near_resp_die(j->qp, row);
		return;
	}
	j->a->kind = ANSWER_RNR;
	j->a->syndrome |= qp->attr.min_rnr_timer & 0x1f;
}

static void note_established(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	if (vb_near_state(qp) != QPS_RTR || qp->comm_est_sent)
		return;
	qp->comm_est_sent = true;
	vb_qp_event(qp, EVENT_COMM_EST);
}

/* Does the request have the sequence number that is expected next? */
static bool is_next(const struct vb_near_job *j) VB_REQUIRES(j->qp->drive)
{
	struct vb_near_qp *nq = vb_nq(j->qp);

	if (nq->src_life != j->r->src_life) {
		nq->src_life = j->r->src_life;
		nq->expected = 0;
	}
	return j->r->op != NEAR_ESTABLISH && j->r->seq == nq->expected;
}

void vb_near_request(struct vb_near *n, struct vb_peer *p, struct vb_qp *qp,
		     const struct vb_request *r, const uint8_t *data,
		     struct vb_answer_note *a)
{
	const struct vb_near_job j = { n, p, qp, r, data, a };
	enum vb_fault fault;

	vb_peer_assert_claimed(j.peer);
	vb_mutex_assert_held(&j.qp->drive);
	if (!is_for_connection(&j))
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

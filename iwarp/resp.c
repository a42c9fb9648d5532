/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver: checks and places segments. MPA has verified the bytes and TCP
 * keeps their order, so a segment that is not the expected one is a fault and
 * ends the stream. */
#include "base/guard.h"
#include "core/mw.h"
#include "core/sge.h"
#include "core/why_qp.h"
#include "iwarp/stream.h"

#define ATOMIC_BYTES 8

static enum vb_iw_fault check_untagged(const struct vb_ddp_seg *seg,
				       uint32_t msn, uint32_t mo)
{
	if (seg->msn != msn)
		return IWF_MSN;
	return seg->mo == mo ? IWF_NONE : IWF_MO;
}

static bool iw_wraps(uint64_t to, uint64_t len)
{
	return len && to + len - 1 < to;
}

/* Functions that receive SENDs and immediate data. */

struct send_row {
	bool known, solicited, inv, imm;
};

// clang-format off
static const struct send_row sends[RDMAP_OP_COUNT] = {
	/*			 known	SE     inv    imm */
	[RDMAP_SEND]	     = { true,	false, false, false },
	[RDMAP_SEND_SE]	     = { true,	true,  false, false },
	[RDMAP_SEND_INV]     = { true,	false, true,  false },
	[RDMAP_SEND_SE_INV]  = { true,	true,  true,  false },
	[RDMAP_SEND_IMM]     = { true,	false, false, true },
	[RDMAP_SEND_IMM_SE]  = { true,	true,  false, true },
};
// clang-format on

static void complete_send(struct vb_qp *qp, const struct vb_ddp_seg *seg,
			  uint32_t len) VB_REQUIRES(qp->drive)
{
	const struct send_row *row = &sends[seg->opcode];
	const struct vb_recv_done done = {
		.status = WC_SUCCESS,
		.opcode = WC_OP_RECV,
		.byte_len = len,
		.imm = row->imm ? vb_iw_imm(seg->word) : seg->word,
		.src_qp = qp->attr.dest_qp_num,
		.wc_flags = row->imm   ? WC_WITH_IMM
			    : row->inv ? WC_WITH_INV
				       : 0,
		.solicited = row->solicited,
	};

	vb_qp_recv_done(qp, &done);
}

/* Is the segment the SEND that begins a peer-to-peer connection (RTR)? The
 * program does not get this SEND. */
static bool is_rtr(const struct vb_iw *s, const struct vb_ddp_seg *seg)
{
	return !s->terms.initiator && s->terms.rtr == RTR_SEND &&
	       s->in.send_msn == 1 && seg->msn == 1 &&
	       seg->payload_bytes == 0 && seg->last &&
	       seg->opcode == RDMAP_SEND;
}

static enum vb_iw_fault place_send(struct vb_qp *qp,
				   const struct vb_ddp_seg *seg)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw_inbound *in = &vb_iw(qp)->in;
	struct vb_pd *pd = qp->srq ? qp->srq->pd : qp->pd;
	uint64_t end = (uint64_t)in->offset + seg->payload_bytes;

	if (!qp->recv_busy && !vb_qp_recv_begin(qp))
		return IWF_NO_BUFFER;
	if (end > qp->recv.length || end > VB_MAX_MSG)
		return IWF_TOO_LONG;
	if (vb_sge_place(pd, qp->recv.sge, qp->recv.num_sge, in->offset,
			 seg->payload, seg->payload_bytes))
		return IWF_RQE_LKEY;
	in->offset = (uint32_t)end;
	return IWF_NONE;
}

static enum vb_iw_fault iw_take_send(struct vb_qp *qp,
				     const struct vb_ddp_seg *seg)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);
	struct vb_iw_inbound *in = &s->in;
	enum vb_iw_fault fault;
	uint32_t len;

	fault = check_untagged(seg, in->send_msn, in->offset);
	if (fault)
		return fault;
	if (in->offset && seg->opcode != in->opcode)
		return IWF_OPCODE;
	if (is_rtr(s, seg)) {
		in->send_msn++;
		return IWF_NONE;
	}
	in->opcode = seg->opcode;
	fault = place_send(qp, seg);
	if (fault || !seg->last)
		return fault;
	len = in->offset;
	in->send_msn++;
	in->offset = in->written = 0;
	if (sends[seg->opcode].inv && !vb_mw_invalidate(qp, seg->word))
		return IWF_INVALIDATE;
	complete_send(qp, seg, len);
	return IWF_NONE;
}

/* Handle immediate data. If it follows a WRITE, it belongs to that WRITE (RFC
 * 7306 s6). */
static enum vb_iw_fault take_imm(struct vb_qp *qp, const struct vb_ddp_seg *seg)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw_inbound *in = &vb_iw(qp)->in;
	enum vb_iw_fault fault = check_untagged(seg, in->send_msn, in->offset);
	struct vb_recv_done done = {
		.status = WC_SUCCESS,
		.opcode = WC_OP_RECV_WRITE_IMM,
		.byte_len = in->written,
		.src_qp = qp->attr.dest_qp_num,
		.wc_flags = WC_WITH_IMM,
		.solicited = seg->opcode == RDMAP_IMM_SE,
	};

	if (fault)
		return fault;
	if (in->offset)
		return IWF_OPCODE;
	if (seg->payload_bytes != VB_RDMAP_IMM_BYTES || !seg->last)
		return IWF_UNSPECIFIED;
	if (!qp->recv_busy && !vb_qp_recv_begin(qp))
		return IWF_NO_BUFFER;
	memcpy(&done.imm, seg->payload, sizeof(done.imm));
	in->send_msn++;
	in->written = 0;
	vb_qp_recv_done(qp, &done);
	return IWF_NONE;
}

/* Functions that check and place WRITEs. */

/* For each reason why a key can be refused: the fault of a WRITE, and that of a
 * READ or atomic. */
static const uint8_t write_faults[] = {
	[REFUSED_NOT] = IWF_WRITE_STAG,
	[REFUSED_KEY] = IWF_WRITE_STAG,
	[REFUSED_DOMAIN] = IWF_WRITE_DOMAIN,
	[REFUSED_WINDOW] = IWF_WRITE_DOMAIN,
	[REFUSED_BOUNDS] = IWF_WRITE_BOUNDS,
	[REFUSED_RIGHTS] = IWF_RIGHTS,
};
static const uint8_t ask_faults[] = {
	[REFUSED_NOT] = IWF_READ_STAG,	    [REFUSED_KEY] = IWF_READ_STAG,
	[REFUSED_DOMAIN] = IWF_READ_DOMAIN, [REFUSED_WINDOW] = IWF_READ_DOMAIN,
	[REFUSED_BOUNDS] = IWF_READ_BOUNDS,
	[REFUSED_RIGHTS] = IWF_RIGHTS,
};

struct target {
	uint32_t stag, len;
	uint64_t to;
	/* access rights that the key must give, bits of enum vb_access */
	uint32_t need;
};

static enum vb_iw_fault iw_refusal(struct vb_qp *qp, enum vb_fault fault,
				   const struct target *t,
				   const uint8_t *faults) VB_REQUIRES(qp->drive)
{
	const struct vb_why_ask ask = {
		.what = t->need == ACCESS_REMOTE_READ	 ? "RDMA READ"
			: t->need == ACCESS_REMOTE_WRITE ? "RDMA WRITE"
							 : "atomic",
		.key = t->stag,
		.need = t->need,
		.va = t->to,
		.len = t->len,
	};

	(void)vb_qp_why_fault(qp, fault, &ask);
	if (fault == FAULT_REMOTE_MEMORY)
		return IWF_MEMORY;
	if (fault == FAULT_ALIGNMENT)
		return IWF_UNSPECIFIED;
	return faults[vb_mr_refusal(qp->adapter, qp->pd, vb_iw_qpn(qp), t->stag,
				    t->to, t->len, t->need)];
}

/* qp_access_flags lack the right that the request needs. */
static enum vb_iw_fault iw_no_right(struct vb_qp *qp, const char *what,
				    const struct target *t)
	VB_REQUIRES(qp->drive)
{
	(void)vb_qp_why_fault(qp, FAULT_ACCESS_FLAGS,
			&(struct vb_why_ask){ .what = what,
					      .key = t->stag,
					      .need = t->need,
					      .va = t->to,
					      .len = t->len });
	return IWF_RIGHTS;
}

static enum vb_iw_fault iw_take_write(struct vb_qp *qp,
				      const struct vb_ddp_seg *seg)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw_inbound *in = &vb_iw(qp)->in;
	uint32_t len = seg->payload_bytes;
	enum vb_fault fault;

	/* A WRITE of 0 bytes needs no right: peer-to-peer mode begins with
	 * one. */
	if (len && !(qp->attr.access_flags & ACCESS_REMOTE_WRITE))
		return iw_no_right(qp, "RDMA WRITE",
				   &(struct target){ seg->stag, len, seg->to,
						     ACCESS_REMOTE_WRITE });
	if (iw_wraps(seg->to, len))
		return IWF_WRITE_WRAP;
	fault = vb_mr_write(qp->adapter, qp->pd, vb_iw_qpn(qp), seg->stag,
			    seg->to, seg->payload, len);
	if (fault)
		return iw_refusal(qp, fault,
				  &(struct target){ seg->stag, len, seg->to,
						    ACCESS_REMOTE_WRITE },
				  write_faults);
	in->write_bytes += len;
	if (seg->last) {
		in->written = in->write_bytes;
		in->write_bytes = 0;
	}
	return IWF_NONE;
}

/* Functions that handle READs and atomics of the peer. */

static bool has_answer_room(const struct vb_iw *s)
{
	/* The RTR READ comes in addition to the agreed number of READs. */
	uint32_t rtr = !s->terms.initiator && s->terms.rtr == RTR_READ;

	return s->answer_tail - s->taken.answer < s->terms.ird + rtr;
}

static struct vb_iw_answer *iw_add_answer(struct vb_iw *s)
{
	struct vb_iw_answer *a = &s->answers[s->answer_tail++ % VB_IW_ANSWERS];

	s->in.ask_msn++;
	return a;
}

static enum vb_iw_fault check_ask(const struct vb_iw *s,
				  const struct vb_ddp_seg *seg)
{
	enum vb_iw_fault fault = check_untagged(seg, s->in.ask_msn, 0);

	if (fault)
		return fault;
	if (!seg->last)
		return IWF_TOO_LONG;
	return has_answer_room(s) ? IWF_NONE : IWF_TOO_MANY_READS;
}

static enum vb_iw_fault iw_take_read(struct vb_qp *qp,
				     const struct vb_ddp_seg *seg)
	VB_REQUIRES(qp->drive)
{
	struct vb_reader r = vb_reader(seg->payload, seg->payload_bytes);
	struct vb_iw *s = vb_iw(qp);
	enum vb_iw_fault iwf = check_ask(s, seg);
	struct vb_rdmap_read q;
	struct vb_iw_answer *a;
	enum vb_fault fault;

	if (iwf)
		return iwf;
	if (!vb_rdmap_read_get(&r, &q) || vb_reader_left(&r))
		return IWF_UNSPECIFIED;
	if (q.length && !(qp->attr.access_flags & ACCESS_REMOTE_READ))
		return iw_no_right(qp, "RDMA READ",
				   &(struct target){ q.source_stag, q.length,
						     q.source_to,
						     ACCESS_REMOTE_READ });
	if (iw_wraps(q.source_to, q.length))
		return IWF_READ_WRAP;
	fault = vb_mr_check(qp->adapter, qp->pd, vb_iw_qpn(qp), q.source_stag,
			    q.source_to, q.length, ACCESS_REMOTE_READ);
	if (fault)
		return iw_refusal(qp, fault,
				  &(struct target){ q.source_stag, q.length,
						    q.source_to,
						    ACCESS_REMOTE_READ },
				  ask_faults);
	a = iw_add_answer(s);
	*a = (struct vb_iw_answer){ .stag = q.source_stag,
				    .to = q.source_to,
				    .length = q.length,
				    .sink_stag = q.sink_stag,
				    .sink_to = q.sink_to };
	return IWF_NONE;
}

/* Add field by field: no carry goes out of a bit that is set in @tops, the top
 * bits of the fields (FetchAdd of RFC 7306). */
static uint64_t add_fields(uint64_t a, uint64_t b, uint64_t tops)
{
	return ((a & ~tops) + (b & ~tops)) ^ ((a ^ b) & tops);
}

static uint64_t outcome(const struct vb_rdmap_atomic *q, uint64_t old)
{
	if (q->op == ATOMIC_FETCH_ADD)
		return add_fields(old, q->add_swap, q->add_swap_mask);
	if (q->op == ATOMIC_CMP_SWAP && (old ^ q->compare) & q->compare_mask)
		return old;
	return (old & ~q->add_swap_mask) | (q->add_swap & q->add_swap_mask);
}

/* Compare-and-swap in a loop: it repeats when another thread has changed the
 * word in between. */
static enum vb_fault change_word(uint64_t *at, const struct vb_rdmap_atomic *q,
				 uint64_t *old)
{
	uint64_t seen;

	if (vb_guard_copy(old, at, sizeof(*old)))
		return FAULT_REMOTE_MEMORY;
	do {
		seen = *old;
		if (vb_guard_cas64(at, seen, outcome(q, seen), old))
			return FAULT_REMOTE_MEMORY;
	} while (*old != seen);
	return FAULT_NONE;
}

static enum vb_fault run_atomic(struct vb_qp *qp,
				const struct vb_rdmap_atomic *q, uint64_t *old)
	VB_REQUIRES(qp->drive)
{
	struct vb_mr_use use;
	enum vb_fault fault =
		vb_mr_begin(qp->adapter, qp->pd, vb_iw_qpn(qp), q->stag, q->to,
			    ATOMIC_BYTES, ACCESS_REMOTE_ATOMIC, &use);

	if (fault)
		return fault;
	if ((uintptr_t)use.at % ATOMIC_BYTES)
		fault = FAULT_ALIGNMENT;
	else
		fault = change_word((uint64_t *)use.at, q, old);
	vb_mr_end(&use);
	return fault;
}

static enum vb_iw_fault iw_take_atomic(struct vb_qp *qp,
				       const struct vb_ddp_seg *seg)
	VB_REQUIRES(qp->drive)
{
	struct vb_reader r = vb_reader(seg->payload, seg->payload_bytes);
	struct vb_iw *s = vb_iw(qp);
	enum vb_iw_fault iwf = check_ask(s, seg);
	struct vb_rdmap_atomic q;
	struct vb_iw_answer *a;
	enum vb_fault fault;
	uint64_t old;

	if (iwf)
		return iwf;
	if (!vb_rdmap_atomic_get(&r, &q) || vb_reader_left(&r) ||
	    q.op > ATOMIC_CMP_SWAP)
		return IWF_UNSPECIFIED;
	if (!(qp->attr.access_flags & ACCESS_REMOTE_ATOMIC))
		return iw_no_right(qp, "atomic",
				   &(struct target){ q.stag, ATOMIC_BYTES, q.to,
						     ACCESS_REMOTE_ATOMIC });
	if (iw_wraps(q.to, ATOMIC_BYTES))
		return IWF_READ_WRAP;
	if (q.to % ATOMIC_BYTES) {
		(void)vb_qp_why_fault(qp, FAULT_ALIGNMENT,
				&(struct vb_why_ask){
					.what = "atomic",
					.need = ACCESS_REMOTE_ATOMIC,
					.va = q.to,
					.len = ATOMIC_BYTES });
		return IWF_UNSPECIFIED;
	}
	fault = run_atomic(qp, &q, &old);
	if (fault)
		return iw_refusal(qp, fault,
				  &(struct target){ q.stag, ATOMIC_BYTES, q.to,
						    ACCESS_REMOTE_ATOMIC },
				  ask_faults);
	a = iw_add_answer(s);
	*a = (struct vb_iw_answer){ .atomic = true, .id = q.id, .value = old };
	return IWF_NONE;
}

/* Functions that handle responses to this side's READs and atomics. */

/* Returns the oldest READ or atomic that was sent and waits for its response;
 * or NULL. */
static struct vb_iw_asked *oldest_asked(struct vb_iw *s)
{
	return s->asked_head == s->tx.asked
		       ? NULL
		       : &s->asked[s->asked_head % VB_MAX_RD_ATOM];
}

static void answered(struct vb_qp *qp, const struct vb_iw_asked *a)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);

	if (!a->rtr)
		vb_sq_at(&qp->sq, a->index)->first_psn |= WQE_ANSWERED;
	s->asked_head++;
	vb_iw_retire(qp);
}

/* Handle a response for which this side's memory is missing, or its key was
 * revoked. */
static enum vb_iw_fault no_sink(struct vb_qp *qp, const struct vb_iw_asked *a)
	VB_REQUIRES(qp->drive)
{
	vb_iw_retire(qp);
	if (vb_iw_sends(qp) && qp->sq.done == a->index)
		vb_qp_send_done(qp, WC_LOC_PROT_ERR);
	return IWF_LOCAL;
}

static enum vb_iw_fault place_answer(struct vb_qp *qp,
				     const struct vb_iw_asked *a,
				     const void *bytes, uint32_t len)
	VB_REQUIRES(qp->drive)
{
	const struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, a->index);

	if (vb_sge_place(qp->pd, wqe->sge, wqe->num_sge, a->got, bytes, len))
		return no_sink(qp, a);
	return IWF_NONE;
}

static bool asked_is_read(const struct vb_qp *qp, const struct vb_iw_asked *a)
{
	return a->rtr || vb_sq_at(&qp->sq, a->index)->op == WR_READ;
}

static enum vb_iw_fault take_data(struct vb_qp *qp,
				  const struct vb_ddp_seg *seg)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw_asked *a = oldest_asked(vb_iw(qp));
	uint32_t len = seg->payload_bytes;
	enum vb_iw_fault fault;

	if (!a || !asked_is_read(qp, a) || seg->stag != a->stag)
		return IWF_WRITE_STAG;
	if (seg->to != a->to + a->got || len > a->length - a->got ||
	    seg->last != (a->got + len == a->length))
		return IWF_WRITE_BOUNDS;
	fault = len ? place_answer(qp, a, seg->payload, len) : IWF_NONE;
	if (fault)
		return fault;
	a->got += len;
	if (seg->last)
		answered(qp, a);
	return IWF_NONE;
}

static enum vb_iw_fault iw_take_value(struct vb_qp *qp,
				      const struct vb_ddp_seg *seg)
	VB_REQUIRES(qp->drive)
{
	struct vb_reader r = vb_reader(seg->payload, seg->payload_bytes);
	struct vb_iw *s = vb_iw(qp);
	const struct vb_iw_asked *a = oldest_asked(s);
	enum vb_iw_fault fault = check_untagged(seg, s->in.atomic_msn, 0);
	struct vb_rdmap_atomic_rsp rsp;

	if (fault)
		return fault;
	if (!vb_rdmap_atomic_rsp_get(&r, &rsp) || vb_reader_left(&r) ||
	    !seg->last)
		return IWF_UNSPECIFIED;
	if (!a || asked_is_read(qp, a) || rsp.id != a->msn)
		return IWF_OPCODE;
	s->in.atomic_msn++;
	fault = place_answer(qp, a, &rsp.value, sizeof(rsp.value));
	if (fault == IWF_NONE)
		answered(qp, a);
	return fault;
}

static enum vb_iw_fault take_card(struct vb_qp *qp,
				  const struct vb_ddp_seg *seg)
	VB_REQUIRES(qp->drive)
{
	struct vb_reader r = vb_reader(seg->payload, seg->payload_bytes);
	enum vb_iw_fault fault = check_untagged(seg, 1, 0);
	struct vb_iw *s = vb_iw(qp);

	if (fault)
		return fault;
	if (s->heard_card)
		return IWF_MSN;
	if (!vb_rdmap_card_get(&r, &s->peer_card) || vb_reader_left(&r) ||
	    !seg->last)
		return IWF_UNSPECIFIED;
	s->heard_card = true;
	return IWF_NONE;
}

static enum vb_iw_fault take_term(struct vb_qp *qp,
				  const struct vb_ddp_seg *seg)
	VB_REQUIRES(qp->drive)
{
	struct vb_reader r = vb_reader(seg->payload, seg->payload_bytes);
	struct vb_term t;

	/* A Terminate that cannot be parsed ends the stream as well. */
	if (!vb_term_get(&r, &t))
		t = (struct vb_term){ .layer = TERM_RDMAP,
				      .etype = 2,
				      .code = 0xff };
	vb_iw_terminated(qp, &t);
	return IWF_NONE;
}

/* How a message of each RDMAP opcode is handled. */
struct op_row {
	enum vb_iw_fault (*take)(struct vb_qp *qp,
				 const struct vb_ddp_seg *seg);
	bool tagged;
	/* the queue of an untagged message, an enum vb_ddp_queue */
	uint8_t queue;
};

// clang-format off
static const struct op_row ops[RDMAP_OP_COUNT] = {
	/*			    take	  tagged queue */
	[RDMAP_WRITE]		= { iw_take_write,	  true,	 0 },
	[RDMAP_READ_REQUEST]	= { iw_take_read,	  false, DDP_QUEUE_REQUEST },
	[RDMAP_READ_RESPONSE]	= { take_data,	  true,	 0 },
	[RDMAP_SEND]		= { iw_take_send,	  false, DDP_QUEUE_SEND },
	[RDMAP_SEND_INV]	= { iw_take_send,	  false, DDP_QUEUE_SEND },
	[RDMAP_SEND_SE]		= { iw_take_send,	  false, DDP_QUEUE_SEND },
	[RDMAP_SEND_SE_INV]	= { iw_take_send,	  false, DDP_QUEUE_SEND },
	[RDMAP_TERMINATE]	= { take_term,	  false, DDP_QUEUE_TERMINATE },
	[RDMAP_IMM]		= { take_imm,	  false, DDP_QUEUE_SEND },
	[RDMAP_IMM_SE]		= { take_imm,	  false, DDP_QUEUE_SEND },
	[RDMAP_ATOMIC_REQUEST]	= { iw_take_atomic,  false, DDP_QUEUE_REQUEST },
	[RDMAP_ATOMIC_RESPONSE] = { iw_take_value,	  false, DDP_QUEUE_ATOMIC },
	[RDMAP_SEND_IMM]	= { iw_take_send,	  false, DDP_QUEUE_SEND },
	[RDMAP_SEND_IMM_SE]	= { iw_take_send,	  false, DDP_QUEUE_SEND },
	[RDMAP_CARD]		= { take_card,	  false, DDP_QUEUE_CARD },
};
// clang-format on

/* Check the segment: first DDP's rules, then RDMAP's (RFC 5041 s7, RFC 5040
 * s7). */
static enum vb_iw_fault iw_resp_judge(const struct vb_iw *s,
				      const struct vb_ddp_seg *seg)
{
	const struct op_row *row;

	if (seg->ddp_version != VB_DDP_VERSION)
		return seg->tagged ? IWF_TAGGED_VERSION : IWF_UNTAGGED_VERSION;
	if (!seg->tagged && seg->queue >= DDP_QUEUE_COUNT)
		return IWF_QUEUE;
	if (seg->rdmap_version != VB_RDMAP_VERSION)
		return IWF_RDMAP_VERSION;
	if (seg->opcode >= RDMAP_OP_COUNT ||
	    (seg->opcode == RDMAP_CARD && !s->terms.near))
		return IWF_OPCODE;
	row = &ops[seg->opcode];
	if (seg->tagged != row->tagged)
		return IWF_OPCODE;
	return seg->tagged || seg->queue == row->queue ? IWF_NONE : IWF_QUEUE;
}

void vb_iw_take(struct vb_qp *qp, const uint8_t *ulpdu, uint32_t len)
{
	struct vb_reader r = vb_reader(ulpdu, len);
	struct vb_iw *s = vb_iw(qp);
	enum vb_iw_fault fault;
	struct vb_ddp_seg seg;

	s->in.heard = true;
	/* RFC 6581 calls the SEND that begins a connection an FULPDU of length
	 * zero. A peer may understand this literally and send an empty FPDU, so
	 * accept one. */
	if (len == 0 && s->terms.rtr == RTR_SEND && s->in.send_msn == 1) {
		s->in.send_msn++;
		return;
	}
	if (!vb_ddp_seg_get(&r, &seg)) {
		vb_iw_refuse(qp, IWF_DDP, NULL);
		return;
	}
	fault = iw_resp_judge(s, &seg);
	if (fault == IWF_NONE)
		fault = ops[seg.opcode].take(qp, &seg);
	if (fault)
		vb_iw_refuse(qp, fault, &seg);
}

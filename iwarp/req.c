/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester: work requests become RDMAP messages.
 *
 * A SEND or WRITE completes when the socket has accepted all its bytes, as with
 * siw and with adapters that rely on TCP: the program may reuse its memory, and
 * a later error ends the stream. While some bytes are still in a buffer of this
 * process the request is not complete, since a program may exit as soon as it
 * has its completion.
 */
#include "core/mw.h"
#include "core/sge.h"
#include "iwarp/stream.h"

enum request_kind {
	REQUEST_NONE,
	REQUEST_SEND,
	REQUEST_WRITE,
	REQUEST_READ,
	REQUEST_ATOMIC,
	REQUEST_LOCAL
};
enum request_word { WORD_NONE, WORD_KEY, WORD_IMM };

struct request_row {
	uint8_t kind;
	uint8_t opcode,
		/* enum vb_rdmap_op of the message, without and with solicited
		 * event */
		solicited;
	/* what the header's extra word is, an enum request_word */
	uint8_t word;
	bool has_imm; /* an immediate data message follows */
};

// clang-format off
static const struct request_row requests[] = {
/*  work request	kind		opcode		      solicited		    word       imm */
[WR_WRITE]	   = { REQUEST_WRITE,	RDMAP_WRITE,	      RDMAP_WRITE,	    WORD_NONE, false },
[WR_WRITE_IMM]	   = { REQUEST_WRITE,	RDMAP_WRITE,	      RDMAP_WRITE,	    WORD_NONE, true },
[WR_SEND]	   = { REQUEST_SEND,	RDMAP_SEND,	      RDMAP_SEND_SE,	    WORD_NONE, false },
[WR_SEND_IMM]	   = { REQUEST_SEND,	RDMAP_SEND_IMM,	      RDMAP_SEND_IMM_SE,    WORD_IMM,  false },
[WR_SEND_INV]	   = { REQUEST_SEND,	RDMAP_SEND_INV,	      RDMAP_SEND_SE_INV,    WORD_KEY,  false },
[WR_READ]	   = { REQUEST_READ,	RDMAP_READ_REQUEST,   RDMAP_READ_REQUEST,   WORD_NONE, false },
[WR_CMP_SWAP]	   = { REQUEST_ATOMIC,	RDMAP_ATOMIC_REQUEST, RDMAP_ATOMIC_REQUEST, WORD_NONE, false },
[WR_FETCH_ADD]	   = { REQUEST_ATOMIC,	RDMAP_ATOMIC_REQUEST, RDMAP_ATOMIC_REQUEST, WORD_NONE, false },
[WR_BIND_MW]	   = { REQUEST_LOCAL },
[WR_LOCAL_INV]	   = { REQUEST_LOCAL },
};
// clang-format on

#define ATOMIC_BYTES 8
#define RTR_STAG     1 /* the STag value that Chelsio's adapters require */

static const struct request_row *iw_row_of(const struct vb_send_wqe *wqe)
{
	static const struct request_row none;

	return wqe->op < VB_COUNT(requests) ? &requests[wqe->op] : &none;
}

bool vb_iw_asks(const struct vb_send_wqe *wqe)
{
	return iw_row_of(wqe)->kind == REQUEST_READ ||
	       iw_row_of(wqe)->kind == REQUEST_ATOMIC;
}

/* Functions for the checks before the first byte of a message. */

/* Check the keys of the whole message, so that a message with a bad key is
 * never sent in part. */
static bool iw_keys_allow(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	uint32_t need = vb_iw_asks(wqe) ? ACCESS_LOCAL_WRITE : 0;

	if (wqe->flags & SEND_INLINE)
		return true;
	return vb_sge_is_allowed(qp->pd, wqe->sge, wqe->num_sge, need);
}

static enum vb_wc_status iw_req_judge(const struct vb_qp *qp,
				      const struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive)
{
	uint8_t kind = iw_row_of(wqe)->kind;

	if (kind == REQUEST_NONE)
		return WC_LOC_QP_OP_ERR;
	if (kind == REQUEST_LOCAL)
		return WC_SUCCESS;
	if (vb_iw_asks(wqe) && vb_iw(qp)->terms.ord == 0)
		return WC_LOC_QP_OP_ERR;
	if (wqe->length > VB_MAX_MSG)
		return WC_LOC_LEN_ERR;
	if (kind == REQUEST_ATOMIC &&
	    vb_sge_total(wqe->sge, wqe->num_sge) < ATOMIC_BYTES)
		return WC_LOC_LEN_ERR;
	return iw_keys_allow(qp, wqe) ? WC_SUCCESS : WC_LOC_PROT_ERR;
}

static void iw_stop(struct vb_iw *s, enum vb_wc_status status)
{
	s->stop = s->tx.cur;
	s->stop_status = status;
}

/* Has the cursor reached the WQE that cannot be sent? If the socket accepted
 * only a part, the cursor may be back at an earlier WQE, which must be sent
 * again. */
static bool is_stopped(const struct vb_iw *s)
{
	return s->stop_status != WC_SUCCESS && s->tx.cur == s->stop;
}

/* Must the request wait for earlier READs and atomics? Yes, if it is fenced
 * (RFC 5040 s5.5 does not order it otherwise), or if the peer accepts no more
 * READs and atomics at a time. */
static bool must_wait(const struct vb_iw *s, const struct vb_send_wqe *wqe)
{
	uint32_t under_way = s->tx.asked - s->asked_head;

	return (wqe->flags & SEND_FENCE && under_way) ||
	       (vb_iw_asks(wqe) && s->terms.ord && under_way >= s->terms.ord);
}

/* Check the WQE, but only once: the sender comes here again for a WQE whose
 * bytes the socket did not accept. False: the WQE must wait or cannot be
 * sent. */
static bool may_go(struct vb_qp *qp, struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);
	enum vb_wc_status status;

	if (s->tx.cur == s->begun) {
		if (vb_iw_state(qp) != QPS_RTS)
			return false;
		status = iw_req_judge(qp, wqe);
		if (status != WC_SUCCESS) {
			iw_stop(s, status);
			return false;
		}
		wqe->first_psn = 0;
		s->begun++;
	}
	return true;
}

/* Carry out a work request on a window, and only once. False: the request must
 * wait, or was refused. */
static bool iw_run_local(struct vb_qp *qp, struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);
	enum vb_mw_end end = MW_DONE;

	if (!(wqe->first_psn & WQE_RAN))
		end = vb_mw_run(qp, wqe);
	if (end == MW_REFUSED)
		iw_stop(s, WC_MW_BIND_ERR);
	if (end != MW_DONE)
		return false;
	wqe->first_psn |= WQE_RAN;
	s->tx.cur++;
	return true;
}

/* Returns the WQE whose message the sender begins next; or NULL. */
static struct vb_send_wqe *iw_begin_next(struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);

	while (s->tx.cur != vb_sq_end(&qp->sq)) {
		struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, s->tx.cur);

		if (is_stopped(s) || must_wait(s, wqe) || !may_go(qp, wqe))
			return NULL;
		if (iw_row_of(wqe)->kind != REQUEST_LOCAL)
			return wqe;
		if (!iw_run_local(qp, wqe))
			return NULL;
	}
	return NULL;
}

void vb_iw_run_local(struct vb_qp *qp)
{
	if (vb_iw_sends(qp) && vb_iw(qp)->tx.stage == STAGE_NONE &&
	    qp->way == WAY_PACKETS)
		(void)iw_begin_next(qp);
}

/* Functions that build the FPDUs of each kind of message. */

static struct vb_ddp_seg segment(uint8_t opcode)
{
	return (struct vb_ddp_seg){
		.last = true,
		.ddp_version = VB_DDP_VERSION,
		.rdmap_version = VB_RDMAP_VERSION,
		.opcode = opcode,
	};
}

static struct vb_ddp_seg data_segment(const struct vb_iw *s,
				      const struct vb_send_wqe *wqe)
{
	const struct request_row *row = iw_row_of(wqe);
	struct vb_ddp_seg seg = segment(
		wqe->flags & SEND_SOLICITED ? row->solicited : row->opcode);

	if (row->kind == REQUEST_WRITE) {
		seg.tagged = true;
		seg.stag = wqe->rkey;
		seg.to = wqe->remote_addr + s->tx.offset;
	} else {
		seg.queue = DDP_QUEUE_SEND;
		seg.msn = s->tx.send_msn;
		seg.mo = s->tx.offset;
		seg.word = row->word == WORD_KEY   ? wqe->imm
			   : row->word == WORD_IMM ? vb_iw_imm_word(wqe->imm)
						   : 0;
	}
	return seg;
}

static void end_data(struct vb_iw *s, const struct vb_send_wqe *wqe)
{
	const struct request_row *row = iw_row_of(wqe);

	s->tx.offset = 0;
	if (row->has_imm) {
		s->tx.stage = STAGE_IMM;
		return;
	}
	s->tx.send_msn += row->kind == REQUEST_SEND;
	s->tx.stage = STAGE_NONE;
	s->tx.cur++;
	s->tx.answered = false;
}

static bool iw_req_put_data(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			    struct vb_iw_txq *out) VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);
	struct vb_ddp_seg seg = data_segment(s, wqe);
	uint32_t hdr = seg.tagged ? VB_DDP_TAGGED_BYTES : VB_DDP_UNTAGGED_BYTES;
	uint32_t left = wqe->length - s->tx.offset;
	const struct vb_iw_source src = {
		.wqe = wqe,
		.offset = s->tx.offset,
		.len = VB_MIN(left, s->mulpdu - hdr),
	};
	struct vb_writer w = vb_iw_fpdu_begin(out);

	seg.last = src.len == left;
	vb_ddp_seg_put(&w, &seg);
	if (vb_iw_fpdu_end(qp, out, w, &src)) {
		iw_stop(s, WC_LOC_PROT_ERR);
		return false;
	}
	s->tx.stage = STAGE_REQUEST;
	s->tx.offset += src.len;
	if (seg.last)
		end_data(s, wqe);
	vb_iw_fpdu_mark(qp, out);
	return true;
}

/* Immediate data has eight bytes (RFC 7306 s6). Verbs use the first four, as
 * Chelsio's adapters do. */
static bool put_imm(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		    struct vb_iw_txq *out) VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);
	struct vb_ddp_seg seg =
		segment(wqe->flags & SEND_SOLICITED ? RDMAP_IMM_SE : RDMAP_IMM);
	struct vb_writer w = vb_iw_fpdu_begin(out);

	seg.queue = DDP_QUEUE_SEND;
	seg.msn = s->tx.send_msn++;
	vb_ddp_seg_put(&w, &seg);
	vb_put_be(&w, (uint64_t)vb_iw_imm_word(wqe->imm) << 32,
		  VB_RDMAP_IMM_BYTES);
	/* An immediate data message has no payload, so no fault is possible. */
	(void)vb_iw_fpdu_end(qp, out, w, NULL);
	s->tx.stage = STAGE_NONE;
	s->tx.cur++;
	s->tx.answered = false;
	vb_iw_fpdu_mark(qp, out);
	return true;
}

static struct vb_writer begin_ask(struct vb_iw *s, uint8_t opcode,
				  struct vb_iw_txq *out)
{
	struct vb_ddp_seg seg = segment(opcode);
	struct vb_writer w = vb_iw_fpdu_begin(out);

	seg.queue = DDP_QUEUE_REQUEST;
	seg.msn = s->tx.ask_msn;
	vb_ddp_seg_put(&w, &seg);
	return w;
}

static void end_ask(struct vb_qp *qp, struct vb_writer w, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);

	(void)vb_iw_fpdu_end(qp, out, w, NULL);
	s->tx.ask_msn++;
	s->tx.asked++;
	s->tx.answered = false;
	vb_iw_fpdu_mark(qp, out);
}

static struct vb_iw_asked *next_asked(struct vb_iw *s)
{
	struct vb_iw_asked *a = &s->asked[s->tx.asked % VB_MAX_RD_ATOM];

	*a = (struct vb_iw_asked){ .index = s->tx.cur, .msn = s->tx.ask_msn };
	return a;
}

/* A READ request names a sink STag, and the response repeats that name. This
 * requester finds the memory by the request, and not by the name. So one
 * request can fill several entries, and the sink's key need not grant remote
 * write, which RFC 5040 requires but programs do not provide. */
static bool iw_put_read(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			struct vb_iw_txq *out) VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);
	struct vb_iw_asked *a = next_asked(s);
	struct vb_writer w = begin_ask(s, RDMAP_READ_REQUEST, out);
	struct vb_rdmap_read read;

	a->stag = wqe->num_sge ? wqe->sge[0].lkey : RTR_STAG;
	a->to = wqe->num_sge ? wqe->sge[0].addr : 0;
	a->length = wqe->length;
	read = (struct vb_rdmap_read){ .sink_stag = a->stag,
				       .sink_to = a->to,
				       .length = a->length,
				       .source_stag = wqe->rkey,
				       .source_to = wqe->remote_addr };
	vb_rdmap_read_put(&w, &read);
	s->tx.cur++;
	end_ask(qp, w, out);
	return true;
}

static bool iw_put_atomic(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			  struct vb_iw_txq *out) VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);
	bool swap = wqe->op == WR_CMP_SWAP;
	const struct vb_rdmap_atomic atomic = {
		.op = swap ? ATOMIC_CMP_SWAP : ATOMIC_FETCH_ADD,
		.id = next_asked(s)->msn,
		.stag = wqe->rkey,
		.to = wqe->remote_addr,
		.add_swap = swap ? wqe->swap : wqe->compare_add,
		.add_swap_mask = swap ? UINT64_MAX : 0,
		.compare = swap ? wqe->compare_add : 0,
		.compare_mask = swap ? UINT64_MAX : 0,
	};
	struct vb_writer w = begin_ask(s, RDMAP_ATOMIC_REQUEST, out);

	vb_rdmap_atomic_put(&w, &atomic);
	s->tx.cur++;
	end_ask(qp, w, out);
	return true;
}

bool vb_iw_put_request(struct vb_qp *qp, struct vb_iw_txq *out)
{
	struct vb_iw *s = vb_iw(qp);
	const struct vb_send_wqe *wqe;

	if (qp->way != WAY_PACKETS || !vb_iw_sends(qp) || is_stopped(s))
		return false;
	wqe = s->tx.stage == STAGE_NONE ? iw_begin_next(qp)
					: vb_sq_at(&qp->sq, s->tx.cur);
	if (!wqe)
		return false;
	if (s->tx.stage == STAGE_IMM)
		return put_imm(qp, wqe, out);
	switch (iw_row_of(wqe)->kind) {
	case REQUEST_READ:
		return iw_put_read(qp, wqe, out);
	case REQUEST_ATOMIC:
		return iw_put_atomic(qp, wqe, out);
	default:
		return iw_req_put_data(qp, wqe, out);
	}
}

/* Puts a WRITE or SEND of 0 bytes into the batch. */
static void put_nothing(struct vb_qp *qp, uint8_t opcode, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);
	struct vb_ddp_seg seg = segment(opcode);
	struct vb_writer w;

	seg.tagged = opcode == RDMAP_WRITE;
	seg.stag = RTR_STAG;
	seg.queue = DDP_QUEUE_SEND;
	seg.msn = s->tx.send_msn;
	s->tx.send_msn += !seg.tagged;
	w = vb_iw_fpdu_begin(out);
	vb_ddp_seg_put(&w, &seg);
	(void)vb_iw_fpdu_end(qp, out, w, NULL);
	vb_iw_fpdu_mark(qp, out);
}

/* Put the RTR message into the batch: a SEND, WRITE or READ of 0 bytes (RFC
 * 6581 s5). */
bool vb_iw_put_rtr(struct vb_qp *qp, struct vb_iw_txq *out)
{
	struct vb_iw *s = vb_iw(qp);
	const struct vb_rdmap_read read = { .sink_stag = RTR_STAG,
					    .source_stag = RTR_STAG };
	struct vb_iw_asked *a;
	struct vb_writer w;

	s->tx.stage = STAGE_NONE;
	if (s->terms.rtr != RTR_READ) {
		put_nothing(qp,
			    s->terms.rtr == RTR_SEND ? RDMAP_SEND : RDMAP_WRITE,
			    out);
		return true;
	}
	a = next_asked(s);
	a->rtr = true;
	a->stag = RTR_STAG;
	w = begin_ask(s, RDMAP_READ_REQUEST, out);
	vb_rdmap_read_put(&w, &read);
	end_ask(qp, w, out);
	return true;
}

/* Returns the time of the next nudge. Linux's siw (6.1) ignores data that
 * arrives between its MPA reply and the moment when it sets its socket callback
 * (siw_accept), until more data arrives: both sides would wait for ever. A
 * WRITE of 0 bytes is such data, and does no harm to a peer that noticed the
 * earlier data. */
vb_time vb_iw_nudge_time(const struct vb_iw *s)
{
	return s->in.heard ? VB_NEVER : s->nudge_at;
}

void vb_iw_put_nudge(struct vb_qp *qp, struct vb_iw_txq *out)
{
	struct vb_iw *s = vb_iw(qp);

	s->nudge_after *= NUDGE_SLOWER;
	s->nudge_at = s->nudge_after > NUDGE_LAST ? VB_NEVER
						  : qp->now + s->nudge_after;
	put_nothing(qp, RDMAP_WRITE, out);
}

/* Functions that complete work requests. */

void vb_iw_retire(struct vb_qp *qp)
{
	struct vb_iw *s = vb_iw(qp);

	if (qp->way == WAY_NEAR)
		return;
	while (vb_iw_sends(qp) && qp->sq.done != s->taken.cur) {
		const struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, qp->sq.done);

		if (vb_iw_asks(wqe) && !(wqe->first_psn & WQE_ANSWERED))
			return;
		vb_qp_send_done(qp, WC_SUCCESS);
	}
	if (!vb_iw_sends(qp))
		return;
	if (s->stop_status != WC_SUCCESS && qp->sq.done == s->stop) {
		vb_count(qp->adapter, CNT_SEND_ERR, 1);
		vb_qp_send_done(qp, s->stop_status);
		vb_iw_give_up(qp);
	} else if (vb_iw_state(qp) == QPS_SQD && qp->sq.done == s->begun) {
		vb_qp_drained(qp);
	}
}

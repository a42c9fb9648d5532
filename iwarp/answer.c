/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of this side besides requests: responses to READs and atomics,
 * in the order of the peer's requests (RFC 5040 s5.5); the card for a peer on
 * this host; and the Terminate. */
#include "iwarp/stream.h"

static struct vb_ddp_seg untagged(uint8_t opcode, uint32_t queue, uint32_t msn)
{
	return (struct vb_ddp_seg){
		.last = true,
		.ddp_version = VB_DDP_VERSION,
		.rdmap_version = VB_RDMAP_VERSION,
		.opcode = opcode,
		.queue = queue,
		.msn = msn,
	};
}

static bool put_value(struct vb_qp *qp, const struct vb_iw_answer *a,
		      struct vb_iw_txq *out) VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);
	const struct vb_rdmap_atomic_rsp rsp = { a->id, a->value };
	const struct vb_ddp_seg seg = untagged(
		RDMAP_ATOMIC_RESPONSE, DDP_QUEUE_ATOMIC, s->tx.atomic_msn);
	struct vb_writer w = vb_iw_fpdu_begin(out);

	vb_ddp_seg_put(&w, &seg);
	vb_rdmap_atomic_rsp_put(&w, &rsp);
	/* An atomic's response has no payload, so no fault is possible. */
	(void)vb_iw_fpdu_end(qp, out, w, NULL);
	s->tx.atomic_msn++;
	s->tx.answer++;
	s->tx.answered = true;
	vb_iw_fpdu_mark(qp, out);
	return true;
}

static enum vb_iw_fault read_fault(enum vb_fault fault)
{
	return fault == FAULT_REMOTE_MEMORY ? IWF_MEMORY : IWF_READ_STAG;
}

static bool iw_answer_put_data(struct vb_qp *qp, const struct vb_iw_answer *a,
			       struct vb_iw_txq *out) VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);
	uint32_t offset = s->tx.answer_offset;
	uint32_t len =
		VB_MIN(a->length - offset, s->mulpdu - VB_DDP_TAGGED_BYTES);
	const struct vb_ddp_seg seg = {
		.tagged = true,
		.last = offset + len == a->length,
		.ddp_version = VB_DDP_VERSION,
		.rdmap_version = VB_RDMAP_VERSION,
		.opcode = RDMAP_READ_RESPONSE,
		.stag = a->sink_stag,
		.to = a->sink_to + offset,
	};
	const struct vb_iw_source src = { .answer = a,
					  .offset = offset,
					  .len = len };
	struct vb_writer w = vb_iw_fpdu_begin(out);
	enum vb_fault fault;

	vb_ddp_seg_put(&w, &seg);
	fault = vb_iw_fpdu_end(qp, out, w, &src);
	/* The key was valid when the request came, but the memory is gone
	 * now. */
	if (fault) {
		s->answer_tail = s->tx.answer;
		vb_iw_refuse(qp, read_fault(fault), NULL);
		return s->phase == IW_DYING;
	}
	s->tx.answer_offset = seg.last ? 0 : offset + len;
	s->tx.answer += seg.last;
	s->tx.stage = seg.last ? STAGE_NONE : STAGE_ANSWER;
	s->tx.answered = seg.last;
	vb_iw_fpdu_mark(qp, out);
	return true;
}

bool vb_iw_put_answer(struct vb_qp *qp, struct vb_iw_txq *out)
{
	struct vb_iw *s = vb_iw(qp);
	const struct vb_iw_answer *a =
		&s->answers[s->tx.answer % VB_IW_ANSWERS];

	return a->atomic ? put_value(qp, a, out)
			 : iw_answer_put_data(qp, a, out);
}

bool vb_iw_has_answers(const struct vb_iw *s)
{
	return s->tx.answer != s->answer_tail;
}

void vb_iw_put_card(struct vb_qp *qp, struct vb_iw_txq *out)
{
	struct vb_iw *s = vb_iw(qp);
	const struct vb_ddp_seg seg = untagged(RDMAP_CARD, DDP_QUEUE_CARD, 1);
	struct vb_writer w = vb_iw_fpdu_begin(out);

	vb_ddp_seg_put(&w, &seg);
	vb_rdmap_card_put(&w, &s->card);
	(void)vb_iw_fpdu_end(qp, out, w, NULL);
	s->tx.carded = true;
	vb_iw_fpdu_mark(qp, out);
}

void vb_iw_put_term(struct vb_qp *qp, struct vb_iw_txq *out)
{
	struct vb_iw *s = vb_iw(qp);
	const struct vb_ddp_seg seg =
		untagged(RDMAP_TERMINATE, DDP_QUEUE_TERMINATE, 1);
	struct vb_writer w = vb_iw_fpdu_begin(out);

	vb_ddp_seg_put(&w, &seg);
	vb_term_put(&w, &s->term);
	(void)vb_iw_fpdu_end(qp, out, w, NULL);
	s->tx.stage = STAGE_LAST;
	vb_iw_fpdu_mark(qp, out);
}

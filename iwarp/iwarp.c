/* SPDX-License-Identifier: BSD-2-Clause */
/* The iWARP implementation of core/transport.h: starting and ending a
 * stream. */
#include "iwarp/iwarp.h"

#include <errno.h>
#include <stdlib.h>

#include "iwarp/stream.h"

/* On a connection without peer-to-peer mode, how long the responder waits for
 * the initiator's first FPDU before it sends. By then the initiator has had
 * time to read the MPA reply. */
#define PATIENCE (50 * VB_MSEC)

#define MSS_UNKNOWN 1220 /* the MSS that every IPv6 path supports */

static int iw_attach(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	if (qp->type != QPT_RC)
		return -EOPNOTSUPP;
	qp->ops = &vb_iwarp_ops;
	qp->priv[PRIV_TRANSPORT] = calloc(1, sizeof(struct vb_iw));
	return vb_iw(qp) ? 0 : -ENOMEM;
}

static void iw_forget(struct vb_iw *s)
{
	free(s->cut);
	free(s->carry);
	*s = (struct vb_iw){ .phase = IW_IDLE };
}

static void iw_detach(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	iw_forget(vb_iw(qp));
	free(vb_iw(qp));
	qp->priv[PRIV_TRANSPORT] = NULL;
}

static void iw_enter(struct vb_qp *qp, enum vb_qp_state from,
		     enum vb_qp_state to, vb_time now) VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);

	now = vb_qp_advance(qp, now);
	if (to == QPS_RESET)
		iw_forget(s);
	else if (to == QPS_ERR && s->phase == IW_OPEN)
		/* the program moved the queue pair to ERR, so no Terminate is
		 * sent */
		s->phase = IW_ENDING;
	else if (to == QPS_SQD)
		vb_iw_retire(qp);
}

void vb_iw_recv_packet(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
		       vb_time now)
{
}

bool vb_iw_send_packets(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	vb_qp_flush(qp);
	return false;
}

static bool iw_gathers(const struct vb_iw *s)
{
	return s->phase == IW_OPEN && s->unheard >= VB_IW_UNHEARD;
}

bool vb_iw_can_wait(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	uint32_t end = vb_sq_end(&qp->sq);
	const struct vb_iw *s = vb_iw(qp);
	uint32_t unsent = end - s->tx.cur;

	if (!iw_gathers(s) || s->tx.stage != STAGE_NONE ||
	    s->tx.answer != s->answer_tail || s->cut_at != s->cut_end ||
	    s->stop_status != WC_SUCCESS || unsent == 0 ||
	    unsent >= VB_IW_GATHER_COUNT)
		return false;
	return unsent * (uint64_t)vb_sq_at(&qp->sq, end - 1)->length <
	       VB_IW_GATHER_BYTES;
}

vb_time vb_iw_deadline(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	const struct vb_iw *s = vb_iw(qp);

	if (iw_gathers(s))
		return s->sent_at + VB_IW_GATHER_LASTS;
	if (s->phase == IW_OPEN && s->terms.initiator)
		return vb_iw_nudge_time(s);
	if (s->phase != IW_OPEN || s->in.heard || s->terms.rtr != RTR_NONE ||
	    qp->now >= s->patient_until)
		return VB_NEVER;
	return s->patient_until;
}

const struct vb_transport vb_iwarp_transport = {
	.name = "iwarp",
	.attach = iw_attach,
	.detach = iw_detach,
	.enter = iw_enter,
};

const struct vb_transport_ops vb_iwarp_ops = {
	.name = "iwarp",
	.recv = { vb_iw_recv_packet, vb_iw_recv_packet },
	.send = vb_iw_send_packets,
	.can_wait = vb_iw_can_wait,
	.deadline = vb_iw_deadline,
};

void vb_iw_set_mss(struct vb_qp *qp, uint32_t mss)
{
	struct vb_iw *s = vb_iw(qp);

	s->mulpdu = vb_mpa_mulpdu(mss ? mss : MSS_UNKNOWN, s->terms.tx_markers);
}

static void begin_stream(struct vb_qp *qp, const struct vb_mpa_terms *terms,
			 vb_time now) VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);

	s->phase = IW_OPEN;
	s->terms = *terms;
	s->terms.ird = VB_MIN(terms->ird, VB_MAX_RD_ATOM);
	s->terms.ord = VB_MIN(terms->ord, VB_MAX_RD_ATOM);
	s->patient_until = now + PATIENCE;
	s->nudge_after = NUDGE_FIRST;
	s->nudge_at = now + NUDGE_FIRST;
	s->appetite = VB_IW_TX_BYTES;
	/* The first message on each queue has number 1 (RFC 5041 s4.2). */
	s->tx.send_msn = s->tx.ask_msn = s->tx.atomic_msn = 1;
	s->in.send_msn = s->in.ask_msn = s->in.atomic_msn = 1;
	s->tx.cur = s->begun = qp->sq.done;
	if (terms->initiator && terms->rtr != RTR_NONE)
		s->tx.stage = STAGE_RTR;
	s->taken = s->tx;
	vb_iw_set_mss(qp, terms->mss);
	qp->attr.max_dest_rd_atomic = (uint8_t)s->terms.ird;
	qp->attr.max_rd_atomic = (uint8_t)s->terms.ord;
}

int vb_iw_start(struct vb_qp *qp, const struct vb_mpa_terms *terms, vb_time now)
{
	enum vb_qp_state state = vb_iw_state(qp);

	if (vb_iw(qp)->phase != IW_IDLE ||
	    (state != QPS_INIT && state != QPS_RTR && state != QPS_RTS))
		return -EINVAL;
	now = vb_qp_advance(qp, now);
	begin_stream(qp, terms, now);
	atomic_store(&qp->state, QPS_RTS);
	vb_qp_note(qp);
	return 0;
}

void vb_iw_take_over(struct vb_qp *qp)
{
	struct vb_iw *s = vb_iw(qp);

	s->tx.cur = s->taken.cur = s->begun = qp->sq.done;
}

bool vb_iw_is_started(const struct vb_qp *qp)
{
	return vb_iw(qp)->phase != IW_IDLE;
}

void vb_iw_show_card(struct vb_qp *qp, const struct vb_rdmap_card *card)
{
	vb_iw(qp)->has_card = true;
	vb_iw(qp)->card = *card;
}

bool vb_iw_has_card(const struct vb_qp *qp, struct vb_rdmap_card *card)
{
	*card = vb_iw(qp)->peer_card;
	return vb_iw(qp)->heard_card;
}

bool vb_iw_is_established(const struct vb_qp *qp)
{
	const struct vb_iw *s = vb_iw(qp);

	return s->phase != IW_IDLE &&
	       (s->terms.initiator || s->in.heard || s->terms.rtr == RTR_NONE);
}

/* Functions for streams that end without a Terminate. */

static void end_stream(struct vb_qp *qp, int event) VB_REQUIRES(qp->drive)
{
	vb_iw(qp)->phase = IW_ENDING;
	vb_qp_fail(qp, event);
}

/* A FIN between two messages is a regular end (RFC 5040 s5.6). */
void vb_iw_eof(struct vb_qp *qp, vb_time now)
{
	const struct vb_iw *s = vb_iw(qp);

	now = vb_qp_advance(qp, now);
	if (s->phase != IW_OPEN)
		return;
	end_stream(qp, vb_iw_is_between(s) ? -1 : EVENT_QP_FATAL);
}

void vb_iw_lost(struct vb_qp *qp, vb_time now)
{
	struct vb_iw *s = vb_iw(qp);

	now = vb_qp_advance(qp, now);
	s->cut_at = s->cut_end = 0;
	if (s->phase == IW_OPEN) {
		if (vb_iw_sends(qp) && vb_iw_has_begun(qp))
			vb_qp_send_done(qp, WC_RETRY_EXC_ERR);
		vb_qp_fail(qp, -1);
	}
	s->phase = IW_ENDING;
}

bool vb_iw_wants_close(const struct vb_qp *qp)
{
	const struct vb_iw *s = vb_iw(qp);

	return s->phase == IW_CLOSED ||
	       (s->phase == IW_ENDING && s->cut_at == s->cut_end);
}

void vb_iw_closed(struct vb_qp *qp, vb_time now)
{
	if (vb_iw(qp)->phase == IW_IDLE)
		return;
	vb_iw_lost(qp, now);
	vb_iw(qp)->phase = IW_CLOSED;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The completer: acknowledgements and responses become completions. A response
 * for PSN n acknowledges everything before n, but a READ or atomic is completed
 * only by its own response (IBA 9.7.5.1.2). */
#include "core/sge.h"
#include "core/why_qp.h"
#include "ib/rc.h"

static struct vb_send_wqe *oldest(const struct vb_qp *qp)
{
	return vb_sq_at(&qp->sq, qp->sq.done);
}

void vb_comp_fail(struct vb_qp *qp, enum vb_wc_status status)
{
	vb_count(qp->adapter, CNT_SEND_ERR, 1);
	vb_qp_send_done(qp, status);
	vb_qp_fail(qp, -1);
}

void vb_comp_retire(struct vb_qp *qp)
{
	struct vb_req *req = &vb_rc(qp)->req;

	while (qp->sq.done != req->begun && vb_rc_sends(qp)) {
		const struct vb_send_wqe *wqe = oldest(qp);
		uint32_t end = vb_psn_add(wqe->first_psn, wqe->psn_count);

		if (vb_psn_diff(req->una, end) < 0)
			return;
		if (req->stop == qp->sq.done)
			req->stop_status = WC_SUCCESS;
		vb_qp_send_done(qp, WC_SUCCESS);
	}
}

/* Set una to @psn, which is larger: WQEs before it may complete. */
static void advance(struct vb_qp *qp, uint32_t psn, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	uint32_t count = (psn - req->una) & VB_PSN_MASK;
	const struct vb_asked *asked;

	req->una = psn;
	vb_sack_acked(&req->sack, psn);
	while ((asked = vb_req_asked(req)) &&
	       vb_psn_diff(psn, vb_psn_add(asked->psn, asked->count)) >= 0)
		req->asked_head++;
	vb_comp_retire(qp);
	if (vb_psn_diff(psn, req->send) > 0) {
		req->send = psn;
		req->cur = qp->sq.done;
	}
	if ((int32_t)(req->asked_at - req->asked_head) < 0)
		req->asked_at = req->asked_head;
	req->retries = req->rnr_retries = req->probes = 0;
	req->recovery = RECOVERY_NONE;
	req->rnr_at = VB_NEVER;
	vb_window_acked(&req->window, count, psn, now);
	vb_req_rearm(qp, now);
	if (VB_UNLIKELY(vb_rc_state(qp) == QPS_SQD))
		vb_req_drain(qp);
}

/* The peer has received everything before @psn. False: a READ or atomic
 * response before @psn is missing, and una is now the PSN of that response. */
static bool acknowledge(struct vb_qp *qp, uint32_t psn, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_asked *asked = vb_req_asked(req);
	uint32_t to = psn;

	if (asked && vb_psn_diff(psn, asked->psn) > 0)
		to = vb_psn_diff(req->una, asked->psn) > 0 ? req->una
							   : asked->psn;
	if (vb_psn_diff(to, req->una) > 0)
		advance(qp, to, now);
	return to == psn;
}

static void take_ack(struct vb_qp *qp, uint32_t psn, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	/* The peer has acknowledged only the probe. Either the probe was the
	 * missing packet, and the peer dropped the packets behind it. Or the
	 * peer is slow and acknowledges each packet that asks, so the next ACK
	 * follows soon. */
	bool probed = req->probes && psn == req->una;

	if (!acknowledge(qp, vb_psn_add(psn, 1), now))
		vb_req_recover(qp, now);
	else if (probed)
		vb_req_probe_acked(qp, now);
}

static void ib_take_rnr(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
			vb_time now) VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;

	vb_count(qp->adapter, CNT_RCVD_RNR_ERR, 1);
	if (!acknowledge(qp, pkt->bth.psn, now)) {
		vb_req_recover(qp, now);
		return;
	}
	if (!vb_rc_sends(qp) || req->rnr_at != VB_NEVER)
		return;
	/* An RNR retry count of 7 means: retry without limit (IBA
	 * 9.7.5.2.8). */
	if (qp->attr.rnr_retry < 7 && req->rnr_retries >= qp->attr.rnr_retry) {
		vb_count(qp->adapter, CNT_RNR_RETRY_EXCEEDED, 1);
		vb_comp_fail(qp, WC_RNR_RETRY_EXC_ERR);
		return;
	}
	req->rnr_retries += qp->attr.rnr_retry < 7;
	/* The peer is alive. While its program posts no receive, losses between
	 * RNR NAKs must not add up to an error. */
	req->retries = req->probes = 0;
	vb_req_go_back(qp, now);
	req->rnr_at = now + vb_rnr_ns(pkt->aeth.syndrome & 0x1f);
	req->ack_at = req->probe_at = VB_NEVER;
}

/* The peer refused the request at @psn as invalid. If that is the first of
 * several full packets, unequal interface MTUs are the likely cause, which only
 * the peer knows. */
static void explain_refusal(struct vb_qp *qp, uint32_t psn)
	VB_REQUIRES(qp->drive)
{
	const struct vb_send_wqe *wqe = oldest(qp);

	if (wqe->psn_count > 1 && wqe->op != WR_READ && psn == wqe->first_psn)
		vb_qp_why(qp, WHY_REM_INVALID,
			  "%s of %u bytes, wr_id %llu: the peer refuses a packet of %u bytes as invalid (if its interface carries less, give both ends a smaller path MTU)",
			  vb_why_op(wqe->op), wqe->length,
			  (unsigned long long)wqe->wr_id, qp->mtu);
}

/* The peer refused the request at @psn and has moved to ERR. */
static void take_fatal_nak(struct vb_qp *qp, uint8_t syndrome, uint32_t psn,
			   vb_time now) VB_REQUIRES(qp->drive)
{
	acknowledge(qp, psn, now);
	/* After this NAK the peer repeats no earlier response, so requests
	 * before @psn that still lack a response are flushed. */
	while (vb_rc_sends(qp)) {
		const struct vb_send_wqe *wqe = oldest(qp);
		uint32_t end = vb_psn_add(wqe->first_psn, wqe->psn_count);

		if (vb_psn_diff(psn, end) < 0)
			break;
		vb_qp_send_done(qp, WC_FLUSH_ERR);
	}
	if (!vb_rc_sends(qp))
		return;
	if (syndrome == VB_SYN_NAK_INVALID)
		explain_refusal(qp, psn);
	vb_comp_fail(qp, vb_fault_nak_status(syndrome));
}

static void take_nak(struct vb_qp *qp, const struct vb_ib_pkt *pkt, vb_time now)
	VB_REQUIRES(qp->drive)
{
	if (pkt->aeth.syndrome != VB_SYN_NAK_PSN) {
		take_fatal_nak(qp, pkt->aeth.syndrome, pkt->bth.psn, now);
		return;
	}
	vb_count(qp->adapter, CNT_RCVD_SEQ_ERR, 1);
	acknowledge(qp, pkt->bth.psn, now);
	if (pkt->payload_bytes && vb_rc(qp)->selective)
		vb_req_take_sack(qp, pkt, now);
	else
		vb_req_recover(qp, now);
}

static void take_aeth(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
		      vb_time now) VB_REQUIRES(qp->drive)
{
	switch (vb_syn_type(pkt->aeth.syndrome)) {
	case SYN_ACK:
		take_ack(qp, pkt->bth.psn, now);
		break;
	case SYN_RNR:
		ib_take_rnr(qp, pkt, now);
		break;
	case SYN_NAK:
		take_nak(qp, pkt, now);
		break;
	default: /* reserved syndromes (IBA 9.7.5.2.1) */
		vb_count(qp->adapter, CNT_DROP_BAD_RESPONSE, 1);
	}
}

static enum vb_wc_status ib_place(struct vb_qp *qp, uint32_t offset,
				  const void *bytes, uint32_t len)
{
	const struct vb_send_wqe *wqe = oldest(qp);

	if (vb_sge_place(qp->pd, wqe->sge, wqe->num_sge, offset, bytes, len))
		return WC_LOC_PROT_ERR;
	return WC_SUCCESS;
}

static enum vb_wc_status ib_comp_take_read(struct vb_qp *qp,
					   const struct vb_ib_pkt *pkt,
					   const struct vb_asked *asked)
	VB_REQUIRES(qp->drive)
{
	const struct vb_send_wqe *wqe = oldest(qp);
	uint32_t nth = (pkt->bth.psn - wqe->first_psn) & VB_PSN_MASK;
	uint32_t offset = nth * qp->mtu;
	uint32_t last = vb_psn_add(asked->psn, asked->count - 1);
	bool is_last = pkt->op->place & PLACE_LAST;

	if (wqe->op == WR_ATOMIC_WRITE)
		return is_last && pkt->payload_bytes == 0 ? WC_SUCCESS
							  : WC_BAD_RESP_ERR;
	/* A peer that repeats selectively answers a request for a part of the
	 * responses with First, Middle and Last packets of their own. */
	if (wqe->op != WR_READ || (!is_last && pkt->bth.psn == last) ||
	    (is_last && pkt->bth.psn != last && !vb_rc(qp)->selective))
		return WC_BAD_RESP_ERR;
	if (pkt->payload_bytes != VB_MIN(qp->mtu, wqe->length - offset)) {
		vb_rc_explain_length(qp, pkt->payload_bytes);
		return WC_LOC_LEN_ERR;
	}
	return ib_place(qp, offset, pkt->payload, pkt->payload_bytes);
}

static enum vb_wc_status ib_comp_take_atomic(struct vb_qp *qp,
					     const struct vb_ib_pkt *pkt)
{
	unsigned op = oldest(qp)->op;

	if (op != WR_CMP_SWAP && op != WR_FETCH_ADD)
		return WC_BAD_RESP_ERR;
	return ib_place(qp, 0, &pkt->atomic_ack, sizeof(pkt->atomic_ack));
}

static bool asked_for(const struct vb_req *req, uint32_t psn)
{
	for (uint32_t i = req->asked_head; i != req->asked_tail; i++) {
		const struct vb_asked *a = &req->asked[i % VB_MAX_RD_ATOM];
		int32_t nth = vb_psn_diff(psn, a->psn);

		if (nth >= 0 && (uint32_t)nth < a->count)
			return true;
	}
	return false;
}

static bool ib_comp_keep(struct vb_qp *qp, const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	struct vb_rc *rc = vb_rc(qp);
	int32_t ahead = vb_psn_diff(pkt->bth.psn, rc->req.una);

	return rc->selective && vb_rc_sends(qp) && ahead > 0 &&
	       (uint32_t)ahead < VB_OOO_PSNS &&
	       vb_ooo_keep(qp->adapter, &rc->req.ooo, pkt);
}

static void take_answer(struct vb_qp *qp, const struct vb_ib_pkt *pkt,
			vb_time now) VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_asked *asked = vb_req_asked(req);
	uint32_t psn = pkt->bth.psn;
	enum vb_wc_status status;

	/* No request expects a response at this PSN. The response may stem from
	 * an earlier connection of this queue pair with equal numbers, so it
	 * acknowledges nothing. A response that does not match the request at
	 * its PSN is an error, but here there is no request to fail. */
	if (!asked_for(req, psn)) {
		vb_count(qp->adapter, CNT_DROP_BAD_RESPONSE, 1);
		return;
	}
	acknowledge(qp, asked->psn, now);
	if (psn != req->una) {
		/* An earlier response is lost (IBA 9.7.5.1.2). */
		if (ib_comp_keep(qp, pkt))
			vb_req_ask_gap(qp, now);
		else
			vb_req_recover(qp, now);
		vb_req_heard(qp, now);
	}
	if (psn != req->una || !vb_rc_sends(qp))
		return;
	status = pkt->op->kind == KIND_READ_RESP
			 ? ib_comp_take_read(qp, pkt, asked)
			 : ib_comp_take_atomic(qp, pkt);
	if (status != WC_SUCCESS)
		vb_comp_fail(qp, status);
	else
		advance(qp, vb_psn_add(psn, 1), now);
}

/* Handle the responses kept in req->ooo whose turn it is now. */
static void ib_comp_take_kept(struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	struct vb_ooo_pkt *p;

	while (vb_rc_sends(qp) && (p = vb_ooo_take(&req->ooo, req->una))) {
		take_answer(qp, &p->pkt, now);
		vb_ooo_free(qp->adapter, p);
	}
	if (vb_rc_sends(qp) && vb_ooo_gap(&req->ooo, req->una))
		vb_req_ask_gap(qp, now);
	else
		vb_ooo_clear(qp->adapter, &req->ooo);
}

void vb_comp_recv(struct vb_qp *qp, const struct vb_ib_pkt *pkt, vb_time now)
{
	const struct vb_req *req = &vb_rc(qp)->req;
	uint32_t psn = pkt->bth.psn;

	vb_rc_note_selective(qp, pkt);
	if (!vb_rc_sends(qp))
		return;
	if (vb_psn_diff(psn, req->una) < 0 ||
	    vb_psn_diff(psn, req->next) >= 0) {
		/* ignore a response to no request in flight (a duplicate or
		 * "ghost" response, IBA 9.7.5.1.1) */
		vb_rc(qp)->req.ghosts++;
		vb_rc(qp)->req.ghost_psn = psn;
		return;
	}
	if (pkt->op->kind == KIND_ACK)
		take_aeth(qp, pkt, now);
	else if (pkt->op->headers & HDR_AETH &&
		 vb_syn_type(pkt->aeth.syndrome) != SYN_ACK)
		vb_count(qp->adapter, CNT_DROP_BAD_RESPONSE, 1);
	else
		take_answer(qp, pkt, now);
	if (VB_UNLIKELY(req->ooo.count))
		ib_comp_take_kept(qp, now);
}

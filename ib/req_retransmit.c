/* SPDX-License-Identifier: BSD-2-Clause */
/* Retransmission. The requester sends again everything from the oldest
 * unacknowledged packet on (go-back-N), or, if the peer is a Verbena, only the
 * packets that the peer reports missing (selective repeat: ib/rc.h). */
#include "ib/req_priv.h"

void vb_req_go_back(struct vb_qp *qp, vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;

	req->send = req->una;
	req->cur = qp->sq.done;
	req->asked_at = req->asked_head;
	req->since_ack_req = 0;
	vb_rc(qp)->offers = true;
	vb_sack_reset(&req->sack, req->una);
	vb_ooo_clear(qp->adapter, &req->ooo);
	vb_req_forget_gap(req);
	vb_window_untime(&req->window);
	vb_req_rearm(qp, now);
	if (req->recovery == RECOVERY_GUESS)
		req->recovery = RECOVERY_LOSS;
	req->unsure = false;
}

static void recover(struct vb_qp *qp, enum vb_recovery why, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (!vb_rc_sends(qp) || req->rnr_at != VB_NEVER)
		return;
	if (why == RECOVERY_LOSS)
		req->unsure = false;
	if (req->recovery == RECOVERY_NONE) {
		vb_window_lost(&req->window, req->next);
		vb_req_go_back(qp, now);
		req->unsure = why == RECOVERY_GUESS;
	}
	req->recovery = VB_MAX(req->recovery, why);
}

void vb_req_recover(struct vb_qp *qp, vb_time now)
{
	recover(qp, RECOVERY_LOSS, now);
}

void vb_req_recover_guess(struct vb_qp *qp, vb_time now)
{
	recover(qp, RECOVERY_GUESS, now);
}

void vb_req_drop_guess(struct vb_qp *qp)
{
	struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_send_wqe *last = vb_sq_at(&qp->sq, req->begun - 1);
	uint32_t end = vb_psn_add(last->first_psn, last->psn_count);

	req->send = req->next;
	req->cur = req->next == end ? req->begun : req->begun - 1;
	req->asked_at = req->asked_tail;
	req->recovery = RECOVERY_NONE;
}

void vb_req_take_sack(struct vb_qp *qp, const struct vb_ib_pkt *nak,
		      vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (!vb_rc_sends(qp) || req->rnr_at != VB_NEVER)
		return;
	vb_sack_told(&req->sack, nak->bth.psn, nak->payload, nak->payload_bytes,
		     req->next);
	vb_window_lost_some(&req->window, vb_sack_missing(&req->sack),
			    req->next);
	vb_window_untime(&req->window);
	vb_req_heard(qp, now);
}

void vb_req_ask_gap(struct vb_qp *qp, vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (req->gap_due || req->gap_at == req->una)
		return;
	req->gap_due = true;
	vb_window_lost_some(&req->window, vb_ooo_gap(&req->ooo, req->una),
			    req->next);
	vb_window_untime(&req->window);
}

/* Returns the READ or atomic in flight that has a response with PSN @psn; or
 * NULL. */
static const struct vb_asked *asked_at(const struct vb_req *req, uint32_t psn)
{
	uint32_t i = req->asked_head;

	while (i != req->asked_tail) {
		const struct vb_asked *a = &req->asked[i++ % VB_MAX_RD_ATOM];

		if (((psn - a->psn) & VB_PSN_MASK) < a->count)
			return a;
	}
	return NULL;
}

/* Send the packet with PSN @psn again. For a READ the request is sent once, for
 * its first PSN. Returns the number of PSNs that the packet covers; 0: it
 * cannot be sent. */
static uint32_t repeat(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		       uint32_t psn, struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_asked *asked;

	vb_sack_sent(&req->sack, psn, req->next);
	if (!vb_req_asks(wqe)) {
		if (vb_req_put_data(qp, wqe, psn, true, out) != FAULT_NONE)
			return 0;
		vb_count(qp->adapter, CNT_RETRANSMITS, 1);
		return 1;
	}
	asked = asked_at(req, psn);
	if (!asked)
		return 0;
	if (psn == asked->psn) {
		vb_req_put_ask(qp, wqe, asked, psn, out);
		vb_count(qp->adapter, CNT_RETRANSMITS, 1);
	}
	return asked->count - ((psn - asked->psn) & VB_PSN_MASK);
}

/* Send again the packets that the peer lacks before the last one it has. True:
 * @out is full and more is to be sent. */
static bool send_repeats(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	struct vb_sack *r = &req->sack;
	uint32_t psn = r->from, cur = qp->sq.done, count = 1;

	for (; vb_psn_diff(psn, r->top) < 0; psn = vb_psn_add(psn, count)) {
		const struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, cur);

		count = 1;
		if (!vb_sack_wants(r, psn))
			continue;
		while (cur != req->begun &&
		       ((psn - wqe->first_psn) & VB_PSN_MASK) >= wqe->psn_count)
			wqe = vb_sq_at(&qp->sq, ++cur);
		if (cur == req->begun)
			break;
		if (!vb_txq_has_room(out))
			return true;
		count = repeat(qp, wqe, psn, out);
		if (count == 0) { /* send_next() will report this error */
			vb_req_go_back(qp, now);
			break;
		}
	}
	r->due = false;
	return false;
}

/* Ask again for the READ responses missing before the first one in req->ooo. */
static void send_gap(struct vb_qp *qp, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_asked *asked = vb_req_asked(req);
	const struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, qp->sq.done);
	uint32_t gap = vb_ooo_gap(&req->ooo, req->una), done;

	req->gap_due = false;
	if (!asked || !gap || !vb_req_asks(wqe))
		return;
	done = (req->una - asked->psn) & VB_PSN_MASK;
	if (done >= asked->count)
		return;
	req->gap_at = req->una;
	vb_count(qp->adapter, CNT_RETRANSMITS, 1);
	if (wqe->op == WR_READ)
		vb_req_put_read(qp, wqe, req->una,
				VB_MIN(gap, asked->count - done), out);
	else
		vb_req_put_ask(qp, wqe, asked, req->una, out);
}

bool vb_req_resend_missing(struct vb_qp *qp, vb_time now, struct vb_txq *out)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (!vb_rc_sends(qp) || req->rnr_at != VB_NEVER)
		return false;
	if (!vb_txq_has_room(out))
		return true;
	if (req->gap_due)
		send_gap(qp, out);
	return req->sack.due && send_repeats(qp, now, out);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester's handling of answers to the requests that it put on the
 * lane. */
#include "core/fault.h"
#include "core/sge.h"
#include "near/req_priv.h"

/* The oldest request on the lane is complete. */
static void retire(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);
	const struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, qp->sq.done);

	nq->acked++;
	nq->atomics -= (vb_near_rule(wqe)->traits & ATOMIC) != 0;
	vb_qp_send_done(qp, WC_SUCCESS);
}

static void retire_some(struct vb_qp *qp, uint32_t count) VB_REQUIRES(qp->drive)
{
	while (count-- && vb_near_sends(qp))
		retire(qp);
}

static void near_take_value(struct vb_qp *qp, uint64_t value)
	VB_REQUIRES(qp->drive)
{
	const struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, qp->sq.done);

	if (!(vb_near_rule(wqe)->traits & FETCHES))
		vb_near_fail_oldest(qp, WC_BAD_RESP_ERR);
	else if (vb_sge_place(qp->pd, wqe->sge, wqe->num_sge, 0, &value,
			      sizeof(value)))
		vb_near_fail_oldest(qp, WC_LOC_PROT_ERR);
	else
		retire(qp);
}

static void near_take_rnr(struct vb_qp *qp, uint8_t syndrome, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_near_qp *nq = vb_nq(qp);

	vb_count(qp->adapter, CNT_RCVD_RNR_ERR, 1);
	/* An RNR retry count of 7 means without limit (IBA 9.7.5.2.8). On iWARP
	 * there is no retry: a stream ends when no receive is posted
	 * (iwarp/term.c). */
	if (qp->adapter->rnic ||
	    (qp->attr.rnr_retry < 7 && nq->rnr_retries >= qp->attr.rnr_retry)) {
		vb_count(qp->adapter, CNT_RNR_RETRY_EXCEEDED, 1);
		vb_near_fail_oldest(qp, WC_RNR_RETRY_EXC_ERR);
		return;
	}
	nq->rnr_retries += qp->attr.rnr_retry < 7;
	vb_near_go_back(qp);
	nq->rnr_at = now + vb_rnr_ns(syndrome & 0x1f);
	/* The peer's queue pair exists and its program has posted no receive:
	 * this does not count as silence. */
	nq->silences = 0;
	nq->silent_for = 0;
}

static void take_silence(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive)
{
	vb_nq(qp)->fits = false;
	vb_near_go_back(qp);
	vb_near_be_silent(qp, now);
}

/* Act on an answer about the oldest request that is not complete. */
static void take_verdict(struct vb_qp *qp, const struct vb_answer_note *a,
			 vb_time now) VB_REQUIRES(qp->drive)
{
	switch (a->kind) {
	case ANSWER_DONE:
		retire(qp);
		break;
	case ANSWER_PART:
		retire(qp);
		vb_near_go_back(qp);
		break;
	case ANSWER_VALUE:
		near_take_value(qp, a->value);
		break;
	case ANSWER_RNR:
		near_take_rnr(qp, a->syndrome, now);
		break;
	case ANSWER_NAK:
		vb_near_fail_oldest(qp, vb_fault_nak_status(a->syndrome));
		break;
	case ANSWER_SOURCE:
		vb_near_fail_oldest(qp, WC_LOC_PROT_ERR);
		break;
	case ANSWER_DENIED:
		vb_near_go_back(qp);
		vb_nq(qp)->denied = true;
		break;
	default:
		take_silence(qp, now);
		break;
	}
}

void vb_near_answered(struct vb_near *n, struct vb_qp *qp,
		      const struct vb_answer_note *a, vb_time now)
{
	struct vb_near_qp *nq = vb_nq(qp);
	uint32_t nth = a->seq - nq->acked;

	if (qp->way != WAY_NEAR || a->life != nq->life || !vb_near_sends(qp) ||
	    a->kind == ANSWER_PASSED || nth >= vb_near_outstanding(qp))
		return;
	/* Only an answer of success completes earlier requests as well. Any
	 * other answer that is not about the oldest request is about a request
	 * that has been sent again since. */
	if (nth && a->kind != ANSWER_DONE && a->kind != ANSWER_PART)
		return;
	/* The program sees its request counted once it sees it complete. */
	vb_near_count(qp);
	retire_some(qp, nth);
	if (nth)
		vb_near_progress(qp);
	if (!vb_near_sends(qp))
		return;
	take_verdict(qp, a, now);
	if (a->kind == ANSWER_DONE || a->kind == ANSWER_VALUE ||
	    a->kind == ANSWER_PART)
		vb_near_progress(qp);
	vb_near_drain(qp);
}

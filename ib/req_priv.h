/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the requester: ib/req*.c. Callers hold qp->drive. */
#ifndef IB_REQ_PRIV_H
#define IB_REQ_PRIV_H

#include "ib/rc.h"

/* Is @index the send queue index of the WQE that cannot be sent? */
static inline bool vb_req_stopped_at(const struct vb_req *req, uint32_t index)
{
	return req->stop_status != WC_SUCCESS && req->stop == index;
}

/* Allow the requester to ask for missing READ responses once more. */
static inline void vb_req_forget_gap(struct vb_req *req)
{
	req->gap_due = false;
	req->gap_at = vb_psn_add(req->una, VB_PSN_MASK);
}

/* Add to @out the READ or atomic request @asked of @wqe, for its responses from
 * @psn on. */
static inline void vb_req_put_ask(struct vb_qp *qp,
				  const struct vb_send_wqe *wqe,
				  const struct vb_asked *asked, uint32_t psn,
				  struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	uint32_t done = (psn - asked->psn) & VB_PSN_MASK;

	if (wqe->op == WR_READ)
		vb_req_put_read(qp, wqe, psn, asked->count - done, out);
	else
		vb_req_put_atomic(qp, wqe, out);
}

/* Returns the number of packets that were sent and are not acknowledged. */
static inline uint32_t vb_req_in_flight(const struct vb_req *req)
{
	return (req->send - req->una) & VB_PSN_MASK;
}

/* Returns the number of PSNs from una on that the requester may use. Packets
 * that the peer has out of order no longer load the path, so they do not
 * count. */
static inline uint32_t vb_req_reach(const struct vb_req *req)
{
	return VB_MIN(req->window.pkts + req->sack.held, VB_OOO_PSNS);
}

/* Returns the number of further packets that may be sent now. */
static inline uint32_t vb_req_room(const struct vb_req *req)
{
	uint32_t most = vb_req_reach(req), now = vb_req_in_flight(req);

	return most > now ? most - now : 0;
}

/* While this many packets are in flight, small messages are coalesced
 * (ib/req.c). */
#define VB_BURST_PKTS 8

/* Packets were sent: record the time, and start the timers if none runs.
 * Inline, like the functions above, because each packet calls it. */
static inline void vb_req_sent(struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (vb_req_in_flight(req) >= VB_BURST_PKTS) {
		req->in_burst = true;
		req->burst_at = now;
	}
	if (req->ack_at == VB_NEVER && req->probe_at == VB_NEVER)
		vb_req_rearm(qp, now);
}

/*
 * Functions of ib/req_retransmit.c. Send again the packets that the peer's
 * selective NAK reports missing (sack.due), and ask again for missing READ
 * responses (gap_due). True: @out is full and more is to be sent.
 */
bool vb_req_resend_missing(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive);

/* Go back like vb_req_recover(), but because the packet at una is only perhaps
 * lost. */
void vb_req_recover_guess(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);

/* End a retransmission that was only a guess: the next packet to send is a new
 * one again. */
void vb_req_drop_guess(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* Functions of ib/req_timer.c. The queue pair has moved to its alternate path:
 * retries are counted anew, and what is not acknowledged is sent again there. */
void vb_req_migrate(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* Act on the timers that have expired at @now. */
void vb_req_run_timers(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive);

#endif

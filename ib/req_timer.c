/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester's timers: the local ACK timeout (IBA 9.7.6.1.3), the wait
 * after an RNR NAK, and probes, which find out about a loss much earlier.
 */
#include <stdio.h>

#include "core/why_qp.h"
#include "ib/req_priv.h"

void vb_req_probe_acked(struct vb_qp *qp, vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (!vb_rc_sends(qp) || req->una == req->next)
		return;
	req->probe_acked = true;
	req->probe_at = now + vb_window_grace(&req->window);
}

void vb_req_heard(struct vb_qp *qp, vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (req->probe_at != VB_NEVER && !req->probe_acked)
		req->probe_at =
			now + vb_window_patience(&req->window, req->probes);
}

/* Timeouts are postponed for at most this long while the link forwards none of
 * the frames that were sent. */
#define STUCK_MOST (10 * VB_SEC)

/*
 * A timer has expired. If the link is one whose frames another process
 * forwards, that process may not have forwarded the frames yet that this
 * program has sent: then the peer cannot have received them, this function
 * starts the timers again, and returns true. (An emulated fabric's process may
 * wait for its processor for longer than all retries last. With an adapter, the
 * timer starts when the packet leaves.) A process that is stopped postpones
 * timeouts for STUCK_MOST at most.
 */
static bool postpone(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_link *link = vb_qp_port(qp)->link;

	if (!link || !link->ops->sent)
		return false;
	if (req->stuck_at == VB_NEVER || req->stuck_una != req->una) {
		req->stuck_at = now;
		req->stuck_una = req->una;
		req->stuck_mark = link->ops->sent(link);
	}
	if (link->ops->has_carried(link, req->stuck_mark) ||
	    now - req->stuck_at >= STUCK_MOST)
		return false;
	vb_req_rearm(qp, now);
	return true;
}

void vb_req_migrate(struct vb_qp *qp, vb_time now)
{
	struct vb_req *req = &vb_rc(qp)->req;

	req->migrations = qp->migrations;
	req->retries = req->probes = 0;
	if (!vb_rc_sends(qp) || req->rnr_at != VB_NEVER ||
	    req->una == req->next)
		return;
	vb_window_collapse(&req->window, req->next);
	vb_req_go_back(qp, now);
}

/* If the peer has not answered for this time, the log tells the user so, while
 * the requester still tries. */
#define TOLD_AFTER (4 * VB_SEC)

/* A timer has expired, because the peer has not acknowledged the packet at una
 * for @waited: if this is the first timer since una changed, note since when
 * the peer is silent. */
static void note_silence(struct vb_req *req, vb_time now, vb_time waited)
{
	if (req->retries || req->probes)
		return;
	req->silent_at = now - VB_MIN(now, waited);
	req->tried = 0;
}

/* bytes of the sentence about a peer that is silent */
#define SILENCE_TEXT 280

/* Write to @text what this side has sent and what the peer has sent back. True:
 * the peer does answer, but its answers have other PSNs. */
static bool silence_text(struct vb_qp *qp, vb_time now, char *text, size_t room)
	VB_REQUIRES(qp->drive)
{
	const struct vb_req *req = &vb_rc(qp)->req;
	uint32_t first = qp->attr.sq_psn & VB_PSN_MASK;
	char peer[VB_WHY_PEER];

	vb_why_peer(qp, peer);
	if (req->ghosts && req->una == first) {
		snprintf(text, room,
			 "%s answers with PSN 0x%x, but this end begins with "
			 "sq_psn 0x%x",
			 peer, req->ghost_psn, first);
		return true;
	}
	snprintf(text, room,
		 "sent %u packets to %s in %.1f s, heard nothing%s%s",
		 req->tried + req->probes, peer,
		 (double)(now - req->silent_at) / (double)VB_SEC,
		 req->una == first ? "" : " since",
		 vb_gid_is_loopback(&qp->route.dgid)
			 ? " (this address is of this host; a peer on another "
			   "host has to use another device than roce_lo)"
			 : "");
	return false;
}

static void tell_silence(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive)
{
	char text[SILENCE_TEXT];
	bool psn = silence_text(qp, now, text, sizeof(text));

	vb_qp_why(qp, psn ? WHY_PSN : vb_why_silence(qp), "%s", text);
}

/* If the peer has been silent for TOLD_AFTER, tell the user, once for each
 * connection; the requester still tries. */
static void tell_early(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	uint32_t qpn = vb_rc_qpn(qp);
	char text[SILENCE_TEXT];
	bool psn;

	if (now - req->silent_at < TOLD_AFTER || req->silence_told)
		return;
	req->silence_told = true;
	psn = silence_text(qp, now, text, sizeof(text));
	vb_why(psn ? WHY_PSN : vb_why_silence(qp), qpn, "qp 0x%x: %s", qpn,
	       text);
}

/* The local ACK timeout has expired: go back, or give up after too many retries
 * (IBA 9.7.6.1.3). */
static void time_out(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;

	vb_count(qp->adapter, CNT_TIMEOUTS, 1);
	note_silence(req, now, vb_ack_timeout_ns(qp->attr.timeout));
	req->tried += vb_req_in_flight(req);
	if (now - req->stuck_at < STUCK_MOST)
		/* Begin a new postponement for the frames of the next try. */
		req->stuck_at = VB_NEVER;
	if (req->retries >= qp->attr.retry_cnt && vb_mig_fail_over(qp)) {
		vb_req_migrate(qp, now);
		return;
	}
	if (req->retries >= qp->attr.retry_cnt) {
		vb_count(qp->adapter, CNT_RETRY_EXCEEDED, 1);
		tell_silence(qp, now);
		vb_comp_fail(qp, WC_RETRY_EXC_ERR);
		return;
	}
	tell_early(qp, now);
	req->retries++;
	vb_window_collapse(&req->window, req->next);
	vb_req_go_back(qp, now);
	/* On a busy host the peer, or this program, may only be late, and the
	 * peer may have the packets. */
	req->unsure = req->retries < qp->attr.retry_cnt;
}

/* The peer has been silent for longer than is normal: the last packets, or
 * their acknowledgement, are lost. Send the oldest packet again. It is either
 * the missing one or a duplicate, and in both cases the responder acknowledges
 * what it has. */
static void probe(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_send_wqe *wqe = vb_sq_at(&qp->sq, qp->sq.done);

	note_silence(req, now, vb_window_patience(&req->window, 0));
	tell_early(qp, now);
	req->probes += req->probes < UINT8_MAX;
	req->probe_at = now + vb_window_patience(&req->window, req->probes);
	if (req->send == req->una || vb_req_stopped_at(req, qp->sq.done))
		/* send_next() will send this packet anyway, or it cannot be
		 * sent. */
		return;
	vb_window_untime(&req->window);
	vb_sack_restart(&req->sack);
	vb_req_forget_gap(req);
	vb_rc(qp)->offers = true;
	if (vb_req_asks(wqe))
		vb_req_put_ask(qp, wqe, vb_req_asked(req), req->una, out);
	else if (vb_req_put_data(qp, wqe, req->una, true, out) != FAULT_NONE)
		/* send_next() reports this error if it gets to this packet. */
		return;
	vb_count(qp->adapter, CNT_RETRANSMITS, 1);
}

void vb_req_run_timers(struct vb_qp *qp, vb_time now, struct vb_txq *out)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (now >= req->rnr_at)
		req->rnr_at = VB_NEVER;
	if (now < VB_MIN(req->ack_at, req->probe_at))
		return;
	if (postpone(qp, now))
		return;
	if (now >= req->ack_at)
		time_out(qp, now);
	else if (req->probe_acked)
		vb_req_recover_guess(qp, now);
	else if (vb_txq_has_room(out))
		probe(qp, now, out);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester: it sends work requests for the first time, in the order of the
 * send queue and as far as the congestion window allows; and vb_rc_send(),
 * which sends answers before requests.
 */
#include "base/guard.h"
#include "core/mr.h"
#include "core/mw.h"
#include "core/sge.h"
#include "ib/req_priv.h"

/* Coalescing. While VB_BURST_PKTS packets are in flight, small messages wait
 * until they make a batch (is_batch()); they still do so for a time of
 * BURST_LASTS after fewer packets are in flight. */
#define BURST_LASTS (100 * VB_USEC)
#define WAIT_LEAST  64u
#define WAIT_MOST   128u
/* bytes; it takes many shorter messages to make a batch */
#define WAIT_SHORT  2048u
#define WAIT_LENGTH (16u << 10) /* bytes; a longer message alone is a batch */
#define WAIT_BYTES  (128u << 10)
_Static_assert(WAIT_LEAST *VB_DEFER_BYTES <= WAIT_LENGTH,
	       "a deferred doorbell delays less than a batch");

#define ATOMIC_BYTES 8

/* After this many prompt replies in a row, the ACK waits for the program's next
 * reply. A reply that does not come only halves the count, since the program
 * may merely have lost its processor. */
#define REPLIES	   8
#define AETH_BYTES 4

static struct vb_send_wqe *wqe_at(const struct vb_qp *qp, uint32_t index)
{
	return vb_sq_at(&qp->sq, index);
}

static void ib_stop(struct vb_req *req, enum vb_wc_status status)
{
	req->stop = req->cur;
	req->stop_status = status;
}

/* Read the word of an ATOMIC WRITE once: a retransmission must have the
 * original value even if the program has changed its memory since. */
static enum vb_wc_status load_word(const struct vb_qp *qp,
				   struct vb_send_wqe *wqe)
{
	if (wqe->length != ATOMIC_BYTES)
		return WC_LOC_LEN_ERR;
	if (wqe->flags & SEND_INLINE) /* was copied when it was posted */
		return WC_SUCCESS;
	return vb_sge_gather(qp->pd, wqe->sge, wqe->num_sge, 0, &wqe->swap,
			     ATOMIC_BYTES)
		       ? WC_LOC_PROT_ERR
		       : WC_SUCCESS;
}

/* Check the next WQE and assign its PSNs. False: the queue has none; or the WQE
 * must wait; or it cannot be sent, and the requester stops there. */
static bool ib_begin_next(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	enum vb_wc_status status;
	struct vb_send_wqe *wqe;

	if (req->begun == vb_sq_end(&qp->sq) || vb_rc_state(qp) != QPS_RTS)
		return false;
	wqe = wqe_at(qp, req->begun);
	/* A fence waits for every READ and atomic before it (IBA 10.8.3.3). */
	if (wqe->flags & SEND_FENCE && vb_req_asked(req))
		return false;
	status = vb_req_judge(qp, wqe);
	/* A bind or invalidate takes effect before later WQEs begin, and is not
	 * undone when an earlier one fails (IBA 10.8.3.3). */
	if (status == WC_SUCCESS && vb_req_is_local(wqe)) {
		enum vb_mw_end end = vb_mw_run(qp, wqe);

		if (end == MW_BUSY)
			return false;
		if (end == MW_REFUSED)
			status = WC_MW_BIND_ERR;
	}
	if (status == WC_SUCCESS && wqe->op == WR_ATOMIC_WRITE)
		status = load_word(qp, wqe);
	if (status != WC_SUCCESS) {
		ib_stop(req, status);
		return false;
	}
	wqe->first_psn = req->next;
	wqe->psn_count = vb_req_psns(qp, wqe);
	req->begun++;
	return true;
}

/* Advance the cursor by @count PSNs of @wqe, which this side has sent. */
static void ib_step(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		    uint32_t count, vb_time now) VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	uint32_t end = vb_psn_add(wqe->first_psn, wqe->psn_count);

	if (req->send == req->next)
		req->next = vb_psn_add(req->next, count);
	else
		vb_count(qp->adapter, CNT_RETRANSMITS, 1);
	req->send = vb_psn_add(req->send, count);
	if (req->send == end)
		req->cur++;
	vb_req_sent(qp, now);
}

/* Add the next request of a READ or atomic to req->asked. NULL: it must
 * wait. */
static const struct vb_asked *ask_more(struct vb_qp *qp,
				       const struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	struct vb_window *w = &req->window;
	uint32_t limit = VB_MIN(qp->attr.max_rd_atomic, VB_MAX_RD_ATOM);
	uint32_t left = vb_psn_add(wqe->first_psn, wqe->psn_count) - req->next;
	uint32_t count =
		VB_MIN(left & VB_PSN_MASK, vb_window_chunk(w, qp->mtu));
	struct vb_asked *asked;

	if (req->asked_tail - req->asked_head >= limit)
		return NULL;
	/* Responses load the path as requests do, so they count against the
	 * window. A READ waits for room, and does not ask for one packet at a
	 * time. */
	if (vb_req_in_flight(req) && vb_req_in_flight(req) + count > w->pkts) {
		w->limited = true;
		return NULL;
	}
	asked = &req->asked[req->asked_tail++ % VB_MAX_RD_ATOM];
	*asked = (struct vb_asked){ req->next, count };
	return asked;
}

static bool send_ask(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		     vb_time now, struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_asked *asked;
	uint32_t done;

	if (req->send == req->next) {
		asked = ask_more(qp, wqe);
		if (!asked)
			return false;
		vb_window_time(&req->window, req->send, now);
	} else {
		asked = &req->asked[req->asked_at % VB_MAX_RD_ATOM];
	}
	req->asked_at++;
	vb_req_put_ask(qp, wqe, asked, req->send, out);
	req->since_ack_req = 0;
	done = (req->send - asked->psn) & VB_PSN_MASK;
	ib_step(qp, wqe, asked->count - done, now);
	return true;
}

static bool wants_ack(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive)
{
	const struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_window *w = &req->window;
	uint32_t after = vb_psn_add(req->send, 1);

	return after == vb_psn_add(wqe->first_psn, wqe->psn_count) ||
	       req->since_ack_req + 1 >= vb_window_ack_every(w) ||
	       vb_req_in_flight(req) + 1 >= vb_req_reach(req);
}

/* The memory of the packet at the cursor cannot be read. If the requester
 * repeats the packet because the peer is silent, the peer most often has it,
 * and the program may have deregistered the memory since: then the cursor
 * advances. The request fails only when the peer says that it lacks the packet,
 * or after the last retry. True: the cursor has advanced. */
static bool data_is_gone(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (!req->unsure || req->send == req->next) {
		ib_stop(req, WC_LOC_PROT_ERR);
		return false;
	}
	vb_req_drop_guess(qp);
	return true;
}

static bool send_data(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		      vb_time now, struct vb_txq *out) VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	bool ack_req = wants_ack(qp, wqe);

	if (vb_req_put_data(qp, wqe, req->send, ack_req, out) != FAULT_NONE)
		return data_is_gone(qp);
	if (ack_req && req->send == req->next)
		vb_window_time(&req->window, req->send, now);
	req->since_ack_req = ack_req ? 0 : req->since_ack_req + 1;
	ib_step(qp, wqe, 1, now);
	return true;
}

/* Send the packet at the cursor. False: the packet must not be sent now, or
 * there is none. */
static bool send_next(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_send_wqe *wqe;

	if (vb_req_stopped_at(req, req->cur))
		return false;
	if (req->cur == req->begun && !ib_begin_next(qp))
		return false;
	if (vb_req_is_local(wqe_at(qp, req->cur))) {
		req->cur++;
		vb_comp_retire(qp);
		return true;
	}
	if (vb_req_in_flight(req) >= vb_req_reach(req)) {
		req->window.limited = true;
		return false;
	}
	wqe = wqe_at(qp, req->cur);
	if (vb_req_asks(wqe))
		return send_ask(qp, wqe, now, out);
	return send_data(qp, wqe, now, out);
}

void vb_req_reset(struct vb_qp *qp)
{
	struct vb_req *req = &vb_rc(qp)->req;
	uint32_t psn = qp->attr.sq_psn & VB_PSN_MASK;
	const struct vb_link *link = vb_qp_port(qp)->link;

	vb_ooo_clear(qp->adapter, &req->ooo);
	*req = (struct vb_req){
		.una = psn,
		.send = psn,
		.next = psn,
		.cur = qp->sq.done,
		.begun = qp->sq.done,
		.ack_at = VB_NEVER,
		.probe_at = VB_NEVER,
		.rnr_at = VB_NEVER,
		.stuck_at = VB_NEVER,
		.migrations = qp->migrations,
	};
	vb_req_forget_gap(req);
	vb_sack_reset(&req->sack, psn);
	vb_window_init(&req->window, qp->mtu, link ? link->ops->in_flight : 0);
}

void vb_req_drain(struct vb_qp *qp)
{
	if (vb_rc_state(qp) == QPS_SQD && qp->way != WAY_NEAR &&
	    qp->sq.done == vb_rc(qp)->req.begun)
		vb_qp_drained(qp);
}

/*
 * Do the messages from req->cur up to @end make a batch? A signaled message
 * ends a batch, because the program will wait for its completion: if the
 * message waited for later ones, its ACK would arrive when no packet is in
 * flight any more. So a batch is no larger than what is in flight; only a batch
 * of short messages must be larger, to be worth a system call.
 */
static bool is_batch(const struct vb_qp *qp, uint32_t end)
	VB_REQUIRES(qp->drive)
{
	const struct vb_req *req = &vb_rc(qp)->req;
	const struct vb_send_wqe *last = wqe_at(qp, end - 1);
	uint32_t count = end - req->cur, bytes = count * last->length;

	if (last->length >= WAIT_LENGTH || bytes >= WAIT_BYTES)
		return true;
	if (last->length >= WAIT_SHORT && bytes >= WAIT_LENGTH &&
	    count * vb_req_psns(qp, last) >= vb_req_in_flight(req))
		return true;
	return count >= WAIT_MOST ||
	       (count >= WAIT_LEAST && vb_sq_signals(&qp->sq, last));
}

/*
 * Should small messages wait for others? A packet with a system call of its own
 * costs several times as much as one in a train, so the small messages of a
 * program with many packets in flight wait until they make a batch or no packet
 * is in flight (as RFC 896 does for TCP). A program with few packets in flight
 * waits for each completion, so its messages are not delayed. Messages also
 * leave at once when the round trip is long, or when they follow a long message
 * that the window has cut.
 */
static bool ib_gathers(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	const struct vb_req *req = &vb_rc(qp)->req;
	uint32_t end = vb_sq_end(&qp->sq);

	if (!req->in_burst || !vb_req_in_flight(req) ||
	    req->send != req->next || req->cur != req->begun ||
	    req->rnr_at != VB_NEVER || req->sack.due || req->gap_due ||
	    req->probe_acked || !vb_window_is_near(&req->window))
		return false;
	return end == req->cur || !is_batch(qp, end);
}

/* Returns the number of the first message of at most VB_DEFER_BYTES bytes that
 * can end a batch: such a batch has at least WAIT_LEAST messages. For earlier
 * messages a thread that posts need not check whether it must send. */
uint32_t vb_req_waits_until(const struct vb_qp *qp)
{
	return vb_rc(qp)->req.cur + WAIT_LEAST - 1;
}

static bool is_idle(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	const struct vb_req *req = &vb_rc(qp)->req;

	return req->cur == vb_sq_end(&qp->sq) && req->send == req->next &&
	       req->rnr_at == VB_NEVER && !req->probe_acked && !req->sack.due &&
	       !req->gap_due && req->stop_status == WC_SUCCESS;
}

/*
 * Runs of small messages: SENDs and WRITEs of one packet whose data is inline
 * or in one piece. The checks that send_next() makes for each message are made
 * here once for the run. An unusual WQE ends the run and is left to
 * send_next(), which also handles every error.
 */

struct run {
	struct vb_qp *qp;
	struct vb_txq *out;
	struct vb_bth bth;
	/* access to the memory of the run's last message */
	struct vb_mr_use use;
};

static bool is_plain(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	if ((wqe->op != WR_WRITE && wqe->op != WR_SEND) ||
	    wqe->flags & SEND_FENCE || wqe->length == 0 ||
	    wqe->length > qp->mtu)
		return false;
	return wqe->flags & SEND_INLINE ||
	       (wqe->num_sge == 1 && wqe->sge[0].length == wqe->length);
}

static bool load_payload(struct run *r, const struct vb_send_wqe *wqe,
			 uint8_t *to)
{
	const struct vb_sge *from = wqe->sge;

	if (wqe->flags & SEND_INLINE) {
		memcpy(to, wqe->inline_data, wqe->length);
		return true;
	}
	return vb_mr_begin_next(r->qp->adapter, r->qp->pd, 0, from->lkey,
				from->addr, wqe->length, 0, &r->use) &&
	       vb_guard_copy_in(to, r->use.at, wqe->length) == 0;
}

/* A message of one packet: its packet is the last one, and so asks for an
 * ACK. */
static size_t put_headers(struct run *r, const struct vb_send_wqe *wqe,
			  uint8_t *bytes)
{
	const struct vb_reth reth = { wqe->remote_addr, wqe->rkey,
				      wqe->length };
	bool writes = wqe->op == WR_WRITE;

	r->bth.opcode =
		CLASS_RC << 5 | (writes ? CODE_WRITE_ONLY : CODE_SEND_ONLY);
	r->bth.solicited = !writes && wqe->flags & SEND_SOLICITED;
	r->bth.pad = -wqe->length & 3;
	r->bth.psn = wqe->first_psn;
	return vb_ib_put_fast(bytes, &r->bth, writes ? &reth : NULL);
}

static bool send_one(struct run *r, struct vb_req *req)
{
	struct vb_send_wqe *wqe = vb_sq_at(&r->qp->sq, req->begun);
	uint8_t *bytes = vb_txq_begin(r->out);
	size_t hdr;

	if (!is_plain(r->qp, wqe))
		return false;
	wqe->first_psn = req->next;
	wqe->psn_count = 1;
	hdr = put_headers(r, wqe, bytes);
	if (!load_payload(r, wqe, bytes + hdr))
		return false;
	/* Zero the pad bytes; the ICRC overwrites the rest of this word. */
	vb_store_le32(bytes + hdr + wqe->length, 0);
	vb_txq_commit(r->out, (uint32_t)hdr + wqe->length + r->bth.pad,
		      &r->qp->route);
	req->next = req->send = vb_psn_add(req->next, 1);
	req->cur = ++req->begun;
	return true;
}

/* Send a run of small messages from the cursor on. False: the next WQE does not
 * qualify, or nothing may be sent now. */
static bool send_run(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	uint32_t end = vb_sq_end(&qp->sq), first = req->next;
	uint32_t room = vb_req_room(req);
	struct run run = { .qp = qp, .out = out };

	if (qp->type != QPT_RC || vb_rc_state(qp) != QPS_RTS ||
	    req->cur != req->begun || req->stop_status != WC_SUCCESS)
		return false;
	run.bth = vb_rc_bth(qp, 0, 0);
	run.bth.ack_req = true;
	for (; req->begun != end && room && vb_txq_has_room(out); room--)
		if (!send_one(&run, req))
			break;
	vb_mr_end(&run.use);
	if (req->next == first)
		return false;
	req->since_ack_req = 0;
	vb_window_time(&req->window, first, now);
	vb_req_sent(qp, now);
	return true;
}

/* Act on expired timers, and send the requests that may go out now. True: @out
 * is full and more is to be sent. */
static bool send_requests(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;

	if (now - req->burst_at > VB_MAX(BURST_LASTS, req->window.best_rtt))
		req->in_burst = false;
	if (VB_UNLIKELY(req->migrations != qp->migrations))
		vb_req_migrate(qp, now);
	if (VB_UNLIKELY(now >= vb_req_deadline(qp)))
		vb_req_run_timers(qp, now, out);
	if (VB_UNLIKELY(req->sack.due || req->gap_due) &&
	    vb_req_resend_missing(qp, now, out))
		return true;
	while (vb_rc_sends(qp) && req->rnr_at == VB_NEVER) {
		if (!vb_txq_has_room(out))
			return true;
		if (!send_run(qp, now, out) && !send_next(qp, now, out))
			break;
	}
	if (vb_rc_sends(qp) && vb_req_stopped_at(req, qp->sq.done))
		vb_comp_fail(qp, req->stop_status);
	return false;
}

/*
 * One turn of a connection's sender: answers, requests, and an ACK that may
 * wait.
 */

/* In ERR, send only the NAK for a fault in the peer's request. True: @out is
 * full. */
static bool send_last_words(struct vb_qp *qp, struct vb_txq *out)
	VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;

	if (resp->dying && vb_answer_send(qp, out))
		return true;
	resp->dying &= resp->xrc_read.state == XRC_READ_ASKED;
	return false;
}

static uint32_t unsent(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return vb_sq_end(&qp->sq) - vb_rc(qp)->req.cur;
}

static void note_reply(struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;

	if (!resp->shown || !unsent(qp))
		return;
	resp->shown = false;
	resp->replies += resp->replies < REPLIES;
}

static bool answers(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return vb_rc_state(qp) == QPS_RTR || vb_rc_sends(qp);
}

/* May the ACK follow the program's reply? A reply of one packet and an ACK fit
 * in one train (UDP_SEGMENT), whose last packet may be shorter, and so cost one
 * system call. The receiver of a train handles its ACK first
 * (engine/dispatch.c). */
static bool ack_goes_last(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	uint32_t len;

	if (unsent(qp) != 1 || qp->way != WAY_PACKETS || !vb_answer_is_ack(qp))
		return false;
	len = vb_sq_at(&qp->sq, vb_rc(qp)->req.cur)->length;
	return len >= AETH_BYTES && len <= qp->mtu;
}

bool vb_rc_send(struct vb_qp *qp, vb_time now, struct vb_txq *out)
{
	bool more = false, last = answers(qp) && ack_goes_last(qp);
	unsigned before = out->count;

	note_reply(qp);
	if (vb_answer_waits(qp) && answers(qp) && !last)
		more = vb_answer_send(qp, out);
	if (!more && vb_rc_sends(qp) && qp->way == WAY_PACKETS)
		more = send_requests(qp, now, out);
	if (last) /* send the ACK even if the reply could not be sent */
		more |= vb_answer_send(qp, out);
	if (vb_rc_state(qp) == QPS_ERR) {
		vb_qp_flush(qp);
		more = send_last_words(qp, out);
	}
	if (out->count != before)
		vb_count(qp->adapter, CNT_SENT_PKTS, out->count - before);
	return more;
}

bool vb_rc_can_wait(const struct vb_qp *qp)
{
	return vb_rc_state(qp) == QPS_RTS && !vb_answer_is_due(qp) &&
	       ib_gathers(qp);
}

/* The result is only a hint, since another thread may poll the completions
 * meanwhile. */
static bool has_completions(const struct vb_qp *qp)
{
	return atomic_load_explicit(&qp->recv_cq->count,
				    memory_order_relaxed) ||
	       atomic_load_explicit(&qp->send_cq->count, memory_order_relaxed);
}

/* A program that polls without getting a completion only polls again, so an ACK
 * waits for a reply only if completions are there. The ACK of a repeated request
 * does not wait: the program replies to a message once, and the peer would
 * repeat the request again and again. */
enum vb_delayed_ack vb_rc_delayed_ack(struct vb_qp *qp, bool polls)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;

	if (resp->repeated || (polls && !has_completions(qp)) ||
	    vb_rc_state(qp) != QPS_RTS || !vb_answer_is_ack(qp) || !is_idle(qp))
		return ACK_NONE;
	resp->shown = true;
	return resp->replies < REPLIES ? ACK_NOW : ACK_DELAYED;
}

bool vb_rc_unreplied(struct vb_qp *qp)
{
	struct vb_resp *resp = &vb_rc(qp)->resp;

	if (!resp->shown)
		return false;
	resp->shown = false;
	resp->replies /= 2;
	return vb_answer_is_due(qp);
}

bool vb_rc_has_unsent(const struct vb_qp *qp)
{
	return unsent(qp) != 0;
}

uint32_t vb_rc_widen(struct vb_qp *qp, uint32_t least)
{
	struct vb_window *w = &vb_rc(qp)->req.window;
	uint32_t before = w->pkts;

	w->pkts = VB_MAX(before, least);
	return before;
}

void vb_rc_narrow(struct vb_qp *qp, uint32_t before)
{
	struct vb_window *w = &vb_rc(qp)->req.window;

	w->pkts = VB_MIN(w->pkts, before);
}

vb_time vb_rc_deadline(const struct vb_qp *qp)
{
	return vb_rc_sends(qp) ? vb_req_deadline(qp) : VB_NEVER;
}

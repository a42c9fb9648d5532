/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reliable connections (IBA 9.7): the state of one queue pair, and the
 * functions that the files of this directory share. The caller of every
 * function holds qp->drive.
 *
 * Words: `una` is the oldest unacknowledged PSN. A READ or atomic "asks": the
 * responder answers it with response packets. A "gap" is one or more packets
 * that are missing before one that has arrived.
 */
#ifndef IB_RC_H
#define IB_RC_H

#include "core/transport.h"
#include "core/fault.h"
#include "core/migrate.h"
#include "core/mr.h"
#include "ib/ib.h"
#include "ib/replay.h"
#include "ib/req_packet.h"
#include "ib/sack.h"
#include "ib/window.h"

/* A READ or atomic request in flight: its first PSN and its number of
 * responses. The requester splits a long READ into several requests, and
 * repeats a request with its original PSNs. */
struct vb_asked {
	uint32_t psn, count;
};

/* The reason why the requester has gone back to `una` since `una` last
 * changed. */
enum vb_recovery {
	RECOVERY_NONE,
	/* The peer acknowledged a probe, but nothing behind the probe in time.
	 * Perhaps no packet is lost, and the peer is only slow. */
	RECOVERY_GUESS,
	/* A NAK, or an expired local ACK timeout, shows that a packet is
	 * lost. */
	RECOVERY_LOSS,
};

struct vb_req {
	/* PSNs, una <= send <= next. Everything before una is acknowledged;
	 * [una, next) was sent at least once; send is the PSN to send next,
	 * which is a retransmission when it is not `next`. */
	uint32_t una, send, next;
	/* Send queue indices, sq.done <= cur <= begun. The requester has given
	 * PSNs to the WQEs before begun; PSN `send` belongs to WQE cur. */
	uint32_t cur, begun;
	/* If stop_status is not WC_SUCCESS, the WQE with this send queue index
	 * cannot be sent; it completes with stop_status once it is the
	 * oldest. */
	uint32_t stop;
	enum vb_wc_status stop_status;
	/* The READs and atomics in flight: a ring with free-running indices,
	 * head <= at <= tail. `at` is the first request with a response whose
	 * PSN is `send` or later. */
	struct vb_asked asked[VB_MAX_RD_ATOM];
	uint32_t asked_head, asked_at, asked_tail;
	/* number of packets sent since the last AckReq */
	uint32_t since_ack_req;
	bool in_burst; /* many packets were in flight at the time @burst_at */
	vb_time burst_at; /* the last time when many packets were in flight */
	enum vb_recovery recovery;
	/* True: the requester repeats the packets up to `next` although the
	 * peer has not said that it lacks them, because of a guess
	 * (RECOVERY_GUESS), or of an ACK timeout after which more retries are
	 * left. */
	bool unsure;
	/* Events since una last changed: expired ACK timeouts, RNR NAKs,
	 * probes. */
	uint8_t retries, rnr_retries, probes;
	/* the queue pair's number of migrations when the requester last
	 * compared it */
	uint32_t migrations;
	/* For messages to the user about a peer that does not answer: when its
	 * silence began (valid once @retries or @probes is not 0), and how many
	 * packets were sent until the last timeout. */
	vb_time silent_at;
	uint32_t tried;
	/* number of responses outside [una, next), and the PSN of the last */
	uint32_t ghosts, ghost_psn;
	bool silence_told;
	/* the time when the local ACK timeout expires; VB_NEVER: the timer does
	 * not run */
	vb_time ack_at;
	/* Postponement of timeouts, while the link has not forwarded the frames
	 * that were sent. @stuck_at: the time when a timer first expired for
	 * the packet @stuck_una, or VB_NEVER. @stuck_mark: the position of the
	 * link then (sent() of struct vb_link_ops). Valid while @stuck_una
	 * equals una. */
	vb_time stuck_at;
	uint64_t stuck_mark;
	uint32_t stuck_una;
	/* the time to send a probe; VB_NEVER: the probe timer does not run */
	vb_time probe_at;
	/* The peer has acknowledged the probe. At time probe_at the requester
	 * stops waiting for further acknowledgements. */
	bool probe_acked;
	/* The end of the wait after an RNR NAK; VB_NEVER: the requester does
	 * not wait. */
	vb_time rnr_at;
	struct vb_window window;
	struct vb_sack sack;
	/* READ responses that came before their turn. @gap_due: the requester
	 * must ask for the missing ones again. @gap_at equals una: it has asked
	 * for them. */
	struct vb_ooo ooo;
	bool gap_due;
	uint32_t gap_at;
};

/* The NAK after which a responder sends no further one for a PSN gap. */
enum vb_nak_sent {
	NAK_NONE,
	/* The responder has sent a NAK for a gap, and sends the next one only
	 * after the expected PSN has arrived. */
	NAK_GAP,
	/* The responder has sent an RNR NAK (IBA 9.7.5.2.8). */
	NAK_RNR,
};

/* The SEND or WRITE message that is being received. */
struct vb_inbound {
	/* @va: the address in the RETH; @offset: bytes placed so far */
	uint64_t va, offset;
	uint32_t rkey, length;
	/* The packet is one of several in a row, which may use @run: an access
	 * that stays open until the last of them. */
	bool in_run;
	struct vb_mr_use run;
};

/* The function run() of struct vb_transport_ops, for a queue pair whose
 * messages arrive in @in. */
static inline void vb_inbound_run(struct vb_inbound *in, bool begins)
{
	in->in_run = begins;
	if (!begins)
		vb_mr_end(&in->run);
}

/* With XRC: this side has forwarded the request at the expected PSN to another
 * process, and waits for its verdict. */
struct vb_forwarded {
	bool pending;
	uint64_t serial, session;
	struct vb_ib_pkt pkt; /* the forwarded request, without its payload */
};

/* With XRC: a READ of another process's memory, whose bytes that process sends
 * (ib/xrc_read.c). */
enum vb_xrc_read_state { XRC_READ_NOT, XRC_READ_ASKED, XRC_READ_THERE };
struct vb_xrc_read {
	enum vb_xrc_read_state state;
	uint64_t serial, session;
	enum vb_fault fault; /* the reason why no bytes came */
	uint32_t psn; /* PSN of the next response that contains these bytes */
	/* bytes received, and bytes already sent in responses */
	uint32_t length, used;
	uint8_t *bytes; /* a buffer of VB_FORWARD_BYTES bytes; or NULL */
};

struct vb_resp {
	uint32_t epsn;	  /* the PSN of the next request expected */
	uint32_t ack_psn; /* PSN of the last SEND or WRITE that was accepted */
	uint32_t msn;	  /* message sequence number: messages completed */
	/* operation of the last request that was accepted; or NULL */
	const struct vb_ib_op *prev;
	struct vb_inbound in;
	uint32_t srqn; /* with XRC: number of the SRQ that the message is for */
	struct vb_forwarded forwarded;
	struct vb_xrc_read xrc_read;
	/* State of ACKs and NAKs, which are sent after the responses to earlier
	 * READs and atomics. */
	enum vb_nak_sent nak_sent;
	/* the highest PSN of a packet that came before its turn */
	uint32_t gap_psn;
	bool ack_due, nak_due;
	bool repeated; /* a request has come again since the last ACK */
	uint8_t nak_syndrome;
	uint32_t nak_psn;
	uint32_t unacked; /* number of packets accepted since the last ACK */
	/* @shown: the program has polled completions and has posted nothing
	 * since. @replies: how often in a row the program posted before its
	 * next poll. */
	bool shown;
	uint8_t replies;
	/* number of ACKs merged into the next one and not yet counted */
	uint32_t deferred;
	/* the queue pair is in ERR because of a fault whose NAK was not sent
	 * yet */
	bool dying;
	struct vb_replay replay;
	struct vb_ooo ooo; /* requests that arrived before their turn */
};

/*
 * Selective repeat. A receiver as the specification describes it drops all
 * packets behind a gap. A Verbena keeps them for a Verbena peer: its NAK for a
 * gap then has, behind the AETH, a bitmap of the later packets that have
 * arrived, and the requester repeats only the others.
 *
 * Each side announces this by a reserved bit of the BTH, which other
 * implementations send as 0 and ignore: a responder in its NAKs for gaps, a
 * requester in every packet after it has gone back. Without losses the bit is
 * never set, and a peer that never sets it gets plain go-back-N.
 */
struct vb_rc {
	struct vb_req req;
	struct vb_resp resp;
	/* this side sets the bit of selective repeat in its packets */
	bool offers;
	/* the peer has set the bit of selective repeat in a packet */
	bool selective;
};

static inline struct vb_rc *vb_rc(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return qp->priv[PRIV_TRANSPORT];
}

static inline enum vb_qp_state vb_rc_state(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	/* Relaxed: the state is written only under drive, which the caller
	 * holds. */
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

static inline uint32_t vb_rc_qpn(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	/* Relaxed: the number is written only under drive, which the caller
	 * holds. */
	return atomic_load_explicit(&qp->qpn, memory_order_relaxed);
}

static inline bool vb_rc_sends(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	enum vb_qp_state s = vb_rc_state(qp);

	return s == QPS_RTS || s == QPS_SQD;
}

/* Set rc->selective if the peer's packet has the bit of selective repeat
 * (struct vb_rc). */
static inline void vb_rc_note_selective(struct vb_qp *qp,
					const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	if (VB_UNLIKELY(pkt->bth.selective))
		vb_rc(qp)->selective = vb_rc(qp)->offers = true;
}

/* Restart the requester's timers, or stop them when nothing is in flight.
 * Inline, since sending after a silence and each ACK call it. IBA 9.7.6.1.3
 * allows the ACK timer to expire after T to 4 T. A peer in software may wait
 * hundreds of ms for its processor on a busy host, so short timeouts use the
 * upper bound; probes find losses earlier. */
#define VB_TIMEOUT_SLACK (250 * VB_MSEC)
static inline void vb_req_rearm(struct vb_qp *qp, vb_time now)
	VB_REQUIRES(qp->drive)
{
	struct vb_req *req = &vb_rc(qp)->req;
	vb_time timeout = vb_ack_timeout_ns(qp->attr.timeout);

	req->ack_at = req->probe_at = VB_NEVER;
	req->probe_acked = false;
	if (req->una == req->next)
		return;
	if (timeout != VB_NEVER)
		req->ack_at =
			now + VB_MIN(4 * timeout, timeout + VB_TIMEOUT_SLACK);
	req->probe_at = now + vb_window_patience(&req->window, req->probes);
}

/* Returns the time when the first of the requester's timers expires; VB_NEVER:
 * no timer runs. */
static inline vb_time vb_req_deadline(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	const struct vb_req *req = &vb_rc(qp)->req;

	return VB_MIN(req->rnr_at, VB_MIN(req->ack_at, req->probe_at));
}

/* Functions of explain.c. */

/* Log why this end refuses the request @pkt because of @fault. Key and range
 * are in its own header, or in that of the first packet of its message, from
 * which @in has them. */
void vb_rc_explain_fault(struct vb_qp *qp, const struct vb_inbound *in,
			 enum vb_fault fault, const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive);
/* Log that a forwarded request is refused because of @fault: only the process
 * that has the shared receive queue knows the keys and receives, and logs the
 * cause. Logs nothing for a fault that this process knows itself, or after
 * which the requester repeats the request. */
void vb_rc_explain_forwarded(struct vb_qp *qp, enum vb_fault fault)
	VB_REQUIRES(qp->drive);
/* Which process reports the cause of @fault in a forwarded request? True: that
 * of the target queue pair. False: that of the shared receive queue. */
bool vb_rc_is_known_here(enum vb_fault fault);
/* Log why this end refuses a packet of @bytes payload bytes for its length, if
 * the cause is that the two interfaces have different MTUs, from which each end
 * has computed its own limit (core/qp_state.c). */
void vb_rc_explain_length(struct vb_qp *qp, uint32_t bytes)
	VB_REQUIRES(qp->drive);

/* Returns the BTH fields common to all packets of this queue pair. */
static inline struct vb_bth vb_rc_bth(const struct vb_qp *qp, uint8_t opcode,
				      uint32_t psn) VB_REQUIRES(qp->drive)
{
	return (struct vb_bth){
		.opcode = opcode,
		.migrated = qp->attr.path_mig_state == MIG_MIGRATED,
		.pkey = vb_port_pkey(vb_qp_port(qp), qp->attr.pkey_index),
		.dqpn = qp->attr.dest_qp_num,
		.psn = psn,
		.selective =
			vb_qp_type_is_reliable(qp->type) && vb_rc(qp)->offers,
	};
}

/* Functions of ib/req.c, for the tables of RC and XRC (core/transport.h). */
bool vb_rc_send(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive);
bool vb_rc_can_wait(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
enum vb_delayed_ack vb_rc_delayed_ack(struct vb_qp *qp, bool polls)
	VB_REQUIRES(qp->drive);
bool vb_rc_unreplied(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Are there posted requests of which a packet was not sent yet? */
bool vb_rc_has_unsent(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Let the next step send at least @least packets, though the congestion window
 * may be smaller. Returns the value to pass to vb_rc_narrow() behind that
 * step. */
VB_MUST_CHECK uint32_t vb_rc_widen(struct vb_qp *qp, uint32_t least)
	VB_REQUIRES(qp->drive);
void vb_rc_narrow(struct vb_qp *qp, uint32_t before) VB_REQUIRES(qp->drive);
vb_time vb_rc_deadline(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
void vb_rc_run(struct vb_qp *qp, bool begins) VB_REQUIRES(qp->drive);
uint32_t vb_req_waits_until(const struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* Reset the requester. Its next PSN becomes sq_psn of the attributes. */
void vb_req_reset(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* A function of ib/req_retransmit.c: mark the packets that the bitmap in a NAK
 * reports missing, so that they are sent again. */
void vb_req_take_sack(struct vb_qp *qp, const struct vb_ib_pkt *nak,
		      vb_time now) VB_REQUIRES(qp->drive);
/* READ responses before those in req->ooo are missing: mark them, so that the
 * requester asks for them again. Acts only once for each value of una. */
void vb_req_ask_gap(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* Go back: send everything from una on once more. */
void vb_req_go_back(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* The packet at una is lost: go back, at most once until una changes. If a
 * repeated packet is lost again, the timers find that. */
void vb_req_recover(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* A function of ib/req_timer.c: a response has arrived, but not the next one
 * expected. Postpone the probe, which would make the peer send all responses
 * again. */
void vb_req_heard(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* The peer has acknowledged only the probe: wait a little for further ACKs. */
void vb_req_probe_acked(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* Returns the oldest request in flight that lacks a response; or NULL. */
static inline const struct vb_asked *vb_req_asked(const struct vb_req *req)
{
	if (req->asked_head == req->asked_tail)
		return NULL;
	return &req->asked[req->asked_head % VB_MAX_RD_ATOM];
}
/* In SQD: report when every request that had begun is complete. */
void vb_req_drain(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* A function of ib/comp.c: handle an ACK, NAK or response packet that has
 * arrived. This function and vb_resp_recv() are in the tables of
 * core/transport.h. */
void vb_comp_recv(struct vb_qp *qp, const struct vb_ib_pkt *pkt, vb_time now)
	VB_REQUIRES(qp->drive);
/* Complete the oldest WQEs: those that the peer has acknowledged, and those
 * that need no packet. */
void vb_comp_retire(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Complete the oldest WQE with @status and move the queue pair to ERR. */
void vb_comp_fail(struct vb_qp *qp, enum vb_wc_status status)
	VB_REQUIRES(qp->drive);

/* Functions of ib/resp.c: the responder, which handles request packets. */
void vb_resp_reset(struct vb_qp *qp) VB_REQUIRES(qp->drive);
void vb_resp_recv(struct vb_qp *qp, const struct vb_ib_pkt *pkt, vb_time now)
	VB_REQUIRES(qp->drive);
/* Move to ERR because of @fault in the request or the response at @psn; the NAK
 * then names this PSN. */
void vb_resp_die(struct vb_qp *qp, enum vb_fault fault, uint32_t psn)
	VB_REQUIRES(qp->drive);

/* Raise COMM_EST at the first packet of a connection (IBA 11.6.3.1). UC uses
 * this function as well. */
void vb_resp_established(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Check and place the SEND or WRITE packet @pkt, which follows the packet
 * @prev. If an earlier message was broken off, its receive in qp->recv is
 * reused. UC uses this function as well. */
enum vb_fault vb_resp_take(struct vb_qp *qp, struct vb_inbound *in,
			   const struct vb_ib_op *prev,
			   const struct vb_ib_pkt *pkt) VB_REQUIRES(qp->drive);
/* Do the rules permit this READ? This function does not check how many are in
 * progress. */
enum vb_fault vb_resp_judge_read(struct vb_qp *qp, const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive);

/* Functions of ib/xrc_read.c. Does another process have the memory that the
 * READ @a asks for? */
bool vb_xrc_read_is_forwarded(const struct vb_qp *qp, const struct vb_answer *a)
	VB_REQUIRES(qp->drive);
/* Have the next bytes for the READ @a come from the other process, or a fault
 * in their place? If not, this call asks that process for the bytes, and
 * vb_forward_bytes() receives its answer. */
bool vb_xrc_read_has(struct vb_qp *qp, const struct vb_answer *a)
	VB_REQUIRES(qp->drive);
/* Copy @len of the bytes that the other process has sent to @to. Call this only
 * after vb_xrc_read_has() has returned true. */
enum vb_fault vb_xrc_read_take(struct vb_qp *qp, uint8_t *to, uint32_t len)
	VB_REQUIRES(qp->drive);
/* The requester has repeated a READ for which this side waits for another
 * process's bytes: if that process has ended, stop waiting. */
void vb_xrc_read_check(struct vb_qp *qp) VB_REQUIRES(qp->drive);
void vb_xrc_read_reset(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* A function of ib/answer.c: send the responses and acknowledgements that are
 * due, in order. True: @out is full and more is to be sent. */
bool vb_answer_send(struct vb_qp *qp, struct vb_txq *out)
	VB_REQUIRES(qp->drive);

/* Does a response, ACK or NAK wait to be sent, now or later? This function and
 * the next two are inline, since every turn of the sender calls them, even one
 * that only sends requests. */
static inline bool vb_answer_waits(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	const struct vb_resp *resp = &vb_rc(qp)->resp;

	return resp->ack_due || resp->nak_due ||
	       resp->replay.due != resp->replay.end;
}

/* Does a response, ACK or NAK wait that may be sent now? */
static inline bool vb_answer_is_due(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	return vb_answer_waits(qp) &&
	       vb_rc(qp)->resp.xrc_read.state != XRC_READ_ASKED;
}

/* Does only an ACK wait to be sent? */
static inline bool vb_answer_is_ack(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	const struct vb_resp *resp = &vb_rc(qp)->resp;

	return resp->ack_due && !resp->nak_due &&
	       resp->replay.due == resp->replay.end;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reliable connections (IBA 9.7): the state of one queue pair, and the
 * functions that the files of this directory offer each other. The caller of
 * each holds qp->drive.
 *
 * Words: `una` is the oldest unacknowledged PSN. A READ or atomic request
 * "asks": the responder answers it with response packets. A "gap" is a missing
 * packet before one that has arrived.
 */
#ifndef IB_RC_H
#define IB_RC_H

#include "core/transport.h"
#include "core/fault.h"
#include "ib/ib.h"
#include "ib/replay.h"
#include "ib/req_packet.h"
#include "ib/sack.h"
#include "ib/window.h"

/* One READ or atomic request in flight: its first PSN and its number of
 * responses. A long READ is asked for in several requests. A retransmission
 * uses the same PSNs. */
struct vb_asked {
	uint32_t psn, count;
};

/* Why the requester has gone back to una, since una moved last. */
enum vb_recovery {
	RECOVERY_NONE,
	/* A probe was acknowledged and nothing after it in time. Perhaps
	 * nothing is lost and the peer is slow. */
	RECOVERY_GUESS,
	/* The peer or the local ACK timeout has reported a loss. */
	RECOVERY_LOSS,
};

struct vb_req {
	/* PSNs, una <= send <= next. Everything before una is acknowledged;
	 * [una, next) was sent at least once; send is the PSN to send next,
	 * which is a retransmission when it is not `next`. */
	uint32_t una, send, next;
	/* Send queue indices, sq.done <= cur <= begun. WQEs before begun have
	 * PSNs; cur is the WQE that contains PSN send. */
	uint32_t cur, begun;
	/* If stop_status is not WC_SUCCESS: the WQE that cannot be sent, and
	 * the status it completes with once it is the oldest. */
	uint32_t stop;
	enum vb_wc_status stop_status;
	/* The requests in flight, a ring with free-running indices, head <= at
	 * <= tail. `at`: the first one whose responses are not all before send.
	 */
	struct vb_asked asked[VB_MAX_RD_ATOM];
	uint32_t asked_head, asked_at, asked_tail;
	uint32_t since_ack_req; /* packets sent since the last AckReq */
	bool streaming;		/* many packets were in flight... */
	vb_time stream_at;	/* ...at this time */
	enum vb_recovery recovery;
	/* Since una moved last. */
	uint8_t retries, rnr_retries, probes;
	vb_time ack_at;	  /* end of the local ACK timeout; or VB_NEVER */
	vb_time probe_at; /* when to probe; VB_NEVER: not running */
	/* The probe was acknowledged: probe_at is the end of the wait for
	 * further acknowledgements. */
	bool probe_acked;
	/* The end of the wait after an RNR NAK; VB_NEVER: none. */
	vb_time rnr_at;
	struct vb_window window;
	struct vb_sack sack;
	/* READ responses that arrived before their turn. gap_due: the missing
	 * ones are to be requested again. gap_at == una: that was done. */
	struct vb_ooo ooo;
	bool gap_due;
	uint32_t gap_at;
};

/* Why a responder sends no NAK for a PSN gap. */
enum vb_quiet {
	QUIET_NOT,
	/* It has sent one; the next follows when the expected PSN has
	 * arrived. */
	QUIET_GAP,
	/* It has sent an RNR NAK (IBA 9.7.5.2.8). */
	QUIET_RNR,
};

/* The SEND or WRITE message being received. */
struct vb_inbound {
	uint64_t va, offset; /* offset: bytes placed so far */
	uint32_t rkey, length;
};

/* XRC: the request at the expected PSN was forwarded to another process. */
struct vb_forwarded {
	bool pending;
	uint64_t serial, session;
	struct vb_ib_pkt pkt; /* without its payload */
};

/* XRC: a READ of another process's memory, whose bytes that process sends
 * (ib/xrc_read.c). */
enum vb_xrc_read_state { XRC_READ_NOT, XRC_READ_ASKED, XRC_READ_THERE };
struct vb_xrc_read {
	enum vb_xrc_read_state state;
	uint64_t serial, session;
	enum vb_fault fault;   /* why there are no bytes */
	uint32_t psn;	       /* of the next response with these bytes */
	uint32_t length, used; /* in bytes */
	uint8_t *bytes;	       /* room for VB_FORWARD_BYTES; or NULL */
};

struct vb_resp {
	uint32_t epsn;	  /* the expected PSN */
	uint32_t ack_psn; /* PSN of the last SEND or WRITE accepted */
	uint32_t msn;	  /* MSN: messages completed */
	const struct vb_ib_op *prev; /* the last request accepted; or NULL */
	struct vb_inbound in;
	uint32_t srqn; /* XRC: destination of the message */
	struct vb_forwarded forwarded;
	struct vb_xrc_read xrc_read;
	/* ACKs and NAKs that leave after the READ and atomic responses before
	 * them: */
	enum vb_quiet quiet;
	uint32_t gap_psn; /* the highest PSN that arrived too early */
	bool ack_due, nak_due;
	uint8_t nak_syndrome;
	uint32_t nak_psn;
	uint32_t unacked; /* packets accepted since the last ACK */
	/* shown: the program was given completions and has not posted since.
	 * replies: how often in a row it posted before it polled again. */
	bool shown;
	uint8_t replies;
	uint32_t deferred; /* ACKs merged into the next one; to be counted */
	bool dying; /* in ERR because of a fault; its NAK is still to be sent */
	struct vb_replay replay;
	struct vb_ooo ooo; /* requests that arrived before their turn */
};

/*
 * Selective repeat. Receivers of the specification drop what follows a gap. Two
 * Verbenas keep it: a NAK for a gap then carries, behind its AETH, a bitmap of
 * the packets after the missing one that have arrived, and the requester sends
 * only the others again.
 *
 * Each side announces this by a reserved bit of the BTH, which other
 * implementations send as 0 and ignore: a responder in its NAKs for gaps, a
 * requester in every packet after it has gone back. Without losses the bit is
 * never set, and a peer that never sets it gets plain go-back-N.
 */
struct vb_rc {
	struct vb_req req;
	struct vb_resp resp;
	bool offers;	/* our packets carry the bit */
	bool selective; /* the peer's packets carry the bit */
};

static inline struct vb_rc *vb_rc(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return qp->priv[PRIV_TRANSPORT];
}

static inline enum vb_qp_state vb_rc_state(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	/* Relaxed: written under drive, which the caller holds. */
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

static inline uint32_t vb_rc_qpn(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	/* Relaxed: written under drive, which the caller holds. */
	return atomic_load_explicit(&qp->qpn, memory_order_relaxed);
}

static inline bool vb_rc_sends(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	enum vb_qp_state s = vb_rc_state(qp);

	return s == QPS_RTS || s == QPS_SQD;
}

/* The peer's packet carries the bit: see struct vb_rc. */
static inline void vb_rc_note_selective(struct vb_qp *qp,
					const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive)
{
	if (VB_UNLIKELY(pkt->bth.selective))
		vb_rc(qp)->selective = vb_rc(qp)->offers = true;
}

/* Restart the requester's timers; stop them when nothing is in flight. Inline:
 * what is sent after a silence, and each ACK, do it. IBA 9.7.6.1.3 allows the
 * ACK timer to expire after T to 4 T. A peer in software waits for its
 * processor, on a busy host for hundreds of ms, so short timeouts use the upper
 * bound; probes detect losses earlier. */
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

/* When the first of the requester's timers expires; VB_NEVER: none runs. */
static inline vb_time vb_req_deadline(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	const struct vb_req *req = &vb_rc(qp)->req;

	return VB_MIN(req->rnr_at, VB_MIN(req->ack_at, req->probe_at));
}

/* A packet of @bytes payload bytes is refused for its length. If the cause is
 * that the two interfaces have different MTUs, which each end determines for
 * itself (core/qp_state.c), log a sentence that says so. */
void vb_rc_explain_length(const struct vb_qp *qp, uint32_t bytes)
	VB_REQUIRES(qp->drive);

/* The BTH fields common to all packets of this queue pair. */
static inline struct vb_bth vb_rc_bth(const struct vb_qp *qp, uint8_t opcode,
				      uint32_t psn) VB_REQUIRES(qp->drive)
{
	return (struct vb_bth){
		.opcode = opcode,
		.migrated = true, /* this value means: no path migration */
		.pkey = 0xffff,
		.dqpn = qp->attr.dest_qp_num,
		.psn = psn,
		.selective =
			vb_qp_type_is_reliable(qp->type) && vb_rc(qp)->offers,
	};
}

/* ib/req.c. These are the functions of core/transport.h for RC and XRC. */
bool vb_rc_send(struct vb_qp *qp, vb_time now, struct vb_txq *out)
	VB_REQUIRES(qp->drive);
bool vb_rc_can_wait(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
enum vb_delayed_ack vb_rc_delayed_ack(struct vb_qp *qp, bool polls)
	VB_REQUIRES(qp->drive);
bool vb_rc_unreplied(struct vb_qp *qp) VB_REQUIRES(qp->drive);
vb_time vb_rc_deadline(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
uint32_t vb_req_waits_until(const struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* The requester begins anew, with the first PSN of the attributes. */
void vb_req_reset(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* ib/req_retransmit.c. A NAK's bitmap says which packets the peer lacks:
 * schedule their retransmission. */
void vb_req_take_sack(struct vb_qp *qp, const struct vb_ib_pkt *nak,
		      vb_time now) VB_REQUIRES(qp->drive);
/* READ responses before those in req->ooo are missing: request them again, once
 * for each una. */
void vb_req_ask_gap(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* Go back: send everything from una on again. */
void vb_req_go_back(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* The packet at una is lost: go back, at most once until una moves. Losses
 * among the retransmitted packets are left to the timers. */
void vb_req_recover(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* ib/req_timer.c. Responses arrive, though not the next one: postpone the
 * probe, which would ask for all of them again. */
void vb_req_heard(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* The probe was acknowledged and nothing after it: wait a little for more. */
void vb_req_probe_acked(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* The oldest request without all its responses; or NULL. */
static inline const struct vb_asked *vb_req_asked(const struct vb_req *req)
{
	if (req->asked_head == req->asked_tail)
		return NULL;
	return &req->asked[req->asked_head % VB_MAX_RD_ATOM];
}
/* In SQD: report when every request that had begun is complete. */
void vb_req_drain(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* ib/comp.c: an ACK, NAK or response packet has arrived. Of core/transport.h,
 * as is vb_resp_recv(). */
void vb_comp_recv(struct vb_qp *qp, const struct vb_ib_pkt *pkt, vb_time now)
	VB_REQUIRES(qp->drive);
/* Complete the WQEs that are acknowledged, or need no acknowledgement. */
void vb_comp_retire(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Complete the oldest WQE with @status and move the queue pair to ERR. */
void vb_comp_fail(struct vb_qp *qp, enum vb_wc_status status)
	VB_REQUIRES(qp->drive);

/* ib/resp.c: a request packet has arrived. */
void vb_resp_reset(struct vb_qp *qp) VB_REQUIRES(qp->drive);
void vb_resp_recv(struct vb_qp *qp, const struct vb_ib_pkt *pkt, vb_time now)
	VB_REQUIRES(qp->drive);
/* Move to ERR because of @fault in the request or response at @psn. */
void vb_resp_die(struct vb_qp *qp, enum vb_fault fault, uint32_t psn)
	VB_REQUIRES(qp->drive);

/* Also for UC: the first packet of a connection raises COMM_EST (IBA
 * 11.6.3.1). */
void vb_resp_established(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Also for UC: check and place the SEND or WRITE packet @pkt, which follows the
 * packet @prev. A receive that a broken message left in qp->recv is used again.
 */
enum vb_fault vb_resp_take(struct vb_qp *qp, struct vb_inbound *in,
			   const struct vb_ib_op *prev,
			   const struct vb_ib_pkt *pkt) VB_REQUIRES(qp->drive);
/* May this READ be answered? Does not check how many are in progress. */
enum vb_fault vb_resp_judge_read(struct vb_qp *qp, const struct vb_ib_pkt *pkt)
	VB_REQUIRES(qp->drive);

/* ib/xrc_read.c: is @a answered with the memory of another process? */
bool vb_xrc_read_is_forwarded(const struct vb_qp *qp, const struct vb_answer *a)
	VB_REQUIRES(qp->drive);
/* Are @a's next bytes here, or a fault? If not, this call asks the other
 * process for them, and vb_forward_bytes() takes its answer. */
bool vb_xrc_read_has(struct vb_qp *qp, const struct vb_answer *a)
	VB_REQUIRES(qp->drive);
/* Copy @len of these bytes to @to. Only after vb_xrc_read_has() was true. */
enum vb_fault vb_xrc_read_take(struct vb_qp *qp, uint8_t *to, uint32_t len)
	VB_REQUIRES(qp->drive);
/* The requester has repeated its request: give up if the other process is
 * gone. */
void vb_xrc_read_check(struct vb_qp *qp) VB_REQUIRES(qp->drive);
void vb_xrc_read_reset(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* ib/answer.c: send responses and acknowledgements, in order. True: @out is
 * full and more is to be sent. */
bool vb_answer_send(struct vb_qp *qp, struct vb_txq *out)
	VB_REQUIRES(qp->drive);

/* Is a response, ACK or NAK to be sent, now or later? These three are inline,
 * since a step that only sends requests asks them, too. */
static inline bool vb_answer_waits(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	const struct vb_resp *resp = &vb_rc(qp)->resp;

	return resp->ack_due || resp->nak_due ||
	       resp->replay.due != resp->replay.end;
}

/* Is one to be sent, and can it be sent now? */
static inline bool vb_answer_is_due(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	return vb_answer_waits(qp) &&
	       vb_rc(qp)->resp.xrc_read.state != XRC_READ_ASKED;
}

/* Is only an ACK due? */
static inline bool vb_answer_is_ack(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	const struct vb_resp *resp = &vb_rc(qp)->resp;

	return resp->ack_due && !resp->nak_due &&
	       resp->replay.due == resp->replay.end;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reliable connections (IBA 9.7): the state of one queue pair, and the
 * functions that the files of this directory offer each other. The caller of
 * each holds qp->drive.
 *
 * Words: `una` is the oldest unacknowledged PSN. A READ or atomic "asks": the
 * responder answers it with response packets. A "gap" is one or more packets
 * that are missing before one that has arrived.
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

/* A READ or atomic request in flight: its first PSN and its number of
 * responses. The requester splits a long READ into several requests, and
 * repeats a request with the same PSNs. */
struct vb_asked {
	uint32_t psn, count;
};

/* Why the requester has gone back to `una` since `una` last moved. */
enum vb_recovery {
	RECOVERY_NONE,
	/* The peer acknowledged a probe, but nothing after it in time. Perhaps
	 * nothing is lost, only the peer is slow. */
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
	/* If stop_status is not WC_SUCCESS: this WQE cannot be sent, and it
	 * completes with that status once it is the oldest. */
	uint32_t stop;
	enum vb_wc_status stop_status;
	/* The READs and atomics in flight: a ring with free-running indices,
	 * head <= at <= tail. `at` is the first request with a response whose
	 * PSN is `send` or later. */
	struct vb_asked asked[VB_MAX_RD_ATOM];
	uint32_t asked_head, asked_at, asked_tail;
	uint32_t since_ack_req; /* packets sent since the last AckReq */
	bool streaming;		/* many packets were in flight... */
	vb_time stream_at;	/* ...at this time */
	enum vb_recovery recovery;
	/* How many since una last moved: */
	uint8_t retries, rnr_retries, probes;
	vb_time ack_at;	  /* end of the local ACK timeout; or VB_NEVER */
	vb_time probe_at; /* when to probe; VB_NEVER: not running */
	/* The peer has acknowledged the probe. At probe_at the requester stops
	 * waiting for further acknowledgements. */
	bool probe_acked;
	/* The end of the wait after an RNR NAK; VB_NEVER: none. */
	vb_time rnr_at;
	struct vb_window window;
	struct vb_sack sack;
	/* READ responses that came early. gap_due: the requester must ask for
	 * the missing ones again. gap_at == una: it has done so. */
	struct vb_ooo ooo;
	bool gap_due;
	uint32_t gap_at;
};

/* Why a responder sends no NAK for a PSN gap. */
enum vb_quiet {
	QUIET_NOT,
	/* It has sent one, and sends the next only after the expected PSN has
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

/* XRC: this side has forwarded the request at the expected PSN to another
 * process, and waits for its verdict. */
struct vb_forwarded {
	bool pending;
	uint64_t serial, session;
	struct vb_ib_pkt pkt; /* that request, without its payload */
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
	/* ACKs and NAKs. They leave after the responses to earlier READs and
	 * atomics: */
	enum vb_quiet quiet;
	uint32_t gap_psn; /* the highest PSN that arrived too early */
	bool ack_due, nak_due;
	uint8_t nak_syndrome;
	uint32_t nak_psn;
	uint32_t unacked; /* packets accepted since the last ACK */
	/* shown: the program got completions and has posted nothing since.
	 * replies: how often in a row it posted before its next poll. */
	bool shown;
	uint8_t replies;
	uint32_t deferred; /* ACKs merged into the next one, not yet counted */
	bool dying;	   /* in ERR for a fault whose NAK is not yet sent */
	struct vb_replay replay;
	struct vb_ooo ooo; /* requests that arrived before their turn */
};

/*
 * Selective repeat. Receivers of the specification drop what follows a gap. A
 * Verbena keeps it for another Verbena: its NAK for a gap then carries, behind
 * the AETH, a bitmap of the later packets that have arrived, and the requester
 * sends only the others again.
 *
 * Each side announces this by a reserved bit of the BTH, which other
 * implementations send as 0 and ignore: a responder in its NAKs for gaps, a
 * requester in every packet after it has gone back. Without losses nobody sets
 * the bit, and a peer that never sets it gets plain go-back-N.
 */
struct vb_rc {
	struct vb_req req;
	struct vb_resp resp;
	bool offers;	/* packets of this side carry the bit */
	bool selective; /* packets of the peer have carried the bit */
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

/* Set rc->selective if the peer's packet carries the bit (struct vb_rc). */
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

/* When the first of the requester's timers expires; VB_NEVER: none runs. */
static inline vb_time vb_req_deadline(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	const struct vb_req *req = &vb_rc(qp)->req;

	return VB_MIN(req->rnr_at, VB_MIN(req->ack_at, req->probe_at));
}

/* This end refuses a packet of @bytes payload bytes for its length. If the two
 * interfaces have different MTUs, from which each end has computed its own
 * limit (core/qp_state.c), log a sentence that says so. */
void vb_rc_explain_length(const struct vb_qp *qp, uint32_t bytes)
	VB_REQUIRES(qp->drive);

/* The BTH fields common to all packets of this queue pair. */
static inline struct vb_bth vb_rc_bth(const struct vb_qp *qp, uint8_t opcode,
				      uint32_t psn) VB_REQUIRES(qp->drive)
{
	return (struct vb_bth){
		.opcode = opcode,
		.migrated = true, /* this value means: no path migration */
		.pkey = vb_port_pkey(&qp->adapter->port, qp->attr.pkey_index),
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

/* Reset the requester. Its next PSN is the first one of the attributes. */
void vb_req_reset(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* ib/req_retransmit.c. The bitmap in a NAK says which packets the peer has:
 * note that the others must be sent again. */
void vb_req_take_sack(struct vb_qp *qp, const struct vb_ib_pkt *nak,
		      vb_time now) VB_REQUIRES(qp->drive);
/* READ responses before those in req->ooo are missing: note that the requester
 * must ask for them again. Acts only once for each value of una. */
void vb_req_ask_gap(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* Go back: send everything from una on again. */
void vb_req_go_back(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* The packet at una is lost: go back, at most once until una moves. If a packet
 * that was sent again is lost, too, the timers find that. */
void vb_req_recover(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* ib/req_timer.c. A response has arrived, but not the next one: postpone the
 * probe, which would make the peer send all of them again. */
void vb_req_heard(struct vb_qp *qp, vb_time now) VB_REQUIRES(qp->drive);
/* The peer has acknowledged the probe alone: wait a little for further ACKs. */
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
/* Complete the oldest WQEs: those that the peer has acknowledged, and those
 * that send no packet. */
void vb_comp_retire(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Complete the oldest WQE with @status and move the queue pair to ERR. */
void vb_comp_fail(struct vb_qp *qp, enum vb_wc_status status)
	VB_REQUIRES(qp->drive);

/* ib/resp.c: a request packet has arrived. */
void vb_resp_reset(struct vb_qp *qp) VB_REQUIRES(qp->drive);
void vb_resp_recv(struct vb_qp *qp, const struct vb_ib_pkt *pkt, vb_time now)
	VB_REQUIRES(qp->drive);
/* Move to ERR because of @fault in the request or the response at @psn, which
 * the NAK then names. */
void vb_resp_die(struct vb_qp *qp, enum vb_fault fault, uint32_t psn)
	VB_REQUIRES(qp->drive);

/* Raise COMM_EST at the first packet of a connection (IBA 11.6.3.1). UC calls
 * this, too. */
void vb_resp_established(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Check and place the SEND or WRITE packet @pkt, which follows the packet
 * @prev. If an earlier message was broken off, its receive in qp->recv is used
 * again. UC calls this, too. */
enum vb_fault vb_resp_take(struct vb_qp *qp, struct vb_inbound *in,
			   const struct vb_ib_op *prev,
			   const struct vb_ib_pkt *pkt) VB_REQUIRES(qp->drive);
/* Do the rules permit this READ? Does not check how many are in progress. */
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
/* The requester has repeated its request: if the other process is gone, stop
 * waiting for its bytes. */
void vb_xrc_read_check(struct vb_qp *qp) VB_REQUIRES(qp->drive);
void vb_xrc_read_reset(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* ib/answer.c: send the responses and acknowledgements that are due, in order.
 * True: @out is full and more is to be sent. */
bool vb_answer_send(struct vb_qp *qp, struct vb_txq *out)
	VB_REQUIRES(qp->drive);

/* Does a response, ACK or NAK wait to be sent, now or later? This function and
 * the next two are inline, since each step calls them, even one that only sends
 * requests. */
static inline bool vb_answer_waits(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	const struct vb_resp *resp = &vb_rc(qp)->resp;

	return resp->ack_due || resp->nak_due ||
	       resp->replay.due != resp->replay.end;
}

/* Does a response, ACK or NAK wait that can be sent now? */
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

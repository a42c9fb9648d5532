/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reliable connections: the state of one queue pair, and the doors between
 * the files that work on it. Everything here is under qp->drive.
 */
#ifndef IB_RC_H
#define IB_RC_H

#include "core/transport.h"
#include "core/fault.h"
#include "ib/ib.h"
#include "ib/sack.h"
#include "ib/replay.h"
#include "ib/window.h"

/* One READ or atomic request sent and not wholly answered. A long READ is
 * asked for in several. Its PSNs stay what they are when it is repeated. */
struct vb_asked {
	uint32_t psn, count;
};

struct vb_req {
	/*
	 * PSNs, una <= send <= next. Before una everything is acknowledged;
	 * [una, next) has been sent once at least; send is the next to go
	 * out, and a repeat when it is not next.
	 */
	uint32_t una, send, next;
	/*
	 * Send queue indices, sq.done <= cur <= begun. WQEs before begun have
	 * their PSNs; cur is the one that send points into.
	 */
	uint32_t cur, begun;
	/* The WQE that cannot go on here, when stop_status is no success. */
	uint32_t stop;
	enum vb_wc_status stop_status;
	/* Free-running indices, head <= at <= tail; at: the first that
	 * reaches to send or past it. */
	struct vb_asked asked[VB_MAX_RD_ATOM];
	uint32_t asked_head, asked_at, asked_tail;
	uint32_t since_ack_req; /* packets sent after it */
	bool streaming;		/* many packets were under way... */
	vb_time stream_at;	/* ...then */
	bool repairing; /* went back to una already, on being told of a loss */
	uint8_t retries, rnr_retries, probes; /* since una moved last */
	vb_time ack_at;	  /* local ACK timeout; VB_NEVER: not running */
	vb_time probe_at; /* the same for probes */
	bool probe_acked; /* probe_at: how long to wait for more than that */
	vb_time rnr_at;	  /* silent until then; VB_NEVER: not waiting */
	struct vb_window window;
	struct vb_sack sack;
	/* Answers that came before their turn; what is missing before them
	 * has been asked for again when gap_at is una. */
	struct vb_ooo early;
	bool gap_due;
	uint32_t gap_at;
};

/* Why a responder answers to no gap. */
enum vb_quiet {
	QUIET_NOT,
	QUIET_GAP, /* one NAK for a gap, until the expected PSN arrives */
	QUIET_RNR, /* the same behind an RNR NAK (IBA 9.7.5.2.8) */
};

/* The SEND or WRITE being received. */
struct vb_inbound {
	uint64_t va, offset; /* offset: bytes placed */
	uint32_t rkey, length;
};

/* XRC: the request at the expected PSN is with another process. */
struct vb_away {
	bool pending;
	uint64_t serial, session;
	struct vb_ib_pkt pkt; /* its payload is gone */
};

/* And the bytes that answer a READ of its memory (ib/xrc_read.c). */
enum vb_xrc_read_state { XRC_READ_NOT, XRC_READ_ASKED, XRC_READ_THERE };
struct vb_xrc_read {
	enum vb_xrc_read_state state;
	uint64_t serial, session;
	enum vb_fault fault;   /* what came instead */
	uint32_t psn;	       /* of the next answer of them */
	uint32_t length, used; /* of bytes */
	uint8_t *bytes;	       /* VB_FORWARD_BYTES, or NULL */
};

struct vb_resp {
	uint32_t epsn;		     /* expected */
	uint32_t ack_psn;	     /* the last SEND or WRITE accepted */
	uint32_t msn;		     /* messages completed */
	const struct vb_ib_op *prev; /* the last request accepted, or NULL */
	struct vb_inbound in;
	uint32_t srqn; /* XRC: the message's */
	struct vb_away away;
	struct vb_xrc_read fetch;
	/* what to answer once the READ and atomic answers before it are out */
	enum vb_quiet quiet;
	uint32_t gap_psn; /* the highest PSN that came too early */
	bool ack_due, nak_due;
	uint8_t nak_syndrome;
	uint32_t nak_psn;
	uint32_t unacked; /* packets accepted since the last ACK */
	/* The program was shown completions, and has not posted yet; how many
	 * times in a row it did post then, before it polled again. */
	bool shown;
	uint8_t replies;
	uint32_t deferred; /* ACKs that are one with the next; to be counted */
	bool dying; /* in ERR by its own doing: the NAK is still to be sent */
	struct vb_replay replay;
	struct vb_ooo early; /* requests that came before their turn */
};

/*
 * Selective repeat. The specification's receivers throw away what follows a
 * gap. Two of us keep it: a NAK for a gap then carries, behind its AETH, which
 * packets after the missing one are there, and only the others are sent again.
 *
 * Who knows of a loss says that it can do so in a bit of the BTH that others
 * send as 0 and do not look at: a responder in its NAKs for gaps, a requester
 * in whatever it sends after going back. Where nothing is lost the bit is
 * never set, and a peer that never sets it sees plain go-back-N.
 */
struct vb_rc {
	struct vb_req req;
	struct vb_resp resp;
	bool offers;	/* our packets have the bit */
	bool selective; /* the peer's do: it can */
};

static inline struct vb_rc *vb_rc(const struct vb_qp *qp)
{
	return qp->tp;
}

static inline enum vb_qp_state vb_rc_state(const struct vb_qp *qp)
{
	/* Written under drive, which the caller holds. */
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

static inline uint32_t vb_rc_qpn(const struct vb_qp *qp)
{
	/* The same. */
	return atomic_load_explicit(&qp->qpn, memory_order_relaxed);
}

static inline bool vb_rc_sends(const struct vb_qp *qp)
{
	enum vb_qp_state s = vb_rc_state(qp);

	return s == QPS_RTS || s == QPS_SQD;
}

/* A packet of @bytes is refused for its length: is that because the ends'
 * interfaces carry packets of different sizes, which each has found out for
 * itself (core/qp_state.c)? Then a sentence says so. */
void vb_rc_explain_length(const struct vb_qp *qp, uint32_t bytes);

/* The fields of every BTH that this queue pair sends. */
struct vb_bth vb_rc_bth(const struct vb_qp *qp, uint8_t opcode, uint32_t psn);

/* ib/req.c: requests. */
void vb_req_reset(struct vb_qp *qp);
bool vb_req_send(struct vb_qp *qp, vb_time now, struct vb_txq *out);
/* May what was posted wait for the answers that are on their way? */
bool vb_req_can_wait(const struct vb_qp *qp);
/* Then: short ones may up to this index. */
uint32_t vb_req_waits_until(const struct vb_qp *qp);
/* Has it nothing to send, and nothing soon to wait for? */
bool vb_req_is_idle(const struct vb_qp *qp);
vb_time vb_req_deadline(const struct vb_qp *qp);
/* The peer has said which packets it lacks. */
void vb_req_mend(struct vb_qp *qp, const struct vb_ib_pkt *nak, vb_time now);
/* Answers are missing before those in early: ask for them, once. */
void vb_req_ask_again(struct vb_qp *qp, vb_time now);
/* Send again from una on. */
void vb_req_go_back(struct vb_qp *qp, vb_time now);
/* What is at una is lost: send again, once for being told so. What else of
 * the repeat is lost, the timers see. */
void vb_req_sack(struct vb_qp *qp, vb_time now);
/* Answers are coming, though not the next: a probe would ask for all of them
 * again. */
void vb_req_heard(struct vb_qp *qp, vb_time now);
/* The probe is acknowledged, and no more than that: wait a little. */
void vb_req_probe_acked(struct vb_qp *qp, vb_time now);
/* How many packets more may be under way. */
uint32_t vb_req_room(const struct vb_req *req);
/* Some were sent: what is to be noted of that. */
void vb_req_sent(struct vb_qp *qp, vb_time now);
/* Start the timers afresh, or stop them when nothing is outstanding. */
void vb_req_rearm(struct vb_qp *qp, vb_time now);
/* Does this WQE ask for an answer: READ, atomic? */
bool vb_req_asks(const struct vb_send_wqe *wqe);
/* The request whose answer is missing first; NULL when none is. */
const struct vb_asked *vb_req_asked(const struct vb_req *req);
/* SQD: say so when what had begun is finished. */
void vb_req_drain(struct vb_qp *qp);

/*
 * Of UC and UD, too. May this WQE be sent at all: operation, length, keys?
 * How many packets is it? vb_req_put() makes one of them: @pkt has the headers
 * but for what the WQE and @part say.
 */
struct vb_part {
	uint32_t offset, len; /* of the message */
	uint8_t place;	      /* enum vb_ib_place */
	const struct vb_route *route;
};
enum vb_wc_status vb_req_judge(const struct vb_qp *qp,
			       const struct vb_send_wqe *wqe);
/* Windows: nothing is sent. */
bool vb_req_is_local(const struct vb_send_wqe *wqe);
uint32_t vb_req_psns(const struct vb_qp *qp, const struct vb_send_wqe *wqe);
enum vb_fault vb_req_put(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			 const struct vb_part *part, struct vb_ib_pkt *pkt,
			 struct vb_txq *out);
/* The SEND or WRITE packet at @psn, on a connection. */
enum vb_fault vb_req_put_data(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			      uint32_t psn, bool ack_req, struct vb_txq *out);

/* ib/req_fast.c: a run of small messages from where the cursor stands, if it
 * begins with one. False: it does not, or it may not go now. */
bool vb_req_fast_send(struct vb_qp *qp, vb_time now, struct vb_txq *out);

/* ib/comp.c: acknowledgements and answers. */
void vb_comp_recv(struct vb_qp *qp, const struct vb_ib_pkt *pkt, vb_time now);
/* Complete what is acknowledged, or needs no acknowledgement. */
void vb_comp_retire(struct vb_qp *qp);
/* The oldest WQE ends with @status and takes the queue pair with it. */
void vb_comp_fail(struct vb_qp *qp, enum vb_wc_status status);

/* ib/resp.c: requests that arrive. */
void vb_resp_reset(struct vb_qp *qp);
void vb_resp_recv(struct vb_qp *qp, const struct vb_ib_pkt *pkt);
/* Into ERR because of @fault in the request (or answer) at @psn. */
void vb_resp_die(struct vb_qp *qp, enum vb_fault fault, uint32_t psn);

/* Of UC, too: the first packet of a connection tells (IBA 11.6.3.1). */
void vb_resp_established(struct vb_qp *qp);
/* Of UC, too: judge and place the SEND or WRITE packet @pkt, which follows
 * @prev. A receive that a broken message left in qp->recv is used again. */
enum vb_fault vb_resp_take(struct vb_qp *qp, struct vb_inbound *in,
			   const struct vb_ib_op *prev,
			   const struct vb_ib_pkt *pkt);
/* May it be answered, but for how many there are already? */
enum vb_fault vb_resp_judge_read(struct vb_qp *qp, const struct vb_ib_pkt *pkt);

/* ib/xrc_read.c: answers of another process's memory. */
bool vb_xrc_read_is_forwarded(const struct vb_qp *qp,
			      const struct vb_answer *a);
/* Have the bytes of its next packet come, or a fault? Else they are asked for,
 * and vb_forward_bytes() will bring them. */
bool vb_xrc_read_has(struct vb_qp *qp, const struct vb_answer *a);
/* Only then. */
enum vb_fault vb_xrc_read_take(struct vb_qp *qp, uint8_t *to, uint32_t len);
/* The requester asks again: will they ever come? */
void vb_xrc_read_check(struct vb_qp *qp);
void vb_xrc_read_reset(struct vb_qp *qp);

/* ib/answer.c: answers that leave, in order. True: there are more. */
bool vb_answer_send(struct vb_qp *qp, struct vb_txq *out);
bool vb_answer_is_due(const struct vb_qp *qp);
/* No more than an ACK is. */
bool vb_answer_is_ack(const struct vb_qp *qp);

#endif

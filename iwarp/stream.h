/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of an iWARP queue pair (PRIV_TRANSPORT), and the functions that the
 * files of this directory share. The caller of every function holds qp->drive.
 *
 * Words: with a "card" a process identifies itself to its peer on this host
 * (terms.near). A WQE "asks" if the peer answers it with data: READ, atomic.
 */
#ifndef IWARP_STREAM_H
#define IWARP_STREAM_H

#include "iwarp/iwarp.h"
#include "iwarp/term.h"

enum vb_iw_phase {
	IW_IDLE, /* vb_iw_start() has not run since the last RESET */
	IW_OPEN,
	/* this side sends the responses that are due, then a Terminate */
	IW_DYING,
	/* this side sends only the rest of an FPDU that was sent in part */
	IW_ENDING,
	IW_CLOSED,
};

/* The item that the sender has begun and not finished (vb_iw_cursor.stage). */
enum vb_iw_stage {
	STAGE_NONE,
	/* the ready-to-receive (RTR) message, the initiator's first FPDU */
	STAGE_RTR,
	STAGE_REQUEST,
	STAGE_IMM, /* the immediate data message after a WRITE */
	STAGE_ANSWER,
	STAGE_LAST, /* the Terminate was sent, so nothing may follow */
};

#define VB_IW_NO_WQE UINT32_MAX

/* A READ or atomic in flight, which this side has sent. */
struct vb_iw_asked {
	uint32_t index; /* send queue index of the WQE, unless @rtr */
	bool rtr;	/* the request is the RTR, which has no WQE */
	uint32_t msn;
	/* The sink of the peer's response to a READ, and the bytes that have
	 * arrived. */
	uint32_t stag, length, got;
	uint64_t to;
};

/* A READ or atomic of the peer that this side must answer. An atomic has
 * already been carried out. */
struct vb_iw_answer {
	bool atomic;
	uint32_t id; /* request identifier of an atomic */
	uint64_t value;
	/* STag of the memory that a READ reads, and the number of bytes */
	uint32_t stag, length;
	uint64_t to;
	/* STag of the requester's memory into which the READ's response goes */
	uint32_t sink_stag;
	uint64_t sink_to;
};

/* Entries for answers. If the RTR is a READ, it is answered in addition to the
 * agreed number of READs. */
#define VB_IW_ANSWERS 256
_Static_assert(VB_IW_ANSWERS > VB_MAX_RD_ATOM, "and a power of two");

/* The state of receiving: untagged messages on queues 0, 1 and 3, and
 * WRITEs. */
struct vb_iw_inbound {
	bool heard;	     /* an FPDU has arrived from the peer */
	uint32_t send_msn;   /* the expected message number (MSN) of queue 0 */
	uint32_t ask_msn;    /* the expected message number of queue 1 */
	uint32_t atomic_msn; /* the expected message number of queue 3 */
	uint32_t offset;     /* bytes received of the message in progress */
	uint8_t opcode;
	uint32_t write_bytes; /* bytes received of the WRITE in progress */
	/* bytes of the last complete WRITE, until the next one begins */
	uint32_t written;
	/* bytes since the last marker began, as in vb_iw_cursor */
	uint16_t marker;
};

struct vb_iw {
	enum vb_iw_phase phase;
	struct vb_mpa_terms terms;
	uint32_t mulpdu;
	/* responder: until this time it waits for an FPDU before it sends */
	vb_time patient_until;
	/* initiator: the pause between nudges, and the time of the next one */
	vb_time nudge_after, nudge_at;
	/* The fields below are the state of sending. */
	struct vb_iw_cursor tx;
	/* position up to which the socket has accepted everything */
	struct vb_iw_cursor taken;
	uint32_t begun; /* send queue index: the WQEs before it were checked */
	/* If stop_status is not WC_SUCCESS, the WQE with this send queue index
	 * cannot be sent; it completes with stop_status once it is the
	 * oldest. */
	uint32_t stop;
	enum vb_wc_status stop_status;
	/* estimate of the bytes that the socket accepts now */
	uint32_t appetite;
	/* small batches sent since the peer last sent, or since a pause */
	unsigned unheard;
	vb_time sent_at; /* the time of the last small batch */
	/* sendmsg() failed because the program's memory is missing: copy
	 * payloads, so that the WQE at fault is found. */
	bool copies;
	/* the rest of an FPDU of which the socket accepted only a part */
	uint8_t *cut;
	uint32_t cut_at, cut_end, cut_room;
	uint32_t asked_head;
	struct vb_iw_asked asked[VB_MAX_RD_ATOM];
	uint32_t answer_tail;
	struct vb_iw_answer answers[VB_IW_ANSWERS];
	struct vb_term term; /* in IW_DYING: the Terminate to be sent */
	bool has_card, heard_card;
	struct vb_rdmap_card card, peer_card;
	/* The fields below are the state of receiving. */
	struct vb_iw_inbound in;
	uint8_t *carry; /* the bytes of an incomplete FPDU */
	uint32_t carry_bytes, carry_room;
};

static inline struct vb_iw *vb_iw(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return qp->priv[PRIV_TRANSPORT];
}

static inline enum vb_qp_state vb_iw_state(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	/* Relaxed: the state is written only under drive, which the caller
	 * holds. */
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

static inline uint32_t vb_iw_qpn(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	/* Relaxed: the number is written only under drive, which the caller
	 * holds. */
	return atomic_load_explicit(&qp->qpn, memory_order_relaxed);
}

static inline bool vb_iw_sends(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	enum vb_qp_state s = vb_iw_state(qp);

	return s == QPS_RTS || s == QPS_SQD;
}

/* Has this side begun a request that is not complete, so that the peer may have
 * seen it? If the stream then fails, the oldest such request completes with the
 * error. On the same-host path each posted request counts as begun. */
static inline bool vb_iw_has_begun(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	if (qp->way == WAY_NEAR)
		return qp->sq.done != vb_sq_end(&qp->sq);
	return qp->sq.done != vb_iw(qp)->begun;
}

/* While nothing has come from the peer, the initiator nudges it by empty
 * WRITEs: first after NUDGE_FIRST, then after pauses that grow by the factor
 * NUDGE_SLOWER up to NUDGE_LAST. */
#define NUDGE_FIRST  (20 * VB_MSEC)
#define NUDGE_SLOWER 10
#define NUDGE_LAST   (2 * VB_SEC)

/* Flags of a WQE, stored in its field first_psn, which iWARP does not need. */
enum vb_iw_wqe_flags {
	WQE_ANSWERED = 1 << 0,
	/* This side has carried out the WQE, which needs no message. */
	WQE_RAN = 1 << 1,
};

/* Convert immediate data, which programs pass in wire order, to a number. */
static inline uint32_t vb_iw_imm_word(uint32_t imm)
{
	return (uint32_t)vb_load_be((const uint8_t *)&imm, sizeof(imm));
}

static inline uint32_t vb_iw_imm(uint32_t word)
{
	uint32_t imm;

	vb_store_be((uint8_t *)&imm, word, sizeof(imm));
	return imm;
}

/*
 * Coalescing. A message that is sent by a system call of its own costs several
 * times as much as one of many, and a stream has no acknowledgements to wait
 * for. A program that has sent VB_IW_UNHEARD small batches and received nothing
 * does not wait for replies. So its next messages wait until there are
 * VB_IW_GATHER_COUNT messages or VB_IW_GATHER_BYTES bytes, or until
 * VB_IW_GATHER_LASTS has passed.
 */
#define VB_IW_UNHEARD	   8
#define VB_IW_GATHER_COUNT 64u
#define VB_IW_GATHER_BYTES (16u << 10)
#define VB_IW_GATHER_LASTS (200 * VB_USEC)

/* Functions of iwarp/req.c. Put the next FPDU of a request into @out. False:
 * there is none now. */
bool vb_iw_put_request(struct vb_qp *qp, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive);
/* Carry out the next WQEs that need no message (memory windows). */
void vb_iw_run_local(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Put the RTR, the first message in peer-to-peer mode, into @out. Always
 * returns true. */
bool vb_iw_put_rtr(struct vb_qp *qp, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive);
/* Returns the time of the next nudge to a peer that has sent nothing yet;
 * VB_NEVER: there is none. */
vb_time vb_iw_nudge_time(const struct vb_iw *s);
/* Put a nudge into @out: a WRITE of 0 bytes, which makes some peers look at
 * earlier data. */
void vb_iw_put_nudge(struct vb_qp *qp, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive);
/* Does the peer answer this WQE with data: READ, atomic? */
bool vb_iw_asks(const struct vb_send_wqe *wqe);
/* Complete the oldest WQEs that are finished. */
void vb_iw_retire(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* Functions of iwarp/answer.c: put a part of a response, the card, or the
 * Terminate into @out. vb_iw_put_answer() returns false when no response is
 * due. */
bool vb_iw_put_answer(struct vb_qp *qp, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive);
bool vb_iw_has_answers(const struct vb_iw *s);
void vb_iw_put_card(struct vb_qp *qp, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive);
void vb_iw_put_term(struct vb_qp *qp, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive);

/* Is the stream still open? If the queue pair is in ERR, for example because a
 * completion queue was full, this ends the stream. */
bool vb_iw_lives(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* Functions of iwarp/tx.c build an FPDU. The caller writes the header to the
 * writer of vb_iw_fpdu_begin(). */
struct vb_iw_source {
	/* the WQE whose payload is sent; NULL: @answer is the source */
	const struct vb_send_wqe *wqe;
	/* the READ of the peer that asks for the memory that is sent */
	const struct vb_iw_answer *answer;
	uint32_t offset, len;
};
bool vb_iw_has_room(const struct vb_iw_txq *out);
struct vb_writer vb_iw_fpdu_begin(struct vb_iw_txq *out);
/* Add the payload behind the header, which ends at @hdr. If the payload cannot
 * be read, this adds nothing and returns the fault, else FAULT_NONE. */
enum vb_fault vb_iw_fpdu_end(struct vb_qp *qp, struct vb_iw_txq *out,
			     struct vb_writer hdr,
			     const struct vb_iw_source *src)
	VB_REQUIRES(qp->drive);
/* Record the cursor in @out, after the caller has advanced it past the FPDU. */
void vb_iw_fpdu_mark(struct vb_qp *qp, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive);

/* A function of iwarp/mpa.c: is the receiver between two FPDUs? */
bool vb_iw_is_between(const struct vb_iw *s);

/* A function of iwarp/resp.c: check and handle a complete ULPDU of @len
 * bytes. */
void vb_iw_take(struct vb_qp *qp, const uint8_t *ulpdu, uint32_t len)
	VB_REQUIRES(qp->drive);

/* Functions of iwarp/term.c. End the stream with a Terminate because of a fault
 * of the peer. @seg: the segment at fault, or NULL. */
void vb_iw_refuse(struct vb_qp *qp, enum vb_iw_fault fault,
		  const struct vb_ddp_seg *seg) VB_REQUIRES(qp->drive);
/* The peer has sent the Terminate @t: end the stream. */
void vb_iw_terminated(struct vb_qp *qp, const struct vb_term *t)
	VB_REQUIRES(qp->drive);
/* End the stream with a Terminate because of a fault of this side. */
void vb_iw_give_up(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* Functions of iwarp/marker.c. Returns the bytes of an FPDU of @len bytes once
 * its markers are inserted. The last marker of the stream began @since bytes
 * ago (0: a marker is due now); RFC 5044 s4.3. */
uint32_t vb_marked_bytes(uint32_t since, uint32_t len);
/* Insert the markers in place and append the CRC. Returns the number of bytes
 * afterwards. */
uint32_t vb_mark(uint8_t *fpdu, uint32_t since, uint32_t len, bool crc);
/* Remove the markers in place. False: a marker does not point to the beginning
 * of the FPDU. */
bool vb_unmark(uint8_t *fpdu, uint32_t since, uint32_t len);

#endif

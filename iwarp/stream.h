/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of an iWARP queue pair (PRIV_TRANSPORT), and the functions that the
 * files of this directory offer each other. The caller of each holds qp->drive.
 *
 * Words: with a "card" a process tells its peer on this host who it is
 * (terms.near). A WQE "asks" if the peer answers it with data: READ, atomic.
 */
#ifndef IWARP_STREAM_H
#define IWARP_STREAM_H

#include "iwarp/iwarp.h"
#include "iwarp/term.h"

enum vb_iw_phase {
	IW_IDLE, /* not started */
	IW_OPEN,
	IW_DYING,  /* sends responses owed, then a Terminate */
	IW_ENDING, /* sends only the rest of a cut FPDU */
	IW_CLOSED,
};

/* What the sender has begun and not finished (vb_iw_cursor.stage). */
enum vb_iw_stage {
	STAGE_NONE,
	STAGE_RTR, /* the initiator's first FPDU */
	STAGE_REQUEST,
	STAGE_IMM, /* the immediate data after a WRITE */
	STAGE_ANSWER,
	STAGE_LAST, /* the Terminate was sent */
};

#define VB_IW_NO_WQE UINT32_MAX

/* A READ or atomic in flight. */
struct vb_iw_asked {
	uint32_t index; /* send queue index of its WQE... */
	bool rtr;	/* ...unless it is the RTR, which has none */
	uint32_t msn;
	/* where the peer's response to a READ goes, and the bytes arrived: */
	uint32_t stag, length, got;
	uint64_t to;
};

/* A READ or atomic of the peer that this side must answer. It has carried out
 * an atomic already. */
struct vb_iw_answer {
	bool atomic;
	uint32_t id; /* of an atomic */
	uint64_t value;
	uint32_t stag, length; /* source */
	uint64_t to;
	uint32_t sink_stag; /* destination */
	uint64_t sink_to;
};

/* If the RTR is a READ, it is answered besides the READs agreed on. */
#define VB_IW_ANSWERS 256
_Static_assert(VB_IW_ANSWERS > VB_MAX_RD_ATOM, "and a power of two");

/* What is being received: untagged messages on queues 0, 1 and 3, and
 * WRITEs. */
struct vb_iw_inbound {
	bool heard;	     /* an FPDU has arrived */
	uint32_t send_msn;   /* expected MSN of queue 0 */
	uint32_t ask_msn;    /* of queue 1 */
	uint32_t atomic_msn; /* of queue 3 */
	uint32_t offset;     /* bytes of the message in progress */
	uint8_t opcode;
	uint32_t write_bytes; /* bytes of the WRITE in progress... */
	/* ...and of the last complete one, until the next begins. */
	uint32_t written;
	uint16_t marker; /* as in vb_iw_cursor */
};

struct vb_iw {
	enum vb_iw_phase phase;
	struct vb_mpa_terms terms;
	uint32_t mulpdu;
	vb_time patient_until; /* responder: until then wait for an FPDU */
	vb_time nudge_after, nudge_at; /* initiator: pause, and next nudge */
	/* sending: */
	struct vb_iw_cursor tx;
	/* up to here the socket has taken everything */
	struct vb_iw_cursor taken;
	uint32_t begun; /* send queue index; WQEs before it were checked */
	/* If stop_status is not WC_SUCCESS: this WQE cannot be sent, and it
	 * completes with that status once it is the oldest. */
	uint32_t stop;
	enum vb_wc_status stop_status;
	uint32_t appetite; /* bytes that the socket probably takes now */
	unsigned unheard;  /* small batches since the peer sent, or a pause */
	vb_time sent_at;   /* time of the last of them */
	/* sendmsg() failed for the program's memory: copy payloads, which finds
	 * the WQE at fault. */
	bool copies;
	uint8_t *cut; /* the rest of an FPDU that the socket took in part */
	uint32_t cut_at, cut_end, cut_room;
	uint32_t asked_head;
	struct vb_iw_asked asked[VB_MAX_RD_ATOM];
	uint32_t answer_tail;
	struct vb_iw_answer answers[VB_IW_ANSWERS];
	struct vb_term term; /* in IW_DYING: to be sent */
	bool has_card, heard_card;
	struct vb_rdmap_card card, peer_card;
	/* receiving: */
	struct vb_iw_inbound in;
	uint8_t *carry; /* an incomplete FPDU */
	uint32_t carry_bytes, carry_room;
};

static inline struct vb_iw *vb_iw(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	return qp->priv[PRIV_TRANSPORT];
}

static inline enum vb_qp_state vb_iw_state(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	/* Relaxed: written under drive, which the caller holds. */
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

static inline uint32_t vb_iw_qpn(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	/* Relaxed: written under drive, which the caller holds. */
	return atomic_load_explicit(&qp->qpn, memory_order_relaxed);
}

static inline bool vb_iw_sends(const struct vb_qp *qp) VB_REQUIRES(qp->drive)
{
	enum vb_qp_state s = vb_iw_state(qp);

	return s == QPS_RTS || s == QPS_SQD;
}

/* Does the peer perhaps know of a request that is not complete? */
static inline bool vb_iw_has_begun(const struct vb_qp *qp)
	VB_REQUIRES(qp->drive)
{
	if (qp->way == WAY_NEAR)
		return qp->sq.done != vb_sq_end(&qp->sq);
	return qp->sq.done != vb_iw(qp)->begun;
}

/* As long as nothing has come from the peer, the initiator nudges it: after
 * NUDGE_FIRST, then after pauses that grow by the factor NUDGE_SLOWER up to
 * NUDGE_LAST. */
#define NUDGE_FIRST  (20 * VB_MSEC)
#define NUDGE_SLOWER 10
#define NUDGE_LAST   (2 * VB_SEC)

/* Flags of a WQE, kept in its first_psn, which iWARP does not need. */
enum vb_iw_wqe_flags {
	WQE_ANSWERED = 1 << 0,
	/* This side has carried out the WQE, which sends nothing. */
	WQE_RAN = 1 << 1,
};

/* Immediate data, which programs give and take in wire order, as a number. */
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
 * Coalescing. Sending each message by a system call of its own costs several
 * times as much as many in one, and a stream has no acknowledgements to wait
 * for. If a program has sent VB_IW_UNHEARD small batches and received nothing,
 * it does not wait for replies. So what it posts next waits until there are
 * VB_IW_GATHER_COUNT messages or VB_IW_GATHER_BYTES bytes, or until
 * VB_IW_GATHER_LASTS has passed.
 */
#define VB_IW_UNHEARD	   8
#define VB_IW_GATHER_COUNT 64u
#define VB_IW_GATHER_BYTES (16u << 10)
#define VB_IW_GATHER_LASTS (200 * VB_USEC)

/* iwarp/req.c: put the next FPDU of a request into @out. False: there is none
 * now. */
bool vb_iw_put_request(struct vb_qp *qp, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive);
/* Carry out the next WQEs that send nothing (memory windows). */
void vb_iw_run_local(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Put the RTR, the first message in peer-to-peer mode, into @out. Always
 * true. */
bool vb_iw_put_rtr(struct vb_qp *qp, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive);
/* When to nudge a peer that has sent nothing yet; VB_NEVER: not. */
vb_time vb_iw_nudge_time(const struct vb_iw *s);
/* Put a WRITE of 0 bytes, which makes some peers look at earlier data. */
void vb_iw_put_nudge(struct vb_qp *qp, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive);
/* Does the peer answer this WQE with data: READ, atomic? */
bool vb_iw_asks(const struct vb_send_wqe *wqe);
/* Complete the oldest WQEs, as far as they are done. */
void vb_iw_retire(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* iwarp/answer.c: put a part of a response, the card, or the Terminate into
 * @out. vb_iw_put_answer() returns false when there is none. */
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

/* iwarp/tx.c: build an FPDU. The header goes to vb_iw_fpdu_begin()'s writer. */
struct vb_iw_source {
	const struct vb_send_wqe *wqe; /* payload of a WQE... */
	/* ...or of memory that a READ asks for */
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
/* Note in @out the cursor, which the caller has moved behind the FPDU. */
void vb_iw_fpdu_mark(struct vb_qp *qp, struct vb_iw_txq *out)
	VB_REQUIRES(qp->drive);

/* iwarp/mpa.c: is the receiver between two FPDUs? */
bool vb_iw_is_between(const struct vb_iw *s);

/* iwarp/resp.c: check and handle a complete ULPDU of @len bytes. */
void vb_iw_take(struct vb_qp *qp, const uint8_t *ulpdu, uint32_t len)
	VB_REQUIRES(qp->drive);

/* iwarp/term.c: end the stream with a Terminate because the peer did wrong.
 * @seg: its segment at fault, or NULL. */
void vb_iw_refuse(struct vb_qp *qp, enum vb_iw_fault fault,
		  const struct vb_ddp_seg *seg) VB_REQUIRES(qp->drive);
/* The peer has sent the Terminate @t: end the stream. */
void vb_iw_terminated(struct vb_qp *qp, const struct vb_term *t)
	VB_REQUIRES(qp->drive);
/* End the stream with a Terminate for a reason on this side. */
void vb_iw_give_up(struct vb_qp *qp) VB_REQUIRES(qp->drive);

/* iwarp/marker.c: how many bytes an FPDU of @len bytes has once its markers are
 * inserted. The last marker of the stream began @since bytes ago (0: one is due
 * now); RFC 5044 s4.3. */
uint32_t vb_marked_bytes(uint32_t since, uint32_t len);
/* Insert the markers in place and append the CRC. Returns how many bytes there
 * are then. */
uint32_t vb_mark(uint8_t *fpdu, uint32_t since, uint32_t len, bool crc);
/* Remove the markers in place. False: a marker does not point to the beginning
 * of the FPDU. */
bool vb_unmark(uint8_t *fpdu, uint32_t since, uint32_t len);

#endif

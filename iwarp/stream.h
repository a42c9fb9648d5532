/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream's state (qp->tp), and the doors between the files that work on it.
 * Everything here is under qp->drive.
 */
#ifndef IWARP_STREAM_H
#define IWARP_STREAM_H

#include "iwarp/iwarp.h"
#include "iwarp/term.h"

enum vb_iw_phase {
	IW_IDLE, /* not started */
	IW_OPEN,
	IW_DYING,  /* answers owed since before, then a Terminate */
	IW_ENDING, /* no more than the rest of an FPDU */
	IW_CLOSED,
};

/* What the sender is in the middle of (vb_iw_cursor.stage). */
enum vb_iw_stage {
	STAGE_NONE,
	STAGE_RTR, /* the initiator's first FPDU */
	STAGE_REQUEST,
	STAGE_IMM, /* behind a WRITE */
	STAGE_ANSWER,
	STAGE_LAST, /* the Terminate has been sent */
};

#define VB_IW_NO_WQE UINT32_MAX

/* A READ or atomic sent and not wholly answered. */
struct vb_iw_asked {
	uint32_t index; /* its WQE's... */
	bool rtr;	/* ...or it has none */
	uint32_t msn;
	/* what a READ's answer is to name, and how much of it has come */
	uint32_t stag, length, got;
	uint64_t to;
};

/* The peer's, to be answered. An atomic has been carried out. */
struct vb_iw_answer {
	bool atomic;
	uint32_t id; /* of an atomic */
	uint64_t value;
	uint32_t stag, length; /* where from */
	uint64_t to;
	uint32_t sink_stag; /* where to */
	uint64_t sink_to;
};

/* An RTR is answered beside the READs that were agreed on. */
#define VB_IW_ANSWERS 256
_Static_assert(VB_IW_ANSWERS > VB_MAX_RD_ATOM, "and a power of two");

/* The untagged message being received on queue 0; WRITEs. */
struct vb_iw_inbound {
	bool heard;	     /* an FPDU has come */
	uint32_t send_msn;   /* expected: queue 0 */
	uint32_t ask_msn;    /* queue 1 */
	uint32_t atomic_msn; /* queue 3 */
	uint32_t offset;     /* of the message under way */
	uint8_t opcode;
	uint32_t write_bytes; /* of the WRITE under way... */
	uint32_t written;     /* ...and of the last one, until another comes */
	uint16_t marker;      /* as in vb_iw_cursor */
};

struct vb_iw {
	enum vb_iw_phase phase;
	struct vb_mpa_terms terms;
	uint32_t mulpdu;
	vb_time patient_until;	       /* the responder, for the first FPDU */
	vb_time nudge_after, nudge_at; /* the initiator, as long */
	/* sending */
	struct vb_iw_cursor tx;
	struct vb_iw_cursor taken; /* what was before it is with the socket */
	uint32_t begun;		   /* send queue: all before have been judged */
	/* The WQE that cannot go on here, when stop_status is no success. */
	uint32_t stop;
	enum vb_wc_status stop_status;
	uint32_t appetite; /* bytes that the socket may take now */
	unsigned unheard;  /* small batches since bytes came, or a pause */
	vb_time sent_at;   /* the last of them */
	bool copies;  /* the socket found memory missing: see for ourselves */
	uint8_t *cut; /* the rest of an FPDU */
	uint32_t cut_at, cut_end, cut_room;
	uint32_t asked_head;
	struct vb_iw_asked asked[VB_MAX_RD_ATOM];
	uint32_t answer_tail;
	struct vb_iw_answer answers[VB_IW_ANSWERS];
	struct vb_term term; /* IW_DYING */
	bool has_card, heard_card;
	struct vb_rdmap_card card, peer_card;
	/* receiving */
	struct vb_iw_inbound in;
	uint8_t *carry; /* the beginning of an FPDU */
	uint32_t carry_bytes, carry_room;
};

static inline struct vb_iw *vb_iw(const struct vb_qp *qp)
{
	return qp->tp;
}

static inline enum vb_qp_state vb_iw_state(const struct vb_qp *qp)
{
	/* Written under drive, which the caller holds. */
	return atomic_load_explicit(&qp->state, memory_order_relaxed);
}

static inline uint32_t vb_iw_qpn(const struct vb_qp *qp)
{
	/* The same. */
	return atomic_load_explicit(&qp->qpn, memory_order_relaxed);
}

static inline bool vb_iw_sends(const struct vb_qp *qp)
{
	enum vb_qp_state s = vb_iw_state(qp);

	return s == QPS_RTS || s == QPS_SQD;
}

/* Is there a request that is not complete, and that the peer may know of? */
static inline bool vb_iw_has_begun(const struct vb_qp *qp)
{
	if (qp->way == WAY_NEAR)
		return qp->sq.done != vb_sq_end(&qp->sq);
	return qp->sq.done != vb_iw(qp)->begun;
}

/* A peer that is not heard: nudged thus long after the start, then after ten
 * times as long, up to... */
#define NUDGE_FIRST  (20 * VB_MSEC)
#define NUDGE_SLOWER 10
#define NUDGE_LAST   (2 * VB_SEC)

/* Flags of a WQE (first_psn), valid before begun. */
enum vb_iw_wqe_flags {
	WQE_ANSWERED = 1 << 0,
	WQE_RAN = 1 << 1, /* it sends nothing, and has been carried out */
};

/* Immediate data, which programs give and take as it is on the wire. */
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
 * A message a system call costs several times what many in one do, and a
 * stream has no acknowledgements to wait for. A program that has sent so many
 * small ones and heard nothing is no program that waits for answers: what it
 * posts gathers until there is this much, or this long.
 */
#define VB_IW_UNHEARD	   8
#define VB_IW_GATHER_COUNT 64u
#define VB_IW_GATHER_BYTES (16u << 10)
#define VB_IW_GATHER_LASTS (200 * VB_USEC)

/* iwarp/req.c: requests. Put the next FPDU into @out. False: there is none
 * now. */
bool vb_iw_put_request(struct vb_qp *qp, struct vb_iw_txq *out);
/* Those next that send nothing. */
void vb_iw_run_local(struct vb_qp *qp);
bool vb_iw_put_rtr(struct vb_qp *qp, struct vb_iw_txq *out);
/* When the peer, who has not been heard, is to be nudged; VB_NEVER. */
vb_time vb_iw_nudge_time(const struct vb_iw *s);
void vb_iw_put_nudge(struct vb_qp *qp, struct vb_iw_txq *out);
bool vb_iw_asks(const struct vb_send_wqe *wqe);
/* Complete what may be. */
void vb_iw_retire(struct vb_qp *qp);

/* iwarp/answer.c: the same for answers, our card, and the Terminate. */
bool vb_iw_put_answer(struct vb_qp *qp, struct vb_iw_txq *out);
bool vb_iw_has_answers(const struct vb_iw *s);
void vb_iw_put_card(struct vb_qp *qp, struct vb_iw_txq *out);
void vb_iw_put_term(struct vb_qp *qp, struct vb_iw_txq *out);

/* Is it open? It may have died of what is not ours: a completion queue that
 * was full. */
bool vb_iw_lives(struct vb_qp *qp);

/* iwarp/tx.c: FPDUs being made. A header is written to what begin returns. */
struct vb_iw_source {
	const struct vb_send_wqe *wqe;	   /* its data... */
	const struct vb_iw_answer *answer; /* ...or memory of ours */
	uint32_t offset, len;
};
bool vb_iw_has_room(const struct vb_iw_txq *out);
struct vb_writer vb_iw_fpdu_begin(struct vb_iw_txq *out);
/* The payload behind the header, which ends at @hdr. */
enum vb_fault vb_iw_fpdu_end(struct vb_qp *qp, struct vb_iw_txq *out,
			     struct vb_writer hdr,
			     const struct vb_iw_source *src);
/* The cursor has moved behind the FPDU. */
void vb_iw_fpdu_mark(struct vb_qp *qp, struct vb_iw_txq *out);

/* iwarp/mpa.c: bytes that have come, at the end of the stream. */
bool vb_iw_is_between(const struct vb_iw *s);

/* iwarp/resp.c: a ULPDU has come, and is whole. */
void vb_iw_take(struct vb_qp *qp, const uint8_t *ulpdu, uint32_t len);

/* iwarp/term.c: the stream ends because of the peer. @seg: what it is about,
 * or NULL. */
void vb_iw_refuse(struct vb_qp *qp, enum vb_iw_fault fault,
		  const struct vb_ddp_seg *seg);
/* The peer ends it. */
void vb_iw_terminated(struct vb_qp *qp, const struct vb_term *t);
/* We end it, for a reason of our own. */
void vb_iw_give_up(struct vb_qp *qp);

/* iwarp/marker.c: an FPDU of @len bytes in a stream where a marker began
 * @since bytes ago (0: one is due). Its bytes with markers. */
uint32_t vb_marked_bytes(uint32_t since, uint32_t len);
/* Spread it out in place, and put the CRC. Returns its bytes. */
uint32_t vb_mark(uint8_t *fpdu, uint32_t since, uint32_t len, bool crc);
/* Take the markers out, in place. False: one of them does not point at the
 * FPDU's beginning. */
bool vb_unmark(uint8_t *fpdu, uint32_t since, uint32_t len);

#endif

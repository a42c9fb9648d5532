/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets of a work request: their contents and their number. A packet is
 * built from its work request (WQE) and its PSN alone, so a retransmission
 * needs no copy of what was sent. RC, UC and UD use these functions. Their
 * callers hold qp->drive.
 */
#ifndef IB_REQ_PACKET_H
#define IB_REQ_PACKET_H

#include "core/transport.h"
#include "wire/ib_hdr.h"

enum vb_req_traits {
	REQ_ASKS = 1 << 0,     /* the responder answers the request with data */
	REQ_HAS_IMM = 1 << 1,  /* the last packet has immediate data */
	REQ_HAS_INV = 1 << 2,  /* the last packet has an R_Key to invalidate */
	REQ_CONSUMES = 1 << 3, /* the request consumes a receive of the peer */
	/* the request changes a memory window and sends no packet */
	REQ_LOCAL = 1 << 4,
};

struct vb_req_row {
	bool valid;
	uint8_t kind; /* kind of the request on the wire, an enum vb_ib_kind */
	uint8_t code; /* opcode of an atomic, an enum vb_ib_code */
	uint8_t traits; /* bits of enum vb_req_traits */
};

/* The table of work request operations, indexed by enum vb_wr_op. */
#define VB_REQ_ROWS (WR_ATOMIC_WRITE + 1)
extern const struct vb_req_row vb_req_rows[VB_REQ_ROWS];

static inline const struct vb_req_row *
vb_req_row_of(const struct vb_send_wqe *wqe)
{
	return &vb_req_rows[wqe->op];
}

/* Does the responder answer @wqe with data: READ, atomic, ATOMIC WRITE? */
static inline bool vb_req_asks(const struct vb_send_wqe *wqe)
{
	return vb_req_row_of(wqe)->traits & REQ_ASKS;
}

/* Does this side carry out @wqe itself without a packet: bind or invalidate a
 * window? */
static inline bool vb_req_is_local(const struct vb_send_wqe *wqe)
{
	return vb_req_row_of(wqe)->traits & REQ_LOCAL;
}

/*
 * May @wqe be sent at all? Checks the operation against the type of queue
 * pair (IBA 9.2, table 38), the length, and the local keys. WC_SUCCESS, or
 * the status that the work request completes with.
 */
enum vb_wc_status vb_req_judge(const struct vb_qp *qp,
			       const struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive);

/* Returns the number of PSNs of @wqe: its packets, or those of the responses to
 * a READ. */
uint32_t vb_req_psns(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
	VB_REQUIRES(qp->drive);

/* The part of a message that is in one packet. */
struct vb_req_segment {
	/* offset of the part in the message, and its length, in bytes */
	uint32_t offset, len;
	/* position of the packet, an enum vb_ib_place: first, middle, last or
	 * only */
	uint8_t place;
	const struct vb_route *route;
};

/*
 * Add one SEND or WRITE packet of @wqe to @out, which has room. The caller has
 * filled in @pkt's headers except for those that @wqe and @seg determine.
 * FAULT_LKEY or FAULT_LOCAL_MEMORY: the payload cannot be read, and no packet
 * is added.
 */
enum vb_fault vb_req_put(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			 const struct vb_req_segment *seg,
			 struct vb_ib_pkt *pkt, struct vb_txq *out)
	VB_REQUIRES(qp->drive);

/* Add the packet of @wqe with PSN @psn to @out, for RC and UC: fills in all
 * headers. Results as of vb_req_put(). */
enum vb_fault vb_req_put_data(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			      uint32_t psn, bool ack_req, struct vb_txq *out)
	VB_REQUIRES(qp->drive);

/* Add to @out a READ request for the @count responses from PSN @psn on. */
void vb_req_put_read(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		     uint32_t psn, uint32_t count, struct vb_txq *out)
	VB_REQUIRES(qp->drive);

/* Add to @out the packet of an atomic or an ATOMIC WRITE. */
void vb_req_put_atomic(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		       struct vb_txq *out) VB_REQUIRES(qp->drive);

#endif

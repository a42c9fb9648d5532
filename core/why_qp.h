/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a queue pair's work request fails: sentences with its numbers, told once
 * (core/why.h). The first cause that is told stays in qp->why until the queue
 * pair leaves ERR or SQE: later ones follow from it and are not told, and
 * completions report it as ibv_wc.vendor_err. */
#ifndef CORE_WHY_QP_H
#define CORE_WHY_QP_H

#include "core/qp.h"
#include "core/why.h"

/* A request of the peer, as far as the transport knows it. */
struct vb_why_ask {
	const char *what; /* "WRITE", "SEND"; NULL: not known */
	/* the key, range and rights that the request needs */
	uint32_t key, need;
	uint64_t va, len;
};

/* Set qp->why to the cause @why and report it on standard error, unless qp->why
 * has a cause already. @format says what happened; "qp 0x12: " precedes it. */
void vb_qp_why(struct vb_qp *qp, enum vb_why why, const char *format, ...)
	VB_PRINTF(3, 4) VB_REQUIRES(qp->drive);

/* The work request @wqe of the send queue will complete with the error @status:
 * report the cause, as far as the request itself shows it. */
void vb_qp_why_send(struct vb_qp *qp, const struct vb_send_wqe *wqe,
		    enum vb_wc_status status) VB_REQUIRES(qp->drive);
/* The receive in qp->recv will complete with the error @status: report why. */
void vb_qp_why_recv(struct vb_qp *qp, enum vb_wc_status status)
	VB_REQUIRES(qp->drive);
/* This end refuses a request of the peer because of @fault, which ends the
 * connection: report the cause. Returns qp->why. */
uint16_t vb_qp_why_fault(struct vb_qp *qp, enum vb_fault fault,
		     const struct vb_why_ask *ask) VB_REQUIRES(qp->drive);

/* Write the peer's number and address to @text, as "qp 0x34 at 10.88.0.2", and
 * return it. */
#define VB_WHY_PEER 96
const char *vb_why_peer(const struct vb_qp *qp, char text[VB_WHY_PEER])
	VB_REQUIRES(qp->drive);
/* Returns the cause (enum vb_why) for a peer that does not answer, which
 * depends on the queue pair's network. */
enum vb_why vb_why_silence(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Returns the name of an enum vb_wr_op, as "RDMA WRITE". */
const char *vb_why_op(unsigned op);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by UC and UD: the peer acknowledges nothing, so a work request is
 * complete when its last packet is in a batch, and a receiver merely drops a
 * faulty packet. */
#ifndef IB_UNREL_H
#define IB_UNREL_H

#include "ib/pace.h"
#include "ib/rc.h"

extern const struct vb_transport vb_uc_transport, vb_ud_transport;
extern const struct vb_transport_ops vb_uc_ops, vb_ud_ops;

/* The first member of the state of a UC or UD queue pair. */
struct vb_unrel {
	struct vb_pace pace;
};

/* The queue pair has entered RTS: initialize the pace of sending. */
void vb_unrel_start(struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* Call @next, which sends one packet, as long as @out has room, the pace allows
 * it, and @next returns true. Returns true when @out is full. */
bool vb_unrel_send(struct vb_qp *qp, vb_time now, struct vb_txq *out,
		   bool (*next)(struct vb_qp *qp, vb_time now,
				struct vb_txq *out)) VB_REQUIRES(qp->drive);
/* Complete the oldest WQE with @status and stop sending (SQE, IBA 10.3.1.7). */
void vb_unrel_fail(struct vb_qp *qp, enum vb_wc_status status)
	VB_REQUIRES(qp->drive);
/* Is the queue pair in a state that accepts packets? */
bool vb_unrel_receives(const struct vb_qp *qp) VB_REQUIRES(qp->drive);
/* The peer answers that a packet has arrived there (ib/pace.h). This is
 * vb_transport_ops.recv for responses. */
void vb_unrel_heard(struct vb_qp *qp, const struct vb_ib_pkt *pkt, vb_time now)
	VB_REQUIRES(qp->drive);
/* Write the payload to the receive in qp->recv. FAULT_NONE or
 * FAULT_RQE_LKEY. */
enum vb_fault vb_unrel_place(struct vb_qp *qp, uint64_t offset,
			     const void *bytes, uint32_t len)
	VB_REQUIRES(qp->drive);
/* Act on @fault in a packet that has arrived (core/fault.h). */
void vb_unrel_refuse(struct vb_qp *qp, enum vb_fault fault)
	VB_REQUIRES(qp->drive);
/* Returns the time at which the engine must call send() even if no packet
 * arrives; VB_NEVER: no such time. */
vb_time vb_unrel_deadline(const struct vb_qp *qp) VB_REQUIRES(qp->drive);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UC and UD: nothing is acknowledged, so a work request is complete when its
 * last packet is in a batch, and a fault of the peer's is a packet less.
 */
#ifndef IB_UNREL_H
#define IB_UNREL_H

#include "ib/pace.h"
#include "ib/rc.h"

extern const struct vb_transport_ops vb_uc_ops, vb_ud_ops;

/* How UC's and UD's state begins. */
struct vb_unrel {
	struct vb_pace pace;
};

/* To RTS: sending begins. */
void vb_unrel_start(struct vb_qp *qp);
/* Send packets of @next while there is room, the pace allows it, and @next
 * says true. */
bool vb_unrel_send(struct vb_qp *qp, vb_time now, struct vb_txq *out,
		   bool (*next)(struct vb_qp *qp, vb_time now,
				struct vb_txq *out));
/* The oldest WQE ends with @status, sending stops (IBA 10.3.1.7: SQE). */
void vb_unrel_fail(struct vb_qp *qp, enum vb_wc_status status);
/* In a state that takes packets? */
bool vb_unrel_receives(const struct vb_qp *qp);
/* Write to the receive that qp->recv holds. FAULT_RQE_LKEY. */
enum vb_fault vb_unrel_place(struct vb_qp *qp, uint64_t offset,
			     const void *bytes, uint32_t len);
/* What arrived is at @fault. */
void vb_unrel_refuse(struct vb_qp *qp, enum vb_fault fault);
vb_time vb_unrel_deadline(const struct vb_qp *qp);

#endif

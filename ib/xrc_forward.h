/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC between processes of one host: ib/xrc_forward.c acts on requests,
 * engine/xrc_forward.c carries them between the processes. */
#ifndef IB_XRC_FORWARD_H
#define IB_XRC_FORWARD_H

#include "core/xrc.h"
#include "ib/rc.h"

/* In the process of a shared receive queue, this stands for the target queue
 * pair in another process. The engine makes it and sets these fields of @qp:
 * adapter, type, qpn, state, mtu, attr.dest_qp_num and the access flags. */
struct vb_forward_qp {
	struct vb_qp qp;
	struct vb_inbound in;
	const struct vb_ib_op *prev;
};

/* Carry out the forwarded request @pkt. *@value receives an atomic's result.
 * The caller holds qp.drive. */
enum vb_fault vb_forward_take(struct vb_forward_qp *f,
			      const struct vb_xrc_key *domain,
			      const struct vb_ib_pkt *pkt, uint64_t *value)
	VB_REQUIRES(f->qp.drive);
/* Read memory of this process for another process, whose queue pair answers a
 * READ with it. The caller holds qp.drive. */
enum vb_fault vb_forward_read(struct vb_forward_qp *f,
			      const struct vb_xrc_key *domain,
			      const struct vb_forward_piece *piece, uint8_t *to)
	VB_REQUIRES(f->qp.drive);
/* Flush the receive of a message whose rest will not come. */
void vb_forward_end(struct vb_forward_qp *f) VB_REQUIRES(f->qp.drive);

/* In the process of the target queue pair, under its drive: the request
 * forwarded as number @serial ended with @fault; @value is an atomic's result.
 */
void vb_forward_verdict(struct vb_qp *qp, uint64_t serial, enum vb_fault fault,
			uint64_t value) VB_REQUIRES(qp->drive);
/* The same for a READ: the other process has sent @len bytes, or @fault. */
void vb_forward_bytes(struct vb_qp *qp, uint64_t serial, enum vb_fault fault,
		      const uint8_t *bytes, uint32_t len)
	VB_REQUIRES(qp->drive);

#endif

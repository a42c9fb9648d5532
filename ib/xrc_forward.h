/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC between processes of one host: ib/xrc_forward.c carries out requests, and
 * engine/xrc_forward.c transports them between the processes. */
#ifndef IB_XRC_FORWARD_H
#define IB_XRC_FORWARD_H

#include "core/xrc.h"
#include "ib/rc.h"

/* Represents, in the process of a shared receive queue, the target queue pair
 * of another process. The engine makes this struct and sets these fields of
 * @qp: adapter, type, qpn, state, mtu, attr.dest_qp_num and the access
 * flags. */
struct vb_forward_qp {
	struct vb_qp qp;
	struct vb_inbound in;
	const struct vb_ib_op *prev;
};

/* Carry out the forwarded request @pkt. *@value receives the result of an
 * atomic. The caller holds qp.drive. */
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
/* Flush the receive of a message whose remaining packets will not come. */
void vb_forward_end(struct vb_forward_qp *f) VB_REQUIRES(f->qp.drive);

/* Runs in the process of the target queue pair, under its drive: the request
 * that was forwarded as number @serial ended with @fault; @value is the result
 * of an atomic. */
void vb_forward_verdict(struct vb_qp *qp, uint64_t serial, enum vb_fault fault,
			uint64_t value) VB_REQUIRES(qp->drive);
/* Runs in the process of the target queue pair, under its drive: for READ
 * number @serial the other process has sent @len bytes, or @fault. */
void vb_forward_bytes(struct vb_qp *qp, uint64_t serial, enum vb_fault fault,
		      const uint8_t *bytes, uint32_t len)
	VB_REQUIRES(qp->drive);

#endif

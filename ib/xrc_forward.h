/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC between processes of one host: see ib/xrc_forward.c and
 * engine/xrc_forward.c. */
#ifndef IB_XRC_FORWARD_H
#define IB_XRC_FORWARD_H

#include "core/qp.h"
#include "ib/rc.h"

/* What stands here for a target queue pair of another process. Its owner sets
 * of @qp: adapter, type, qpn, state, mtu, attr.dest_qp_num, access flags. */
struct vb_forward_qp {
	struct vb_qp qp;
	struct vb_inbound in;
	const struct vb_ib_op *prev;
};

/* Both under qp.drive. @value: an atomic's. */
enum vb_fault vb_forward_take(struct vb_forward_qp *f,
			      const struct vb_xrc_key *domain,
			      const struct vb_ib_pkt *pkt, uint64_t *value);
/* Bytes of memory here, of which another process answers a READ. */
enum vb_fault vb_forward_read(struct vb_forward_qp *f,
			      const struct vb_xrc_key *domain,
			      const struct vb_forward_piece *piece,
			      uint8_t *to);
/* A message that began is flushed. */
void vb_forward_end(struct vb_forward_qp *f);

/* Of the process that has the target, under its drive: what became of the
 * request that was handed over as @serial. */
void vb_forward_verdict(struct vb_qp *qp, uint64_t serial, enum vb_fault fault,
			uint64_t value);
/* And the bytes that were asked for as @serial. */
void vb_forward_bytes(struct vb_qp *qp, uint64_t serial, enum vb_fault fault,
		      const uint8_t *bytes, uint32_t len);

#endif

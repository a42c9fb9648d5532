/* SPDX-License-Identifier: BSD-2-Clause */
/* Raw packets: each work request is a whole Ethernet frame. This code adds and
 * removes no header and acknowledges nothing. */
#ifndef IB_RAW_H
#define IB_RAW_H

#include "core/transport.h"

/* The transport of queue pairs for raw packets and of work queues (core/rss.h).
 * They receive no packets of InfiniBand. */
extern const struct vb_transport vb_raw_transport;
extern const struct vb_transport_ops vb_raw_ops;

struct vb_raw_frame {
	const uint8_t *bytes;
	uint32_t len;
	uint32_t tag; /* flow tag of the rule that matched */
};

/* A frame for @qp has arrived; its bytes are valid until the return. A frame
 * that does not fit the next receive is dropped and counted, and the next frame
 * uses that receive, as with datagrams. The caller holds qp->drive. */
void vb_raw_recv(struct vb_qp *qp, const struct vb_raw_frame *f, vb_time now)
	VB_REQUIRES(qp->drive);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw packets: work requests are whole Ethernet frames. No header is added,
 * none is taken off, nothing is answered.
 */
#ifndef IB_RAW_H
#define IB_RAW_H

#include "core/transport.h"

/* Queue pairs for raw packets, and work queues (core/rss.h). */
extern const struct vb_transport_ops vb_raw_ops;

struct vb_raw_frame {
	const uint8_t *bytes;
	uint32_t len;
	uint32_t tag; /* of the rule that steered it here */
};

/* Under drive: a frame for @qp arrived. Borrowed. One that does not fit the
 * next receive is dropped and counted, and that receive is there for the
 * next, as with datagrams. */
void vb_raw_recv(struct vb_qp *qp, const struct vb_raw_frame *f, vb_time now);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_cm's header, before the private data of a REQ and a SIDR REQ: the
 * addresses by which the programs know the two ends (docs/WIRE.md 3.2). */
#ifndef BROKER_CM_HEADER_H
#define BROKER_CM_HEADER_H

#include "wire/ipc_cm.h"

#define VB_CM_HEADER_BYTES 36

struct vb_cm_header {
	uint16_t port;		/* the caller's */
	struct vb_gid src, dst; /* the caller's, the listener's */
};

/* Of @m, a CONNECT: the names of its ends where they have names. */
struct vb_cm_header vb_cm_header_of(const struct vb_ipc_cm *m);
void vb_cm_header_put(uint8_t bytes[VB_CM_HEADER_BYTES],
		      const struct vb_cm_header *h);
/* False: another version. */
bool vb_cm_header_get(const uint8_t bytes[VB_CM_HEADER_BYTES],
		      struct vb_cm_header *h);
/* What of a request's header is not its way, into @m, a REQUEST. */
void vb_cm_header_name(struct vb_ipc_cm *m, const struct vb_cm_header *h);

#endif

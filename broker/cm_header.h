/* SPDX-License-Identifier: BSD-2-Clause */
/* The header that rdma_cm puts before the private data of a REQ and a SIDR REQ:
 * the addresses by which the programs know the two ends (docs/WIRE.md 3.2). */
#ifndef BROKER_CM_HEADER_H
#define BROKER_CM_HEADER_H

#include "wire/ipc_cm.h"

#define VB_CM_HEADER_BYTES 36

struct vb_cm_header {
	uint16_t port; /* source port, of the program that connects */
	/* the addresses of the caller and of the listener */
	struct vb_gid src, dst;
};

/* Returns the header for @m, a CONNECT. If the program called an end by a
 * loopback address (a name in @m), the header has that address, otherwise the
 * end's GID. */
struct vb_cm_header vb_cm_header_of(const struct vb_ipc_cm *m);
/* vb_cm_header_put() encodes @h, vb_cm_header_get() decodes it. */
void vb_cm_header_put(uint8_t bytes[VB_CM_HEADER_BYTES],
		      const struct vb_cm_header *h);
/* Decodes a header. False: the header has a version that this library does not
 * know. */
bool vb_cm_header_get(const uint8_t bytes[VB_CM_HEADER_BYTES],
		      struct vb_cm_header *h);
/* Puts the loopback addresses of @h, the header of a request, into @m, the
 * event REQUEST, as the names of its ends, but only those that differ from the
 * ends' GIDs. */
void vb_cm_header_name(struct vb_ipc_cm *m, const struct vb_cm_header *h);

#endif

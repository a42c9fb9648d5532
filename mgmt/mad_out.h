/* SPDX-License-Identifier: BSD-2-Clause */
/* The seam of management: send this datagram from queue pair 1. */
#ifndef MGMT_MAD_OUT_H
#define MGMT_MAD_OUT_H

#include "wire/mad.h"

/* Between our queue pair 1 and a peer's. */
struct vb_mad_path {
	struct vb_gid sgid, dgid; /* ours, the peer's */
	uint32_t ifindex;
	uint8_t tclass;
};

struct vb_mad_out {
	/* May lose it, as a wire may. */
	void (*send)(void *arg, const struct vb_mad_path *path,
		     const uint8_t mad[VB_MAD_BYTES]);
	void *arg;
};

#endif

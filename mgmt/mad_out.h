/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface by which the communication manager sends datagrams from queue
 * pair 1; the broker fills it in. */
#ifndef MGMT_MAD_OUT_H
#define MGMT_MAD_OUT_H

#include "wire/mad.h"

/* The path between our queue pair 1 and that of a peer. */
struct vb_mad_path {
	/* the GID of this side, and that of the peer */
	struct vb_gid sgid, dgid;
	uint32_t ifindex;
	uint8_t tclass;
	bool v1; /* RoCEv1 carries the datagrams */
};

struct vb_mad_out {
	/* Sends @mad to the peer of @path; the caller still owns the bytes. As
	 * on a wire, @mad may be lost without notice. */
	void (*send)(void *arg, const struct vb_mad_path *path,
		     const uint8_t mad[VB_MAD_BYTES]);
	void *arg;
};

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface by which the communication manager sends datagrams from queue
 * pair 1, of RoCEv2 or of an InfiniBand port; the broker fills it in. */
#ifndef MGMT_MAD_OUT_H
#define MGMT_MAD_OUT_H

#include "wire/mad.h"

/* The path between our queue pair 1 and that of a peer. */
struct vb_mad_path {
	/* The GID of this side, and that of the peer. On InfiniBand a MAD need
	 * not have the peer's GID: then @dgid is zero. */
	struct vb_gid sgid, dgid;
	uint32_t ifindex;
	uint8_t tclass;
	bool v1; /* RoCEv1 carries the datagrams */
	/* The number by which the broker knows the port of a fabric's adapter;
	 * 0: the MADs are packets of UDP. The fields below are for a fabric's
	 * adapter only. */
	uint8_t place;
	uint8_t sl, path_bits;
	uint16_t dlid; /* the peer's LID, or that of a router to it */
	uint16_t pkey; /* P_Key of the MADs, with its membership bit */
	bool global;   /* MADs have a GRH, with the fields below */
	uint8_t hop_limit;
	uint32_t flow_label;
};

struct vb_mad_out {
	/* Sends @mad to the peer of @path; the caller still owns the bytes. As
	 * on a wire, @mad may be lost without notice. */
	void (*send)(void *arg, const struct vb_mad_path *path,
		     const uint8_t mad[VB_MAD_BYTES]);
	void *arg;
};

#endif

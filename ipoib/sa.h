/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests of IPoIB to the subnet administrator (IBA 15.2): to join or
 * leave a multicast group (MCMemberRecord), and for the path to a port
 * (PathRecord). These functions only write and read bytes; the caller sends the
 * datagrams.
 */
#ifndef IPOIB_SA_H
#define IPOIB_SA_H

#include "ipoib/neigh.h"
#include "wire/sa.h"

/* Write the request of the port @g->port_gid to join the group @g->mgid with
 * @g->join_state. If the group does not exist, the administrator creates it
 * with the parameters of the group @as; @as NULL: it does not create the
 * group. */
void ipoib_sa_put_join(uint8_t mad[VB_MAD_BYTES], uint64_t tid,
		       const struct vb_sa_mcmember *g,
		       const struct vb_sa_mcmember *as);
/* Write the request to give up the memberships in @g->join_state. */
void ipoib_sa_put_leave(uint8_t mad[VB_MAD_BYTES], uint64_t tid,
			const struct vb_sa_mcmember *g);
/* Write the request for a reversible path from @from to @to. */
void ipoib_sa_put_path(uint8_t mad[VB_MAD_BYTES], uint64_t tid,
		       const struct vb_gid *from, const struct vb_gid *to,
		       uint16_t pkey);

struct ipoib_sa_answer {
	uint16_t attr_id; /* an enum vb_sa_attr */
	uint64_t tid;
	/* the administrator has accepted the request, and the record is
	 * valid */
	bool good;
	bool left; /* of SA_MCMEMBER: this answers a request to leave a group */
	struct vb_sa_mcmember group; /* valid for SA_MCMEMBER */
	struct vb_ipoib_path path;   /* valid for SA_PATH */
};

/* Read an answer of @len bytes. False: it is too short, or no answer of the
 * subnet administrator. */
bool ipoib_sa_get(const uint8_t *mad, size_t len, struct ipoib_sa_answer *a);

#endif

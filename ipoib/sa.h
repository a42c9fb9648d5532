/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The questions to the subnet administrator (IBA 15.2) that IPoIB has: to join
 * a multicast group or leave it (MCMemberRecord), and for the path to a port
 * (PathRecord). Bytes only; the caller sends the datagrams.
 */
#ifndef IPOIB_SA_H
#define IPOIB_SA_H

#include "ipoib/neigh.h"
#include "wire/sa.h"

/* Write the question whether @g->port_gid may join the group @g->mgid with
 * @g->join_state. If that group does not exist, it is created with the
 * parameters of the group @as; @as NULL: it is not created. */
void ipoib_sa_put_join(uint8_t mad[VB_MAD_BYTES], uint64_t tid,
		       const struct vb_sa_mcmember *g,
		       const struct vb_sa_mcmember *as);
/* Write the question to end the membership that @g has. */
void ipoib_sa_put_leave(uint8_t mad[VB_MAD_BYTES], uint64_t tid,
			const struct vb_sa_mcmember *g);
/* Write the question for a reversible path from @from to @to. */
void ipoib_sa_put_path(uint8_t mad[VB_MAD_BYTES], uint64_t tid,
		       const struct vb_gid *from, const struct vb_gid *to,
		       uint16_t pkey);

struct ipoib_sa_answer {
	uint16_t attr_id; /* an enum vb_sa_attr */
	uint64_t tid;
	bool good; /* the administrator agrees, and the record is valid */
	bool left; /* of SA_MCMEMBER: the answer to a departure */
	struct vb_sa_mcmember group; /* of SA_MCMEMBER */
	struct vb_ipoib_path path;   /* of SA_PATH */
};

/* Read an answer of @len bytes. False: it is too short, or no answer of the
 * subnet administrator. */
bool ipoib_sa_get(const uint8_t *mad, size_t len, struct ipoib_sa_answer *a);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The multicast groups of places that programs have joined. The subnet
 * administrator counts a port once, so programs of this host share one
 * membership, which ends with the last of them. After the subnet manager has
 * asked clients to register again, the broker joins anew.
 */
#ifndef BROKER_SA_GROUP_H
#define BROKER_SA_GROUP_H

#include "broker/sa.h"

struct vb_sa_groups;

/* Tells @owner that it has joined the group that it has named @asked: @error 0,
 * and @m is the group's record. A negative @error: it has not, or is no member
 * any more, since the port could not join again; -ENETRESET: the group of an
 * owner that had joined has another multicast LID or Q_Key now. An owner that asked for
 * any group, by GID zero, calls the group @m->mgid from then on. */
typedef void (*vb_sa_joined)(void *arg, void *owner, const struct vb_gid *asked,
			     int error, const struct vb_sa_mcmember *m);

/* Create the table. NULL: no memory. */
VB_MUST_CHECK struct vb_sa_groups *
vb_sa_groups_create(struct vb_sa *sa, vb_sa_joined joined, void *arg);
/* Frees the table, which all owners have left. */
void vb_sa_groups_destroy(struct vb_sa_groups *all);

/* Joins the group @want->mgid with @want->join_state; @mask names the
 * components of @want that a new group would have; without SA_MC_QKEY a new
 * group has those of IPoIB's broadcast group in @want->pkey's partition.
 * joined() follows, perhaps within this call. -EADDRINUSE: @owner has joined
 * the group already; -ENOMEM. */
VB_MUST_CHECK int vb_sa_group_join(struct vb_sa_groups *all, void *owner,
				   unsigned place,
				   const struct vb_sa_mcmember *want,
				   uint64_t mask, uint32_t timeout_ms,
				   vb_time now);
/* Remove @owner from the group for which it asked with the GID @asked. */
void vb_sa_group_leave(struct vb_sa_groups *all, const void *owner,
		       unsigned place, const struct vb_gid *asked);
/* @owner leaves all groups. */
void vb_sa_groups_forget(struct vb_sa_groups *all, const void *owner);
/* Joins the groups of @place anew: a subnet manager has forgotten them. */
void vb_sa_groups_rejoin(struct vb_sa_groups *all, unsigned place, vb_time now);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The multicast groups of an IPoIB interface, a state machine without I/O. The
 * broadcast group is joined first: its record has the Q_Key, the MTU and the
 * other parameters of the IP subnet (RFC 4391, 5), and the interface creates
 * other groups with the same parameters.
 *
 * - BACKOFF to JOINING: it is time to ask the subnet administrator
 * - JOINING to JOINED: the administrator has accepted. If the host is a member,
 *   it now receives the group's packets; otherwise it only sends to the group
 * - JOINING to BACKOFF: the administrator refused, or did not answer. The next
 *   try is 1, 2, 4, 8, then 16 s later
 *
 * All groups are joined anew, the broadcast group first, when the subnet
 * manager asks for that, when another subnet manager takes over, or when the
 * port's LID has changed. A group to which the host only sends is left when the
 * host has sent nothing to it for VB_GROUP_IDLE.
 */
#ifndef IPOIB_GROUP_H
#define IPOIB_GROUP_H

#include "ipoib/sa.h"
#include "ipoib/waiting.h"

#define VB_GROUP_TABLE	256
#define VB_GROUP_ANSWER (4 * VB_SEC)
#define VB_GROUP_FIRST	VB_SEC
#define VB_GROUP_LAST	(16 * VB_SEC)
#define VB_GROUP_IDLE	(60 * VB_SEC)
/* the longest pause between two tries to join a group to which the host only
 * sends */
#define VB_GROUP_SENDER_LAST (4 * VB_SEC)

enum vb_group_state {
	GROUP_NONE,
	GROUP_BACKOFF,
	GROUP_JOINING,
	GROUP_JOINED,
};

struct vb_group {
	enum vb_group_state state;
	struct vb_gid mgid;
	/* true: the host is a member and receives; false: it only sends */
	bool member;
	/* This port's memberships of the group at the subnet administrator,
	 * bits of enum vb_sa_join_state. @entered: those that the administrator
	 * has confirmed. @doubtful: those that it may have recorded, because a
	 * request got no answer, or that it may have lost since. When the
	 * interface leaves the group, it gives up both, since giving up a
	 * membership that does not exist does no harm. */
	uint8_t entered, doubtful;
	/* the administrator's answer, valid if @entered is not 0 */
	struct vb_sa_mcmember record;
	/* what attach() has set, for the owner of the table; valid in state
	 * JOINED */
	void *handle;
	uint32_t query; /* number of the last join request */
	/* the time of the next try, and the last pause between two tries */
	vb_time due, pause;
	/* when the host last sent a packet to the group */
	vb_time used;
	struct vb_waiting waiting;
};

/* The functions by which the table acts. They must not call functions of the
 * table. */
struct vb_group_ops {
	/* Send a join request to the subnet administrator; the owner passes the
	 * answer to vb_groups_answer(), with g->query. If the group does not
	 * exist, the request creates it with the parameters of the broadcast
	 * group, @as; NULL: @g is the broadcast group itself, which is not
	 * created. */
	void (*join)(void *arg, const struct vb_group *g,
		     const struct vb_sa_mcmember *as);
	void (*leave)(void *arg, const struct vb_group *g);
	/* The administrator has refused: the port is no member as
	 * g->record.join_state says, and has nothing to leave. */
	void (*refused)(void *arg, const struct vb_group *g);
	/* Prepare for sending to the group and, if g->member is true, for
	 * receiving from it. False: that failed. */
	bool (*attach)(void *arg, struct vb_group *g);
	void (*detach)(void *arg, struct vb_group *g);
	void (*send)(void *arg, const struct vb_group *g, const void *frame,
		     size_t len);
	/* The broadcast group has been joined, for the first time or anew. */
	void (*begun)(void *arg, const struct vb_sa_mcmember *broadcast);
};

struct vb_groups;

/* Make a table that has only the broadcast group, with the GID @mgid, and ask
 * to join this group. @port_gid: the port's GID. NULL: no memory. */
struct vb_groups *vb_groups_create(const struct vb_group_ops *ops, void *arg,
				   const struct vb_gid *mgid,
				   const struct vb_gid *port_gid, uint16_t pkey,
				   vb_time now);
/* Leave all groups, and free the table. */
void vb_groups_destroy(struct vb_groups *t);

/* Joins @mgid, of which the host has become a member. */
void vb_groups_enter(struct vb_groups *t, const struct vb_gid *mgid,
		     vb_time now);
/* Call this when the host is no longer a member of @mgid. */
void vb_groups_leave(struct vb_groups *t, const struct vb_gid *mgid);
/* Send a frame, header included, to @mgid: now, or once the group is joined. */
void vb_groups_send(struct vb_groups *t, const struct vb_gid *mgid,
		    const void *frame, size_t len, vb_time now);

/* Handle the answer to the join request @query: @record, or NULL if the
 * administrator has refused. */
void vb_groups_answer(struct vb_groups *t, uint32_t query,
		      const struct vb_sa_mcmember *record, vb_time now);
/* Join all groups anew, because the subnet manager knows nothing of this port's
 * groups any more. */
void vb_groups_rejoin(struct vb_groups *t, vb_time now);

/* Act on the timers that have expired. */
void vb_groups_tick(struct vb_groups *t, vb_time now);
/* Returns the time at which to call vb_groups_tick(); VB_NEVER: no such
 * time. */
vb_time vb_groups_next(const struct vb_groups *t);

/* Returns the broadcast group's record; NULL: the group is not joined. */
const struct vb_sa_mcmember *vb_groups_broadcast(const struct vb_groups *t);
/* Find a group in the table. NULL: it is not there. */
const struct vb_group *vb_groups_find(const struct vb_groups *t,
				      const struct vb_gid *mgid);

#endif

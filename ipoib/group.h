/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The multicast groups of an IPoIB interface, a state machine without I/O. The
 * broadcast group comes first: it has the Q_Key, the MTU and all else of the
 * IP subnet (RFC 4391, 5), and the others are made like it.
 *
 * - BACKOFF to JOINING: it is time to ask the subnet administrator
 * - JOINING to JOINED: the answer came; full members receive as well
 * - JOINING to BACKOFF: the administrator refused, or did not answer; the next
 *   try is 1, 2, 4, 8, then 16 s later
 *
 * All are joined anew when the subnet manager asks for that, or is another one,
 * or the port's LID has changed: the broadcast group first. A group that is
 * only sent to ends when nobody has sent to it for a while.
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
/* the longest distance of tries while the host only sends */
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
	bool member; /* the host receives; else it only sends */
	/* How the subnet administrator counts this port, bits of enum
	 * vb_sa_join_state: as it has said, and as it may, since a question had
	 * no answer yet, or the manager may have forgotten the answer. A group
	 * that ends is left in both, since a departure that nothing matches
	 * does no harm. */
	uint8_t entered, doubtful;
	struct vb_sa_mcmember record; /* what it has answered, if @entered */
	void *handle;		      /* the caller's, while JOINED */
	uint32_t query;		      /* the number of the question under way */
	vb_time due, pause;	      /* the next try, and the last distance */
	vb_time used;		      /* when a packet was last sent */
	struct vb_waiting waiting;
};

/* What the table wants done. None of the functions may call the table. */
struct vb_group_ops {
	/* Ask to join; the answer goes to vb_groups_answer() with g->query.
	 * @as: the broadcast group, or NULL for that itself. */
	void (*join)(void *arg, const struct vb_group *g,
		     const struct vb_sa_mcmember *as);
	void (*leave)(void *arg, const struct vb_group *g);
	/* Be ready to send to the group, and if g->member to receive. False: it
	 * cannot be done. */
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

/* The host becomes a member of @mgid. */
void vb_groups_enter(struct vb_groups *t, const struct vb_gid *mgid,
		     vb_time now);
/* The host is no member of @mgid any more. */
void vb_groups_leave(struct vb_groups *t, const struct vb_gid *mgid);
/* Send a frame, with its header, to @mgid, now or when that is joined. */
void vb_groups_send(struct vb_groups *t, const struct vb_gid *mgid,
		    const void *frame, size_t len, vb_time now);

/* Take the answer to the question @query: @record, or NULL for a refusal. */
void vb_groups_answer(struct vb_groups *t, uint32_t query,
		      const struct vb_sa_mcmember *record, vb_time now);
/* Join all groups anew, because the subnet manager knows nothing of this port's
 * groups any more. */
void vb_groups_rejoin(struct vb_groups *t, vb_time now);

/* Do what is due. */
void vb_groups_tick(struct vb_groups *t, vb_time now);
/* Returns when vb_groups_tick() has something to do; VB_NEVER: it is not known
 * yet. */
vb_time vb_groups_next(const struct vb_groups *t);

/* Returns the broadcast group's record; NULL: the group is not joined. */
const struct vb_sa_mcmember *vb_groups_broadcast(const struct vb_groups *t);
/* Find a group in the table. NULL: it is not there. */
const struct vb_group *vb_groups_find(const struct vb_groups *t,
				      const struct vb_gid *mgid);

#endif

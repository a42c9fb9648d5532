/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of a gateway share. */
#ifndef IPOIB_GATEWAY_PRIV_H
#define IPOIB_GATEWAY_PRIV_H

#include "ipoib/gateway.h"

struct gw_side {
	struct vb_nbrs *nbrs;
	enum vb_link link;
	struct vb_ipoib_hw hw; /* the gateway's own */
	unsigned mtu;	       /* 0: the side is not up */
};

/* A host that has asked for an address of the other side. */
struct gw_question {
	bool waits;
	enum vb_gw_side side; /* where the host is */
	/* @from zero, or IPv4's zero: the host has no address yet */
	struct vb_gid target, from;
	struct vb_ipoib_hw hw; /* the host's */
};

/* A group that hosts of the Ethernet side hear. */
struct gw_group {
	struct vb_gid ip; /* zero: a free place */
	vb_time heard;	  /* when a host last said so */
};

/* A default router of IPv6 that has advertised itself. */
struct gw_router {
	struct vb_gid ip;
	vb_time until;
};

struct vb_gw {
	struct vb_gw_ops ops;
	void *arg;
	struct vb_gw_config config;
	struct gw_side side[2]; /* by enum vb_gw_side */
	struct gw_question questions[VB_GW_WAITING];
	unsigned next_question;
	/* The Ethernet side's neighbours that need no path, whose table may not
	 * be called while it asks for it: numbers of queries. */
	uint32_t paths[VB_NBR_TABLE];
	unsigned path_count;
	struct gw_group groups[VB_GW_GROUPS];
	struct gw_router routers[VB_GW_ROUTERS];
	vb_time ask_at; /* when to ask the Ethernet side for groups again */
	vb_time second; /* the beginning of the second of @errors */
	unsigned errors;
	struct vb_gw_counters count;
	vb_time now; /* the time of what is being done */
};

static inline enum vb_gw_side gw_other(enum vb_gw_side side)
{
	return side == GW_IB ? GW_ETH : GW_IB;
}

/* Is @ip an address that a neighbour may have? */
bool gw_may_be_neighbour(const struct vb_gw *g, const struct vb_gid *ip);
/* Is @ip in the gateway's networks, or link-local? */
bool gw_is_near(const struct vb_gw *g, const struct vb_gid *ip);

/* Write the header of a frame with a packet of @type. Returns its length. */
size_t gw_put_head(const struct vb_gw *g, enum vb_gw_side side, uint8_t *frame,
		   enum vb_ipoib_type type);
/* Send a frame to the neighbour @ip, or to the group @group. */
void gw_send(struct vb_gw *g, enum vb_gw_side side, const struct vb_gid *ip,
	     const uint8_t *frame, size_t len);
void gw_send_group(struct vb_gw *g, enum vb_gw_side side,
		   const struct vb_gid *group, const uint8_t *frame,
		   size_t len);
/* Give the Ethernet side's neighbours that are known the path that they need
 * not have. After each call of that table. */
void gw_give_paths(struct vb_gw *g);

/* gateway_groups.c: which groups the Ethernet side's hosts hear. */
/* Take a packet of the Ethernet side that may be a report, or a question of
 * somebody else who asks for reports. */
void gw_take_report(struct vb_gw *g, const struct vb_ip *ip,
		    const uint8_t *packet, size_t len);
/* The IPoIB side is up: enter the groups there, and ask for more at once. */
void gw_enter_groups(struct vb_gw *g);
void gw_tick_groups(struct vb_gw *g);

/* gateway_routers.c: IPv6 router discovery. */
/* Is the packet one of its messages? */
bool gw_is_of_routers(const struct vb_ip *ip, const uint8_t *packet,
		      size_t len);
/* Make of such a message what passes to the other side. Returns its length; 0:
 * it does not pass. */
size_t gw_translate_discovery(struct vb_gw *g, const struct vb_ip *ip,
			      uint8_t *packet, size_t len);
bool gw_is_router(const struct vb_gw *g, const struct vb_gid *ip);
/* Returns the router that has advertised itself for the longest time to come;
 * NULL: none has. */
const struct vb_gid *gw_default_router(const struct vb_gw *g);

/* gateway_resolve.c: what hosts say and ask about addresses. */
void gw_take_arp(struct vb_gw *g, enum vb_gw_side side, const uint8_t *bytes,
		 size_t len);
void gw_take_nd(struct vb_gw *g, enum vb_gw_side side, const struct vb_ip *ip);
/* Ask the link for the address of @ip. */
void gw_ask(struct vb_gw *g, enum vb_gw_side side, const struct vb_gid *ip);
/* The table of @side has found @ip, or (@found false) has not: answer the hosts
 * of the other side that wait for it. */
void gw_answer_waiting(struct vb_gw *g, enum vb_gw_side side,
		       const struct vb_gid *ip, bool found);
/* Tell @side that the gateway has @ip there. */
void gw_announce(struct vb_gw *g, enum vb_gw_side side,
		 const struct vb_gid *ip);

#endif

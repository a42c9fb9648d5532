/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of a gateway share. */
#ifndef IPOIB_GATEWAY_PRIV_H
#define IPOIB_GATEWAY_PRIV_H

#include "ipoib/gateway.h"

struct gw_side {
	struct vb_nbrs *nbrs;
	enum vb_link link;
	struct vb_ipoib_hw hw; /* the gateway's address on this side */
	unsigned mtu;	       /* the side's MTU; 0: the side is not up */
};

/* A question: a host has asked for the link-layer address of @target, which a
 * host of the other side may have. */
struct gw_question {
	bool waits;
	enum vb_gw_side side; /* the side of the host that asks */
	/* the IP address that the host asks for, and the host's own one; @from
	 * zero (of IPv6 or IPv4): the host has no address yet */
	struct vb_gid target, from;
	struct vb_ipoib_hw hw; /* link-layer address of the host that asks */
};

/* A multicast group of which hosts of the Ethernet side are members. */
struct gw_group {
	struct vb_gid ip; /* zero: the entry is free */
	vb_time heard;	  /* when a host last reported that it is a member */
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
	struct gw_side side[2]; /* indexed by enum vb_gw_side */
	struct gw_question questions[VB_GW_WAITING];
	unsigned next_question;
	/* Queries for paths that the table of the Ethernet side's neighbours
	 * has made. Ethernet needs no paths, so gw_give_paths() answers each
	 * with an empty one, once the call of the table has returned, since a
	 * callback must not call the table. */
	uint32_t paths[VB_NBR_TABLE];
	unsigned path_count;
	struct gw_group groups[VB_GW_GROUPS];
	struct gw_router routers[VB_GW_ROUTERS];
	vb_time ask_at; /* when to send the next membership queries */
	/* when the second began in which @errors counts ICMP errors */
	vb_time second;
	unsigned errors;
	struct vb_gw_counters count;
	/* the time that the caller passed to the function now running */
	vb_time now;
};

static inline enum vb_gw_side gw_other(enum vb_gw_side side)
{
	return side == GW_IB ? GW_ETH : GW_IB;
}

/* Is @ip an address that a neighbour may have? */
bool gw_may_be_neighbour(const struct vb_gw *g, const struct vb_gid *ip);
/* Is @ip in the gateway's networks, or link-local? */
bool gw_is_near(const struct vb_gw *g, const struct vb_gid *ip);

/* Write the header of a frame for @side whose packet has type @type. Returns
 * the header's length. */
size_t gw_put_head(const struct vb_gw *g, enum vb_gw_side side, uint8_t *frame,
		   enum vb_ipoib_type type);
/* Send a frame to the neighbour @ip, or to the group @group. */
void gw_send(struct vb_gw *g, enum vb_gw_side side, const struct vb_gid *ip,
	     const uint8_t *frame, size_t len);
void gw_send_group(struct vb_gw *g, enum vb_gw_side side,
		   const struct vb_gid *group, const uint8_t *frame,
		   size_t len);
/* Answer the queries in @paths. Called after each call of a function of the
 * Ethernet side's table of neighbours. */
void gw_give_paths(struct vb_gw *g);

/* gateway_groups.c: the multicast groups of which hosts of the Ethernet side
 * are members. */
/* Handle a packet of the Ethernet side if it is a membership report, or a
 * membership query of another router. */
void gw_take_report(struct vb_gw *g, const struct vb_ip *ip,
		    const uint8_t *packet, size_t len);
/* The IPoIB side is up: join there the groups that are known, and send
 * membership queries at once. */
void gw_enter_groups(struct vb_gw *g);
void gw_tick_groups(struct vb_gw *g);

/* gateway_routers.c: IPv6 router discovery. */
/* Is the packet a router solicitation, a router advertisement or a redirect? */
bool gw_is_of_routers(const struct vb_ip *ip, const uint8_t *packet,
		      size_t len);
/* Change such a message into the form in which it may pass to the other side.
 * Returns the new length; 0: the message must not pass. */
size_t gw_translate_discovery(struct vb_gw *g, const struct vb_ip *ip,
			      uint8_t *packet, size_t len);
bool gw_is_router(const struct vb_gw *g, const struct vb_gid *ip);
/* Returns the router whose advertised lifetime ends last; NULL: no router has
 * advertised itself. */
const struct vb_gid *gw_default_router(const struct vb_gw *g);

/* gateway_resolve.c: ARP and neighbour discovery. */
void gw_take_arp(struct vb_gw *g, enum vb_gw_side side, const uint8_t *bytes,
		 size_t len);
void gw_take_nd(struct vb_gw *g, enum vb_gw_side side, const struct vb_ip *ip);
/* Send an ARP request or a neighbour solicitation for @ip on @side. */
void gw_ask(struct vb_gw *g, enum vb_gw_side side, const struct vb_gid *ip);
/* The table of neighbours of @side has found @ip or, if @found is false, has
 * given up: answer the hosts of the other side that wait for @ip, or forget
 * their questions. */
void gw_answer_waiting(struct vb_gw *g, enum vb_gw_side side,
		       const struct vb_gid *ip, bool found);
/* Announce on @side that @ip is at the gateway's link-layer address there. */
void gw_announce(struct vb_gw *g, enum vb_gw_side side,
		 const struct vb_gid *ip);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gateway between IPoIB and Ethernet: it makes one IP subnet of both. A state
 * machine without I/O, in a time of the caller's; what it wants done it says by
 * functions of the caller's.
 *
 * It is a proxy for ARP and for IPv6 neighbour discovery, as RFC 4389 describes
 * it, and as gateways between the two do:
 *
 * - A host of one side asks for an address. The gateway asks the other side,
 *   in its own name. When a host there answers, the gateway answers the first
 *   one with its own link-layer address. An address that the asking side itself
 *   has is not asked for
 * - A packet that comes to the gateway's link-layer address leaves by the other
 *   side, to the neighbour that has its IP address. Its hop limit stays, since
 *   both sides are one link to IP
 * - A packet that is too long for the other side is cut, or its sender is told
 * - A packet for a group, or for all, leaves by the other side for the same
 *   group
 * - The gateway asks the Ethernet's hosts which groups they hear, and is a
 *   member of these on the IPoIB side
 * - Router solicitations and advertisements of IPv6 pass without link-layer
 *   addresses
 * - A host that says that an address is its own is believed, as on any link;
 *   the other side is told, and forgets what it knew
 *
 * Packets for hosts outside the gateway's networks go to a router that the
 * caller names. Both tables of neighbours are bounded (ipoib/neigh.h), and so
 * are the questions that wait for an answer.
 */
#ifndef IPOIB_GATEWAY_H
#define IPOIB_GATEWAY_H

#include "ipoib/address.h"
#include "ipoib/neigh.h"

#define VB_GW_ETH_HEADER 14
/* the longest IP packet that passes, and what a frame needs before it */
#define VB_GW_PACKET 9216
#define VB_GW_FRAME  (VB_GW_PACKET + VB_GW_ETH_HEADER)
/* the questions that wait for an answer of the other side; of more, the oldest
 * is forgotten, and its host asks again */
#define VB_GW_WAITING 64
/* the most groups of the Ethernet side that the gateway hears for its hosts */
#define VB_GW_GROUPS 128
/* the most routers of IPv6 whose advertisements are remembered */
#define VB_GW_ROUTERS 16
/* the most messages about packets that are too long, each second */
#define VB_GW_ERRORS 100
/* the least MTU of the Ethernet side, which is IPv6's */
#define VB_GW_MTU_LEAST 1280

enum vb_gw_side { GW_IB, GW_ETH };

struct vb_gw_counters {
	uint64_t passed[2]; /* packets that came from each side and left */
	uint64_t proxied; /* addresses that were answered for the other side */
	uint64_t cut;	  /* packets that left in fragments */
	uint64_t too_big; /* packets of whose length the sender was told */
	uint64_t dropped; /* packets that could not pass */
};

struct vb_gw_config {
	struct vb_ip_nets nets; /* the gateway's own addresses */
	/* routers by which packets leave the networks: IPv4's and IPv6's; all
	 * zero: none */
	struct vb_gid router[2];
	uint8_t mac[VB_MAC_BYTES]; /* its address on the Ethernet side */
	unsigned eth_mtu;
	uint64_t seed; /* a random number, for the table of neighbours */
};

/* What the gateway wants done; none of the functions may call it. */
struct vb_gw_ops {
	/* Send an Ethernet frame to @to, which the frame's first bytes do not
	 * have. */
	void (*eth_send)(void *arg, const uint8_t to[VB_MAC_BYTES],
			 const uint8_t *frame, size_t len);
	/* Send a frame of IPoIB, with its header, to the members of the IP
	 * group @group; 255.255.255.255 is all. */
	void (*ib_group)(void *arg, const struct vb_gid *group,
			 const uint8_t *frame, size_t len);
	/* Become a member of @group on the IPoIB side, since a host of the
	 * Ethernet side hears it; or be none any more. */
	void (*ib_enter)(void *arg, const struct vb_gid *group);
	void (*ib_leave)(void *arg, const struct vb_gid *group);
};

struct vb_gw;

/* Make a gateway. @ib is the table of the neighbours on the IPoIB side. The
 * caller owns this table, and destroys it after the gateway. The table's told()
 * function (struct vb_nbr_ops), which is the caller's, passes its arguments to
 * vb_gw_told(). NULL: no memory. */
struct vb_gw *vb_gw_create(const struct vb_gw_ops *ops, void *arg,
			   const struct vb_gw_config *config,
			   struct vb_nbrs *ib);
void vb_gw_destroy(struct vb_gw *g);

/* The IPoIB side is up: the gateway's address there, and the MTU. Tells both
 * sides the gateway's own addresses. */
void vb_gw_begin(struct vb_gw *g, const struct vb_ipoib_hw *hw, unsigned mtu,
		 vb_time now);

/* Take a frame of @len bytes that has come from the Ethernet side, or a packet
 * of the type @type, without its header, from the IPoIB side; @qpn is the queue
 * pair that has sent it. */
void vb_gw_from_eth(struct vb_gw *g, const uint8_t *frame, size_t len,
		    vb_time now);
void vb_gw_from_ib(struct vb_gw *g, unsigned type, const uint8_t *packet,
		   size_t len, uint32_t qpn, vb_time now);
/* The table @ib has found the neighbour @ip at @hw. @hw NULL: the table has not
 * found @ip. */
void vb_gw_told(struct vb_gw *g, const struct vb_gid *ip,
		const struct vb_ipoib_hw *hw);

void vb_gw_tick(struct vb_gw *g, vb_time now);
/* Returns when vb_gw_tick() has something to do; VB_NEVER: nothing is known. */
vb_time vb_gw_next(const struct vb_gw *g);

const struct vb_gw_counters *vb_gw_counters(const struct vb_gw *g);
/* The Ethernet side's neighbours. */
const struct vb_nbrs *vb_gw_neighbours(const struct vb_gw *g);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gateway between IPoIB and Ethernet: it makes one IP subnet of both. A state
 * machine without I/O, in a time of the caller's; it acts by functions of the
 * caller's (struct vb_gw_ops).
 *
 * It is a proxy for ARP and for IPv6 neighbour discovery, as RFC 4389 describes
 * it and as other gateways between the two are:
 *
 * - A host of one side asks for the link-layer address of an IP address. The
 *   gateway asks the same on the other side, in its own name. When a host there
 *   answers, the gateway answers the host that asked first, with its own
 *   link-layer address. If it knows that a host of the asking side has the IP
 *   address, it does nothing
 * - A packet that comes to the gateway's link-layer address leaves by the other
 *   side, to the neighbour that has the packet's destination address. The
 *   gateway does not decrement the hop limit, since both sides are one link for
 *   IP
 * - A packet that is longer than the other side's MTU is cut into fragments, or
 *   its sender gets an ICMP error
 * - A packet for a multicast group, or for the broadcast address, leaves by the
 *   other side for the same group
 * - The gateway asks the hosts of the Ethernet side which multicast groups they
 *   are members of, and joins these groups on the IPoIB side
 * - Router solicitations and advertisements of IPv6 pass, but without the
 *   sender's link-layer address
 * - If a host claims an IP address, the gateway believes it, as hosts on any
 *   link do; it announces the address to the other side, and forgets where the
 *   address was before
 *
 * Packets for hosts outside the gateway's networks go to a router that the
 * caller names. The tables of neighbours (ipoib/neigh.h) have a limited size,
 * and so has the list of hosts that wait for an answer.
 */
#ifndef IPOIB_GATEWAY_H
#define IPOIB_GATEWAY_H

#include "ipoib/address.h"
#include "ipoib/neigh.h"

#define VB_GW_ETH_HEADER 14
/* the longest IP packet that passes, and the bytes of an Ethernet header before
 * it */
#define VB_GW_PACKET 9216
#define VB_GW_FRAME  (VB_GW_PACKET + VB_GW_ETH_HEADER)
/* the most ARP requests and neighbour solicitations that wait for an answer of
 * the other side. A further one replaces the oldest, whose host repeats it */
#define VB_GW_WAITING 64
/* the most multicast groups that the gateway joins for hosts of the Ethernet
 * side */
#define VB_GW_GROUPS 128
/* the most routers of IPv6 whose advertisements are remembered */
#define VB_GW_ROUTERS 16
/* the most ICMP errors about too long packets in a second */
#define VB_GW_ERRORS 100
/* the least MTU of the Ethernet side, which is IPv6's */
#define VB_GW_MTU_LEAST 1280

enum vb_gw_side { GW_IB, GW_ETH };

struct vb_gw_counters {
	/* packets from each side that left by the other side, indexed by enum
	 * vb_gw_side */
	uint64_t passed[2];
	/* requests that the gateway answered for a host of the other side */
	uint64_t proxied;
	uint64_t cut; /* packets that left in fragments */
	/* packets for which an ICMP error told the sender that they are too
	 * long */
	uint64_t too_big;
	uint64_t dropped; /* packets that could not pass */
};

struct vb_gw_config {
	struct vb_ip_nets nets; /* the gateway's own addresses */
	/* the routers for packets to other networks: [0] for IPv4, [1] for
	 * IPv6; all zero: none */
	struct vb_gid router[2];
	/* the gateway's address on the Ethernet side */
	uint8_t mac[VB_MAC_BYTES];
	unsigned eth_mtu;
	uint64_t seed; /* a random number, for the table of neighbours */
};

/* The functions by which the gateway acts. They must not call functions of the
 * gateway. */
struct vb_gw_ops {
	/* Send an Ethernet frame to @to. The first bytes of @frame are left for
	 * that address; the function ignores what they contain. */
	void (*eth_send)(void *arg, const uint8_t to[VB_MAC_BYTES],
			 const uint8_t *frame, size_t len);
	/* Send a frame of IPoIB, header included, to the members of the IP
	 * group @group; 255.255.255.255 is the broadcast group. */
	void (*ib_group)(void *arg, const struct vb_gid *group,
			 const uint8_t *frame, size_t len);
	/* Join or leave @group on the IPoIB side, for hosts of the Ethernet
	 * side. */
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

/* The IPoIB side is up: @hw is the gateway's address there, and @mtu that
 * side's MTU. The gateway then announces its own IP addresses on both sides. */
void vb_gw_begin(struct vb_gw *g, const struct vb_ipoib_hw *hw, unsigned mtu,
		 vb_time now);

/* Handle a frame of @len bytes that has come from the Ethernet side; or a
 * packet of type @type, without the header of IPoIB, that the queue pair @qpn
 * on the IPoIB side has sent. */
void vb_gw_from_eth(struct vb_gw *g, const uint8_t *frame, size_t len,
		    vb_time now);
void vb_gw_from_ib(struct vb_gw *g, unsigned type, const uint8_t *packet,
		   size_t len, uint32_t qpn, vb_time now);
/* The table @ib has found that the neighbour @ip has the address @hw. @hw NULL:
 * nobody answers for @ip. */
void vb_gw_told(struct vb_gw *g, const struct vb_gid *ip,
		const struct vb_ipoib_hw *hw);

void vb_gw_tick(struct vb_gw *g, vb_time now);
/* Returns the time at which to call vb_gw_tick(); VB_NEVER: no such time. */
vb_time vb_gw_next(const struct vb_gw *g);

const struct vb_gw_counters *vb_gw_counters(const struct vb_gw *g);
/* Returns the table of the Ethernet side's neighbours. */
const struct vb_nbrs *vb_gw_neighbours(const struct vb_gw *g);

#endif

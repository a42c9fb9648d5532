/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds where the kernel would send a frame: the Ethernet address of the next
 * hop. */
#ifndef LINK_NEIGH_H
#define LINK_NEIGH_H

#include "wire/gid.h"

#define VB_NO_VLAN 0xffff

/* The interface that sends a frame: its index and MAC address. */
struct vb_neigh_from {
	uint32_t ifindex;
	uint8_t mac[6];
	/* The frame is of a protocol that routers do not forward. */
	bool no_router;
	/* Do not wait until a neighbour answers that the kernel does not
	 * know. */
	bool no_wait;
};

/*
 * Find the destination MAC address of frames from @from to @to, and their VLAN
 * (VB_NO_VLAN: none). If the kernel does not know the neighbour, it must ask
 * the network, and this call blocks for up to 3 s. -EHOSTUNREACH: no route, or
 * the neighbour does not answer; -ENETUNREACH: the way leads over a router, but
 * @from says no_router; -EAGAIN: the kernel asks the neighbour, but @from says
 * no_wait; else -errno.
 */
VB_MUST_CHECK int vb_neigh_resolve(const struct vb_neigh_from *from,
				   const struct vb_gid *to, uint8_t mac[6],
				   uint16_t *vlan);

/* The MAC address of the multicast group @to. */
void vb_neigh_group(const struct vb_gid *to, uint8_t mac[6]);

/* An interface that can send frames. */
struct vb_neigh_port {
	uint8_t mac[6];
	/* The interface is a VLAN with this EtherType and number; @vlan
	 * VB_NO_VLAN: it is none. */
	uint16_t tpid, vlan;
	/* Index of the interface below a VLAN, to which the frames go with
	 * their tag; 0: there is none in this network namespace. */
	uint32_t below;
};

/* Read what the kernel says of an interface. -ENODEV: there is no such
 * interface; else -errno. */
VB_MUST_CHECK int vb_neigh_port(uint32_t ifindex, struct vb_neigh_port *port);

#endif

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
};

/*
 * Find the destination MAC address of frames from @from to @to, and their VLAN
 * (VB_NO_VLAN: none). If the kernel does not know the neighbour, it must ask
 * the network, and this call blocks for up to 3 s. -EHOSTUNREACH: no route, or
 * the neighbour does not answer; else -errno.
 */
VB_MUST_CHECK int vb_neigh_resolve(const struct vb_neigh_from *from,
				   const struct vb_gid *to, uint8_t mac[6],
				   uint16_t *vlan);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the kernel would send a frame: Ethernet addresses of neighbours. */
#ifndef LINK_NEIGH_H
#define LINK_NEIGH_H

#include "wire/gid.h"

#define VB_NO_VLAN 0xffff

/* An interface. */
struct vb_neigh_from {
	uint32_t ifindex;
	uint8_t mac[6];
};

/*
 * The address that frames from @from to @to have, and the VLAN that they are
 * in. A neighbour that the kernel does not know is asked for, which may take
 * seconds. -EHOSTUNREACH: no route, or nobody answers; else -errno.
 */
VB_MUST_CHECK int vb_neigh_resolve(const struct vb_neigh_from *from,
				   const struct vb_gid *to, uint8_t mac[6],
				   uint16_t *vlan);

#endif

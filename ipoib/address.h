/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of a network interface, with the networks that they are in. */
#ifndef IPOIB_ADDRESS_H
#define IPOIB_ADDRESS_H

#include "wire/gid.h"

/* the most addresses of an interface that are known */
#define VB_IP_NETS 32
/* bits before an IPv4 address that is mapped into IPv6 */
#define VB_IPV4_PREFIX 96

/* An address of the interface. */
struct vb_ip_net {
	struct vb_gid ip; /* an IPv4 address is mapped into IPv6 */
	unsigned prefix;  /* length of the network's prefix in bits, of 128 */
};

struct vb_ip_nets {
	struct vb_ip_net list[VB_IP_NETS];
	unsigned count;
};

/* Read "10.9.0.3/24" or "fd09::3/64". False: it is no address of a host with
 * the length of a prefix. */
bool vb_ip_net_parse(const char *text, struct vb_ip_net *a);

/* Is @ip an address of the interface? */
bool vb_ip_nets_have(const struct vb_ip_nets *n, const struct vb_gid *ip);
/* Is @ip 255.255.255.255, or the broadcast address of one of the networks? */
bool vb_ip_nets_broadcast(const struct vb_ip_nets *n, const struct vb_gid *ip);
/* Is @ip in one of the networks? */
bool vb_ip_nets_near(const struct vb_ip_nets *n, const struct vb_gid *ip);
/* Choose the address of the interface that is the source of an ARP request or a
 * neighbour solicitation for @ip. NULL: the interface has no address of that
 * family. */
const struct vb_gid *vb_ip_nets_source(const struct vb_ip_nets *n,
				       const struct vb_gid *ip);

#endif

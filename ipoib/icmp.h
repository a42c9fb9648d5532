/* SPDX-License-Identifier: BSD-2-Clause */
/* What one who passes IP packets on does with one that is too long for a link:
 * cuts it (RFC 791), or says so to its sender (RFC 1191, RFC 4443); and an
 * answer to an echo request. */
#ifndef IPOIB_ICMP_H
#define IPOIB_ICMP_H

#include "ipoib/packet.h"

/* the longest message that these functions write about a packet */
#define VB_ICMP_MOST 1280

/* Returns the length that an IP packet says it has, which vb_ip_get() has
 * checked: an Ethernet frame has padding behind it. */
size_t vb_ip_bytes(const uint8_t *packet);

/* Set the checksum of the IPv4 header @head. */
void vb_ip_seal(uint8_t *head);

/* May the IPv4 or IPv6 packet be cut into fragments? */
bool vb_ip_may_be_cut(const uint8_t *packet);
/* Cut the IPv4 packet of @len bytes into fragments of at most @mtu bytes, which
 * is 68 at least, and give each to @each. @packet changes. */
void vb_ip_cut(uint8_t *packet, size_t len, unsigned mtu,
	       void (*each)(void *arg, const uint8_t *fragment, size_t len),
	       void *arg);

/* Write the ICMP message of @from to the sender of @packet, of @len bytes, that
 * it is longer than @mtu. vb_ip_get() has checked the packet. Returns its
 * length; 0: none may be sent, because the packet is an error itself, a later
 * fragment, or was for a group or from none of the hosts. */
size_t vb_icmp_too_big(uint8_t message[VB_ICMP_MOST], const struct vb_gid *from,
		       const uint8_t *packet, size_t len, unsigned mtu);

/* Make the echo request @packet of @len bytes the answer to it. False: it is no
 * whole echo request. */
bool vb_icmp_echo(uint8_t *packet, size_t len);

#endif

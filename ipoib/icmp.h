/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions for code that forwards IP packets. If a packet is longer than a
 * link's MTU, they cut it into fragments (RFC 791) or write an ICMP error to
 * its sender (RFC 1191, RFC 4443). They also answer echo requests. */
#ifndef IPOIB_ICMP_H
#define IPOIB_ICMP_H

#include "ipoib/packet.h"

/* the longest message that these functions write about a packet */
#define VB_ICMP_MOST 1280

/* Returns the length in the header of an IP packet that vb_ip_get() has
 * checked. A frame may be longer, because Ethernet pads short frames. */
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

/* Write an ICMP message from @from to the sender of @packet, which has @len
 * bytes and has been checked by vb_ip_get(): the packet is longer than @mtu.
 * Returns the message's length; 0: no message may be sent, because the packet
 * is an ICMP error itself, is not a first fragment, was sent to a group, or has
 * a source address that no host has. */
size_t vb_icmp_too_big(uint8_t message[VB_ICMP_MOST], const struct vb_gid *from,
		       const uint8_t *packet, size_t len, unsigned mtu);

/* Turn the echo request @packet of @len bytes into its answer. False: @packet
 * is no complete echo request. */
bool vb_icmp_echo(uint8_t *packet, size_t len);

#endif

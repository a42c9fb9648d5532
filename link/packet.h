/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole Ethernet frames on one interface, through a packet socket. Frames that
 * this socket sends do not come back to it; those that others of this host
 * send come in when they are addressed to a group or to the interface itself,
 * as an adapter loops them back. The loopback interface returns all of them,
 * to everybody.
 */
#ifndef LINK_PACKET_H
#define LINK_PACKET_H

#include "link/link.h"

/* A frame with the bits of @value where @mask has them is wanted. */
struct vb_packet_want {
	struct vb_packet_macs {
		uint8_t dst[6], src[6];
	} value, mask;
};

/* The kernel compares each frame with wants one by one, with so many at most:
 * of more, which are as good as one more, it lets all in. */
#define VB_PACKET_WANTS 64

/* What the interface itself is to let in. */
enum vb_packet_member {
	MEMBER_NONE,
	MEMBER_UNICAST,
	MEMBER_MULTICAST,
	MEMBER_ALL_MULTICAST,
	MEMBER_ALL,
};

/* Takes nothing yet. -EPERM: CAP_NET_RAW is missing; else -errno. */
VB_MUST_CHECK int vb_packet_open(uint32_t ifindex, const uint8_t mac[6],
				 struct vb_link **link);

/*
 * From now on take what one of @count wants asks for; with @both_ways, what
 * the host sends, too. The kernel looks at this before it copies. Frames
 * that were let in before may still come. -errno.
 */
VB_MUST_CHECK int vb_packet_listen(struct vb_link *l,
				   const struct vb_packet_want *wants,
				   unsigned count, bool both_ways);

/* Joining twice needs leaving twice. -errno. */
VB_MUST_CHECK int vb_packet_join(struct vb_link *l, enum vb_packet_member m,
				 const uint8_t mac[6]);
void vb_packet_leave(struct vb_link *l, enum vb_packet_member m,
		     const uint8_t mac[6]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link for whole Ethernet frames on one interface, by a packet socket. The
 * socket does not receive the frames that it sends. It receives frames that
 * other sockets of this host send when they are addressed to a group or to the
 * interface itself, as a hardware adapter loops them back. On the loopback
 * interface every socket receives every frame.
 */
#ifndef LINK_PACKET_H
#define LINK_PACKET_H

#include "link/link.h"

/* A frame is wanted when its addresses equal @value in all bits that @mask
 * has. */
struct vb_packet_want {
	struct vb_packet_macs {
		uint8_t dst[6], src[6];
	} value, mask;
};

/* The kernel compares each frame with the wants one by one. vb_packet_listen()
 * passes at most this many to the kernel; with more it lets all frames in. */
#define VB_PACKET_WANTS 64

/* Frames not sent to the interface's own address that the interface can let
 * in. */
enum vb_packet_member {
	MEMBER_NONE,
	MEMBER_UNICAST,
	MEMBER_MULTICAST,
	MEMBER_ALL_MULTICAST,
	MEMBER_ALL,
};

/* Open the link; no frame comes in before vb_packet_listen(). The caller closes
 * the link with its close(). -EPERM: CAP_NET_RAW is missing; else -errno. */
VB_MUST_CHECK int vb_packet_open(uint32_t ifindex, const uint8_t mac[6],
				 struct vb_link **link);

/*
 * From now on let in frames that any of @count wants asks for; with @both_ways,
 * also the frames that the host sends. The kernel filters before it copies.
 * Frames that were let in before can still come. 0 or -errno.
 */
VB_MUST_CHECK int vb_packet_listen(struct vb_link *l,
				   const struct vb_packet_want *wants,
				   unsigned count, bool both_ways);

/* Make the interface let in frames of kind @what; each join needs a leave. 0 or
 * -errno. */
VB_MUST_CHECK int vb_packet_join(struct vb_link *l, enum vb_packet_member m,
				 const uint8_t mac[6]);
void vb_packet_leave(struct vb_link *l, enum vb_packet_member m,
		     const uint8_t mac[6]);

#endif

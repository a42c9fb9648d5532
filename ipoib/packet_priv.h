/* SPDX-License-Identifier: BSD-2-Clause */
/* What packet.c shares with resolve.c and report.c. */
#ifndef IPOIB_PACKET_PRIV_H
#define IPOIB_PACKET_PRIV_H

#include "base/bytes.h"
#include "ipoib/packet.h"

#define IPV6_BYTES   40
#define PROTO_ICMPV6 58
#define ND_HOPS	     255

enum {
	ICMPV6_MLD_REPORT = 131,
	ICMPV6_MLD_DONE = 132,
	ICMPV6_SOLICIT = 135,
	ICMPV6_ADVERTISE = 136,
	ICMPV6_MLD2_REPORT = 143,
};

void ipoib_hw_put(struct vb_writer *w, const struct vb_ipoib_hw *hw);
void ipoib_hw_get(const uint8_t bytes[VB_IPOIB_HW], struct vb_ipoib_hw *hw);
/* Add @len bytes to the Internet checksum @sum, which is not inverted. */
uint32_t ipoib_sum(uint32_t sum, const uint8_t *bytes, size_t len);
/* Returns the sum of the pseudo header of an ICMPv6 message of @len bytes. */
uint32_t ipoib_pseudo_sum(const struct vb_gid *src, const struct vb_gid *dst,
			  size_t len);

#endif

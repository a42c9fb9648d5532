/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC of a RoCE packet (IBA 7.8.1, Annexes A16 and A17): CRC-32
 * over the fields of IP and UDP, or of the GRH, and of the BTH that no router
 * changes, and over all bytes behind the BTH.
 */
#ifndef WIRE_ICRC_H
#define WIRE_ICRC_H

#include "wire/gid.h"

/* The fields of a packet's headers that a UDP socket reports. */
struct vb_icrc_path {
	/* both are IPv4-mapped, or both are IPv6 addresses */
	struct vb_gid src, dst;
	uint16_t src_port, dst_port;
};

/*
 * The CRC over the headers in front of the BTH, which is equal for all packets
 * of one length on one path. Recompute it when the path or the length changes:
 * that costs less than a lookup.
 */
struct vb_icrc_prefix {
	uint32_t len; /* the packet length in bytes for which @crc is right */
	uint32_t crc; /* the CRC; of IPv4 with Identification 0 and DF set */
	bool ipv6;    /* IPv6 or a GRH, which have no Identification */
};

/* Compute the CRC over the headers in front of the BTH of a RoCEv2 packet.
 * @len: the packet's bytes from BTH through pad, without the ICRC. */
void vb_icrc_prefix_init(struct vb_icrc_prefix *p,
			 const struct vb_icrc_path *path, uint32_t len);
/* Compute the CRC over the GRH of a RoCEv1 packet from @src to @dst. @len: as
 * of vb_icrc_prefix_init(). */
void vb_icrc_prefix_grh(struct vb_icrc_prefix *p, const struct vb_gid *src,
			const struct vb_gid *dst, uint32_t len);

/* Returns the ICRC of the packet @bytes, of @p->len bytes (at least the 12 of a
 * BTH), if the sender sends it with the IPv4 Identification @ip_id (0..63;
 * ignored for IPv6). The caller stores it little-endian behind the packet. */
uint32_t vb_icrc(const struct vb_icrc_prefix *p, const uint8_t *bytes,
		 unsigned ip_id);

enum vb_icrc_verdict {
	ICRC_GOOD, /* the CRC is right, for IPv4 with Identification @guess */
	/* the CRC is right if the sender's Identification was *@ip_id */
	ICRC_GOOD_IF_ID,
	ICRC_BAD, /* the CRC is wrong whatever the Identification was */
};

/*
 * Check a received packet whose IPv4 Identification the socket did not report:
 * solve the unknown 16 bits from the CRC, with DF set or not. @bytes: @p->len
 * bytes and the 4 of the ICRC behind them. @guess: the Identification to try
 * first, 0..63. This sets *@ip_id for ICRC_GOOD_IF_ID.
 */
enum vb_icrc_verdict vb_icrc_check(const struct vb_icrc_prefix *p,
				   const uint8_t *bytes, unsigned guess,
				   uint16_t *ip_id);

#endif

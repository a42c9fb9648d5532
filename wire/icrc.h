/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC of a RoCEv2 packet (IBA 7.8.1, Annex A17): CRC-32 over
 * the parts of IP, UDP and BTH that no router changes, and all that follows.
 */
#ifndef WIRE_ICRC_H
#define WIRE_ICRC_H

#include "wire/gid.h"

/* What a UDP socket tells of the headers around one RoCEv2 packet. */
struct vb_icrc_path {
	struct vb_gid src, dst; /* both IPv4-mapped, or both IPv6 */
	uint16_t src_port, dst_port;
};

/*
 * The CRC over all that is constant on a path: nothing that varies between
 * packets of equal length. Recompute when a path or length changes: that
 * costs less than looking it up would.
 */
struct vb_icrc_prefix {
	uint32_t len; /* of the packet below */
	uint32_t crc; /* IPv4: for Identification 0 and DF */
	bool ipv6;
};

/* @len: bytes from BTH through pad, ICRC left out. */
void vb_icrc_prefix_init(struct vb_icrc_prefix *p,
			 const struct vb_icrc_path *path, uint32_t len);

/* The ICRC of @bytes (@p->len of them) sent as Identification @ip_id
 * (0..63; ignored on IPv6): store it little-endian behind them. A packet has
 * 12 bytes of BTH at least. */
uint32_t vb_icrc(const struct vb_icrc_prefix *p, const uint8_t *bytes,
		 unsigned ip_id);

enum vb_icrc_verdict {
	ICRC_GOOD,	 /* IPv6, or IPv4 with Identification @guess */
	ICRC_GOOD_IF_ID, /* right if the Identification was *@ip_id */
	ICRC_BAD,	 /* wrong whatever the Identification was */
};

/*
 * Check a received packet whose IPv4 Identification the socket did not report:
 * the unknown 16 bits are solved from the CRC, with DF set or not. @bytes:
 * @p->len bytes and the 4 of the ICRC behind them. @guess: the Identification
 * to try first, 0..63. *@ip_id is set for ICRC_GOOD_IF_ID.
 */
enum vb_icrc_verdict vb_icrc_check(const struct vb_icrc_prefix *p,
				   const uint8_t *bytes, unsigned guess,
				   uint16_t *ip_id);

/*
 * The ICRC of a whole captured packet: @ip from the IP header through pad.
 * False: neither IPv4 without options nor IPv6, or too short for a BTH.
 */
bool vb_icrc_of_ip(const uint8_t *ip, size_t len, uint32_t *icrc);

#endif

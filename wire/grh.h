/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The 40 bytes in front of a received datagram: on InfiniBand a GRH, on RoCEv2
 * the network header (Annex A17.4.5.1), which is IPv6's header, or 20 undefined
 * bytes and IPv4's header. A program that replies reads the address of the
 * datagram's sender there.
 */
#ifndef WIRE_GRH_H
#define WIRE_GRH_H

#include "wire/gid.h"

#define VB_GRH_BYTES 40
#define VB_GRH_IBA   0x1b /* NxtHdr: a BTH follows (IBA 8.3) */

struct vb_grh {
	/* both are IPv4-mapped, or both are IPv6 addresses */
	struct vb_gid sgid, dgid;
	uint32_t flow_label; /* flow label of IPv6, 20 bits */
	uint16_t ip_id; /* Identification of IPv4; 0 when it is not known */
	/* bytes of the UDP payload, from BTH through ICRC */
	uint16_t udp_bytes;
	bool iba; /* InfiniBand: no UDP header lies before the BTH */
	uint8_t tclass, hop_limit;
};

void vb_grh_put(uint8_t bytes[VB_GRH_BYTES], const struct vb_grh *h);
/* Read the header. False: the bytes are neither an IPv4 nor an IPv6 header. */
bool vb_grh_get(const uint8_t bytes[VB_GRH_BYTES], struct vb_grh *h);
/* Read a header that can only be a GRH, since it comes from a frame of
 * InfiniBand or RoCEv1. False: the bytes are no GRH. */
bool vb_grh_get_iba(const uint8_t bytes[VB_GRH_BYTES], struct vb_grh *h);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Global identifiers. On RoCEv2 a GID is the IPv6 address, or the IPv4
 * address mapped into it (::ffff:a.b.c.d); Annex A17.
 */
#ifndef WIRE_GID_H
#define WIRE_GID_H

#include <string.h>

#include "base/defs.h"

struct vb_gid {
	uint8_t raw[16];
};

/* The packets for which a GID stands; the values are those of enum
 * ibv_gid_type. */
enum vb_gid_type {
	GID_IB = 0,	 /* InfiniBand, and iWARP */
	GID_ROCE_V1 = 1, /* Ethernet frames with a GRH (Annex A16) */
	GID_ROCE_V2 = 2, /* UDP datagrams (Annex A17) */
};

/* bytes of a GID as text, equal to INET6_ADDRSTRLEN */
#define VB_GID_TEXT 46

static inline bool vb_gid_equal(const struct vb_gid *a, const struct vb_gid *b)
{
	return memcmp(a->raw, b->raw, 16) == 0;
}

bool vb_gid_is_zero(const struct vb_gid *gid);
/* Is the GID an IPv4-mapped address, ::ffff:a.b.c.d? */
bool vb_gid_is_ipv4(const struct vb_gid *gid);
/* Is the GID in fe80::/64? */
bool vb_gid_is_link_local(const struct vb_gid *gid);
/* Is the GID in 127/8, or ::1? */
bool vb_gid_is_loopback(const struct vb_gid *gid);
/* Is the GID in ff00::/8 or 224/4? */
bool vb_gid_is_multicast(const struct vb_gid *gid);
struct vb_gid vb_gid_from_ipv4(const uint8_t address[4]);
/* Returns the default GID of a MAC address: fe80:: with the modified EUI-64. */
struct vb_gid vb_gid_from_mac(const uint8_t mac[6]);
const char *vb_gid_text(const struct vb_gid *gid, char text[VB_GID_TEXT]);
/* Does what vb_gid_text() does, but writes an IPv4 address as 10.0.0.1. */
const char *vb_gid_address(const struct vb_gid *gid, char text[VB_GID_TEXT]);

#endif

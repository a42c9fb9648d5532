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

#define VB_GID_TEXT 46 /* INET6_ADDRSTRLEN */

static inline bool vb_gid_equal(const struct vb_gid *a, const struct vb_gid *b)
{
	return memcmp(a->raw, b->raw, 16) == 0;
}

bool vb_gid_is_zero(const struct vb_gid *gid);
bool vb_gid_is_ipv4(const struct vb_gid *gid);	     /* ::ffff:a.b.c.d */
bool vb_gid_is_link_local(const struct vb_gid *gid); /* fe80::/64 */
bool vb_gid_is_loopback(const struct vb_gid *gid);   /* 127/8, ::1 */
bool vb_gid_is_multicast(const struct vb_gid *gid);  /* ff00::/8, 224/4 */
struct vb_gid vb_gid_from_ipv4(const uint8_t address[4]);
/* fe80:: with the modified EUI-64 of a MAC address (WIRE: default GID). */
struct vb_gid vb_gid_from_mac(const uint8_t mac[6]);
const char *vb_gid_text(const struct vb_gid *gid, char text[VB_GID_TEXT]);

#endif

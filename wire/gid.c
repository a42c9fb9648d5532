/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells what kind of address a GID is, and writes it as text. */
#include "wire/gid.h"

#include <arpa/inet.h>

static const uint8_t mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };
static const uint8_t link_local_prefix[8] = { 0xfe, 0x80 };

bool vb_gid_is_zero(const struct vb_gid *gid)
{
	static const struct vb_gid zero;

	return vb_gid_equal(gid, &zero);
}

bool vb_gid_is_ipv4(const struct vb_gid *gid)
{
	return memcmp(gid->raw, mapped_prefix, sizeof(mapped_prefix)) == 0;
}

bool vb_gid_is_link_local(const struct vb_gid *gid)
{
	return memcmp(gid->raw, link_local_prefix, sizeof(link_local_prefix)) ==
	       0;
}

bool vb_gid_is_loopback(const struct vb_gid *gid)
{
	static const struct vb_gid one = { { [15] = 1 } };

	return vb_gid_equal(gid, &one) ||
	       (vb_gid_is_ipv4(gid) && gid->raw[12] == 127);
}

bool vb_gid_is_multicast(const struct vb_gid *gid)
{
	if (vb_gid_is_ipv4(gid))
		return (gid->raw[12] & 0xf0) == 0xe0;
	return gid->raw[0] == 0xff;
}

struct vb_gid vb_gid_from_ipv4(const uint8_t address[4])
{
	struct vb_gid gid;

	memcpy(gid.raw, mapped_prefix, sizeof(mapped_prefix));
	memcpy(gid.raw + 12, address, 4);
	return gid;
}

struct vb_gid vb_gid_from_mac(const uint8_t mac[6])
{
	struct vb_gid gid;

	memcpy(gid.raw, link_local_prefix, sizeof(link_local_prefix));
	memcpy(gid.raw + 8, mac, 3);
	gid.raw[8] ^= 0x02; /* the universal/local bit (RFC 4291 appendix A) */
	gid.raw[11] = 0xff;
	gid.raw[12] = 0xfe;
	memcpy(gid.raw + 13, mac + 3, 3);
	return gid;
}

const char *vb_gid_text(const struct vb_gid *gid, char text[VB_GID_TEXT])
{
	return inet_ntop(AF_INET6, gid->raw, text, VB_GID_TEXT);
}

const char *vb_gid_address(const struct vb_gid *gid, char text[VB_GID_TEXT])
{
	if (!vb_gid_is_ipv4(gid))
		return vb_gid_text(gid, text);
	return inet_ntop(AF_INET, gid->raw + 12, text, VB_GID_TEXT);
}

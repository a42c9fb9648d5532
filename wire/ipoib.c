/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads the questions to an IPoIB interface's process, which have a
 * fixed length and are big-endian. */
#include "wire/ipoib.h"

#include "base/bytes.h"

#define USED_BYTES    64
#define ERRNO_LARGEST 4095

_Static_assert(USED_BYTES <= VB_IPOIB_BYTES, "a message fits");

size_t vb_ipoib_put(uint8_t bytes[VB_IPOIB_BYTES], const struct vb_ipoib *m)
{
	struct vb_writer w = { bytes };

	memset(bytes, 0, VB_IPOIB_BYTES);
	vb_put_be(&w, m->op, 1);
	vb_put_be(&w, m->version, 1);
	vb_put_be(&w, m->port, 2);
	vb_put_be(&w, m->pkey, 4);
	vb_put_be(&w, (uint32_t)m->error, 4);
	vb_put_be(&w, m->mtu, 4);
	vb_put_be(&w, m->qpn, 4);
	vb_put_be(&w, m->guid, 8);
	memcpy(w.at, m->ip.raw, 16);
	memcpy(w.at + 16, m->gid.raw, 16);
	w.at += 32;
	vb_put_be(&w, m->qkey, 4);
	return VB_IPOIB_BYTES;
}

static void take_gid(struct vb_reader *r, struct vb_gid *gid)
{
	const uint8_t *p = vb_take(r, sizeof(gid->raw));

	if (p)
		memcpy(gid->raw, p, sizeof(gid->raw));
}

bool vb_ipoib_get(const uint8_t *bytes, size_t len, struct vb_ipoib *m)
{
	struct vb_reader r = vb_reader(bytes, len);

	if (len != VB_IPOIB_BYTES)
		return false;
	m->op = vb_get_u8(&r);
	m->version = vb_get_u8(&r);
	m->port = (uint8_t)vb_get_be16(&r);
	m->pkey = (uint16_t)vb_get_be32(&r);
	m->error = (int32_t)vb_get_be32(&r);
	m->mtu = vb_get_be32(&r);
	m->qpn = vb_get_be32(&r);
	m->guid = vb_get_be64(&r);
	take_gid(&r, &m->ip);
	take_gid(&r, &m->gid);
	m->qkey = vb_get_be32(&r);
	return (m->op == IPOIB_OWN || m->op == IPOIB_ASK) &&
	       m->version == VB_IPOIB_VERSION && m->error <= 0 &&
	       m->error >= -ERRNO_LARGEST;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Encodes and decodes rdma_cm's header. */
#include "broker/cm_header.h"

struct vb_cm_header vb_cm_header_of(const struct vb_ipc_cm *m)
{
	struct vb_cm_header h = { m->src_port, m->src, m->dst };

	if (!vb_gid_is_zero(&m->src_name))
		h.src = m->src_name;
	if (!vb_gid_is_zero(&m->dst_name))
		h.dst = m->dst_name;
	return h;
}

static void cm_header_put_address(uint8_t at[16], const struct vb_gid *gid)
{
	memset(at, 0, 16);
	if (vb_gid_is_ipv4(gid))
		memcpy(at + 12, gid->raw + 12, 4);
	else
		memcpy(at, gid->raw, 16);
}

void vb_cm_header_put(uint8_t bytes[VB_CM_HEADER_BYTES],
		      const struct vb_cm_header *h)
{
	bytes[0] = 0;
	bytes[1] = vb_gid_is_ipv4(&h->dst) ? 0x40 : 0x60;
	vb_store_be(bytes + 2, h->port, 2);
	cm_header_put_address(bytes + 4, &h->src);
	cm_header_put_address(bytes + 20, &h->dst);
}

static struct vb_gid get_address(const uint8_t at[16], unsigned version)
{
	struct vb_gid gid;

	if (version == 4)
		return vb_gid_from_ipv4(at + 12);
	memcpy(gid.raw, at, sizeof(gid.raw));
	return gid;
}

bool vb_cm_header_get(const uint8_t bytes[VB_CM_HEADER_BYTES],
		      struct vb_cm_header *h)
{
	unsigned version = bytes[1] >> 4;

	if (bytes[0] != 0 || (version != 4 && version != 6))
		return false;
	h->port = (uint16_t)vb_load_be(bytes + 2, 2);
	h->src = get_address(bytes + 4, version);
	h->dst = get_address(bytes + 20, version);
	return true;
}

static void name(struct vb_gid *to, const struct vb_gid *said,
		 const struct vb_gid *way)
{
	if (vb_gid_is_loopback(said) && !vb_gid_equal(said, way))
		*to = *said;
}

void vb_cm_header_name(struct vb_ipc_cm *m, const struct vb_cm_header *h)
{
	name(&m->src_name, &h->dst, &m->src);
	name(&m->dst_name, &h->src, &m->dst);
}

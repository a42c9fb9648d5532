/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads messages about connections, which have a fixed length and
 * are big-endian; unused bytes are zero. */
#include "wire/ipc_cm.h"

#define MAX_MTU 5 /* the largest code of enum ibv_mtu */
/* the bits of an IPoIB service ID above the queue pair's number: the IETF's
 * prefix, the type 0, and reserved bits */
#define IETF_SERVICE UINT64_C(0x1000000000000000)
#define QPN_MASK     0xffffffu
#define LOW_BITS     12 /* bits of a QPN that the port has */
#define LOW_MASK     ((1u << LOW_BITS) - 1)

uint64_t vb_ipc_cm_service(uint16_t space, uint16_t port)
{
	if (space < VB_IPC_CM_IETF_SPACE)
		return (uint64_t)space << 16 | port;
	return IETF_SERVICE | (space & LOW_MASK) << LOW_BITS |
	       (port & LOW_MASK);
}

bool vb_ipc_cm_service_split(uint64_t service, uint16_t *space, uint16_t *port)
{
	if ((service & ~(uint64_t)QPN_MASK) == IETF_SERVICE) {
		*space = (uint16_t)(VB_IPC_CM_IETF_SPACE |
				    (service & QPN_MASK) >> LOW_BITS);
		*port = (uint16_t)(VB_IPC_CM_IETF_PORT | (service & LOW_MASK));
		return true;
	}
	*space = (uint16_t)(service >> 16);
	*port = (uint16_t)service;
	return service >> 32 == 0 && *space < VB_IPC_CM_IETF_SPACE;
}

static void put_gid(struct vb_writer *w, const struct vb_gid *gid)
{
	memcpy(w->at, gid->raw, sizeof(gid->raw));
	w->at += sizeof(gid->raw);
}

static void get_gid(struct vb_reader *r, struct vb_gid *gid)
{
	const uint8_t *p = vb_take(r, sizeof(gid->raw));

	if (p)
		memcpy(gid->raw, p, sizeof(gid->raw));
}

static void put_alternate(struct vb_writer *w,
			  const struct vb_ipc_cm_alternate *a)
{
	vb_put_be(w, a->place, 1);
	vb_put_be(w, a->sl, 1);
	vb_put_be(w, a->path_bits, 1);
	vb_put_be(w, a->rate, 1);
	vb_put_be(w, a->tclass, 1);
	vb_put_be(w, a->hop_limit, 1);
	vb_put_be(w, a->ack_timeout, 1);
	vb_put_be(w, a->dlid, 2);
	vb_put_be(w, a->flow_label, 4);
	put_gid(w, &a->src);
	put_gid(w, &a->dst);
}

static void get_alternate(struct vb_reader *r, struct vb_ipc_cm_alternate *a)
{
	a->place = vb_get_u8(r);
	a->sl = vb_get_u8(r);
	a->path_bits = vb_get_u8(r);
	a->rate = vb_get_u8(r);
	a->tclass = vb_get_u8(r);
	a->hop_limit = vb_get_u8(r);
	a->ack_timeout = vb_get_u8(r);
	a->dlid = vb_get_be16(r);
	a->flow_label = vb_get_be32(r);
	get_gid(r, &a->src);
	get_gid(r, &a->dst);
}

static bool alternate_in_range(const struct vb_ipc_cm_alternate *a)
{
	return a->place <= VB_IPC_CM_PLACES && a->sl <= 15 &&
	       a->path_bits <= 127 && a->rate <= 63 && a->ack_timeout <= 31 &&
	       a->flow_label <= 0xfffff;
}

size_t vb_ipc_cm_put(uint8_t bytes[VB_IPC_CM_BYTES], const struct vb_ipc_cm *m)
{
	struct vb_writer w = { bytes };

	memset(bytes, 0, VB_IPC_CM_BYTES);
	vb_put_be(&w, m->kind, 1);
	vb_put_be(&w, m->version, 1);
	vb_put_be(&w, m->event, 1);
	vb_put_be(&w, m->flags, 1);
	vb_put_be(&w, m->space, 2);
	vb_put_be(&w, m->src_port, 2);
	vb_put_be(&w, m->dst_port, 2);
	vb_put_be(&w, m->id, 4);
	vb_put_be(&w, m->listener, 4);
	vb_put_be(&w, (uint32_t)m->status, 4);
	put_gid(&w, &m->src);
	put_gid(&w, &m->dst);
	put_gid(&w, &m->src_name);
	put_gid(&w, &m->dst_name);
	vb_put_be(&w, m->ifindex, 4);
	vb_put_be(&w, m->guid, 8);
	vb_put_be(&w, m->qpn, 4);
	vb_put_be(&w, m->psn, 4);
	vb_put_be(&w, m->flow_label, 4);
	vb_put_be(&w, m->backlog, 4);
	vb_put_be(&w, m->responder_resources, 1);
	vb_put_be(&w, m->initiator_depth, 1);
	vb_put_be(&w, m->retry_count, 1);
	vb_put_be(&w, m->rnr_retry, 1);
	vb_put_be(&w, m->flow_control, 1);
	vb_put_be(&w, m->srq, 1);
	vb_put_be(&w, m->mtu, 1);
	vb_put_be(&w, m->tclass, 1);
	vb_put_be(&w, m->hop_limit, 1);
	vb_put_be(&w, m->ack_timeout, 1);
	vb_put_be(&w, m->type, 1);
	vb_put_be(&w, m->qkey, 4);
	vb_put_be(&w, m->vendor_id, 4);
	vb_put_be(&w, m->vendor_options, 4);
	vb_put_be(&w, m->local_id, 4);
	vb_put_be(&w, m->remote_id, 4);
	vb_put_be(&w, m->peer_qpn, 4);
	vb_put_be(&w, m->tid, 8);
	vb_put_be(&w, m->place, 1);
	vb_put_be(&w, m->sl, 1);
	vb_put_be(&w, m->path_bits, 1);
	vb_put_be(&w, m->rate, 1);
	vb_put_be(&w, m->dlid, 2);
	vb_put_be(&w, m->pkey, 2);
	put_alternate(&w, &m->alternate);
	vb_put_be(&w, m->timeout_ms, 4);
	vb_put_be(&w, m->private_bytes, 1);
	memcpy(w.at, m->private_data, VB_IPC_CM_PRIVATE);
	return VB_IPC_CM_BYTES;
}

static bool is_name(const struct vb_ipc_cm *m, const struct vb_gid *gid)
{
	return m->place || vb_gid_is_zero(gid) || vb_gid_is_loopback(gid);
}

static bool in_range(const struct vb_ipc_cm *m)
{
	return m->kind >= IPC_CM_BIND && m->kind <= IPC_CM_LAST &&
	       m->version == VB_IPC_CM_VERSION && m->qpn <= 0xffffff &&
	       m->psn <= 0xffffff && m->flow_label <= 0xfffff &&
	       m->retry_count <= 7 && m->rnr_retry <= 7 && m->mtu <= MAX_MTU &&
	       m->ack_timeout <= 31 && m->type < IPC_CM_TYPES &&
	       m->vendor_id <= 0xffffff && m->peer_qpn <= 0xffffff &&
	       m->place <= VB_IPC_CM_PLACES && m->sl <= 15 &&
	       m->path_bits <= 127 && m->rate <= 63 &&
	       m->private_bytes <= VB_IPC_CM_PRIVATE &&
	       alternate_in_range(&m->alternate) && is_name(m, &m->src_name) &&
	       is_name(m, &m->dst_name);
}

bool vb_ipc_cm_get(const uint8_t *bytes, size_t len, struct vb_ipc_cm *m)
{
	struct vb_reader r = vb_reader(bytes, len);
	const uint8_t *data;

	if (len != VB_IPC_CM_BYTES)
		return false;
	memset(m, 0, sizeof(*m));
	m->kind = vb_get_u8(&r);
	m->version = vb_get_u8(&r);
	m->event = vb_get_u8(&r);
	m->flags = vb_get_u8(&r);
	m->space = vb_get_be16(&r);
	m->src_port = vb_get_be16(&r);
	m->dst_port = vb_get_be16(&r);
	m->id = vb_get_be32(&r);
	m->listener = vb_get_be32(&r);
	m->status = (int32_t)vb_get_be32(&r);
	get_gid(&r, &m->src);
	get_gid(&r, &m->dst);
	get_gid(&r, &m->src_name);
	get_gid(&r, &m->dst_name);
	m->ifindex = vb_get_be32(&r);
	m->guid = vb_get_be64(&r);
	m->qpn = vb_get_be32(&r);
	m->psn = vb_get_be32(&r);
	m->flow_label = vb_get_be32(&r);
	m->backlog = vb_get_be32(&r);
	m->responder_resources = vb_get_u8(&r);
	m->initiator_depth = vb_get_u8(&r);
	m->retry_count = vb_get_u8(&r);
	m->rnr_retry = vb_get_u8(&r);
	m->flow_control = vb_get_u8(&r);
	m->srq = vb_get_u8(&r);
	m->mtu = vb_get_u8(&r);
	m->tclass = vb_get_u8(&r);
	m->hop_limit = vb_get_u8(&r);
	m->ack_timeout = vb_get_u8(&r);
	m->type = vb_get_u8(&r);
	m->qkey = vb_get_be32(&r);
	m->vendor_id = vb_get_be32(&r);
	m->vendor_options = vb_get_be32(&r);
	m->local_id = vb_get_be32(&r);
	m->remote_id = vb_get_be32(&r);
	m->peer_qpn = vb_get_be32(&r);
	m->tid = vb_get_be64(&r);
	m->place = vb_get_u8(&r);
	m->sl = vb_get_u8(&r);
	m->path_bits = vb_get_u8(&r);
	m->rate = vb_get_u8(&r);
	m->dlid = vb_get_be16(&r);
	m->pkey = vb_get_be16(&r);
	get_alternate(&r, &m->alternate);
	m->timeout_ms = vb_get_be32(&r);
	m->private_bytes = vb_get_u8(&r);
	data = vb_take(&r, VB_IPC_CM_PRIVATE);
	if (data)
		memcpy(m->private_data, data, VB_IPC_CM_PRIVATE);
	return !r.overrun && in_range(m);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of the subnet administrator as tables of fields. */
#include "wire/sa.h"

#include "wire/field.h"
#include "wire/rmpp.h"

#define DATA_AT 56 /* vb_rmpp_data_at(MAD_CLASS_SA) */
/* Codes of the MTU: 256 to 4096 bytes. */
#define MTU_MIN 1
#define MTU_MAX 5

#define HDR(member, byte, bits) VB_FIELD(vb_sa_hdr, member, byte, 0, bits)
static const struct vb_field sa_hdr_fields[] = {
	HDR(base_version, 0, 8),  HDR(class, 1, 8),
	HDR(class_version, 2, 8), HDR(method, 3, 8),
	HDR(status, 4, 16),	  HDR(tid, 8, 64),
	HDR(attr_id, 16, 16),	  HDR(attr_offset, 44, 16),
	HDR(mask, 48, 64),
};

#define PATH(member, byte, bit, bits)                                          \
	VB_FIELD(vb_sa_path, member, DATA_AT + (byte), bit, bits)
static const struct vb_field path_fields[] = {
	PATH(service_id, 0, 0, 64), PATH(dlid, 40, 0, 16),
	PATH(slid, 42, 0, 16),	    PATH(flow_label, 44, 4, 20),
	PATH(hop_limit, 47, 0, 8),  PATH(tclass, 48, 0, 8),
	PATH(reversible, 49, 0, 1), PATH(numb_path, 49, 1, 7),
	PATH(pkey, 50, 0, 16),	    PATH(qos_class, 52, 0, 12),
	PATH(sl, 53, 4, 4),	    PATH(mtu_selector, 54, 0, 2),
	PATH(mtu, 54, 2, 6),	    PATH(rate_selector, 55, 0, 2),
	PATH(rate, 55, 2, 6),	    PATH(life_selector, 56, 0, 2),
	PATH(life, 56, 2, 6),	    PATH(preference, 57, 0, 8),
};
#define PATH_DGID_AT (DATA_AT + 8)
#define PATH_SGID_AT (DATA_AT + 24)

#define GROUP(member, byte, bit, bits)                                         \
	VB_FIELD(vb_sa_mcmember, member, DATA_AT + (byte), bit, bits)
static const struct vb_field group_fields[] = {
	GROUP(qkey, 32, 0, 32),
	GROUP(mlid, 36, 0, 16),
	GROUP(mtu_selector, 38, 0, 2),
	GROUP(mtu, 38, 2, 6),
	GROUP(tclass, 39, 0, 8),
	GROUP(pkey, 40, 0, 16),
	GROUP(rate_selector, 42, 0, 2),
	GROUP(rate, 42, 2, 6),
	GROUP(life_selector, 43, 0, 2),
	GROUP(life, 43, 2, 6),
	GROUP(sl, 44, 0, 4),
	GROUP(flow_label, 44, 4, 20),
	GROUP(hop_limit, 47, 0, 8),
	GROUP(scope, 48, 0, 4),
	GROUP(join_state, 48, 4, 4),
	GROUP(proxy_join, 49, 0, 1),
};
#define GROUP_MGID_AT (DATA_AT + 0)
#define GROUP_PORT_AT (DATA_AT + 16)

#define SERVICE(member, byte, bits)                                            \
	VB_FIELD(vb_sa_service, member, byte, 0, bits)
static const struct vb_field service_fields[] = {
	SERVICE(id, 0, 64),
	SERVICE(pkey, 24, 16),
	SERVICE(lease, 28, 32),
};
#define SERVICE_GID_AT	8
#define SERVICE_NAME_AT 48

static void sa_begin_request(uint8_t mad[VB_MAD_BYTES],
			     const struct vb_sa_hdr *h)
{
	const struct vb_rmpp rmpp = { .version = VB_RMPP_VERSION };
	struct vb_sa_hdr all = *h;

	memset(mad, 0, VB_MAD_BYTES);
	all.base_version = VB_MAD_BASE_VERSION;
	all.class = MAD_CLASS_SA;
	all.class_version = VB_SA_CLASS_VERSION;
	vb_fields_put(sa_hdr_fields, VB_COUNT(sa_hdr_fields), mad, &all);
	vb_rmpp_put(mad, &rmpp);
}

void vb_sa_path_put(uint8_t mad[VB_MAD_BYTES], const struct vb_sa_hdr *h,
		    const struct vb_sa_path *p)
{
	sa_begin_request(mad, h);
	vb_fields_put(path_fields, VB_COUNT(path_fields), mad, p);
	memcpy(mad + PATH_DGID_AT, p->dgid.raw, sizeof(p->dgid.raw));
	memcpy(mad + PATH_SGID_AT, p->sgid.raw, sizeof(p->sgid.raw));
}

void vb_sa_mcmember_put(uint8_t mad[VB_MAD_BYTES], const struct vb_sa_hdr *h,
			const struct vb_sa_mcmember *m)
{
	sa_begin_request(mad, h);
	vb_fields_put(group_fields, VB_COUNT(group_fields), mad, m);
	memcpy(mad + GROUP_MGID_AT, m->mgid.raw, sizeof(m->mgid.raw));
	memcpy(mad + GROUP_PORT_AT, m->port_gid.raw, sizeof(m->port_gid.raw));
}

void vb_sa_service_put(uint8_t mad[VB_MAD_BYTES], const struct vb_sa_hdr *h,
		       const struct vb_sa_service *s)
{
	uint8_t *record = mad + DATA_AT;

	sa_begin_request(mad, h);
	vb_fields_put(service_fields, VB_COUNT(service_fields), record, s);
	memcpy(record + SERVICE_GID_AT, s->gid.raw, sizeof(s->gid.raw));
	memcpy(record + SERVICE_NAME_AT, s->name, sizeof(s->name));
}

bool vb_sa_hdr_get(const uint8_t *mad, size_t len, struct vb_sa_hdr *h)
{
	memset(h, 0, sizeof(*h));
	if (len < DATA_AT)
		return false;
	vb_fields_get(sa_hdr_fields, VB_COUNT(sa_hdr_fields), mad, h);
	/* The answer to SA_GET_TABLE may have no record, so it may be shorter
	 * than a MAD. */
	return (len >= VB_MAD_BYTES || h->method == SA_GET_TABLE_RESP) &&
	       h->base_version == VB_MAD_BASE_VERSION &&
	       h->class == MAD_CLASS_SA &&
	       h->class_version == VB_SA_CLASS_VERSION;
}

static bool is_unicast(uint16_t lid)
{
	return lid && lid < VB_LID_MCAST;
}

static bool sa_is_mtu(uint8_t code)
{
	return code >= MTU_MIN && code <= MTU_MAX;
}

bool vb_sa_path_get(const uint8_t mad[VB_MAD_BYTES], struct vb_sa_path *p)
{
	memset(p, 0, sizeof(*p));
	vb_fields_get(path_fields, VB_COUNT(path_fields), mad, p);
	memcpy(p->dgid.raw, mad + PATH_DGID_AT, sizeof(p->dgid.raw));
	memcpy(p->sgid.raw, mad + PATH_SGID_AT, sizeof(p->sgid.raw));
	return is_unicast(p->dlid) && is_unicast(p->slid) && sa_is_mtu(p->mtu);
}

bool vb_sa_mcmember_get(const uint8_t mad[VB_MAD_BYTES],
			struct vb_sa_mcmember *m)
{
	memset(m, 0, sizeof(*m));
	vb_fields_get(group_fields, VB_COUNT(group_fields), mad, m);
	memcpy(m->mgid.raw, mad + GROUP_MGID_AT, sizeof(m->mgid.raw));
	memcpy(m->port_gid.raw, mad + GROUP_PORT_AT, sizeof(m->port_gid.raw));
	return m->mgid.raw[0] == 0xff && vb_lid_is_mcast(m->mlid) &&
	       sa_is_mtu(m->mtu);
}

/* Returns the distance in bytes from one record of an answer to the next. An
 * answer with one record need not state it. */
static size_t service_step(const struct vb_sa_hdr *h)
{
	return h->attr_offset ? 8u * h->attr_offset : VB_SA_SERVICE_BYTES;
}

unsigned vb_sa_service_count(const struct vb_sa_hdr *h, size_t len)
{
	size_t step = service_step(h), records = len - DATA_AT;

	if (step < VB_SA_SERVICE_BYTES || len < DATA_AT + VB_SA_SERVICE_BYTES)
		return 0;
	if (h->method != SA_GET_TABLE_RESP)
		return 1;
	return (unsigned)((records - VB_SA_SERVICE_BYTES) / step + 1);
}

bool vb_sa_service_get(const uint8_t *mad, const struct vb_sa_hdr *h,
		       unsigned i, struct vb_sa_service *s)
{
	const uint8_t *record = mad + DATA_AT + i * service_step(h);

	memset(s, 0, sizeof(*s));
	vb_fields_get(service_fields, VB_COUNT(service_fields), record, s);
	memcpy(s->gid.raw, record + SERVICE_GID_AT, sizeof(s->gid.raw));
	memcpy(s->name, record + SERVICE_NAME_AT, sizeof(s->name));
	return !vb_gid_is_zero(&s->gid) && !vb_gid_is_multicast(&s->gid);
}

unsigned vb_sa_mtu_bytes(unsigned code)
{
	return code >= MTU_MIN && code <= MTU_MAX ? 128u << code : 0;
}

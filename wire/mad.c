/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes MADs: the functions that read and write a message stand
 * together, field by field, in the order of the bytes. */
#include "wire/mad.h"

#define BASE_VERSION 1
#define CM_VERSION   2
#define METHOD_SEND  0x03

static void put_zeros(struct vb_writer *w, size_t count)
{
	memset(w->at, 0, count);
	w->at += count;
}

static void put_bytes(struct vb_writer *w, const uint8_t *bytes, size_t count)
{
	memcpy(w->at, bytes, count);
	w->at += count;
}

static void get_bytes(struct vb_reader *r, uint8_t *bytes, size_t count)
{
	const uint8_t *p = vb_take(r, count);

	if (p)
		memcpy(bytes, p, count);
}

void vb_mad_hdr_put(struct vb_writer *w, const struct vb_mad_hdr *h)
{
	vb_put_be(w, h->base_version, 1);
	vb_put_be(w, h->class, 1);
	vb_put_be(w, h->class_version, 1);
	vb_put_be(w, h->method, 1);
	vb_put_be(w, h->status, 2);
	vb_put_be(w, h->class_specific, 2);
	vb_put_be(w, h->tid, 8);
	vb_put_be(w, h->attr_id, 2);
	vb_put_be(w, 0, 2);
	vb_put_be(w, h->attr_mod, 4);
}

bool vb_mad_hdr_get(struct vb_reader *r, struct vb_mad_hdr *h)
{
	h->base_version = vb_get_u8(r);
	h->class = vb_get_u8(r);
	h->class_version = vb_get_u8(r);
	h->method = vb_get_u8(r);
	h->status = vb_get_be16(r);
	h->class_specific = vb_get_be16(r);
	h->tid = vb_get_be64(r);
	h->attr_id = vb_get_be16(r);
	(void)vb_take(r, 2);
	h->attr_mod = vb_get_be32(r);
	return !r->overrun;
}

/* A path in a REQ and one in a LAP begin and end alike; the rate stands in
 * another place. */
static void put_ends(struct vb_writer *w, const struct vb_cm_path *p)
{
	vb_put_be(w, p->local_lid, 2);
	vb_put_be(w, p->remote_lid, 2);
	put_bytes(w, p->local_gid.raw, sizeof(p->local_gid.raw));
	put_bytes(w, p->remote_gid.raw, sizeof(p->remote_gid.raw));
	vb_put_be(w, (p->flow_label & 0xfffff) << 4, 3);
}

static void get_ends(struct vb_reader *r, struct vb_cm_path *p)
{
	p->local_lid = vb_get_be16(r);
	p->remote_lid = vb_get_be16(r);
	get_bytes(r, p->local_gid.raw, sizeof(p->local_gid.raw));
	get_bytes(r, p->remote_gid.raw, sizeof(p->remote_gid.raw));
	p->flow_label = vb_get_be24(r) >> 4;
}

static void put_level(struct vb_writer *w, const struct vb_cm_path *p)
{
	vb_put_be(w, (uint8_t)(p->sl << 4 | p->subnet_local << 3), 1);
	vb_put_be(w, (uint8_t)(p->ack_timeout << 3), 1);
}

static void get_level(struct vb_reader *r, struct vb_cm_path *p)
{
	uint8_t bits = vb_get_u8(r);

	p->sl = bits >> 4;
	p->subnet_local = bits & 0x08;
	p->ack_timeout = vb_get_u8(r) >> 3;
}

static void put_path(struct vb_writer *w, const struct vb_cm_path *p)
{
	put_ends(w, p);
	vb_put_be(w, p->rate & 0x3f, 1);
	vb_put_be(w, p->tclass, 1);
	vb_put_be(w, p->hop_limit, 1);
	put_level(w, p);
}

static void get_path(struct vb_reader *r, struct vb_cm_path *p)
{
	get_ends(r, p);
	p->rate = vb_get_u8(r) & 0x3f;
	p->tclass = vb_get_u8(r);
	p->hop_limit = vb_get_u8(r);
	get_level(r, p);
}

/* Write the message REQ (IBA 12.6.5). */
static void put_req(struct vb_writer *w, const struct vb_cm_msg *m)
{
	const struct vb_cm_req *q = &m->req;

	vb_put_be(w, q->vendor_id & 0xffffff, 4);
	vb_put_be(w, q->service_id, 8);
	vb_put_be(w, q->ca_guid, 8);
	put_zeros(w, 4);
	vb_put_be(w, q->qkey, 4);
	vb_put_be(w, q->qpn, 3);
	vb_put_be(w, q->responder_resources, 1);
	vb_put_be(w, q->local_eecn, 3);
	vb_put_be(w, q->initiator_depth, 1);
	vb_put_be(w, q->remote_eecn, 3);
	vb_put_be(w,
		  (uint8_t)(q->remote_timeout << 3 | (q->transport & 3) << 1 |
			    q->flow_control),
		  1);
	vb_put_be(w, q->psn, 3);
	vb_put_be(w, (uint8_t)(q->local_timeout << 3 | (q->retry_count & 7)),
		  1);
	vb_put_be(w, q->pkey, 2);
	vb_put_be(w,
		  (uint8_t)(q->mtu << 4 | q->rdc_exists << 3 |
			    (q->rnr_retry & 7)),
		  1);
	vb_put_be(w,
		  (uint8_t)(q->max_cm_retries << 4 | q->srq << 3 |
			    (q->extended_transport & 7)),
		  1);
	put_path(w, &q->path);
	put_path(w, &q->alternate);
}

static void get_req(struct vb_reader *r, struct vb_cm_msg *m)
{
	struct vb_cm_req *q = &m->req;
	uint8_t bits;

	q->vendor_id = vb_get_be32(r) & 0xffffff;
	q->service_id = vb_get_be64(r);
	q->ca_guid = vb_get_be64(r);
	(void)vb_take(r, 4);
	q->qkey = vb_get_be32(r);
	q->qpn = vb_get_be24(r);
	q->responder_resources = vb_get_u8(r);
	q->local_eecn = vb_get_be24(r);
	q->initiator_depth = vb_get_u8(r);
	q->remote_eecn = vb_get_be24(r);
	bits = vb_get_u8(r);
	q->remote_timeout = bits >> 3;
	q->transport = bits >> 1 & 3;
	q->flow_control = bits & 1;
	q->psn = vb_get_be24(r);
	bits = vb_get_u8(r);
	q->local_timeout = bits >> 3;
	q->retry_count = bits & 7;
	q->pkey = vb_get_be16(r);
	bits = vb_get_u8(r);
	q->mtu = bits >> 4;
	q->rdc_exists = bits & 8;
	q->rnr_retry = bits & 7;
	bits = vb_get_u8(r);
	q->max_cm_retries = bits >> 4;
	q->srq = bits & 8;
	q->extended_transport = bits & 7;
	get_path(r, &q->path);
	get_path(r, &q->alternate);
}

/* Write the message REP (IBA 12.6.8). The vendor's number is split into three
 * pieces between other fields. */
static void put_rep(struct vb_writer *w, const struct vb_cm_msg *m)
{
	const struct vb_cm_rep *p = &m->rep;

	vb_put_be(w, m->remote_id, 4);
	vb_put_be(w, p->qkey, 4);
	vb_put_be(w, p->qpn, 3);
	vb_put_be(w, (uint8_t)(p->vendor_id >> 16), 1);
	vb_put_be(w, p->eecn, 3);
	vb_put_be(w, (uint8_t)(p->vendor_id >> 8), 1);
	vb_put_be(w, p->psn, 3);
	vb_put_be(w, (uint8_t)p->vendor_id, 1);
	vb_put_be(w, p->responder_resources, 1);
	vb_put_be(w, p->initiator_depth, 1);
	vb_put_be(w,
		  (uint8_t)(p->ack_delay << 3 | (p->failover & 3) << 1 |
			    p->flow_control),
		  1);
	vb_put_be(w, (uint8_t)(p->rnr_retry << 5 | p->srq << 4), 1);
	vb_put_be(w, p->ca_guid, 8);
}

static void get_rep(struct vb_reader *r, struct vb_cm_msg *m)
{
	struct vb_cm_rep *p = &m->rep;
	uint8_t bits;

	m->remote_id = vb_get_be32(r);
	p->qkey = vb_get_be32(r);
	p->qpn = vb_get_be24(r);
	p->vendor_id = (uint32_t)vb_get_u8(r) << 16;
	p->eecn = vb_get_be24(r);
	p->vendor_id |= (uint32_t)vb_get_u8(r) << 8;
	p->psn = vb_get_be24(r);
	p->vendor_id |= vb_get_u8(r);
	p->responder_resources = vb_get_u8(r);
	p->initiator_depth = vb_get_u8(r);
	bits = vb_get_u8(r);
	p->ack_delay = bits >> 3;
	p->failover = bits >> 1 & 3;
	p->flow_control = bits & 1;
	bits = vb_get_u8(r);
	p->rnr_retry = bits >> 5;
	p->srq = bits & 0x10;
	p->ca_guid = vb_get_be64(r);
}

/* Write the message RTU (IBA 12.6.9) or DREP (IBA 12.6.11). */
static void put_ids(struct vb_writer *w, const struct vb_cm_msg *m)
{
	vb_put_be(w, m->remote_id, 4);
}

static void get_ids(struct vb_reader *r, struct vb_cm_msg *m)
{
	m->remote_id = vb_get_be32(r);
}

/* Write the message DREQ (IBA 12.6.10). */
static void put_dreq(struct vb_writer *w, const struct vb_cm_msg *m)
{
	put_ids(w, m);
	vb_put_be(w, (uint64_t)m->remote_qpn << 8, 4);
}

static void get_dreq(struct vb_reader *r, struct vb_cm_msg *m)
{
	get_ids(r, m);
	m->remote_qpn = vb_get_be32(r) >> 8;
}

/* Write the message MRA (IBA 12.6.6). */
static void put_mra(struct vb_writer *w, const struct vb_cm_msg *m)
{
	put_ids(w, m);
	vb_put_be(w, (uint8_t)(m->answer.message << 6), 1);
	vb_put_be(w, (uint8_t)(m->answer.timeout << 3), 1);
}

static void get_mra(struct vb_reader *r, struct vb_cm_msg *m)
{
	get_ids(r, m);
	m->answer.message = vb_get_u8(r) >> 6;
	m->answer.timeout = vb_get_u8(r) >> 3;
}

/* Write the message REJ (IBA 12.6.7). */
static void put_rej(struct vb_writer *w, const struct vb_cm_msg *m)
{
	put_ids(w, m);
	vb_put_be(w, (uint8_t)(m->answer.message << 6), 1);
	vb_put_be(w, (uint8_t)(m->answer.info_bytes << 1), 1);
	vb_put_be(w, m->answer.reason, 2);
	put_bytes(w, m->answer.info, VB_CM_INFO_BYTES);
}

static void get_rej(struct vb_reader *r, struct vb_cm_msg *m)
{
	get_ids(r, m);
	m->answer.message = vb_get_u8(r) >> 6;
	m->answer.info_bytes = vb_get_u8(r) >> 1;
	m->answer.reason = vb_get_be16(r);
	get_bytes(r, m->answer.info, VB_CM_INFO_BYTES);
}

/* Write the message SIDR_REQ or SIDR_REP (IBA 12.11.1, 12.11.2). */
static void put_sidr_req(struct vb_writer *w, const struct vb_cm_msg *m)
{
	vb_put_be(w, m->sidr.pkey, 2);
	put_zeros(w, 2);
	vb_put_be(w, m->sidr.service_id, 8);
}

static void get_sidr_req(struct vb_reader *r, struct vb_cm_msg *m)
{
	m->sidr.pkey = vb_get_be16(r);
	(void)vb_take(r, 2);
	m->sidr.service_id = vb_get_be64(r);
}

static void put_sidr_rep(struct vb_writer *w, const struct vb_cm_msg *m)
{
	vb_put_be(w, m->sidr.status, 1);
	put_zeros(w, 3);
	vb_put_be(w, (uint64_t)m->sidr.qpn << 8, 4);
	vb_put_be(w, m->sidr.service_id, 8);
	vb_put_be(w, m->sidr.qkey, 4);
	put_zeros(w, VB_CM_INFO_BYTES);
}

static void get_sidr_rep(struct vb_reader *r, struct vb_cm_msg *m)
{
	m->sidr.status = vb_get_u8(r);
	(void)vb_take(r, 3);
	m->sidr.qpn = vb_get_be32(r) >> 8;
	m->sidr.service_id = vb_get_be64(r);
	m->sidr.qkey = vb_get_be32(r);
	(void)vb_take(r, VB_CM_INFO_BYTES);
}

/* Write the message LAP (IBA 12.8.1). */
static void put_lap(struct vb_writer *w, const struct vb_cm_msg *m)
{
	const struct vb_cm_path *p = &m->lap.alternate;

	put_ids(w, m);
	put_zeros(w, 4);
	vb_put_be(w, m->lap.remote_qpn, 3);
	vb_put_be(w, (uint8_t)(m->lap.remote_timeout << 3), 1);
	put_zeros(w, 4);
	put_ends(w, p);
	vb_put_be(w, p->tclass, 1);
	vb_put_be(w, p->hop_limit, 1);
	vb_put_be(w, p->rate & 0x3f, 1);
	put_level(w, p);
}

static void get_lap(struct vb_reader *r, struct vb_cm_msg *m)
{
	struct vb_cm_path *p = &m->lap.alternate;

	get_ids(r, m);
	(void)vb_take(r, 4);
	m->lap.remote_qpn = vb_get_be24(r);
	m->lap.remote_timeout = vb_get_u8(r) >> 3;
	(void)vb_take(r, 4);
	get_ends(r, p);
	p->tclass = vb_get_u8(r);
	p->hop_limit = vb_get_u8(r);
	p->rate = vb_get_u8(r) & 0x3f;
	get_level(r, p);
}

/* Write the message APR (IBA 12.8.2). */
static void put_apr(struct vb_writer *w, const struct vb_cm_msg *m)
{
	put_ids(w, m);
	vb_put_be(w, m->apr.info_bytes, 1);
	vb_put_be(w, m->apr.status, 1);
	put_zeros(w, 2);
	put_bytes(w, m->apr.info, VB_CM_INFO_BYTES);
}

static void get_apr(struct vb_reader *r, struct vb_cm_msg *m)
{
	get_ids(r, m);
	m->apr.info_bytes = vb_get_u8(r);
	m->apr.status = vb_get_u8(r);
	(void)vb_take(r, 2);
	get_bytes(r, m->apr.info, VB_CM_INFO_BYTES);
}

/* For each message, where its private data begins: private data is at the end
 * of a MAD. */
static const struct {
	uint8_t private_bytes;
	void (*put)(struct vb_writer *, const struct vb_cm_msg *);
	void (*get)(struct vb_reader *, struct vb_cm_msg *);
} messages[] = {
	// clang-format off
	[CM_REQ - CM_REQ]      = {  92, put_req,      get_req },
	[CM_MRA - CM_REQ]      = { 222, put_mra,      get_mra },
	[CM_REJ - CM_REQ]      = { 148, put_rej,      get_rej },
	[CM_REP - CM_REQ]      = { 196, put_rep,      get_rep },
	[CM_RTU - CM_REQ]      = { 224, put_ids,      get_ids },
	[CM_DREQ - CM_REQ]     = { 220, put_dreq,     get_dreq },
	[CM_DREP - CM_REQ]     = { 224, put_ids,      get_ids },
	[CM_SIDR_REQ - CM_REQ] = { 216, put_sidr_req, get_sidr_req },
	[CM_SIDR_REP - CM_REQ] = { 136, put_sidr_rep, get_sidr_rep },
	[CM_LAP - CM_REQ]      = { 168, put_lap,      get_lap },
	[CM_APR - CM_REQ]      = { 148, put_apr,      get_apr },
	// clang-format on
};

unsigned vb_cm_private_bytes(unsigned attr)
{
	unsigned i = attr - CM_REQ;

	return i < VB_COUNT(messages) ? messages[i].private_bytes : 0;
}

void vb_cm_put(uint8_t mad[VB_MAD_BYTES], const struct vb_cm_msg *m)
{
	unsigned bytes = vb_cm_private_bytes(m->attr);
	struct vb_writer w = { mad };
	const struct vb_mad_hdr h = {
		.base_version = BASE_VERSION,
		.class = VB_MAD_CLASS_CM,
		.class_version = CM_VERSION,
		.method = METHOD_SEND,
		.tid = m->tid,
		.attr_id = m->attr,
		.attr_mod = m->attr_mod,
	};

	vb_mad_hdr_put(&w, &h);
	vb_put_be(&w, m->local_id, 4);
	messages[m->attr - CM_REQ].put(&w, m);
	put_bytes(&w, m->private_data, bytes);
}

static bool is_cm(const struct vb_mad_hdr *h)
{
	return h->base_version == BASE_VERSION && h->class == VB_MAD_CLASS_CM &&
	       h->class_version == CM_VERSION && h->method == METHOD_SEND &&
	       vb_cm_private_bytes(h->attr_id) > 0;
}

bool vb_cm_get(const uint8_t *bytes, size_t len, struct vb_cm_msg *m)
{
	struct vb_reader r = vb_reader(bytes, VB_MIN(len, VB_MAD_BYTES));
	struct vb_mad_hdr h;

	if (len < VB_MAD_BYTES || !vb_mad_hdr_get(&r, &h) || !is_cm(&h))
		return false;
	memset(m, 0, sizeof(*m));
	m->attr = h.attr_id;
	m->tid = h.tid;
	m->attr_mod = h.attr_mod;
	m->local_id = vb_get_be32(&r);
	messages[m->attr - CM_REQ].get(&r, m);
	get_bytes(&r, m->private_data, vb_cm_private_bytes(m->attr));
	return !r.overrun;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent of congestion control (IBA annex A10): its table of attributes, its
 * key, which protects it as a B_Key protects baseboard management (IBA 16.2.4),
 * and the trap that reports a wrong key. The settings of adapters are in struct
 * vb_fab_cc, where the data plane reads them. Those of switches are here; after
 * each change this file computes the threshold of every port from them.
 */
#include "mgmt/cca_priv.h"

#include <stdlib.h>

#include "mgmt/trap.h"
#include "wire/smp.h"

#define RESP_TIME    18 /* RespTimeValue: 4.096 us * 2^18, about a second */
#define KINDS_ALL    (1u << FAB_CA | 1u << FAB_SWITCH | 1u << FAB_ROUTER)
#define KINDS_CA     (1u << FAB_CA)
#define KINDS_SWITCH (1u << FAB_SWITCH)

struct vb_cca *vb_cca_create(struct vb_fab_node *node)
{
	struct vb_cca *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->node = node;
	a->port = calloc(node->ports + 1u, sizeof(*a->port));
	if (!a->port) {
		free(a);
		return NULL;
	}
	for (unsigned p = 0; p <= node->ports; p++)
		a->port[p].lease_end = VB_NEVER;
	return a;
}

void vb_cca_destroy(struct vb_cca *a)
{
	if (!a)
		return;
	free(a->port);
	free(a);
}

/* Functions for the attributes that every node has. */

static unsigned cca_get_class(struct vb_cca_ask *q)
{
	struct vb_class_info c = q->own->class;

	c.base_version = VB_MAD_BASE_VERSION;
	c.class_version = VB_CC_CLASS_VERSION;
	c.cap_mask = VB_CLASS_CAN_TRAP;
	c.cap_mask2 = 0;
	c.resp_time = RESP_TIME;
	vb_class_info_put(q->data, &c);
	return MAD_OK;
}

/* Sets the address to which the port's traps go. */
static unsigned cca_set_class(struct vb_cca_ask *q)
{
	struct vb_class_info c;

	vb_class_info_get(q->data, &c);
	if (c.trap_lid >= VB_LID_MCAST)
		return MAD_BAD_FIELD;
	q->own->class = c;
	return MAD_OK;
}

static unsigned get_abilities(struct vb_cca_ask *q)
{
	bool is_switch = q->node->kind == FAB_SWITCH;
	unsigned can = is_switch ? CC_CAN_PORT_THRESHOLD | CC_CAN_PORT_SIZE |
					   CC_CAN_PORT_RATE
				 : CC_CAN_BY_QP | CC_CAN_BY_SL;

	vb_store_be(q->data, can, 2);
	q->data[2] = is_switch ? 0 : VB_FAB_CCT / VB_CC_TABLE_BLOCK;
	return MAD_OK;
}

/* Without the right key the answer shows a key only if it is not protected. */
static unsigned get_key_info(struct vb_cca_ask *q)
{
	const struct cca_port *p = q->own;
	const struct vb_cc_key_info k = {
		.key = q->key_fits || !p->protect ? p->key : 0,
		.protect = p->protect,
		.lease = p->lease,
		.violations = p->violations,
	};

	vb_cc_key_info_put(q->data, &k);
	return MAD_OK;
}

static unsigned set_key_info(struct vb_cca_ask *q)
{
	struct cca_port *p = q->own;
	struct vb_cc_key_info k;

	vb_cc_key_info_get(q->data, &k);
	p->key = k.key;
	p->protect = k.protect;
	p->lease = k.lease;
	p->lease_end = VB_NEVER;
	q->key_fits = true;
	/* Writing 0 resets the violation counter; other values change
	 * nothing. */
	if (k.violations == 0)
		p->violations = 0;
	return MAD_OK;
}

static unsigned get_time_stamp(struct vb_cca_ask *q)
{
	vb_store_be(q->data, vb_cca_stamp(q->now), 4);
	return MAD_OK;
}

// clang-format off
static const struct cca_attribute {
	uint16_t id;
	uint8_t kinds;
	vb_cca_do *get, *set;
} cca_attributes[] = {
	{ CC_CLASS_PORT_INFO, KINDS_ALL, cca_get_class, cca_set_class },
	{ CC_INFO, KINDS_CA | KINDS_SWITCH, get_abilities, NULL },
	{ CC_KEY_INFO, KINDS_ALL, get_key_info, set_key_info },
	{ CC_LOG, KINDS_SWITCH, vb_cca_get_switch_log, NULL },
	{ CC_LOG, KINDS_CA, vb_cca_get_ca_log, NULL },
	{ CC_SWITCH_SETTING, KINDS_SWITCH, vb_cca_get_switch,
	  vb_cca_set_switch },
	{ CC_SWITCH_PORT_SETTING, KINDS_SWITCH, vb_cca_get_ports,
	  vb_cca_set_ports },
	{ CC_CA_SETTING, KINDS_CA, vb_cca_get_ca, vb_cca_set_ca },
	{ CC_TABLE, KINDS_CA, vb_cca_get_table, vb_cca_set_table },
	{ CC_TIME_STAMP, KINDS_ALL, get_time_stamp, NULL },
};
// clang-format on

/* Functions that check the key. */

/* May the agent answer the request although its key is wrong? Only Gets of
 * CongestionKeyInfo and ClassPortInfo, which tell how the key protects and what
 * the class can do. */
static bool is_public(const struct vb_mad_hdr *h)
{
	return h->method == MAD_GET &&
	       (h->attr_id == CC_KEY_INFO || h->attr_id == CC_CLASS_PORT_INFO);
}

static bool passes_key(struct vb_cca_ask *q, const struct vb_mad_hdr *h,
		       uint64_t key)
{
	struct cca_port *p = q->own;

	if (q->now >= p->lease_end) {
		p->protect = false;
		p->lease_end = VB_NEVER;
	}
	q->key_fits = p->key == 0 || key == p->key;
	if (q->key_fits)
		p->lease_end = VB_NEVER;
	if (q->key_fits || is_public(h))
		return true;
	vb_fab_count_violation(&p->violations);
	if (p->lease && p->lease_end == VB_NEVER)
		p->lease_end = q->now + p->lease * VB_SEC;
	return false;
}

/* Functions that handle requests. */

static const struct cca_attribute *attribute_of(const struct vb_fab_node *n,
						unsigned id)
{
	for (unsigned i = 0; i < VB_COUNT(cca_attributes); i++)
		if (cca_attributes[i].id == id &&
		    cca_attributes[i].kinds & 1u << n->kind)
			return &cca_attributes[i];
	return NULL;
}

static unsigned cca_answer(struct vb_cca_ask *q, const struct vb_mad_hdr *h)
{
	const struct cca_attribute *a = attribute_of(q->node, h->attr_id);
	unsigned status = vb_mad_judge(h->base_version, h->class_version,
				       VB_CC_CLASS_VERSION, h->method);

	if (status != MAD_OK)
		return status;
	if (!a || (h->method == MAD_SET && !a->set))
		return MAD_BAD_ATTRIBUTE;
	if (h->method == MAD_SET)
		status = a->set(q);
	if (status == MAD_OK && h->method == MAD_GET)
		memset(q->log, 0, VB_CC_LOG_BYTES);
	return status == MAD_OK ? a->get(q) : status;
}

enum vb_cca_verdict vb_cca_hear(struct vb_cca *a, uint8_t own,
				uint8_t mad[VB_MAD_BYTES], vb_time now)
{
	struct vb_cca_ask q = {
		.agent = a,
		.node = a->node,
		.own = &a->port[own],
		.fab = &a->node->port[own],
		.data = mad + VB_CC_DATA_AT,
		.log = mad + VB_CC_LOG_AT,
		.now = now,
	};
	struct vb_reader r = vb_reader(mad, VB_MAD_BYTES);
	struct vb_writer w = { mad };
	struct vb_mad_hdr h;

	if (!vb_mad_hdr_get(&r, &h) || h.method & MAD_RESPONSE ||
	    h.method == MAD_TRAP || h.method == MAD_TRAP_REPRESS)
		return CCA_NOT_MINE;
	if (!passes_key(&q, &h, vb_load_be(mad + VB_CC_KEY_AT, 8)))
		return CCA_BAD_KEY;
	q.mod = h.attr_mod;
	h.status = (uint16_t)cca_answer(&q, &h);
	h.method = MAD_GET_RESP;
	vb_mad_hdr_put(&w, &h);
	return CCA_ANSWERED;
}

/* Functions that make the trap. */

static void put_details(uint8_t *at, const struct vb_mad_frame *f,
			const uint8_t *mad)
{
	const struct vb_cc_notice n = {
		.slid = f->slid,
		.method = mad[3],
		.attr_id = (uint16_t)vb_load_be(mad + 16, 2),
		.attr_mod = (uint32_t)vb_load_be(mad + 20, 4),
		.qpn = f->dqpn,
		.key = vb_load_be(mad + VB_CC_KEY_AT, 8),
		.prefix = vb_load_be(f->sgid.raw, 8),
		.guid = vb_load_be(f->sgid.raw + 8, 8),
	};

	vb_cc_notice_put(at, &n);
}

static void put_trap(struct vb_cca *a, const struct cca_port *p,
		     const struct vb_fab_port *fab, uint8_t *trap)
{
	const struct vb_mad_hdr h = {
		.base_version = VB_MAD_BASE_VERSION,
		.class = MAD_CLASS_CC,
		.class_version = VB_CC_CLASS_VERSION,
		.method = MAD_TRAP,
		.tid = ++a->last_tid,
		.attr_id = CC_NOTICE,
	};
	const struct vb_notice n = {
		.generic = 1,
		.type = VB_NOTICE_SECURITY,
		.producer = a->node->kind,
		.number = VB_CC_TRAP_BAD_KEY,
		.issuer_lid = fab->lid,
		.count = (uint16_t)(a->last_tid & 0x7fff),
	};
	struct vb_writer w = { trap };

	memset(trap, 0, VB_MAD_BYTES);
	vb_mad_hdr_put(&w, &h);
	vb_store_be(trap + VB_CC_KEY_AT, p->key, 8);
	vb_notice_put(trap + VB_CC_DATA_AT, &n);
}

bool vb_cca_trap(struct vb_cca *a, uint8_t own,
		 const struct vb_mad_frame *frame,
		 const uint8_t mad[VB_MAD_BYTES], uint8_t trap[VB_MAD_BYTES],
		 struct vb_mad_addr *to, vb_time now)
{
	const struct vb_fab_port *fab = &a->node->port[own];
	struct cca_port *p = &a->port[own];
	int pkey = vb_fab_find_pkey(fab, p->class.trap_pkey);

	if (!p->class.trap_lid || !fab->lid || now < p->trap_after)
		return false;
	p->trap_after = now + vb_trap_pause(fab);
	put_trap(a, p, fab, trap);
	put_details(trap + VB_CC_DATA_AT + VB_NOTICE_DETAILS_AT, frame, mad);
	*to = (struct vb_mad_addr){
		.qpn = p->class.trap_qpn ? p->class.trap_qpn : VB_GSI_QPN,
		.qkey = p->class.trap_qkey ? p->class.trap_qkey : VB_GSI_QKEY,
		.lid = p->class.trap_lid,
		.sl = p->class.trap_sl,
		.pkey_index = (uint16_t)(pkey < 0 ? 0 : pkey),
	};
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet management agent's table of attributes, its M_Key check (IBA
 * 14.2.4), and the attributes of a node as a whole. The agent answers an
 * unknown attribute with a status, since silence costs the subnet manager four
 * timeouts.
 */
#include "mgmt/sma_priv.h"

#define CLASS_VERSION 1
#define KINDS_ALL     (1u << FAB_CA | 1u << FAB_SWITCH | 1u << FAB_ROUTER)
#define KINDS_SWITCH  (1u << FAB_SWITCH)

struct vb_fab_port *vb_sma_port(const struct vb_sma_ask *q, unsigned number,
				uint8_t *port)
{
	if (q->node->kind != FAB_SWITCH && number == 0)
		number = q->in;
	if (number > q->node->ports ||
	    (number == 0 && q->node->kind != FAB_SWITCH))
		return NULL;
	*port = (uint8_t)number;
	return &q->node->port[number];
}

static unsigned get_description(struct vb_sma_ask *q)
{
	memcpy(q->data, q->node->desc, VB_FAB_DESC_BYTES);
	return MAD_OK;
}

static unsigned get_node_info(struct vb_sma_ask *q)
{
	const struct vb_fab_node *n = q->node;
	uint8_t own = vb_sma_own_port(n, q->in);
	const struct vb_node_info info = {
		.base_version = VB_MAD_BASE_VERSION,
		.class_version = CLASS_VERSION,
		.node_type = n->kind,
		.num_ports = n->ports,
		.system_guid = n->sys_guid,
		.node_guid = n->guid,
		.port_guid = n->port[own].guid,
		.partition_cap = n->partition_cap,
		.device_id = (uint16_t)n->device_id,
		.revision = n->revision,
		.local_port = q->in,
		.vendor_id = n->vendor_id,
	};

	vb_node_info_put(q->data, &info);
	return MAD_OK;
}

static unsigned get_switch_info(struct vb_sma_ask *q)
{
	const struct vb_fab_switch *sw = &q->node->sw;
	const struct vb_switch_info info = {
		.linear_cap = sw->linear_cap,
		.random_cap = sw->random_cap,
		.multicast_cap = sw->mcast_cap,
		.linear_top = sw->linear_top,
		.default_port = sw->default_port,
		.default_primary = sw->default_mcast_primary,
		.default_secondary = sw->default_mcast_other,
		.life_time = sw->life,
		.port_state_change = sw->state_change,
		.lids_per_port = sw->lids_per_port,
		.partition_cap = sw->pkey_cap,
		.inbound_enforcement = 1,
		.outbound_enforcement = 1,
		.raw_inbound = 1,
		.raw_outbound = 1,
		.enhanced_port0 = sw->enhanced_port0,
		.multicast_top = sw->mcast_top,
	};

	vb_switch_info_put(q->data, &info);
	return MAD_OK;
}

static unsigned set_switch_info(struct vb_sma_ask *q)
{
	struct vb_fab_switch *sw = &q->node->sw;
	struct vb_switch_info info;

	vb_switch_info_get(q->data, &info);
	if (info.linear_top >= VB_LID_MCAST ||
	    (sw->linear_cap && info.linear_top > sw->linear_cap))
		return MAD_BAD_FIELD;
	sw->linear_top = info.linear_top;
	sw->default_port = info.default_port;
	sw->default_mcast_primary = info.default_primary;
	sw->default_mcast_other = info.default_secondary;
	sw->life = info.life_time;
	sw->mcast_top = info.multicast_top;
	if (info.port_state_change)
		sw->state_change = false;
	return MAD_OK;
}

// clang-format off
static const struct attribute {
	uint16_t id;
	uint8_t kinds;
	vb_sma_do *get, *set;
} attributes[] = {
	{ SMP_NODE_DESCRIPTION, KINDS_ALL, get_description, NULL },
	{ SMP_NODE_INFO, KINDS_ALL, get_node_info, NULL },
	{ SMP_SWITCH_INFO, KINDS_SWITCH, get_switch_info, set_switch_info },
	{ SMP_GUID_INFO, KINDS_ALL, vb_sma_get_guids, vb_sma_set_guids },
	{ SMP_PORT_INFO, KINDS_ALL, vb_sma_get_port_info, vb_sma_set_port_info },
	{ SMP_PKEY_TABLE, KINDS_ALL, vb_sma_get_pkeys, vb_sma_set_pkeys },
	{ SMP_SL2VL, KINDS_ALL, vb_sma_get_sl2vl, vb_sma_set_sl2vl },
	{ SMP_VLARB, KINDS_ALL, vb_sma_get_vlarb, vb_sma_set_vlarb },
	{ SMP_LINEAR_TABLE, KINDS_SWITCH, vb_sma_get_linear, vb_sma_set_linear },
	{ SMP_RANDOM_TABLE, KINDS_SWITCH, vb_sma_get_random, vb_sma_set_random },
	{ SMP_MULTICAST_TABLE, KINDS_SWITCH, vb_sma_get_multicast,
	  vb_sma_set_multicast },
};
// clang-format on

static const struct attribute *find_attribute(const struct vb_fab_node *n,
					      unsigned id)
{
	for (unsigned i = 0; i < VB_COUNT(attributes); i++)
		if (attributes[i].id == id &&
		    attributes[i].kinds & 1u << n->kind)
			return &attributes[i];
	return NULL;
}

/* Functions that check the M_Key. */

static void look_at_lease(struct vb_fab_port *p, vb_time now)
{
	if (now < p->mkey_lease_end)
		return;
	p->mkey_protect = 0;
	p->mkey_lease_end = VB_NEVER;
}

/* Does the port answer this method in spite of a wrong M_Key (IBA 14.2.4.1)? A
 * Set never, a Get below protection level 2. */
static bool is_open(const struct vb_fab_port *p, unsigned method)
{
	return method == MAD_GET && p->mkey_protect < 2;
}

static bool passes_mkey(struct vb_fab_port *p, const struct vb_smp_hdr *h,
			bool *fits, vb_time now)
{
	look_at_lease(p, now);
	*fits = p->mkey == 0 || h->mkey == p->mkey;
	if (*fits) {
		p->mkey_lease_end = VB_NEVER;
		return true;
	}
	*fits = p->mkey_protect == 0;
	if (is_open(p, h->method))
		return true;
	vb_fab_count_violation(&p->mkey_violations);
	if (p->mkey_lease && p->mkey_lease_end == VB_NEVER)
		p->mkey_lease_end = now + p->mkey_lease * VB_SEC;
	return false;
}

/* Functions that handle requests. */

static unsigned sma_answer(struct vb_sma_ask *q, const struct vb_smp_hdr *h)
{
	const struct attribute *a = find_attribute(q->node, h->attr_id);
	unsigned status = vb_mad_judge(h->base_version, h->class_version,
				       CLASS_VERSION, h->method);

	if (status != MAD_OK)
		return status;
	if (!a || (h->method == MAD_SET && !a->set))
		return MAD_BAD_ATTRIBUTE;
	if (h->method == MAD_SET)
		status = a->set(q);
	if (status == MAD_OK && h->method == MAD_GET)
		memset(q->data, 0, VB_SMP_DATA_BYTES);
	return status == MAD_OK ? a->get(q) : status;
}

/* Is the SMP one that only a program's agent handles? */
static bool is_for_program(const struct vb_smp_hdr *h)
{
	return h->method & MAD_RESPONSE || h->method == MAD_TRAP ||
	       h->method == MAD_TRAP_REPRESS || h->attr_id == SMP_SM_INFO;
}

enum vb_sma_verdict vb_sma_hear(const struct vb_sma_ops *ops,
				struct vb_fab_node *node, uint8_t in,
				uint8_t mad[VB_MAD_BYTES], vb_time now)
{
	struct vb_sma_ask q = {
		.ops = ops, .node = node, .in = in, .now = now
	};
	struct vb_fab_port *own = &node->port[vb_sma_own_port(node, in)];
	struct vb_smp_hdr h;

	vb_smp_hdr_get(mad, &h);
	if (is_for_program(&h))
		return SMA_NOT_MINE;
	if (!passes_mkey(own, &h, &q.mkey_fits, now))
		return SMA_BAD_MKEY;
	q.mod = h.attr_mod;
	q.data = mad + VB_SMP_DATA_AT;
	h.status = (uint16_t)sma_answer(&q, &h);
	h.method = MAD_GET_RESP;
	if (h.class == MAD_CLASS_SMP_DIRECTED)
		h.status |= VB_SMP_DIRECTION;
	vb_smp_hdr_put(mad, &h);
	return SMA_ANSWERED;
}

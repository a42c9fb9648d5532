/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PortInfo (IBA 14.2.5.6): a Set changes some of its 50 fields, and for most of
 * those one value means "no change". The agent checks all fields of a Set
 * before it changes anything.
 */
#include "mgmt/sma_priv.h"

#include <errno.h>

#define WIDTH_ALL      0xff
#define SPEED_ALL      0x0f
#define SPEED_EXT_ALL  0x1f
#define SPEED_EXT_NONE 0x1e
/* The bits of the attribute modifier that name the port. Its bit 31 says that
 * the subnet manager knows extended speeds, and changes nothing here. */
#define MOD_PORT 0xff

static void show_link(const struct vb_fab_port *from, struct vb_port_info *p)
{
	p->width_enabled = from->width_enabled;
	p->width_supported = from->width_supported;
	p->width_active = from->width_active;
	p->speed_supported = from->speed_supported;
	p->speed_active = from->speed_active;
	p->speed_enabled = from->speed_enabled;
	p->ext_speed_active = from->speed_ext_active;
	p->ext_speed_supported = from->speed_ext_supported;
	p->ext_speed_enabled = from->speed_ext_enabled;
	p->state = from->state;
	p->phys_state = from->phys;
	p->down_default = from->down_default;
	p->local_phys_errors = from->local_phy_errors;
	p->overrun_errors = from->overrun_errors;
	p->max_credit_hint = from->max_credit_hint;
	p->round_trip = from->round_trip;
}

static void show_lanes(const struct vb_fab_port *from, struct vb_port_info *p)
{
	p->neighbor_mtu = from->mtu;
	p->mtu_cap = from->mtu_cap;
	p->vl_cap = from->vl_cap;
	p->oper_vls = from->oper_vls ? from->oper_vls : 1;
	p->init_type = from->init_type;
	p->init_reply = from->init_reply;
	p->high_limit = from->high_limit;
	p->vlarb_high_cap = from->arb_high_cap;
	p->vlarb_low_cap = from->arb_low_cap;
	p->vl_stall = from->vl_stall;
	p->hoq_life = from->hoq_life;
	p->pkey_enforce_in = from->pkey_in;
	p->pkey_enforce_out = from->pkey_out;
	p->raw_in = from->raw_in;
	p->raw_out = from->raw_out;
}

static void show_subnet(const struct vb_fab_port *from, struct vb_port_info *p)
{
	p->mkey = from->mkey;
	p->gid_prefix = from->gid_prefix;
	p->lid = from->lid;
	p->lmc = from->lmc;
	p->sm_lid = from->sm_lid;
	p->sm_sl = from->sm_sl;
	p->cap_mask = from->cap_mask;
	p->cap_mask2 = from->cap_mask2;
	p->mkey_lease = from->mkey_lease;
	p->mkey_protect = from->mkey_protect;
	p->mkey_violations = from->mkey_violations;
	p->pkey_violations = from->pkey_violations;
	p->qkey_violations = from->qkey_violations;
	p->guid_cap = from->guid_cap;
	p->client_reregister = from->client_reregister;
	p->subnet_timeout = from->subnet_timeout;
	p->resp_time = from->resp_time;
}

/* Write the PortInfo of @port that a Get by port @in shows, with the M_Key. */
static void show_port_info(const struct vb_fab_node *node, uint8_t in,
			   uint8_t port, struct vb_port_info *p)
{
	const struct vb_fab_port *from = &node->port[port];

	memset(p, 0, sizeof(*p));
	show_link(from, p);
	show_lanes(from, p);
	/* Only the node's own port has a LID and an M_Key; the external ports
	 * of a switch have neither. */
	if (port == vb_sma_own_port(node, port))
		show_subnet(from, p);
	p->local_port = in;
}

unsigned vb_sma_get_port_info(struct vb_sma_ask *q)
{
	struct vb_port_info p;
	uint8_t port;

	if (!vb_sma_port(q, q->mod & MOD_PORT, &port))
		return MAD_BAD_FIELD;
	show_port_info(q->node, q->in, port, &p);
	if (!q->mkey_fits)
		p.mkey = 0;
	vb_port_info_put(q->data, &p);
	return MAD_OK;
}

/* Functions for Set of PortInfo. */

/* May a Set enable @enabled: no bit outside @supported (0 has none), or the
 * code @all for every supported bit? */
static bool may_enable(unsigned enabled, unsigned supported, unsigned all)
{
	return enabled == all || (enabled & ~supported) == 0;
}

static bool is_link_valid(const struct vb_fab_port *to,
			  const struct vb_port_info *p)
{
	return may_enable(p->width_enabled, to->width_supported, WIDTH_ALL) &&
	       may_enable(p->speed_enabled, to->speed_supported, SPEED_ALL) &&
	       (p->ext_speed_enabled == SPEED_EXT_NONE ||
		may_enable(p->ext_speed_enabled, to->speed_ext_supported,
			   SPEED_EXT_ALL)) &&
	       p->neighbor_mtu <= to->mtu_cap && p->oper_vls <= to->vl_cap &&
	       p->down_default <= FAB_POLLING && p->state <= FAB_ACTIVE &&
	       p->phys_state <= FAB_DISABLED;
}

static bool is_subnet_valid(const struct vb_port_info *p)
{
	return p->lid < VB_LID_MCAST && p->sm_lid < VB_LID_MCAST &&
	       (p->lid & ((1u << p->lmc) - 1)) == 0;
}

/* May a Set bring the port from its present states to those that @p names? */
static bool is_state_valid(const struct vb_fab_port *to,
			   const struct vb_port_info *p)
{
	switch (p->state) {
	case FAB_INIT:
		return false; /* only training can bring a port to that state */
	case FAB_ARMED:
		return to->state == FAB_INIT || to->state == FAB_ARMED;
	case FAB_ACTIVE:
		return to->state == FAB_ARMED || to->state == FAB_ACTIVE;
	default:
		return true;
	}
}

static void set_enabled(uint8_t *enabled, unsigned value, unsigned all,
			unsigned supported)
{
	if (value)
		*enabled = (uint8_t)(value == all ? supported : value);
}

static void sma_take_link(struct vb_fab_port *to, const struct vb_port_info *p)
{
	set_enabled(&to->width_enabled, p->width_enabled, WIDTH_ALL,
		    to->width_supported);
	set_enabled(&to->speed_enabled, p->speed_enabled, SPEED_ALL,
		    to->speed_supported);
	if (p->ext_speed_enabled == SPEED_EXT_NONE)
		to->speed_ext_enabled = 0;
	else
		set_enabled(&to->speed_ext_enabled, p->ext_speed_enabled,
			    SPEED_EXT_ALL, to->speed_ext_supported);
	if (p->down_default)
		to->down_default = p->down_default;
	if (p->neighbor_mtu)
		to->mtu = p->neighbor_mtu;
	if (p->oper_vls)
		to->oper_vls = p->oper_vls;
	to->high_limit = p->high_limit;
	to->vl_stall = p->vl_stall;
	to->hoq_life = p->hoq_life;
	to->pkey_in = p->pkey_enforce_in;
	to->pkey_out = p->pkey_enforce_out;
	to->raw_in = p->raw_in;
	to->raw_out = p->raw_out;
	to->local_phy_errors = p->local_phys_errors;
	to->overrun_errors = p->overrun_errors;
	to->init_type = p->init_type;
}

/* A Set of 0 resets a counter of violations; other values change nothing. */
static void take_violations(struct vb_fab_port *to,
			    const struct vb_port_info *p)
{
	if (p->mkey_violations == 0)
		to->mkey_violations = 0;
	if (p->pkey_violations == 0)
		to->pkey_violations = 0;
	if (p->qkey_violations == 0)
		to->qkey_violations = 0;
}

static void take_subnet(struct vb_fab_port *to, const struct vb_port_info *p)
{
	to->mkey = p->mkey;
	to->mkey_protect = p->mkey_protect;
	to->mkey_lease = p->mkey_lease;
	to->gid_prefix = p->gid_prefix;
	to->lid = p->lid;
	to->lmc = p->lmc;
	to->sm_lid = p->sm_lid;
	to->sm_sl = p->sm_sl;
	to->subnet_timeout = p->subnet_timeout;
	to->client_reregister = p->client_reregister;
	take_violations(to, p);
}

/* Change the link's states: first the physical one, because disabling a port
 * also makes it Down. */
static unsigned sma_move_link(struct vb_sma_ask *q, uint8_t port,
			      const struct vb_port_info *p)
{
	const struct vb_sma_ops *o = q->ops;
	int rc = 0;

	if (p->phys_state)
		rc = o->set_phys(o->arg, q->node, port,
				 (enum vb_fab_phys)p->phys_state, q->now);
	else if (p->state)
		rc = o->set_state(o->arg, q->node, port,
				  (enum vb_fab_state)p->state, q->now);
	return rc ? MAD_BAD_FIELD : MAD_OK;
}

unsigned vb_sma_set_port_info(struct vb_sma_ask *q)
{
	struct vb_port_info p;
	struct vb_fab_port *to;
	bool has_lid;
	uint8_t port;

	vb_port_info_get(q->data, &p);
	to = vb_sma_port(q, q->mod & MOD_PORT, &port);
	/* An SMP cannot change another port of an adapter: that port may be on
	 * another subnet. */
	if (!to || (q->node->kind != FAB_SWITCH && port != q->in))
		return MAD_BAD_FIELD;
	has_lid = port == vb_sma_own_port(q->node, port);
	if (has_lid && !is_subnet_valid(&p))
		return MAD_BAD_FIELD;
	if (port != 0 && (!is_link_valid(to, &p) || !is_state_valid(to, &p)))
		return MAD_BAD_FIELD;
	if (port != 0)
		sma_take_link(to, &p);
	if (has_lid)
		take_subnet(to, &p);
	if (has_lid && q->ops->configured)
		q->ops->configured(q->ops->arg, q->node, port);
	return port == 0 ? MAD_OK : sma_move_link(q, port, &p);
}

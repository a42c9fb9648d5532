/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks and the tables that decide where a frame goes. */
#include "fabric/switch.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/ib_hdr.h"

const struct vb_fab_drop_row vb_fab_drops[DROPS] = {
	[DROP_NOT] = { FAB_COUNTERS, FAB_COUNTERS, "none" },
	[DROP_MALFORMED] = { FAB_RCV_ERRORS, FAB_RCV_MALFORMED, "malformed" },
	[DROP_LANE] = { FAB_RCV_ERRORS, FAB_RCV_MALFORMED, "lane" },
	[DROP_STATE] = { FAB_COUNTERS, FAB_COUNTERS, "state" },
	[DROP_PKEY_IN] = { FAB_RCV_CONSTRAINT, FAB_COUNTERS, "pkey_in" },
	[DROP_RAW_IN] = { FAB_RCV_CONSTRAINT, FAB_COUNTERS, "raw_in" },
	[DROP_NO_ROUTE] = { FAB_RCV_SWITCH_RELAY, FAB_RCV_DLID_MAPPING,
			    "no_route" },
	[DROP_LOOP] = { FAB_RCV_SWITCH_RELAY, FAB_RCV_LOOPING, "loop" },
	[DROP_SL] = { FAB_RCV_SWITCH_RELAY, FAB_RCV_VL_MAPPING, "sl" },
	[DROP_NO_GRH] = { FAB_RCV_SWITCH_RELAY, FAB_COUNTERS, "no_grh" },
	[DROP_GRH] = { FAB_RCV_ERRORS, FAB_RCV_MALFORMED, "bad_grh" },
	[DROP_SCOPE] = { FAB_RCV_SWITCH_RELAY, FAB_COUNTERS, "scope" },
	[DROP_HOP_LIMIT] = { FAB_RCV_SWITCH_RELAY, FAB_COUNTERS, "hop_limit" },
	[DROP_NO_PREFIX] = { FAB_RCV_SWITCH_RELAY, FAB_COUNTERS, "no_prefix" },
	[DROP_NO_PATH] = { FAB_RCV_SWITCH_RELAY, FAB_COUNTERS, "no_path" },
	[DROP_UNASKED] = { FAB_RCV_SWITCH_RELAY, FAB_COUNTERS, "unasked" },
	[DROP_PKEY_OUT] = { FAB_XMIT_CONSTRAINT, FAB_COUNTERS, "pkey_out" },
	[DROP_RAW_OUT] = { FAB_XMIT_CONSTRAINT, FAB_COUNTERS, "raw_out" },
	[DROP_INACTIVE] = { FAB_XMIT_DISCARDS, FAB_XMIT_INACTIVE, "inactive" },
	[DROP_MTU] = { FAB_XMIT_DISCARDS, FAB_XMIT_NEIGHBOR_MTU, "mtu" },
};

static bool is_raw(const struct vb_lrh *h)
{
	return h->lnh < LNH_LOCAL;
}

static uint16_t pkey_of(const struct vb_fab_view *v)
{
	return (uint16_t)vb_load_be(vb_lrh_bth(v->bytes, &v->lrh) + 2, 2);
}

/* Is what is behind the port a member of the frame's partition? Subnet managers
 * give a switch's port the table of the adapter behind it. A limited member
 * there has a limited member's P_Key in its table, and sends with that, so the
 * membership bits do not count here. */
static bool pkey_may_enter(const struct vb_fab_port *p,
			   const struct vb_fab_view *v)
{
	uint16_t pkey = pkey_of(v);

	for (unsigned i = 0; i < p->pkeys; i++)
		if (((p->pkey[i] ^ pkey) & 0x7fff) == 0 && (pkey & 0x7fff))
			return true;
	return false;
}

static bool pkey_may_leave(const struct vb_fab_port *p,
			   const struct vb_fab_view *v)
{
	return vb_fab_find_pkey(p, pkey_of(v)) >= 0;
}

/* Only external ports of switches discard frames for their P_Keys, or raw ones,
 * and not on VL15 (IBA 18.2.4.2). */
static enum vb_fab_drop enforce_in(const struct vb_fab_port *p,
				   const struct vb_fab_view *v)
{
	if (is_raw(&v->lrh))
		return p->raw_in ? DROP_RAW_IN : DROP_NOT;
	return p->pkey_in && !pkey_may_enter(p, v) ? DROP_PKEY_IN : DROP_NOT;
}

static enum vb_fab_drop enforce_out(const struct vb_fab_port *p,
				    const struct vb_fab_view *v)
{
	if (is_raw(&v->lrh))
		return p->raw_out ? DROP_RAW_OUT : DROP_NOT;
	return p->pkey_out && !pkey_may_leave(p, v) ? DROP_PKEY_OUT : DROP_NOT;
}

enum vb_fab_drop vb_fab_check_in(const struct vb_fab_node *node, uint8_t port,
				 const struct vb_fab_view *v)
{
	const struct vb_fab_port *p = &node->port[port];

	if (vb_lrh_check(&v->lrh, v->len, vb_fab_mtu_bytes(p->mtu_cap)) !=
	    LRH_GOOD)
		return DROP_MALFORMED;
	if (v->lrh.vl == VB_VL_MGMT)
		return is_raw(&v->lrh) ? DROP_MALFORMED : DROP_NOT;
	if (p->state < FAB_ARMED)
		return DROP_STATE;
	if (v->lrh.vl >= vb_fab_vls(p->oper_vls))
		return DROP_LANE;
	if (node->kind != FAB_SWITCH)
		return DROP_NOT;
	return enforce_in(p, v);
}

/* A random table has each LID at most once; a linear search models the
 * associative memory. */
static uint8_t random_port(const struct vb_fab_switch *sw, uint16_t dlid)
{
	for (unsigned i = 0; i < sw->random_cap; i++) {
		const struct vb_fab_random *e = &sw->random[i];

		if (e->valid && e->lid >> e->lmc == dlid >> e->lmc)
			return e->port;
	}
	return sw->default_port;
}

static uint8_t unicast_port(const struct vb_fab_switch *sw, uint16_t dlid)
{
	if (!sw->linear_cap)
		return random_port(sw, dlid);
	if (dlid > sw->linear_top || dlid >= sw->linear_cap)
		return VB_FAB_NO_PORT;
	return sw->linear[dlid];
}

static void route_unicast(const struct vb_fab_node *node, uint8_t in,
			  uint16_t dlid, struct vb_fab_route *r)
{
	if (dlid == VB_LID_PERMISSIVE || vb_fab_is_own_lid(node, 0, dlid)) {
		r->port = 0;
		return;
	}
	r->port = dlid ? unicast_port(&node->sw, dlid) : VB_FAB_NO_PORT;
	if (r->port > node->ports)
		r->drop = DROP_NO_ROUTE;
	else if (r->port == in)
		r->drop = DROP_LOOP;
}

static bool mask_is_empty(const struct vb_fab_mcast *m)
{
	return !(m->ports[0] | m->ports[1] | m->ports[2] | m->ports[3]);
}

/* IBA 18.2.4.3.3: a multicast LID without an entry goes to a default port, the
 * primary one unless the frame comes from there. */
static void mask_of_default(const struct vb_fab_switch *sw, uint8_t in,
			    struct vb_fab_mcast *m)
{
	uint8_t port = in == sw->default_mcast_primary
			       ? sw->default_mcast_other
			       : sw->default_mcast_primary;

	if (port != VB_FAB_NO_PORT)
		m->ports[port / 64] |= 1ull << port % 64;
}

static void route_mcast(const struct vb_fab_node *node, uint8_t in,
			uint16_t dlid, struct vb_fab_route *r)
{
	const struct vb_fab_switch *sw = &node->sw;
	unsigned index = dlid - VB_LID_MCAST;

	r->mcast = true;
	if (index < sw->mcast_cap && (!sw->mcast_top || dlid <= sw->mcast_top))
		r->mask = sw->mcast[index];
	if (mask_is_empty(&r->mask))
		mask_of_default(sw, in, &r->mask);
	if (mask_is_empty(&r->mask))
		r->drop = DROP_NO_ROUTE;
	r->mask.ports[in / 64] &= ~(1ull << in % 64);
}

void vb_fab_route(const struct vb_fab_node *node, uint8_t in,
		  const struct vb_fab_view *v, struct vb_fab_route *r)
{
	uint16_t dlid = v->lrh.dlid;

	*r = (struct vb_fab_route){ .drop = DROP_NOT };
	if (vb_lid_is_mcast(dlid))
		route_mcast(node, in, dlid, r);
	else
		route_unicast(node, in, dlid, r);
}

enum vb_fab_drop vb_fab_check_out(const struct vb_fab_node *node, uint8_t in,
				  uint8_t out, const struct vb_fab_view *v,
				  uint8_t *vl)
{
	const struct vb_fab_port *p = &node->port[out];

	if (v->lrh.vl == VB_VL_MGMT) {
		*vl = VB_VL_MGMT;
		return p->state < FAB_INIT ? DROP_INACTIVE : DROP_NOT;
	}
	if (p->state != FAB_ACTIVE)
		return DROP_INACTIVE;
	*vl = vb_fab_sl2vl(node, in, out)[v->lrh.sl];
	if (*vl >= vb_fab_vls(p->oper_vls))
		return DROP_SL;
	if (v->len > vb_fab_mtu_bytes(p->mtu) + VB_LRH_HDR_MAX)
		return DROP_MTU;
	return enforce_out(p, v);
}

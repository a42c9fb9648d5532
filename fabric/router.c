/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks and the routes that decide where a router sends a frame. */
#include "fabric/router.h"

#include "base/bytes.h"
#include "wire/grh.h"
#include "wire/ib_hdr.h"

#define HOP_LIMIT_AT (VB_LRH_BYTES + 7)

static uint64_t prefix_of(const struct vb_gid *gid)
{
	return vb_load_be(gid->raw, 8);
}

/* Is @gid a GID of the port? It also answers to the default prefix (IBA
 * 4.1.1). */
static bool is_gid_of(const struct vb_fab_port *p, const struct vb_gid *gid)
{
	uint64_t guid = vb_load_be(gid->raw + 8, 8);

	if (prefix_of(gid) != p->gid_prefix && !vb_gid_is_link_local(gid))
		return false;
	for (unsigned i = 0; i < p->guid_cap; i++)
		if (p->guids[i] && p->guids[i] == guid)
			return true;
	return false;
}

/* Is the frame for a port of this router? A link-local GID is one of the port
 * where the frame came in. */
static bool is_router_gid(const struct vb_fab_node *node, uint8_t in,
			  const struct vb_gid *gid)
{
	for (unsigned p = 1; p <= node->ports; p++)
		if ((p == in || !vb_gid_is_link_local(gid)) &&
		    is_gid_of(&node->port[p], gid))
			return true;
	return false;
}

/* Find the port that leads to the subnet of @prefix: a port in that subnet, or
 * else the port that the routes of the topology file name. 0: no port leads
 * there. */
static uint8_t port_to(const struct vb_fab_node *node, uint64_t prefix)
{
	const struct vb_fab_router *r = node->router;
	uint8_t port = 0;

	for (unsigned p = 1; p <= node->ports; p++)
		if (node->port[p].state == FAB_ACTIVE &&
		    node->port[p].gid_prefix == prefix)
			return (uint8_t)p;
	for (unsigned i = 0; i < r->routes; i++) {
		if (!r->route[i].any && r->route[i].prefix == prefix)
			return r->route[i].port;
		if (r->route[i].any && !port)
			port = r->route[i].port;
	}
	return port;
}

static bool stays_in_subnet(const struct vb_grh *g)
{
	return vb_gid_is_link_local(&g->sgid) ||
	       vb_gid_is_link_local(&g->dgid) || vb_gid_is_multicast(&g->dgid);
}

static enum vb_fab_drop route(const struct vb_fab_node *node,
			      const struct vb_grh *g, struct vb_fab_way *w)
{
	if (stays_in_subnet(g))
		return DROP_SCOPE;
	if (g->hop_limit <= 1)
		return DROP_HOP_LIMIT;
	w->port = port_to(node, prefix_of(&g->dgid));
	w->dgid = g->dgid;
	return w->port && w->port <= node->ports ? DROP_NOT : DROP_NO_PREFIX;
}

void vb_fab_router_way(const struct vb_fab_node *node, uint8_t in,
		       const struct vb_fab_view *v, struct vb_fab_way *w)
{
	struct vb_grh g;

	*w = (struct vb_fab_way){ .drop = DROP_NOT };
	/* Subnet management packets do not leave their subnet (IBA 14.2.1). */
	if (v->lrh.vl == VB_VL_MGMT || v->lrh.lnh == LNH_LOCAL) {
		w->here = true;
		return;
	}
	if (v->lrh.lnh != LNH_GLOBAL ||
	    !(vb_fab_is_own_lid(node, in, v->lrh.dlid) ||
	      vb_lid_is_mcast(v->lrh.dlid))) {
		w->drop = DROP_NO_GRH;
		return;
	}
	if (!vb_grh_get_iba(v->bytes + VB_LRH_BYTES, &g) ||
	    g.udp_bytes != v->len - VB_LRH_BYTES - VB_GRH_BYTES) {
		w->drop = DROP_GRH;
		return;
	}
	w->here = is_router_gid(node, in, &g.dgid);
	if (!w->here)
		w->drop = route(node, &g, w);
}

enum vb_fab_drop vb_fab_router_out(const struct vb_fab_node *node, uint8_t out,
				   const struct vb_fab_path *path,
				   const struct vb_fab_view *v, uint8_t *vl)
{
	const struct vb_fab_port *p = &node->port[out];
	unsigned mtu =
		VB_MIN(vb_fab_mtu_bytes(p->mtu), vb_fab_mtu_bytes(path->mtu));

	if (p->state != FAB_ACTIVE)
		return DROP_INACTIVE;
	*vl = p->sl2vl[path->sl & 15];
	if (*vl >= vb_fab_vls(p->oper_vls))
		return DROP_SL;
	return v->len > mtu + VB_LRH_HDR_MAX ? DROP_MTU : DROP_NOT;
}

void vb_fab_router_rewrite(const struct vb_fab_node *node, uint8_t out,
			   const struct vb_fab_path *path, uint8_t *bytes)
{
	struct vb_lrh h;

	vb_lrh_get(bytes, &h);
	h.sl = path->sl & 15;
	h.dlid = path->dlid;
	h.slid = node->port[out].lid;
	vb_lrh_put(bytes, &h);
	bytes[HOP_LIMIT_AT]--;
}

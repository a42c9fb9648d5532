/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes routes of address vectors. An address handle keeps one route. */
#include "core/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* RoCE has no LIDs, so every address vector needs a GRH (IBA annex A17). */
static const char *av_fault(const struct vb_av *av)
{
	if (!av->is_global)
		return "its address has no GRH, as when one end was given no "
		       "GID index, or one without a GID";
	if (vb_gid_is_zero(&av->dgid))
		return "its destination GID is zero";
	return NULL;
}

/* A hop limit of 0 stands for the route's default. For unicast, the vector's
 * hop limit is ignored, as on Linux: programs written for a single switch leave
 * 0 or 1 there. */
static uint8_t hop_limit(const struct vb_av *av)
{
	return vb_gid_is_multicast(&av->dgid) ? av->hop_limit : 0;
}

/* RoCEv1 frames can carry a VLAN tag with a priority of 3 bits, which is the
 * service level (Annex A16). Programs that set only a traffic class, such as
 * those that use rdma_cm, leave the service level 0; then the top 3 bits of the
 * class are the priority. */
static uint8_t frame_priority(const struct vb_av *av)
{
	return (av->sl ? av->sl : av->traffic_class >> 5) & 7;
}

static const char *roce_route(struct vb_port *p, const struct vb_av *av,
			      struct vb_route *r)
{
	const char *why = av_fault(av);
	struct vb_gid_entry source;

	if (why)
		return why;
	if (!vb_port_gid(p, av->sgid_index, &source))
		return "there is no GID at its sgid_index";
	*r = (struct vb_route){
		.sgid = source.gid,
		.dgid = av->dgid,
		.ifindex = source.ifindex,
		.tclass = av->traffic_class,
		.hop_limit = hop_limit(av),
		.flow_label = av->flow_label & 0xfffff,
		.v1 = source.type == GID_ROCE_V1,
		.priority = frame_priority(av),
	};
	return NULL;
}

/* Returns why the port's link has no route between the GIDs of @r. */
static const char *why_no_route(int rc, const struct vb_route *r)
{
	bool v4 = vb_gid_is_ipv4(&r->sgid);

	if (rc == -EADDRNOTAVAIL)
		return "no interface of this host has the source GID's "
		       "address; choose another GID index";
	if (v4 == vb_gid_is_ipv4(&r->dgid))
		return "the link has no route";
	return v4 ? "that GID is an IPv4 address, and the peer's is none; "
		    "give both ends GID indices of the same kind"
		  : "the peer's GID is an IPv4 address, and that GID is none; "
		    "give both ends GID indices of the same kind";
}

int vb_av_route(struct vb_adapter *a, const struct vb_av *av, uint32_t sqpn,
		uint32_t dqpn, struct vb_route *r, const char **why)
{
	struct vb_port *p = vb_adapter_port(a, av->port_num);
	int rc;

	if (p)
		vb_port_ib_tell(p, a->name);
	*why = p ? p->addressing->route(p, av, r)
		 : "the device has no port of its port number";
	if (*why)
		return -EINVAL;
	r->dqpn = dqpn;
	r->sqpn = sqpn;
	rc = p->link ? p->link->ops->route(p->link, r) : 0;
	*why = rc ? why_no_route(rc, r) : NULL;
	return rc;
}

enum vb_why vb_av_why(int rc, const struct vb_av *av, struct vb_port *port)
{
	struct vb_gid_entry source;

	if (rc != -EINVAL)
		return WHY_ROUTE;
	if (!port || !av->is_global)
		return WHY_ADDRESS;
	return vb_port_gid(port, av->sgid_index, &source) ? WHY_ADDRESS
							  : WHY_GID_INDEX;
}

/* Log why no address handle was made. A missing route is not logged, since
 * programs (UCX) try address handles to find out which hosts they can reach. */
static void refuse_ah(struct vb_adapter *a, const struct vb_av *av, int rc,
		      const char *why)
{
	enum vb_why code =
		vb_av_why(rc, av, vb_adapter_port(a, av->port_num));
	char text[VB_GID_TEXT];

	vb_gid_text(&av->dgid, text);
	if (code == WHY_ROUTE)
		vb_why_quietly("%s: no address handle for %s: %s: %s", a->name,
			       text, why, strerror(-rc));
	else
		vb_why(code, (uintptr_t)a,
		       "%s: no address handle for %s from sgid_index %u: %s",
		       a->name, text, av->sgid_index, why);
}

static int make_ah(struct vb_pd *pd, const struct vb_av *av, struct vb_ah **out)
{
	struct vb_ah *ah = calloc(1, sizeof(*ah));
	const char *why;
	int rc;

	if (!ah)
		return -ENOMEM;
	if (pd->adapter->rnic) {
		free(ah);
		return -EOPNOTSUPP;
	}
	rc = vb_av_route(pd->adapter, av, 0, 0, &ah->route, &why);
	if (rc) {
		refuse_ah(pd->adapter, av, rc, why);
		free(ah);
		return rc;
	}
	ah->pd = pd;
	ah->port = vb_adapter_port(pd->adapter, av->port_num);
	ah->av = *av;
	*out = ah;
	return 0;
}

int vb_ah_create(struct vb_pd *pd, const struct vb_av *av, struct vb_ah **ah)
{
	struct vb_adapter *a = pd->adapter;
	int rc;

	if (!vb_limit_take(&a->n_ah, vb_limits.max_ah))
		return -ENOMEM;
	rc = make_ah(pd, av, ah);
	if (rc) {
		vb_limit_give(&a->n_ah);
		return rc;
	}
	vb_pd_get(pd);
	return 0;
}

void vb_ah_destroy(struct vb_ah *ah)
{
	vb_limit_give(&ah->pd->adapter->n_ah);
	vb_pd_put(ah->pd);
	free(ah);
}

int vb_ah_aim(const struct vb_ah *ah, uint32_t sqpn, uint32_t dqpn,
	      struct vb_route *r)
{
	struct vb_link *link = ah->port->link;

	*r = ah->route;
	r->sqpn = sqpn;
	/* All members of a multicast group are addressed by one QPN (IBA
	 * 10.5.1). */
	r->dqpn = vb_gid_is_multicast(&r->dgid) ? VB_QPN_MULTICAST : dqpn;
	return link ? link->ops->aim(link, r) : 0;
}

/* Returns the type of the GID to which a packet with this header came. */
static enum vb_gid_type core_gid_type(const struct vb_port *p,
				      const struct vb_grh *grh)
{
	if (vb_port_is_ib(p))
		return GID_IB;
	return grh->iba ? GID_ROCE_V1 : GID_ROCE_V2;
}

static bool roce_reply(struct vb_port *p, const struct vb_grh *grh,
		       const struct vb_wc_from *from, struct vb_av *av)
{
	int index = grh ? vb_port_find_gid(p, &grh->dgid, core_gid_type(p, grh))
			: -1;

	if (index < 0)
		return false;
	*av = (struct vb_av){
		.dgid = grh->sgid,
		.flow_label = grh->flow_label,
		.sgid_index = (uint8_t)index,
		.hop_limit = VB_REPLY_HOPS,
		.traffic_class = grh->tclass,
		.port_num = p->number,
		.is_global = true,
	};
	return true;
}

bool vb_av_reply(struct vb_port *p, const struct vb_grh *grh,
		 const struct vb_wc_from *from, struct vb_av *av)
{
	return p->addressing->reply(p, grh, from, av);
}

/* Has the datagram come to an address of its queue pair's port, or to a group
 * that was joined? The socket receives packets to any address of the host. */
static bool roce_comes_to_port(const struct vb_qp *qp, const struct vb_frame *f)
{
	return vb_gid_is_multicast(f->dst) ||
	       vb_port_find_gid(vb_qp_port(qp), f->dst,
				f->v1 ? GID_ROCE_V1 : GID_ROCE_V2) >= 0;
}

const struct vb_addressing vb_addressing_roce = {
	.route = roce_route,
	.reply = roce_reply,
	.comes_from_peer = roce_comes_to_port,
};

int vb_route_back(struct vb_port *p, const struct vb_grh *grh,
		  const struct vb_wc_from *from, uint32_t sqpn, uint32_t dqpn,
		  struct vb_route *r)
{
	struct vb_av av;

	if (!vb_av_reply(p, grh, from, &av) || p->addressing->route(p, &av, r))
		return -EINVAL;
	r->dqpn = dqpn;
	r->sqpn = sqpn;
	if (from)
		memcpy(r->hop.dst, from->mac, sizeof(r->hop.dst));
	return p->link ? p->link->ops->aim(p->link, r) : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses on InfiniBand: a LID within the subnet, and a GRH if the program
 * wants one (IBA 11.2.2.1). */
#include "core/migrate.h"
#include "core/rate.h"
#include "wire/lrh.h"

#define SL_MAX 15

static const char *ib_av_fault(const struct vb_av *av)
{
	if (av->dlid == 0)
		return "its DLID is 0; a subnet manager gives LIDs to ports";
	if (av->dlid == VB_LID_PERMISSIVE)
		return "its DLID is the permissive one";
	if (av->sl > SL_MAX)
		return "its service level is above 15";
	if (!vb_rate_is_known(av->static_rate))
		return "its static rate is no value of enum ibv_rate";
	if (av->dlid >= VB_LID_MCAST && !av->is_global)
		return "its DLID is a multicast group's, and it has no GRH";
	return NULL;
}

static const char *ib_av_route(struct vb_port *p, const struct vb_av *av,
			       struct vb_route *r)
{
	const char *why = ib_av_fault(av);
	struct vb_gid_entry source;

	if (why)
		return why;
	*r = (struct vb_route){
		.ib = { .dlid = av->dlid,
			.sl = av->sl,
			.path_bits = av->src_path_bits,
			.global = av->is_global },
		.ps_per_byte = vb_rate_ps(p, av->static_rate),
	};
	if (!av->is_global)
		return NULL;
	if (!vb_port_gid(p, av->sgid_index, &source))
		return "there is no GID at its sgid_index";
	r->sgid = source.gid;
	r->dgid = av->dgid;
	r->tclass = av->traffic_class;
	r->hop_limit = av->hop_limit;
	r->flow_label = av->flow_label & 0xfffff;
	return NULL;
}

static bool ib_reply(struct vb_port *p, const struct vb_grh *grh,
		     const struct vb_wc_from *from, struct vb_av *av)
{
	*av = (struct vb_av){ .port_num = p->number };
	if (grh && !vb_addressing_roce.reply(p, grh, from, av))
		return false;
	av->dlid = from->slid;
	av->sl = from->sl;
	av->src_path_bits = from->path_bits;
	return true;
}

/* The fabric has checked the DLID of the datagram @f. If @f has a GRH, the GRH
 * must agree: its destination GID is a multicast GID if the DLID is a group's,
 * and otherwise a GID of the port. */
static bool ib_comes_to_port(const struct vb_qp *qp, const struct vb_frame *f)
{
	if (!f->dst)
		return true;
	if (f->dlid >= VB_LID_MCAST)
		return vb_gid_is_multicast(f->dst);
	return vb_port_find_gid(vb_qp_port(qp), f->dst, GID_IB) >= 0;
}

/* A connected queue pair compares the LIDs, and the GIDs if its address has a
 * GRH (IBA 9.6.1.5). The fabric's process has compared the destination with the
 * port's LIDs. The peer chooses the path bits of its source LID by itself, so
 * any LID of its port will do. The peer's LMC is taken to be that of the own
 * port: a subnet manager gives all adapters one. */
static bool ib_comes_from_peer(const struct vb_qp *qp, const struct vb_frame *f)
{
	const struct vb_route *r = &qp->route;
	uint8_t lmc = atomic_load_explicit(&vb_qp_port(qp)->lmc,
					   memory_order_relaxed);

	if (qp->type == QPT_UD)
		return ib_comes_to_port(qp, f);
	if (f->slid >> lmc != r->ib.dlid >> lmc || !f->src != !r->ib.global)
		return false;
	return !f->src || (vb_gid_equal(f->src, &r->dgid) &&
			   vb_gid_equal(f->dst, &r->sgid));
}

/* Did the peer send the frame @f on the path that has the route @r and the
 * local port @p? The addresses in the frame tell. */
static bool is_by(const struct vb_port *p, const struct vb_frame *f,
		  const struct vb_route *r)
{
	uint16_t mask = (uint16_t)((1u << atomic_load_explicit(
					    &p->lmc, memory_order_relaxed)) -
				   1);

	if (f->slid != r->ib.dlid || !f->src != !r->ib.global ||
	    (f->dlid & mask) != (r->ib.path_bits & mask))
		return false;
	return !f->src || (vb_gid_equal(f->src, &r->dgid) &&
			   vb_gid_equal(f->dst, &r->sgid));
}

/* Two ports can have equal LIDs, because they can be in different subnets. So
 * the link tells by which port the frame came. */
enum vb_mig_path vb_ib_path_of(const struct vb_qp *qp,
			       const struct vb_link *link,
			       const struct vb_frame *f)
{
	const struct vb_port *port = vb_qp_port(qp), *alt = vb_mig_port(qp);
	bool here = link == port->link;

	if (here && is_by(port, f, &qp->route))
		return BY_PRIMARY;
	if (alt && link == alt->link && is_by(alt, f, &qp->alt_route))
		return BY_ALTERNATE;
	return here && ib_comes_from_peer(qp, f) ? BY_PEER : BY_STRANGER;
}

const struct vb_addressing vb_addressing_ib = {
	.route = ib_av_route,
	.reply = ib_reply,
	.comes_from_peer = ib_comes_from_peer,
	.strict_mtu = true,
};

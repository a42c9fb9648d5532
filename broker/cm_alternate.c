/* SPDX-License-Identifier: BSD-2-Clause */
/* Alternate paths of connections on InfiniBand: in the REQ of a program, and in
 * those that come from peers (IBA 12.6.5, 12.6.8). */
#include "broker/cm_priv.h"

#include "wire/lrh.h"

bool vb_cm_alternate_is_own(const struct vb_cm_client *c,
			    const struct vb_ipc_cm *m)
{
	const struct vb_ipc_cm_alternate *a = &m->alternate;

	return !a->place ||
	       (m->place && vb_cm_client_has_place(c, a->place) &&
		vb_place_has_gid(c->cm->adapters, a->place, &a->src));
}

void vb_cm_alternate_fill(const struct vb_host_cm *cm, struct vb_cm_path *p,
			  const struct vb_ipc_cm *m)
{
	const struct vb_ipc_cm_alternate *a = &m->alternate;

	if (!a->place)
		return;
	p->local_lid = vb_place_lid(cm->adapters, a->place) | a->path_bits;
	p->remote_lid = a->dlid;
	p->local_gid = a->src;
	p->remote_gid = a->dst;
	p->flow_label = a->flow_label;
	p->tclass = a->tclass;
	p->hop_limit = a->hop_limit;
	p->sl = a->sl;
	p->rate = a->rate;
	p->ack_timeout = a->ack_timeout;
	p->subnet_local = a->hop_limit <= 1;
}

void vb_cm_alternate_use(const struct vb_cm_id *id, const struct vb_ipc_cm *m)
{
	const struct vb_ipc_cm_alternate *a = &m->alternate;
	struct vb_mad_path path = id->conn->path;

	if (!a->place)
		return;
	path.place = a->place;
	path.sgid = a->src;
	path.dgid = a->dst;
	path.dlid = a->dlid;
	path.sl = a->sl;
	path.path_bits = a->path_bits;
	path.tclass = a->tclass;
	path.flow_label = a->flow_label;
	path.hop_limit = a->hop_limit;
	path.global = a->hop_limit > 1;
	vb_cm_add_path(id->conn, &path);
}

/* Returns the place of the port at which the alternate path @p ends on this
 * host. The program of @c must use that place. If several places fit, the
 * function returns @first, the place of the primary path, if that is one of
 * them. 0: no place fits. */
static unsigned own_end_of(const struct vb_cm_client *c,
			   const struct vb_cm_path *p, unsigned first,
			   uint8_t *bits)
{
	const struct vb_places *all = c->cm->adapters;

	for (unsigned i = 0; i <= VB_IPC_CM_PLACES; i++) {
		unsigned place = i ? i : first;

		if (vb_cm_client_has_place(c, place) &&
		    vb_place_has_gid(all, place, &p->remote_gid) &&
		    vb_place_has_lid(all, place, p->remote_lid, bits))
			return place;
	}
	return 0;
}

/* The peer may choose any address as its end of an alternate path, unlike for
 * the primary path. This is no danger to other hosts: this side sends to that
 * address only after the connection has been armed, for which packets of the
 * peer must have come. A path that crosses routers would need a LID of the
 * router, which the REQ does not have. */
void vb_cm_alternate_offer(struct vb_cm_id *id, const struct vb_cm_req *q,
			   struct vb_ipc_cm *e)
{
	const struct vb_cm_path *p = &q->alternate;
	uint8_t bits = 0;
	unsigned place = 0;

	if (!e->place || !p->local_lid)
		return;
	if (p->subnet_local && p->local_lid < VB_LID_MCAST)
		place = own_end_of(id->client, p, e->place, &bits);
	id->alternate = place ? ALTERNATE_OFFERED : ALTERNATE_REFUSED;
	if (!place)
		return;
	e->alternate = (struct vb_ipc_cm_alternate){
		.place = (uint8_t)place,
		.sl = p->sl,
		.path_bits = bits,
		.rate = p->rate,
		.tclass = p->tclass,
		.hop_limit = p->hop_limit,
		.ack_timeout = p->ack_timeout,
		.dlid = p->local_lid,
		.flow_label = p->flow_label,
		.src = p->remote_gid,
		.dst = p->local_gid,
	};
}

enum vb_cm_failover vb_cm_alternate_answer(const struct vb_cm_id *id,
					   const struct vb_ipc_cm *m)
{
	switch (id->alternate) {
	case ALTERNATE_REFUSED:
		return CM_FAILOVER_REJECTED;
	case ALTERNATE_OFFERED:
		return m->alternate.place ? CM_FAILOVER_ACCEPTED
					  : CM_FAILOVER_REJECTED;
	default:
		return CM_FAILOVER_ACCEPTED;
	}
}

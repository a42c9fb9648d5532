/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the requests of IPoIB to the subnet administrator, and checks the
 * answers. */
#include "ipoib/sa.h"

#include <string.h>

#include "base/bytes.h"

void ipoib_sa_put_join(uint8_t mad[VB_MAD_BYTES], uint64_t tid,
		       const struct vb_sa_mcmember *g,
		       const struct vb_sa_mcmember *as)
{
	struct vb_sa_hdr h = { .method = SA_SET,
			       .attr_id = SA_MCMEMBER,
			       .tid = tid,
			       .mask = SA_MC_MGID | SA_MC_PORT_GID |
				       SA_MC_PKEY | SA_MC_JOIN_STATE };
	struct vb_sa_mcmember m = { .hop_limit = 0 };

	if (as) {
		m = *as;
		m.mtu_selector = m.rate_selector = SA_EXACTLY;
		h.mask |= SA_MC_QKEY | SA_MC_MTU | SA_MC_TCLASS | SA_MC_RATE |
			  SA_MC_SL | SA_MC_FLOW_LABEL | SA_MC_HOP_LIMIT;
	}
	m.mgid = g->mgid;
	m.port_gid = g->port_gid;
	m.pkey = g->pkey;
	m.join_state = g->join_state;
	m.mlid = 0;
	vb_sa_mcmember_put(mad, &h, &m);
}

void ipoib_sa_put_leave(uint8_t mad[VB_MAD_BYTES], uint64_t tid,
			const struct vb_sa_mcmember *g)
{
	const struct vb_sa_hdr h = { .method = SA_DELETE,
				     .attr_id = SA_MCMEMBER,
				     .tid = tid,
				     .mask = SA_MC_MGID | SA_MC_PORT_GID |
					     SA_MC_JOIN_STATE };
	const struct vb_sa_mcmember m = { .mgid = g->mgid,
					  .port_gid = g->port_gid,
					  .pkey = g->pkey,
					  .join_state = g->join_state };

	vb_sa_mcmember_put(mad, &h, &m);
}

void ipoib_sa_put_path(uint8_t mad[VB_MAD_BYTES], uint64_t tid,
		       const struct vb_gid *from, const struct vb_gid *to,
		       uint16_t pkey)
{
	const struct vb_sa_hdr h = { .method = SA_GET,
				     .attr_id = SA_PATH,
				     .tid = tid,
				     .mask = SA_PATH_DGID | SA_PATH_SGID |
					     SA_PATH_REVERSIBLE |
					     SA_PATH_NUMB_PATH | SA_PATH_PKEY };
	const struct vb_sa_path p = { .dgid = *to,
				      .sgid = *from,
				      .reversible = 1,
				      .numb_path = 1,
				      .pkey = pkey };

	vb_sa_path_put(mad, &h, &p);
}

/* A path that leaves the subnet has a hop limit above 1 (IBA 15.2.5.16). */
static struct vb_ipoib_path path_of(const struct vb_sa_path *p)
{
	return (struct vb_ipoib_path){ .dlid = p->dlid,
				       .sl = p->sl,
				       .rate = p->rate,
				       .hop_limit = p->hop_limit,
				       .tclass = p->tclass,
				       .flow_label = p->flow_label,
				       .global = p->hop_limit > 1 };
}

bool ipoib_sa_get(const uint8_t *mad, size_t len, struct ipoib_sa_answer *a)
{
	struct vb_sa_path path;
	struct vb_sa_hdr h;

	*a = (struct ipoib_sa_answer){ .good = false };
	if (!vb_sa_hdr_get(mad, len, &h) ||
	    (h.method != SA_GET_RESP && h.method != SA_DELETE_RESP))
		return false;
	a->attr_id = h.attr_id;
	a->tid = h.tid;
	a->left = h.method == SA_DELETE_RESP;
	if (h.status)
		return true;
	if (h.attr_id == SA_MCMEMBER) {
		a->good = vb_sa_mcmember_get(mad, &a->group);
	} else if (h.attr_id == SA_PATH) {
		a->good = vb_sa_path_get(mad, &path);
		a->path = path_of(&path);
	}
	return true;
}

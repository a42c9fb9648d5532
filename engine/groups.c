/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast: finds the queue pairs of this process that get a copy of each
 * packet to a group. The kernel gives each process of the host its own copy
 * (link/udp.c).
 */
#include "engine/engine_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "core/why.h"

static struct vb_group **find_group(struct vb_engine *e, const struct vb_qp *qp,
				    const struct vb_gid *gid, uint16_t mlid)
	VB_REQUIRES(e->rx)
{
	struct vb_group **at = &e->groups;

	/* only InfiniBand's groups have LIDs */
	while (*at &&
	       ((*at)->qp != qp || ((*at)->to.mlid && (*at)->to.mlid != mlid) ||
		!vb_gid_equal(&(*at)->to.gid, gid)))
		at = &(*at)->next;
	return at;
}

static bool is_member(struct vb_engine *e, const struct vb_qp *qp,
		      const struct vb_gid *gid, uint16_t mlid)
	VB_REQUIRES(e->group_lock) VB_EXCLUDES(e->rx)
{
	bool is;

	vb_mutex_lock(&e->rx);
	is = *find_group(e, qp, gid, mlid);
	vb_mutex_unlock(&e->rx);
	return is;
}

/* The link may wait for the fabric's process, and frames go on arriving
 * meanwhile: rx is held only to change the list. */
static int join(struct vb_engine *e, struct vb_qp *qp, const struct vb_gid *gid,
		uint16_t mlid) VB_REQUIRES(e->group_lock) VB_EXCLUDES(e->rx)
{
	struct vb_port *port = vb_qp_port(qp);
	struct vb_link *link = port->link;
	struct vb_group *g = malloc(sizeof(*g));
	int member;

	if (!g)
		return -ENOMEM;
	*g = (struct vb_group){
		.to = { .gid = *gid },
		.link = link,
		.qp = qp,
	};
	g->qpn = atomic_load(&qp->qpn);
	/* only InfiniBand's groups have LIDs */
	if (vb_port_is_ib(port))
		g->to.mlid = mlid;
	vb_mutex_lock(&port->lock);
	g->to.ifindex = port->ifindex;
	vb_mutex_unlock(&port->lock);
	member = link->ops->join(link, &g->to);
	if (member < 0) {
		free(g);
		return member;
	}
	g->member = member;
	vb_mutex_lock(&e->rx);
	g->next = e->groups;
	e->groups = g;
	vb_mutex_unlock(&e->rx);
	return 0;
}

/* Take the membership of @qp in the group off the list, and return it. NULL:
 * @qp is no member. */
static struct vb_group *take_group(struct vb_engine *e, const struct vb_qp *qp,
				   const struct vb_gid *gid, uint16_t mlid)
	VB_REQUIRES(e->group_lock) VB_EXCLUDES(e->rx)
{
	struct vb_group **at, *g;

	vb_mutex_lock(&e->rx);
	at = find_group(e, qp, gid, mlid);
	g = *at;
	if (g)
		*at = g->next;
	vb_mutex_unlock(&e->rx);
	return g;
}

/* A queue pair of an adapter with several ports has its port from INIT on; in
 * RESET vb_qp_port() is the first one. */
static bool knows_port(const struct vb_qp *qp)
{
	return qp->adapter->port_count == 1 ||
	       atomic_load(&qp->state) != QPS_RESET;
}

static int refuse_group(const struct vb_qp *qp, const struct vb_gid *gid,
			const char *why)
{
	uint32_t qpn = atomic_load(&qp->qpn);
	char text[VB_GID_TEXT];

	vb_why(WHY_GROUP, qpn, "qp 0x%x: group %s: %s", qpn,
	       vb_gid_text(gid, text), why);
	return -EINVAL;
}

int vb_engine_attach(struct vb_qp *qp, const struct vb_gid *gid, uint16_t mlid)
{
	struct vb_engine *e = vb_engine_running();
	int rc = 0;

	if (qp->type != QPT_UD)
		return refuse_group(qp, gid, "the queue pair's type is not UD");
	if (!vb_gid_is_multicast(gid))
		return refuse_group(qp, gid, "this is no multicast address");
	if (!knows_port(qp))
		return refuse_group(qp, gid,
				    "the device has several ports, and only "
				    "the move to INIT names the queue pair's");
	vb_mutex_lock(&e->group_lock);
	/* a queue pair that is attached already stays attached once */
	if (!is_member(e, qp, gid, mlid))
		rc = join(e, qp, gid, mlid);
	vb_mutex_unlock(&e->group_lock);
	if (rc)
		(void)refuse_group(qp, gid, strerror(-rc));
	return rc;
}

int vb_engine_detach(struct vb_qp *qp, const struct vb_gid *gid, uint16_t mlid)
{
	struct vb_engine *e = vb_engine_running();
	struct vb_group *g;

	vb_mutex_lock(&e->group_lock);
	g = take_group(e, qp, gid, mlid);
	if (g)
		g->link->ops->leave(g->link, g->member);
	vb_mutex_unlock(&e->group_lock);
	free(g);
	return g ? 0 : refuse_group(qp, gid, "the queue pair is not in it");
}

bool vb_engine_is_attached(struct vb_qp *qp)
{
	struct vb_engine *e = vb_engine_running();
	struct vb_group *g;

	vb_mutex_lock(&e->rx);
	g = e->groups;
	while (g && g->qp != qp)
		g = g->next;
	vb_mutex_unlock(&e->rx);
	return g;
}

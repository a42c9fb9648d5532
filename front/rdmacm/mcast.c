/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of an id. In RoCEv2 the group's GID is its IP multicast
 * address (IBA A17), so this library asks no subnet administrator. Attaching
 * the queue pair joins the group on the network (ibv_attach_mcast(3)). This
 * library does so when the program reads the event, because the program may
 * create the queue pair after it asked to join.
 */
#include "front/rdmacm/rdmacm.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* The QPN of every multicast group (IBA 10.5.1). */
#define GROUP_QPN  0xffffff
#define GROUP_LID  0xc000 /* the lowest multicast LID */
#define GROUP_HOPS 1
#define KNOWN_ATTRS                                                            \
	(RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS)

struct rcm_group {
	struct rcm_group *next;
	struct vb_gid gid;
	bool sends_only;
	struct ibv_qp *attached;
};

/* Returns the link that leads to the group, or the NULL at the list's end. The
 * caller holds rcm.lock. */
static struct rcm_group **find(struct rcm_id *id, const void *gid)
{
	struct rcm_group **at = &id->groups;

	while (*at && memcmp((*at)->gid.raw, gid, sizeof((*at)->gid.raw)) != 0)
		at = &(*at)->next;
	return at;
}

static int mcast_enter(struct rcm_id *id, const struct vb_gid *gid,
		       bool sends_only)
{
	struct rcm_group *g = calloc(1, sizeof(*g));
	bool joined_before;

	if (!g)
		return -ENOMEM;
	g->gid = *gid;
	g->sends_only = sends_only;
	pthread_mutex_lock(&rcm.lock);
	joined_before = *find(id, gid->raw);
	if (!joined_before) {
		g->next = id->groups;
		id->groups = g;
	}
	pthread_mutex_unlock(&rcm.lock);
	if (joined_before)
		free(g);
	return joined_before ? -EADDRINUSE : 0;
}

static int mcast_leave(struct rcm_id *id, const struct vb_gid *gid)
{
	struct rcm_group **at, *g;

	pthread_mutex_lock(&rcm.lock);
	at = find(id, gid->raw);
	g = *at;
	if (g)
		*at = g->next;
	pthread_mutex_unlock(&rcm.lock);
	if (!g)
		return -EADDRNOTAVAIL;
	if (g->attached && g->attached == id->pub.qp)
		(void)!ibv_detach_mcast(id->pub.qp,
					(const union ibv_gid *)g->gid.raw,
					GROUP_LID);
	free(g);
	return 0;
}

int rcm_group_joined(struct rcm_id *id, const struct ibv_ah_attr *ah)
{
	struct rcm_group *g;
	bool attach = false;
	int rc = 0;

	pthread_mutex_lock(&rcm.lock);
	g = *find(id, ah->grh.dgid.raw);
	if (g && id->pub.qp && !g->sends_only && !g->attached) {
		g->attached = id->pub.qp;
		attach = true;
	}
	pthread_mutex_unlock(&rcm.lock);
	if (attach)
		rc = -ibv_attach_mcast(id->pub.qp, &ah->grh.dgid, GROUP_LID);
	return g ? rc : -ENOENT;
}

void rcm_groups_forget(struct rcm_id *id)
{
	while (id->groups) {
		const struct vb_gid gid = id->groups->gid;

		(void)!mcast_leave(id, &gid);
	}
}

/* Returns the GID of the group @a. An IPv4 group of RoCEv1 is
 * ff0e::ffff:a.b.c.d, as on Linux. */
static struct vb_gid mcast_gid(const struct rcm_id *id,
			       const struct sockaddr *a)
{
	struct vb_gid gid = rcm_gid_of(a);

	if (id->v1 && vb_gid_is_ipv4(&gid) && vb_gid_is_multicast(&gid)) {
		gid.raw[0] = 0xff;
		gid.raw[1] = 0x0e;
	}
	return gid;
}

static int mcast_join(struct rcm_id *id, const struct sockaddr *a,
		      bool sends_only, void *context)
{
	struct rdma_ud_param ud = { .private_data = context,
				    .qp_num = GROUP_QPN,
				    .qkey = RCM_QKEY };
	struct vb_gid gid;
	int rc;

	if (!a || !id->device || !rcm_is_ud(id))
		return -EINVAL;
	gid = mcast_gid(id, a);
	if (!vb_gid_is_multicast(&gid))
		return -EINVAL;
	rc = mcast_enter(id, &gid, sends_only);
	if (rc)
		return rc;
	rcm_fill_ah(id, &ud.ah_attr, &gid);
	ud.ah_attr.dlid = GROUP_LID;
	ud.ah_attr.grh.traffic_class = id->tos;
	ud.ah_attr.grh.hop_limit = GROUP_HOPS;
	rc = rcm_event_group(id, &ud);
	if (rc)
		(void)!mcast_leave(id, &gid);
	return rc;
}

VB_EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *pub,
				     struct rdma_cm_join_mc_attr_ex *attr,
				     void *context)
{
	int rc;

	if (attr && attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		return rcm_fail(ENOTSUP);
	if (!attr || attr->comp_mask != KNOWN_ATTRS ||
	    attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return rcm_fail(EINVAL);
	rc = mcast_join(rcm_id_of(pub), attr->addr,
			attr->join_flags ==
				RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
			context);
	return rc ? rcm_fail(-rc) : rcm_event_complete(rcm_id_of(pub));
}

VB_EXPORT int rdma_join_multicast(struct rdma_cm_id *pub, struct sockaddr *addr,
				  void *context)
{
	int rc = mcast_join(rcm_id_of(pub), addr, false, context);

	return rc ? rcm_fail(-rc) : rcm_event_complete(rcm_id_of(pub));
}

VB_EXPORT int rdma_leave_multicast(struct rdma_cm_id *pub,
				   struct sockaddr *addr)
{
	struct vb_gid gid;
	int rc = -EINVAL;

	if (addr) {
		gid = mcast_gid(rcm_id_of(pub), addr);
		rc = mcast_leave(rcm_id_of(pub), &gid);
	}
	return rc ? rcm_fail(-rc) : 0;
}

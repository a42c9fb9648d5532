/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of an id. In RoCEv2 the group's GID is its IP multicast
 * address (IBA A17), so this library asks no subnet administrator. On
 * InfiniBand the broker asks the subnet administrator for the membership, and
 * the group's LID arrives with an event. Attaching the queue pair joins the
 * group on the network (ibv_attach_mcast(3)). This library does so when the
 * program reads the event, because the program may create the queue pair after
 * it asked to join.
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
	uint16_t lid;
	void *context; /* the program's context for the event */
	/* Of a group of InfiniBand: @asked is the GROUP_JOIN that was sent,
	 * which names the group as the program did; @joined: its last answer
	 * was not an error. asked.kind 0: a group of RoCE. */
	struct vb_ipc_cm asked;
	bool joined;
	bool wild; /* the program asked for any group, by address zero */
};

/* The prefixes of groups that stand for IPv4 and IPv6 groups (RFC 4391, section
 * 4): flags and scope, then the signature, then the P_Key. For the port space
 * UDP the signature is rdma_cm's own. */
#define MGID_SCOPE     0x12 /* transient, link-local */
#define SIGNATURE_IPV4 0x401b
#define SIGNATURE_IPV6 0x601b
#define SIGNATURE_RCM  0x01 /* low byte of the signature */
/* of an IPv4 group's highest byte: 28 bits of the address are copied */
#define IPV4_MASK 0x0f

/* Returns the pointer that points to the group with this GID, or, if there is
 * none, the NULL at the list's end. The caller holds rcm.lock. */
static struct rcm_group **find(struct rcm_id *id, const void *gid)
{
	struct rcm_group **at = &id->groups;

	while (*at && memcmp((*at)->gid.raw, gid, sizeof((*at)->gid.raw)) != 0)
		at = &(*at)->next;
	return at;
}

/* Does what find() does, for a GID that the program gives. The GID zero names
 * the group that the program joined by the GID zero ("any group"), although the
 * subnet administrator has given that group a GID. */
static struct rcm_group **find_named(struct rcm_id *id,
				     const struct vb_gid *gid)
{
	struct rcm_group **at = find(id, gid->raw);

	if (*at || !vb_gid_is_zero(gid))
		return at;
	for (at = &id->groups; *at && !(*at)->wild;)
		at = &(*at)->next;
	return at;
}

/* Adds the group @gid to the groups of @id. @asked: the GROUP_JOIN that was
 * sent to the broker (InfiniBand); NULL: a group of RoCE. */
static int mcast_enter(struct rcm_id *id, const struct vb_gid *gid,
		       bool sends_only, void *context,
		       const struct vb_ipc_cm *asked)
{
	struct rcm_group *g = calloc(1, sizeof(*g));
	bool joined_before;

	if (!g)
		return -ENOMEM;
	g->gid = *gid;
	g->sends_only = sends_only;
	g->context = context;
	g->lid = GROUP_LID;
	if (asked)
		g->asked = *asked;
	pthread_mutex_lock(&rcm.lock);
	g->wild = vb_gid_is_zero(gid);
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
	at = find_named(id, gid);
	g = *at;
	if (g)
		*at = g->next;
	pthread_mutex_unlock(&rcm.lock);
	if (!g)
		return -EADDRNOTAVAIL;
	if (g->attached && g->attached == id->pub.qp)
		(void)!ibv_detach_mcast(
			id->pub.qp, (const union ibv_gid *)g->gid.raw, g->lid);
	if (g->asked.kind) {
		g->asked.kind = IPC_CM_GROUP_LEAVE;
		(void)!rcm_session_tell(&g->asked);
	}
	free(g);
	return 0;
}

int rcm_group_joined(struct rcm_id *id, const struct ibv_ah_attr *ah)
{
	struct rcm_group *g;
	bool attach = false;
	uint16_t lid = 0;
	int rc = 0;

	/* Read the group's fields before the lock is released: after that the
	 * program may leave the group. */
	pthread_mutex_lock(&rcm.lock);
	g = *find(id, ah->grh.dgid.raw);
	if (g)
		lid = g->lid;
	if (g && id->pub.qp && !g->sends_only && !g->attached) {
		g->attached = id->pub.qp;
		attach = true;
	}
	pthread_mutex_unlock(&rcm.lock);
	if (attach)
		rc = -ibv_attach_mcast(id->pub.qp, &ah->grh.dgid, lid);
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

/* --- InfiniBand --- */

struct vb_gid rcm_mgid_of(const struct rcm_id *id, const struct sockaddr *a)
{
	const struct vb_gid ip = rcm_gid_of(a);
	struct vb_gid gid = { { 0xff, MGID_SCOPE } };
	const bool v4 = a->sa_family == AF_INET;

	if (a->sa_family == AF_IB || rcm_address_is_any(a))
		return a->sa_family == AF_IB ? ip : (struct vb_gid){ { 0 } };
	if (!v4 && ip.raw[0] == 0xff && (ip.raw[1] & 0xf0) == 0x10 &&
	    ip.raw[2] == 0xa0 && ip.raw[3] == SIGNATURE_IPV4 % 256)
		return ip;
	vb_store_be(gid.raw + 2, v4 ? SIGNATURE_IPV4 : SIGNATURE_IPV6, 2);
	if (id->pub.ps == RDMA_PS_UDP)
		gid.raw[3] = SIGNATURE_RCM;
	vb_store_be(gid.raw + 4, id->path.pkey | 0x8000u, 2);
	if (v4) {
		memcpy(gid.raw + 12, ip.raw + 12, 4);
		gid.raw[12] &= IPV4_MASK;
	} else {
		memcpy(gid.raw + 6, ip.raw + 6, 10);
	}
	return gid;
}

/* Asks the broker to join the group @a of InfiniBand. The answer comes as an
 * event. */
static int join_fabric(struct rcm_id *id, const struct sockaddr *a,
		       bool sends_only, void *context)
{
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_GROUP_JOIN);
	int rc;

	m.place = id->path.place;
	m.src = id->path.src;
	m.dst = rcm_mgid_of(id, a);
	m.space = (uint16_t)id->pub.ps;
	m.pkey = id->path.pkey;
	m.qkey = id->qkey;
	m.tclass = id->tos;
	m.flags = sends_only ? IPC_CM_SENDS_ONLY : 0;
	rc = mcast_enter(id, &m.dst, sends_only, context, &m);
	if (rc)
		return rc;
	rc = rcm_session_tell(&m);
	if (rc)
		(void)mcast_leave(id, &m.dst);
	return rc;
}

static void fill_group(const struct rcm_id *id, const struct vb_ipc_cm *m,
		       void *context, struct rdma_ud_param *ud)
{
	struct ibv_ah_attr *ah = &ud->ah_attr;

	ud->private_data = context;
	ud->qp_num = GROUP_QPN;
	ud->qkey = m->qkey;
	ah->is_global = 1;
	ah->port_num = id->pub.port_num;
	ah->dlid = m->dlid;
	ah->sl = m->sl;
	ah->static_rate = m->rate;
	memcpy(ah->grh.dgid.raw, m->dst.raw, sizeof(ah->grh.dgid.raw));
	ah->grh.sgid_index = id->gid_index;
	ah->grh.flow_label = m->flow_label;
	ah->grh.hop_limit = m->hop_limit;
	ah->grh.traffic_class = m->tclass;
}

/* Returns the group for which @m answers; NULL: the program has left it. The
 * caller holds rcm.lock. */
static struct rcm_group *find_asked(const struct rcm_id *id,
				    const struct vb_ipc_cm *m)
{
	struct rcm_group *g = id->groups;

	while (g && !(g->asked.kind && vb_gid_equal(&g->asked.dst, &m->src)))
		g = g->next;
	return g;
}

/* After the broker has ended, this library joins the groups again at the next
 * broker. The answer is an event for the program only if joining failed. */
bool rcm_group_take(struct rcm_id *id, const struct vb_ipc_cm *m,
		    struct rdma_cm_event *pub)
{
	void *context = NULL;
	struct rcm_group *g;
	bool news = false;

	pthread_mutex_lock(&rcm.lock);
	g = find_asked(id, m);
	if (g) {
		news = !g->joined || m->status;
		g->joined = !m->status;
		if (m->dlid) {
			g->gid = g->asked.dst = m->dst;
			g->lid = m->dlid;
		}
		context = g->context;
	}
	pthread_mutex_unlock(&rcm.lock);
	if (!news)
		return false;
	fill_group(id, m, context, &pub->param.ud);
	pub->event = RDMA_CM_EVENT_MULTICAST_JOIN;
	pub->status = m->status ? -m->status
				: rcm_group_joined(id, &pub->param.ud.ah_attr);
	if (pub->status)
		pub->event = RDMA_CM_EVENT_MULTICAST_ERROR;
	return true;
}

void rcm_groups_each(const struct rcm_id *id,
		     void (*add)(void *arg, const struct vb_ipc_cm *m),
		     void *arg)
{
	for (const struct rcm_group *g = id->groups; g; g = g->next)
		if (g->asked.kind)
			add(arg, &g->asked);
}

void rcm_groups_move(struct rcm_id *id, uint8_t place)
{
	for (struct rcm_group *g = id->groups; g; g = g->next)
		g->asked.place = place;
}

static int refuse_join(const struct rcm_id *id, const char *why)
{
	vb_why(WHY_CM_CALL, (uintptr_t)id ^ (uintptr_t)why,
	       "rdmacm: rdma_join_multicast refused: %s", why);
	return -EINVAL;
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
		return refuse_join(id,
				   "it needs an address, and an id of "
				   "RDMA_PS_UDP or RDMA_PS_IPOIB that has a "
				   "device (rdma_bind_addr, "
				   "rdma_resolve_addr)");
	gid = mcast_gid(id, a);
	if (!vb_gid_is_multicast(&gid) &&
	    !(rcm_is_ib(id) && rcm_address_is_any(a)))
		return refuse_join(id, "this is no multicast address");
	if (rcm_is_ib(id))
		return join_fabric(id, a, sends_only, context);
	rc = mcast_enter(id, &gid, sends_only, context, NULL);
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
		return rcm_why_refuse(rcm_id_of(pub), __func__,
				      "it needs address and join_flags, their "
				      "bits in comp_mask, and known flags");
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
		gid = rcm_is_ib(rcm_id_of(pub))
			      ? rcm_mgid_of(rcm_id_of(pub), addr)
			      : mcast_gid(rcm_id_of(pub), addr);
		rc = mcast_leave(rcm_id_of(pub), &gid);
	}
	if (rc == -EINVAL || rc == -EADDRNOTAVAIL) {
		(void)rcm_why_refuse(rcm_id_of(pub), __func__,
				     "the id has not joined this group");
		return rcm_pass(-rc);
	}
	return rc ? rcm_fail(-rc) : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Memberships of ports in multicast groups, and the programs that share
 * each. */
#include "broker/sa_group.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"

#define REJOIN_MS 20000

struct group_member {
	struct group_member *next;
	void *owner;
	/* The group's GID as @owner knows it; zero: any, until the
	 * administrator has given one. */
	struct vb_gid asked;
	bool wild; /* @owner had asked for any group */
};

struct sa_group {
	struct sa_group *next;
	struct vb_sa_groups *all;
	unsigned place;
	bool joined; /* the administrator has answered, and @record is valid */
	uint64_t mask;
	/* The group shall have the parameters of IPoIB's broadcast group. This
	 * side asks for those before each join, since another subnet manager
	 * may have made the broadcast group with other parameters. */
	bool has_model;
	/* what was asked for, and what the group has */
	struct vb_sa_mcmember want, record;
	struct vb_sa_request request;
	uint32_t timeout_ms; /* time limit of the last question */
	vb_time asked_at;    /* the time when the last question began */
	struct group_member *members;
};

struct vb_sa_groups {
	struct vb_sa *sa;
	vb_sa_joined joined;
	void *arg;
	struct sa_group *list;
};

struct vb_sa_groups *vb_sa_groups_create(struct vb_sa *sa, vb_sa_joined joined,
					 void *arg)
{
	struct vb_sa_groups *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->sa = sa;
	all->joined = joined;
	all->arg = arg;
	return all;
}

void vb_sa_groups_destroy(struct vb_sa_groups *all)
{
	free(all);
}

/* A group for which an owner asks by GID zero is the owner's own, since the
 * administrator makes a new one. */
static struct sa_group *sa_find_group(const struct vb_sa_groups *all,
				      unsigned place,
				      const struct vb_sa_mcmember *want)
{
	struct sa_group *g = all->list;

	if (vb_gid_is_zero(&want->mgid))
		return NULL;
	while (g &&
	       !(g->place == place && g->want.join_state == want->join_state &&
		 vb_gid_equal(&g->want.mgid, &want->mgid)))
		g = g->next;
	return g;
}

static struct group_member *find_member(const struct sa_group *g,
					const void *owner)
{
	struct group_member *m = g->members;

	while (m && m->owner != owner)
		m = m->next;
	return m;
}

static void remove_group(struct sa_group *g)
{
	struct sa_group **at = &g->all->list;

	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	vb_sa_cancel(&g->request);
	free(g);
}

/* Tells the administrator that the port leaves. */
static void quit_group(struct sa_group *g)
{
	const struct vb_sa_hdr h = {
		.method = SA_DELETE,
		.attr_id = SA_MCMEMBER,
		.mask = SA_MC_MGID | SA_MC_PORT_GID | SA_MC_JOIN_STATE,
	};
	struct vb_sa_mcmember m = g->want;
	uint8_t mad[VB_MAD_BYTES];

	/* A request that is under way may still make the port a member. */
	vb_sa_mcmember_put(mad, &h, &m);
	vb_sa_tell(g->all->sa, g->place, mad);
	remove_group(g);
}

static void tell_members(const struct sa_group *g, int error)
{
	for (struct group_member *m = g->members; m; m = m->next)
		g->all->joined(g->all->arg, m->owner, &m->asked, error,
			       &g->record);
}

static void free_members(struct sa_group *g)
{
	while (g->members) {
		struct group_member *m = g->members;

		g->members = m->next;
		free(m);
	}
}

/* A program joined by the GID zero, and the subnet administrator has chosen a
 * GID for the group. From now on the group has this GID, because a rejoin by
 * the GID zero would make another group. */
static void name_group(struct sa_group *g)
{
	g->want.mgid = g->record.mgid;
	for (struct group_member *m = g->members; m; m = m->next)
		m->asked = g->record.mgid;
}

/* Tells the owners of the group @g that the port is not a member, or no longer,
 * because of @error (-errno), and removes the group. */
static void fail_group(struct sa_group *g, int error)
{
	if (g->joined)
		vb_log(LOG_WARN,
		       "broker: place %u has not joined a group again: %s",
		       g->place, strerror(-error));
	tell_members(g, error);
	free_members(g);
	remove_group(g);
}

/* Is @record of the group that was wanted? The highest bit of a P_Key tells a
 * full member from a limited one, and makes no difference here. */
static bool is_the_group(const struct sa_group *g,
			 const struct vb_sa_mcmember *record)
{
	return (vb_gid_is_zero(&g->want.mgid) ||
		vb_gid_equal(&g->want.mgid, &record->mgid)) &&
	       !((g->want.pkey ^ record->pkey) & VB_PKEY_NUMBER);
}

static void take_membership(struct vb_sa_request *r, int error,
			    const uint8_t *mad, size_t len)
{
	struct sa_group *g = VB_CONTAINER_OF(r, struct sa_group, request);
	const bool again = g->joined;
	struct vb_sa_mcmember record;
	bool same;

	if (error == 0 &&
	    (!vb_sa_mcmember_get(mad, &record) || !is_the_group(g, &record)))
		error = -EINVAL;
	if (error) {
		fail_group(g, error);
		return;
	}
	same = again && g->record.mlid == record.mlid &&
	       g->record.qkey == record.qkey;
	g->record = record;
	g->joined = true;
	if (!same)
		tell_members(g, again ? -ENETRESET : 0);
	name_group(g);
}

static void send_join(struct sa_group *g, uint32_t timeout_ms, vb_time now)
{
	const struct vb_sa_hdr h = { .method = SA_SET,
				     .attr_id = SA_MCMEMBER,
				     .mask = g->mask };
	uint8_t mad[VB_MAD_BYTES];

	g->request.done = take_membership;
	vb_sa_mcmember_put(mad, &h, &g->want);
	vb_sa_ask(g->all->sa, &g->request, g->place, &h, mad, timeout_ms, now);
}

static void take_model(struct vb_sa_request *r, int error, const uint8_t *mad,
		       size_t len)
{
	struct sa_group *g = VB_CONTAINER_OF(r, struct sa_group, request);
	struct vb_sa_mcmember m;

	if (error == 0 && !vb_sa_mcmember_get(mad, &m))
		error = -EINVAL;
	if (error) {
		fail_group(g, error);
		return;
	}
	m.mgid = g->want.mgid;
	m.port_gid = g->want.port_gid;
	m.pkey = g->want.pkey;
	m.join_state = g->want.join_state;
	m.mtu_selector = m.rate_selector = SA_EXACTLY;
	g->want = m;
	g->mask |= SA_MC_QKEY | SA_MC_MTU | SA_MC_TCLASS | SA_MC_RATE |
		   SA_MC_SL | SA_MC_FLOW_LABEL | SA_MC_HOP_LIMIT;
	/* The two requests share the time that the program gives. */
	send_join(g, g->timeout_ms, g->asked_at);
}

/* The GID of IPoIB's broadcast group of the partition (RFC 4391, 4). */
static struct vb_gid broadcast_of(uint16_t pkey)
{
	struct vb_gid gid = { { 0xff, 0x12, 0x40, 0x1b } };

	vb_store_be(gid.raw + 4, pkey | 0x8000u, 2);
	memset(gid.raw + 12, 0xff, 4);
	return gid;
}

static void ask_for_model(struct sa_group *g, uint32_t timeout_ms, vb_time now)
{
	const struct vb_sa_hdr h = { .method = SA_GET,
				     .attr_id = SA_MCMEMBER,
				     .mask = SA_MC_MGID };
	const struct vb_sa_mcmember m = { .mgid = broadcast_of(g->want.pkey) };
	uint8_t mad[VB_MAD_BYTES];

	g->request.done = take_model;
	vb_sa_mcmember_put(mad, &h, &m);
	vb_sa_ask(g->all->sa, &g->request, g->place, &h, mad, timeout_ms, now);
}

static void ask_membership(struct sa_group *g, uint32_t timeout_ms, vb_time now)
{
	vb_sa_cancel(&g->request);
	g->timeout_ms = timeout_ms;
	g->asked_at = now;
	if (g->has_model)
		ask_for_model(g, timeout_ms, now);
	else
		send_join(g, timeout_ms, now);
}

static struct sa_group *make_group(struct vb_sa_groups *all, unsigned place,
				   const struct vb_sa_mcmember *want,
				   uint64_t mask)
{
	struct sa_group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->all = all;
	g->place = place;
	g->want = *want;
	g->mask = mask;
	g->has_model = !(mask & SA_MC_QKEY);
	g->next = all->list;
	all->list = g;
	return g;
}

int vb_sa_group_join(struct vb_sa_groups *all, void *owner, unsigned place,
		     const struct vb_sa_mcmember *want, uint64_t mask,
		     uint32_t timeout_ms, vb_time now)
{
	struct sa_group *g = sa_find_group(all, place, want);
	const bool is_new = !g;
	struct group_member *m;

	if (g && find_member(g, owner))
		return -EADDRINUSE;
	m = calloc(1, sizeof(*m));
	if (m && is_new)
		g = make_group(all, place, want, mask);
	if (!m || !g) {
		free(m);
		return -ENOMEM;
	}
	m->owner = owner;
	m->asked = want->mgid;
	m->wild = vb_gid_is_zero(&want->mgid);
	m->next = g->members;
	g->members = m;
	if (is_new)
		ask_membership(g, timeout_ms, now);
	else if (g->joined)
		all->joined(all->arg, owner, &m->asked, 0, &g->record);
	return 0;
}

/* True: @owner is no longer a member, and @g may be gone. */
static bool end_membership(struct sa_group *g, const void *owner)
{
	struct group_member **at = &g->members, *m;

	while (*at && (*at)->owner != owner)
		at = &(*at)->next;
	m = *at;
	if (!m)
		return false;
	*at = m->next;
	free(m);
	if (!g->members)
		quit_group(g);
	return true;
}

/* Does @owner call the group @gid? An owner that asked for any group may not
 * have heard the group's GID yet. */
static bool is_called(const struct sa_group *g, const void *owner,
		      const struct vb_gid *gid)
{
	const struct group_member *m = find_member(g, owner);

	return m && (vb_gid_equal(&m->asked, gid) ||
		     (m->wild && vb_gid_is_zero(gid)));
}

void vb_sa_group_leave(struct vb_sa_groups *all, const void *owner,
		       unsigned place, const struct vb_gid *asked)
{
	for (struct sa_group *g = all->list; g; g = g->next)
		if (g->place == place && is_called(g, owner, asked) &&
		    end_membership(g, owner))
			return;
}

void vb_sa_groups_forget(struct vb_sa_groups *all, const void *owner)
{
	for (struct sa_group *g = all->list, *next; g; g = next) {
		next = g->next;
		(void)end_membership(g, owner);
	}
}

void vb_sa_groups_rejoin(struct vb_sa_groups *all, unsigned place, vb_time now)
{
	for (struct sa_group *g = all->list; g; g = g->next)
		if (g->place == place && g->joined)
			ask_membership(g, REJOIN_MS, now);
}

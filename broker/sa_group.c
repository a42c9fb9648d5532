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
	struct vb_gid asked; /* the group's GID as @owner named it; zero: any */
};

struct sa_group {
	struct sa_group *next;
	struct vb_sa_groups *all;
	unsigned place;
	bool joined; /* the administrator has answered, and @record is valid */
	uint64_t mask;
	/* what was asked for, and what the group has */
	struct vb_sa_mcmember want, record;
	struct vb_sa_request request;
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
	if (g->joined)
		m.mgid = g->record.mgid;
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

static void take_membership(struct vb_sa_request *r, int error,
			    const uint8_t *mad)
{
	struct sa_group *g = VB_CONTAINER_OF(r, struct sa_group, request);
	const uint16_t before = g->joined ? g->record.mlid : 0;
	struct vb_sa_mcmember record;

	if (error == 0 && !vb_sa_mcmember_get(mad, &record))
		error = -EINVAL;
	if (error && before) {
		vb_log(LOG_WARN,
		       "broker: place %u has not joined a group again: %s",
		       g->place, strerror(-error));
		return;
	}
	if (error) {
		tell_members(g, error);
		free_members(g);
		remove_group(g);
		return;
	}
	g->record = record;
	g->joined = true;
	if (!before)
		tell_members(g, 0);
	else if (before != record.mlid)
		tell_members(g, -ENETRESET);
}

static void ask_membership(struct sa_group *g, uint32_t timeout_ms, vb_time now)
{
	const struct vb_sa_hdr h = { .method = SA_SET,
				     .attr_id = SA_MCMEMBER,
				     .mask = g->mask };
	uint8_t mad[VB_MAD_BYTES];

	vb_sa_cancel(&g->request);
	vb_sa_mcmember_put(mad, &h, &g->want);
	vb_sa_ask(g->all->sa, &g->request, g->place, &h, mad, timeout_ms, now);
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
	g->request.done = take_membership;
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

/* An owner may know the group by the GID that it asked for, or by the one that
 * the administrator gave. */
static bool is_called(const struct sa_group *g, const struct vb_gid *gid)
{
	return vb_gid_equal(&g->want.mgid, gid) ||
	       (g->joined && vb_gid_equal(&g->record.mgid, gid));
}

void vb_sa_group_leave(struct vb_sa_groups *all, const void *owner,
		       unsigned place, const struct vb_gid *asked)
{
	for (struct sa_group *g = all->list; g; g = g->next)
		if (g->place == place && is_called(g, asked) &&
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

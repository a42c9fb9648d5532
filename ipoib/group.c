/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of multicast groups. The broadcast group has place 0 of the
 * table. */
#include "ipoib/group.h"

#include <stdlib.h>

/* The number of a join request (vb_group.query): its low bits are the index of
 * the group in the table, the bits above them count the requests. */
#define PLACE_BITS 8
#define PLACE_MASK ((1u << PLACE_BITS) - 1)

_Static_assert(VB_GROUP_TABLE == 1 << PLACE_BITS, "a place has 8 bits");

struct vb_groups {
	struct vb_group_ops ops;
	void *arg;
	struct vb_gid port_gid;
	uint16_t pkey;
	uint32_t queries; /* number of requests made so far */
	vb_time next;	  /* no group is due before this time */
	struct vb_group list[VB_GROUP_TABLE];
};

static struct vb_group *find_group(const struct vb_groups *t,
				   const struct vb_gid *mgid)
{
	for (unsigned i = 0; i < VB_GROUP_TABLE; i++)
		if (t->list[i].state != GROUP_NONE &&
		    vb_gid_equal(&t->list[i].mgid, mgid))
			return (struct vb_group *)&t->list[i];
	return NULL;
}

static bool is_broadcast(const struct vb_groups *t, const struct vb_group *g)
{
	return g == t->list;
}

static void group_due(struct vb_groups *t, struct vb_group *g, vb_time due)
{
	g->due = due;
	t->next = VB_MIN(t->next, due);
}

/* Is the broadcast group joined? Other groups are joined only after it. */
static bool has_begun(const struct vb_groups *t)
{
	return t->list[0].state == GROUP_JOINED;
}

/* --- states --- */

static void group_detach(struct vb_groups *t, struct vb_group *g)
{
	if (g->state == GROUP_JOINED)
		t->ops.detach(t->arg, g);
	g->handle = NULL;
}

static void ask_to_enter(struct vb_groups *t, struct vb_group *g, vb_time now)
{
	g->state = GROUP_JOINING;
	g->query = ++t->queries << PLACE_BITS | (uint32_t)(g - t->list);
	g->record.mgid = g->mgid;
	g->record.port_gid = t->port_gid;
	g->record.pkey = t->pkey;
	g->record.join_state =
		g->member ? SA_FULL_MEMBER : SA_SEND_ONLY_NON_MEMBER;
	g->doubtful |= g->record.join_state;
	group_due(t, g, now + VB_GROUP_ANSWER);
	t->ops.join(t->arg, g, is_broadcast(t, g) ? NULL : &t->list[0].record);
}

/* Ask to join the group @g; but if @g is another group than the broadcast
 * group, and that is not joined, let @g wait until it is. */
static void begin_group(struct vb_groups *t, struct vb_group *g, vb_time now)
{
	group_detach(t, g);
	g->pause = 0;
	if (is_broadcast(t, g) || has_begun(t)) {
		ask_to_enter(t, g, now);
		return;
	}
	g->state = GROUP_BACKOFF;
	g->due = VB_NEVER;
}

/* Wait before the next try to join. While a group has no member, the
 * administrator refuses the join of a host that only sends; a member may join
 * soon, so such a host tries again after a shorter time. */
static void back_off(struct vb_groups *t, struct vb_group *g, vb_time now)
{
	vb_time last = g->member ? VB_GROUP_LAST : VB_GROUP_SENDER_LAST;

	group_detach(t, g);
	g->state = GROUP_BACKOFF;
	g->pause = g->pause ? VB_MIN(2 * g->pause, last) : VB_GROUP_FIRST;
	vb_waiting_drop(&g->waiting);
	group_due(t, g, now + g->pause);
}

static void group_remove(struct vb_groups *t, struct vb_group *g)
{
	group_detach(t, g);
	g->record.join_state = g->entered | g->doubtful;
	if (g->record.join_state)
		t->ops.leave(t->arg, g);
	vb_waiting_drop(&g->waiting);
	*g = (struct vb_group){ .state = GROUP_NONE };
}

static void begin_others(struct vb_groups *t, vb_time now)
{
	for (unsigned i = 1; i < VB_GROUP_TABLE; i++)
		if (t->list[i].state != GROUP_NONE)
			begin_group(t, &t->list[i], now);
}

static void enter_joined(struct vb_groups *t, struct vb_group *g, vb_time now)
{
	if (!t->ops.attach(t->arg, g)) {
		back_off(t, g, now);
		return;
	}
	g->state = GROUP_JOINED;
	g->pause = 0;
	g->used = now;
	group_due(t, g, g->member ? VB_NEVER : now + VB_GROUP_IDLE);
	for (unsigned i = 0; i < g->waiting.count; i++)
		t->ops.send(t->arg, g, g->waiting.packets[i].bytes,
			    g->waiting.packets[i].len);
	vb_waiting_drop(&g->waiting);
	if (is_broadcast(t, g)) {
		t->ops.begun(t->arg, &g->record);
		begin_others(t, now);
	}
}

/* --- the table --- */

/* Returns a free entry for a new group. If no entry is free, the group that was
 * used longest ago, of those to which the host only sends, makes room. NULL:
 * the host is a member of all groups in the table. */
static struct vb_group *find_place(struct vb_groups *t)
{
	struct vb_group *oldest = NULL;

	for (unsigned i = 1; i < VB_GROUP_TABLE; i++) {
		struct vb_group *g = &t->list[i];

		if (g->state == GROUP_NONE)
			return g;
		if (!g->member && (!oldest || g->used < oldest->used))
			oldest = g;
	}
	if (oldest)
		group_remove(t, oldest);
	return oldest;
}

static struct vb_group *enter_group(struct vb_groups *t,
				    const struct vb_gid *mgid, bool member,
				    vb_time now)
{
	struct vb_group *g = find_place(t);

	if (!g)
		return NULL;
	*g = (struct vb_group){ .state = GROUP_BACKOFF,
				.mgid = *mgid,
				.member = member,
				.used = now,
				.due = VB_NEVER };
	return g;
}

void vb_groups_enter(struct vb_groups *t, const struct vb_gid *mgid,
		     vb_time now)
{
	struct vb_group *g = find_group(t, mgid);

	if (g && g->member)
		return;
	if (!g)
		g = enter_group(t, mgid, true, now);
	if (!g)
		return;
	g->member = true;
	begin_group(t, g, now);
}

void vb_groups_leave(struct vb_groups *t, const struct vb_gid *mgid)
{
	struct vb_group *g = find_group(t, mgid);

	if (g && g->member && !is_broadcast(t, g))
		group_remove(t, g);
}

void vb_groups_send(struct vb_groups *t, const struct vb_gid *mgid,
		    const void *frame, size_t len, vb_time now)
{
	struct vb_group *g = find_group(t, mgid);

	if (!g) {
		g = enter_group(t, mgid, false, now);
		if (!g)
			return;
		begin_group(t, g, now);
	}
	g->used = now;
	if (g->state == GROUP_JOINED) {
		t->ops.send(t->arg, g, frame, len);
		return;
	}
	/* While a refused group waits for its next try, its packets are
	 * dropped, since nobody listens. */
	if (g->state == GROUP_JOINING || g->due == VB_NEVER)
		vb_waiting_add(&g->waiting, frame, len);
}

/* --- events of a group --- */

/* Is @record that of the group @g, and does it have a multicast LID and a valid
 * MTU? */
static bool record_is_sane(const struct vb_group *g,
			   const struct vb_sa_mcmember *record)
{
	return vb_gid_equal(&record->mgid, &g->mgid) &&
	       record->mlid >= 0xc000 && record->mlid < 0xffff &&
	       vb_sa_mtu_bytes(record->mtu);
}

void vb_groups_answer(struct vb_groups *t, uint32_t query,
		      const struct vb_sa_mcmember *record, vb_time now)
{
	struct vb_group *g = &t->list[query & PLACE_MASK];
	uint8_t join;

	if (g->state != GROUP_JOINING || g->query != query)
		return;
	join = g->record.join_state;
	g->doubtful &= (uint8_t)~join;
	if (record)
		g->entered |= join;
	else if (!(g->entered & join))
		t->ops.refused(t->arg, g);
	if (!record || !record_is_sane(g, record)) {
		back_off(t, g, now);
		return;
	}
	g->record = *record;
	g->record.port_gid = t->port_gid;
	g->record.join_state = join;
	enter_joined(t, g, now);
}

/* Join the broadcast group now; begin_others() joins the other groups after
 * it. */
void vb_groups_rejoin(struct vb_groups *t, vb_time now)
{
	for (unsigned i = 0; i < VB_GROUP_TABLE; i++) {
		t->list[i].doubtful |= t->list[i].entered;
		t->list[i].entered = 0;
	}
	for (unsigned i = 1; i < VB_GROUP_TABLE; i++) {
		struct vb_group *g = &t->list[i];

		if (g->state == GROUP_NONE)
			continue;
		group_detach(t, g);
		g->state = GROUP_BACKOFF;
		g->due = VB_NEVER;
	}
	begin_group(t, &t->list[0], now);
}

/* The time to try again has come: a group to which the host only sends is
 * removed if the host has sent nothing to it since the last try. */
static void tick_backoff(struct vb_groups *t, struct vb_group *g, vb_time now)
{
	if (g->member || g->used + g->pause > now)
		ask_to_enter(t, g, now);
	else
		group_remove(t, g);
}

static void tick_joined(struct vb_groups *t, struct vb_group *g, vb_time now)
{
	if (g->used + VB_GROUP_IDLE <= now)
		group_remove(t, g);
	else
		group_due(t, g, g->used + VB_GROUP_IDLE);
}

static void group_tick(struct vb_groups *t, struct vb_group *g, vb_time now)
{
	if (g->state == GROUP_BACKOFF)
		tick_backoff(t, g, now);
	else if (g->state == GROUP_JOINING)
		back_off(t, g, now);
	else
		tick_joined(t, g, now);
}

void vb_groups_tick(struct vb_groups *t, vb_time now)
{
	if (t->next > now)
		return;
	for (unsigned i = 0; i < VB_GROUP_TABLE; i++)
		if (t->list[i].state != GROUP_NONE && t->list[i].due <= now)
			group_tick(t, &t->list[i], now);
	t->next = VB_NEVER;
	for (unsigned i = 0; i < VB_GROUP_TABLE; i++)
		if (t->list[i].state != GROUP_NONE)
			t->next = VB_MIN(t->next, t->list[i].due);
}

vb_time vb_groups_next(const struct vb_groups *t)
{
	return t->next;
}

/* --- creation and end --- */

struct vb_groups *vb_groups_create(const struct vb_group_ops *ops, void *arg,
				   const struct vb_gid *mgid,
				   const struct vb_gid *port_gid, uint16_t pkey,
				   vb_time now)
{
	struct vb_groups *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->ops = *ops;
	t->arg = arg;
	t->port_gid = *port_gid;
	t->pkey = pkey;
	t->next = VB_NEVER;
	t->list[0] = (struct vb_group){ .state = GROUP_BACKOFF,
					.mgid = *mgid,
					.member = true };
	begin_group(t, &t->list[0], now);
	return t;
}

void vb_groups_destroy(struct vb_groups *t)
{
	for (unsigned i = VB_GROUP_TABLE; i-- > 0;)
		if (t->list[i].state != GROUP_NONE)
			group_remove(t, &t->list[i]);
	free(t);
}

const struct vb_sa_mcmember *vb_groups_broadcast(const struct vb_groups *t)
{
	return has_begun(t) ? &t->list[0].record : NULL;
}

const struct vb_group *vb_groups_find(const struct vb_groups *t,
				      const struct vb_gid *mgid)
{
	return find_group(t, mgid);
}

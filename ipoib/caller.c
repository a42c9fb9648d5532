/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses which neighbours' connections an interface keeps. */
#include "ipoib/caller.h"

#include <stdlib.h>

struct vb_callers {
	void (*end)(void *arg, void *handle);
	void *arg;
	unsigned count;
	vb_time next; /* no connection is idle before this time */
	struct vb_caller list[VB_CALLERS];
};

struct vb_callers *vb_callers_create(void (*end)(void *arg, void *handle),
				     void *arg)
{
	struct vb_callers *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->end = end;
	t->arg = arg;
	t->next = VB_NEVER;
	return t;
}

void vb_callers_destroy(struct vb_callers *t)
{
	vb_callers_forget(t);
	free(t);
}

static void caller_free(struct vb_callers *t, struct vb_caller *c)
{
	t->end(t->arg, c->handle);
	c->handle = NULL;
	t->count--;
}

static struct vb_caller *older(struct vb_caller *a, struct vb_caller *b)
{
	return !a || b->heard < a->heard ? b : a;
}

/* Finds the connection that must end when @peer gets a new one. NULL: no
 * connection must end, since the table has room; or, if @refused is true, none
 * may end, and the new one is refused. */
static struct vb_caller *find_victim(struct vb_callers *t,
				     const struct vb_ipoib_hw *peer,
				     vb_time now, bool *refused)
{
	struct vb_caller *of_port = NULL, *of_all = NULL;
	unsigned count = 0;

	*refused = false;
	for (unsigned i = 0; i < VB_CALLERS; i++) {
		struct vb_caller *c = &t->list[i];

		if (!c->handle)
			continue;
		of_all = older(of_all, c);
		if (!vb_gid_equal(&c->peer.gid, &peer->gid))
			continue;
		if (c->peer.qpn == peer->qpn)
			return c;
		of_port = older(of_port, c);
		count++;
	}
	if (count >= VB_CALLERS_OF_PORT)
		return of_port;
	if (t->count < VB_CALLERS)
		return NULL;
	*refused = of_all->heard + VB_CALLER_FRESH > now;
	return *refused ? NULL : of_all;
}

int vb_callers_enter(struct vb_callers *t, const struct vb_ipoib_hw *peer,
		     void *handle, vb_time now)
{
	bool refused;
	struct vb_caller *victim = find_victim(t, peer, now, &refused);
	int place = 0;

	if (refused)
		return -1;
	if (victim)
		caller_free(t, victim);
	while (t->list[place].handle)
		place++;
	t->list[place] = (struct vb_caller){ *peer, handle, now };
	t->count++;
	t->next = VB_MIN(t->next, now + VB_CALLER_IDLE);
	return place;
}

void vb_callers_heard(struct vb_callers *t, int place, vb_time now)
{
	t->list[place].heard = now;
}

void vb_callers_remove(struct vb_callers *t, int place)
{
	if (t->list[place].handle)
		caller_free(t, &t->list[place]);
}

void vb_callers_forget(struct vb_callers *t)
{
	for (int i = 0; i < VB_CALLERS; i++)
		vb_callers_remove(t, i);
}

void vb_callers_tick(struct vb_callers *t, vb_time now)
{
	if (t->next > now)
		return;
	t->next = VB_NEVER;
	for (unsigned i = 0; i < VB_CALLERS; i++) {
		struct vb_caller *c = &t->list[i];

		if (!c->handle)
			continue;
		if (c->heard + VB_CALLER_IDLE <= now)
			caller_free(t, c);
		else
			t->next = VB_MIN(t->next, c->heard + VB_CALLER_IDLE);
	}
}

vb_time vb_callers_next(const struct vb_callers *t)
{
	return t->next;
}

unsigned vb_callers_count(const struct vb_callers *t)
{
	return t->count;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of agents of a port: registration, and which agent gets a MAD. */
#include "mgmt/agents_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/smp.h"

#define OUI_AT	37
#define METHODS 128

static bool is_vendor2(uint8_t class)
{
	return class >= MAD_CLASS_VENDOR2 && class <= MAD_CLASS_VENDOR2_LAST;
}

struct vb_agents *vb_agents_create(const struct vb_agents_ops *ops,
				   struct vb_timers *timers)
{
	struct vb_agents *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->ops = *ops;
	a->timers = timers;
	return a;
}

void vb_agents_destroy(struct vb_agents *a)
{
	if (!a)
		return;
	while (a->exchanges)
		vb_exchange_end(a->exchanges);
	free(a->list);
	free(a);
}

static struct agent *find_agent(struct vb_agents *a, const void *client,
				uint32_t id)
{
	for (unsigned i = 0; i < a->count; i++)
		if (a->list[i].client == client && a->list[i].id == id)
			return &a->list[i];
	return NULL;
}

struct agent *vb_agent_by_serial(struct vb_agents *a, uint32_t serial)
{
	for (unsigned i = 0; i < a->count; i++)
		if (a->list[i].serial == serial)
			return &a->list[i];
	return NULL;
}

static bool serves(const struct vb_agent_wish *w, unsigned method)
{
	return method < METHODS && w->methods[method / 64] >> method % 64 & 1;
}

/* Do two agents have the same class, version and vendor? */
static bool is_kin(const struct vb_agent_wish *w,
		   const struct vb_agent_wish *other)
{
	return w->class == other->class &&
	       w->class_version == other->class_version &&
	       (!is_vendor2(w->class) || w->oui == other->oui);
}

static bool is_taken(const struct vb_agents *a, const struct vb_agent_wish *w)
{
	for (unsigned i = 0; i < a->count; i++) {
		const struct vb_agent_wish *o = &a->list[i].wish;

		if (is_kin(w, o) && ((w->methods[0] & o->methods[0]) ||
				     (w->methods[1] & o->methods[1])))
			return true;
	}
	return false;
}

static bool is_sensible(const struct vb_agent_wish *w)
{
	if (w->rmpp_version > VB_RMPP_VERSION ||
	    (w->rmpp_version && !vb_rmpp_has_header(w->class)))
		return false;
	return !is_vendor2(w->class) || (w->oui && w->oui < 1u << 24);
}

static int free_id(struct vb_agents *a, const void *client)
{
	for (uint32_t id = 0; id < AGENTS_CLIENT; id++)
		if (!find_agent(a, client, id))
			return (int)id;
	return -ENOSPC;
}

static bool agents_make_room(struct vb_agents *a)
{
	unsigned room = a->room ? a->room * 2 : 8;
	struct agent *list;

	if (a->count < a->room)
		return true;
	list = realloc(a->list, room * sizeof(*list));
	if (!list)
		return false;
	a->list = list;
	a->room = room;
	return true;
}

static uint32_t next_serial(struct vb_agents *a)
{
	do
		a->last_serial++;
	while (a->last_serial == 0 || vb_agent_by_serial(a, a->last_serial));
	return a->last_serial;
}

int vb_agents_register(struct vb_agents *a, void *client,
		       const struct vb_agent_wish *wish)
{
	int id = free_id(a, client);
	uint32_t serial;

	if (!is_sensible(wish))
		return -EINVAL;
	if (is_taken(a, wish))
		return -EPERM;
	if (id < 0 || a->count == AGENTS_MOST)
		return -ENOSPC;
	if (!agents_make_room(a))
		return -ENOMEM;
	serial = next_serial(a);
	a->list[a->count++] = (struct agent){
		.client = client,
		.id = (uint32_t)id,
		.serial = serial,
		.wish = *wish,
	};
	return id;
}

static void end_exchanges(struct vb_agents *a, uint32_t serial)
{
	struct exchange *e = a->exchanges;

	while (e) {
		struct exchange *next = e->next;

		if (e->serial == serial)
			vb_exchange_end(e);
		e = next;
	}
}

static void remove_agent(struct vb_agents *a, struct agent *g)
{
	end_exchanges(a, g->serial);
	*g = a->list[--a->count];
}

int vb_agents_unregister(struct vb_agents *a, void *client, uint32_t agent)
{
	struct agent *g = find_agent(a, client, agent);

	if (!g)
		return -EINVAL;
	remove_agent(a, g);
	return 0;
}

void vb_agents_forget(struct vb_agents *a, void *client)
{
	for (unsigned i = a->count; i-- > 0;)
		if (a->list[i].client == client)
			remove_agent(a, &a->list[i]);
}

void vb_agent_deliver(struct vb_agents *a, const struct agent *g,
		      uint32_t status, const struct vb_mad_addr *addr,
		      const uint8_t *bytes, size_t len)
{
	const struct vb_mad_delivery d = {
		.agent = g->id,
		.status = status,
		.addr = addr,
		.bytes = bytes,
		.len = len,
	};

	a->ops.deliver(a->ops.deliver_arg, g->client, &d);
}

/* Returns the agent that gets the request @mad; NULL: no agent does. */
static struct agent *agent_for_request(struct vb_agents *a,
				       const uint8_t mad[VB_MAD_BYTES])
{
	const struct vb_agent_wish asked = {
		.class = mad[1],
		.class_version = mad[2],
		.oui = (uint32_t)vb_load_be(mad + OUI_AT, 3),
	};

	for (unsigned i = 0; i < a->count; i++)
		if (is_kin(&a->list[i].wish, &asked) &&
		    serves(&a->list[i].wish, mad[3]))
			return &a->list[i];
	return NULL;
}

int vb_agents_send(struct vb_agents *a, void *client,
		   const struct vb_mad_send *s, vb_time now)
{
	const struct agent *g = find_agent(a, client, s->agent);

	/* opensm sends answers of one SMP class (LID-routed or directed) by its
	 * agent of the other class, so this function only checks the queue
	 * pair. */
	if (!g || s->len < VB_MAD_HDR_BYTES ||
	    vb_mad_qpn(s->bytes[1]) != vb_mad_qpn(g->wish.class))
		return -EINVAL;
	return vb_exchange_begin(a, g, s, now);
}

static bool is_rmpp(const uint8_t *mad)
{
	struct vb_rmpp h;

	vb_rmpp_get(mad, &h);
	return vb_rmpp_has_header(mad[1]) && h.flags & VB_RMPP_ACTIVE;
}

bool vb_agents_hear(struct vb_agents *a, const struct vb_mad_addr *from,
		    const uint8_t mad[VB_MAD_BYTES], vb_time now)
{
	struct agent *g;

	if (vb_exchange_hear(a, from, mad, now))
		return true;
	if (vb_mad_is_response(mad))
		return false;
	g = agent_for_request(a, mad);
	if (!g)
		return false;
	if (g->wish.rmpp_version && is_rmpp(mad))
		vb_exchange_receive(a, g, from, mad, now);
	else
		vb_agent_deliver(a, g, 0, from, mad, VB_MAD_BYTES);
	return true;
}

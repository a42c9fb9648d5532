/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the ports of a switch on shortest paths to a LID, and gives each flow
 * one of these ports. */
#include "fabric/adaptive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define UNREACHED   255
#define FLOWS_LEAST 256u
#define FLOWS_MOST  65536u
/* After this time, and after each change of a port's state, the ports of a
 * group are computed again, since a subnet manager may have written other
 * tables. */
#define GROUP_LIFE (100 * VB_MSEC)

/* A group: the ports of a switch that are on shortest paths to one LID. */
struct group {
	vb_time until;
	/* value of net->changes when the group was worked out */
	uint32_t changes;
	/* number of hops from this switch to the node that has the LID */
	uint8_t hops;
	uint64_t ports[4];
};

struct flow_entry {
	/* identity of the flow, from flow_key(); 0: this entry is free */
	uint64_t key;
	vb_time last; /* the time when the flow's last frame came */
	uint8_t port;
};

struct vb_fab_adaptive {
	struct group *group; /* array of @groups groups, indexed by LID */
	uint32_t groups;
	/* hash table of @room entries, with open addressing */
	struct flow_entry *flow;
	uint32_t flows, room;
	/* There was no room for a flow, which took the linear table's port.
	 * Such a flow must not move later, so from now on no flow gets an
	 * entry. */
	bool overflowed;
	/* number of flows that leave by each port */
	uint32_t on_port[VB_FAB_PORTS_MAX + 1];
};

/* Functions for groups: the ports on shortest paths to a LID. */

/* Returns the port of the node that has the LID @lid; -1: the node does not
 * have the LID. */
static int port_of_lid(const struct vb_fab_node *n, uint16_t lid)
{
	bool is_switch = n->kind == FAB_SWITCH;
	unsigned last = is_switch ? 0 : n->ports;

	for (unsigned p = is_switch ? 0 : 1; p <= last; p++)
		if (vb_fab_is_own_lid(n, (uint8_t)p, lid))
			return (int)p;
	return -1;
}

/* Returns the node at the other end of the port's link; NULL: the port is not
 * Active, or has no link. */
static const struct vb_fab_node *neighbour(const struct vb_fab_node *n,
					   unsigned port)
{
	const struct vb_fab_end *e = n->port[port].end;

	return n->port[port].state == FAB_ACTIVE && e->peer ? e->peer->node
							    : NULL;
}

/* Write to @hops, indexed by node, the number of hops from each switch to port
 * @port of @to; @port 0: to any port of @to. @queue has room for all nodes. */
static void measure_hops(const struct vb_fab_net *net,
			 const struct vb_fab_node *to, unsigned port,
			 uint8_t *hops, const struct vb_fab_node **queue)
{
	uint32_t head = 0, tail = 0;

	memset(hops, UNREACHED, net->nodes);
	hops[to->index] = 0;
	queue[tail++] = to;
	while (head < tail) {
		const struct vb_fab_node *n = queue[head++];

		for (unsigned p = 1; p <= n->ports; p++) {
			const struct vb_fab_node *m = neighbour(n, p);

			if (!m || m->kind != FAB_SWITCH ||
			    (n == to && port && p != port) ||
			    hops[m->index] != UNREACHED ||
			    hops[n->index] == UNREACHED - 1)
				continue;
			hops[m->index] = (uint8_t)(hops[n->index] + 1);
			queue[tail++] = m;
		}
	}
}

/* Does the linear table of @n lead one hop nearer to the LID? If it does not,
 * it sends frames by a detour, perhaps to avoid a deadlock, and adaptive
 * routing must not send them by another way. */
static bool goes_nearer(const struct vb_fab_node *n, uint16_t lid,
			const uint8_t *hops)
{
	const struct vb_fab_switch *sw = &n->sw;
	const struct vb_fab_node *m;
	uint8_t port;

	if (hops[n->index] == 0)
		return true;
	if (n->kind != FAB_SWITCH || lid > sw->linear_top ||
	    lid >= sw->linear_cap)
		return false;
	port = sw->linear[lid];
	m = port && port <= n->ports ? neighbour(n, port) : NULL;
	return m && hops[m->index] < hops[n->index];
}

static void fill_group(const struct vb_fab_node *n, uint16_t lid,
		       const uint8_t *hops, struct group *g)
{
	memset(g->ports, 0, sizeof(g->ports));
	g->hops = hops[n->index];
	if (!goes_nearer(n, lid, hops))
		return;
	for (unsigned p = 1; p <= n->ports; p++) {
		const struct vb_fab_node *m = neighbour(n, p);

		if (m && hops[m->index] < hops[n->index] &&
		    goes_nearer(m, lid, hops))
			g->ports[p / 64] |= 1ull << p % 64;
	}
}

/* Fill the groups for @lid in the switches from which a node that has the LID
 * is reached, or (@hops NULL) make all groups for @lid empty. */
static void fill_reached(struct vb_fab_net *net, uint16_t lid,
			 const uint8_t *hops, vb_time now)
{
	for (uint32_t i = 0; i < net->nodes; i++) {
		const struct vb_fab_node *n = net->node[i];
		struct vb_fab_adaptive *a = n->sw.adaptive;

		if (!a || lid >= a->groups)
			continue;
		if (!hops)
			a->group[lid] =
				(struct group){ .changes = net->changes,
						.until = now + GROUP_LIFE };
		else if (hops[i] != UNREACHED)
			fill_group(n, lid, hops, &a->group[lid]);
	}
}

/* Work out the groups for @lid in all switches that route adaptively, since
 * most of the work is the same. Each subnet may have a node with the LID.
 * False: no memory. */
static bool fill_groups(struct vb_fab_net *net, uint16_t lid, vb_time now)
{
	uint8_t *hops = malloc(net->nodes);
	const struct vb_fab_node **queue =
		reallocarray(NULL, net->nodes, sizeof(*queue));
	bool done = hops && queue;

	if (done)
		fill_reached(net, lid, NULL, now);
	for (uint32_t i = 0; done && i < net->nodes; i++) {
		int port = port_of_lid(net->node[i], lid);

		if (port < 0)
			continue;
		measure_hops(net, net->node[i], (unsigned)port, hops, queue);
		fill_reached(net, lid, hops, now);
	}
	free(hops);
	free(queue);
	return done;
}

static bool make_group_room(struct vb_fab_adaptive *a, uint16_t lid)
{
	uint32_t count = VB_MAX(lid + 1u, 2 * a->groups);
	struct group *more;

	if (lid < a->groups)
		return true;
	more = reallocarray(a->group, count, sizeof(*more));
	if (!more)
		return false;
	memset(more + a->groups, 0, (count - a->groups) * sizeof(*more));
	a->group = more;
	a->groups = count;
	return true;
}

/* Returns the group of @lid; NULL: there is none, so the linear table
 * decides. */
static const struct group *group_of(struct vb_fab_net *net,
				    struct vb_fab_adaptive *a, uint16_t lid,
				    vb_time now)
{
	struct group *g;

	if (!make_group_room(a, lid))
		return NULL;
	g = &a->group[lid];
	if ((g->until <= now || g->changes != net->changes) &&
	    !fill_groups(net, lid, now))
		return NULL;
	return &a->group[lid];
}

static bool has(const struct group *g, unsigned port)
{
	return g->ports[port / 64] >> port % 64 & 1;
}

/* Functions for flows and the ports that they were given. */

static uint64_t flow_key(const struct vb_fab_view *v)
{
	const uint8_t *bth = vb_lrh_bth(v->bytes, &v->lrh);

	/* The highest bit is always set, because a key of 0 means a free
	 * entry. */
	return 1ull << 63 | (uint64_t)v->lrh.slid << 44 |
	       (uint64_t)v->lrh.dlid << 28 | (uint64_t)v->lrh.sl << 24 |
	       vb_load_be(bth + 5, 3);
}

/* Returns the entry of the flow; if it has none, the free entry for it. */
static struct flow_entry *place_of(const struct vb_fab_adaptive *a,
				   uint64_t key)
{
	uint64_t at = key * 0x9e3779b97f4a7c15ull >> 32;

	while (a->flow[at & (a->room - 1)].key &&
	       a->flow[at & (a->room - 1)].key != key)
		at++;
	return &a->flow[at & (a->room - 1)];
}

/* Returns how long a frame can be under way: every switch discards it after
 * SwitchLifeTime, which is assumed to be equal in all switches. */
static vb_time longest_path(const struct vb_fab_node *n, const struct group *g)
{
	vb_time life = vb_fab_life_ns(n->sw.life);

	return life == VB_NEVER ? VB_NEVER : life * (g->hops + 1u);
}

/* Makes room for one more flow: doubles the table if it is half full. False:
 * the table cannot grow. */
static bool make_flow_room(struct vb_fab_adaptive *a)
{
	struct vb_fab_adaptive more = *a;

	if (a->room && a->flows < a->room / 2)
		return true;
	more.room = a->room ? 2 * a->room : FLOWS_LEAST;
	if (more.room > FLOWS_MOST)
		return false;
	more.flow = calloc(more.room, sizeof(*more.flow));
	if (!more.flow)
		return false;
	for (uint32_t i = 0; i < a->room; i++)
		if (a->flow[i].key)
			*place_of(&more, a->flow[i].key) = a->flow[i];
	free(a->flow);
	a->flow = more.flow;
	a->room = more.room;
	return true;
}

/* Returns how much waits at the port to be sent. Of two ports at which as much
 * waits, the one that was given fewer flows counts as less loaded, since what
 * those will send is not in the queue yet. */
static uint64_t load_of(const struct vb_fab_node *n, unsigned port)
{
	const struct vb_fab_end *e = n->port[port].end;
	uint64_t blocks = 0;

	for (unsigned vl = 0; vl < DATA_VLS; vl++)
		blocks += e->lane[vl].blocks;
	return blocks << 32 | n->sw.adaptive->on_port[port];
}

/* Returns the port of the group with the least load, but not @in; @port if
 * there is none. */
static uint8_t least_loaded(const struct vb_fab_node *n, const struct group *g,
			    unsigned in, uint8_t port)
{
	uint64_t least = UINT64_MAX;

	for (unsigned p = 1; p <= n->ports; p++) {
		uint64_t load;

		if (p == in || !has(g, p))
			continue;
		load = load_of(n, p);
		if (load < least) {
			least = load;
			port = (uint8_t)p;
		}
	}
	return port;
}

uint8_t fab_adaptive_port(struct vb_fab_end *in, const struct vb_fab_view *v,
			  uint8_t port, vb_time now)
{
	struct vb_fab_node *n = in->node;
	struct vb_fab_adaptive *a = n->sw.adaptive;
	const struct group *g;
	struct flow_entry *f;
	vb_time longest;

	if (v->lrh.vl == VB_VL_MGMT || v->lrh.lnh < LNH_LOCAL)
		return port;
	g = group_of(in->net, a, v->lrh.dlid, now);
	if (!g || !has(g, port))
		return port;
	if (!make_flow_room(a)) {
		a->overflowed = true;
		if (!a->room)
			return port;
	}
	f = place_of(a, flow_key(v));
	if (!f->key && a->overflowed)
		return port;
	longest = longest_path(n, g);
	if (!f->key || !has(g, f->port) || f->port == in->no ||
	    (longest != VB_NEVER && now - f->last > longest)) {
		if (f->key)
			a->on_port[f->port]--;
		else
			a->flows++;
		f->key = flow_key(v);
		f->port = least_loaded(n, g, in->no, port);
		a->on_port[f->port]++;
	}
	f->last = now;
	return f->port;
}

/* Functions that switch adaptive routing on and off. */

void fab_adaptive_free(struct vb_fab_node *node)
{
	struct vb_fab_adaptive *a = node->sw.adaptive;

	if (!a)
		return;
	free(a->group);
	free(a->flow);
	free(a);
	node->sw.adaptive = NULL;
}

int vb_fab_set_adaptive(struct vb_fab_node *node, bool on)
{
	if (node->kind != FAB_SWITCH || (on && !node->sw.linear_cap))
		return -EINVAL;
	if (!on)
		fab_adaptive_free(node);
	else if (!node->sw.adaptive)
		node->sw.adaptive = calloc(1, sizeof(*node->sw.adaptive));
	return !on || node->sw.adaptive ? 0 : -ENOMEM;
}

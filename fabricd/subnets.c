/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the subnets of a topology, and the routes between them. */
#include "fabricd/subnets.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/topology_priv.h"

/* Mark the nodes that are reached from @first through switches as nodes of
 * @subnet. @stack has room for all nodes. */
static void flood(const struct vb_subnets *s, uint32_t first, uint8_t subnet,
		  uint32_t *stack)
{
	uint32_t depth = 0;

	s->of[first] = subnet;
	stack[depth++] = first;
	while (depth) {
		uint32_t at = stack[--depth];
		const struct vb_topo_node *n = &s->topo->nodes[at];

		/* The two ports of an adapter may be in two subnets, so no way
		 * leads through it. */
		for (unsigned p = 1; p <= n->ports; p++) {
			uint32_t peer = n->port[p].peer;

			if ((n->kind != FAB_SWITCH && at != first) ||
			    !n->port[p].linked || s->of[peer] ||
			    s->topo->nodes[peer].kind == FAB_ROUTER)
				continue;
			s->of[peer] = subnet;
			stack[depth++] = peer;
		}
	}
}

/* Number the subnets that have a node of @kind and no number yet. */
static int number(struct vb_subnets *s, uint8_t kind, uint32_t *stack,
		  char *error)
{
	for (uint32_t i = 0; i < s->topo->count; i++) {
		if (s->topo->nodes[i].kind != kind || s->of[i])
			continue;
		if (s->count == VB_SUBNETS_MOST)
			return vb_topo_fail(error,
					    "the routers separate more than %u "
					    "subnets, the most that --sm can "
					    "manage",
					    VB_SUBNETS_MOST);
		flood(s, i, (uint8_t)++s->count, stack);
	}
	return 0;
}

int vb_subnets_find(const struct vb_topo *t, struct vb_subnets *s,
		    char error[VB_TOPO_ERROR])
{
	uint32_t *stack = calloc(t->count + 1u, sizeof(*stack));
	int rc = -ENOMEM;

	*s = (struct vb_subnets){ .topo = t };
	s->of = calloc(t->count + 1u, 1);
	for (uint32_t i = 0; i < t->count; i++)
		s->routed |= t->nodes[i].kind == FAB_ROUTER;
	if (stack && s->of && s->routed) {
		rc = number(s, FAB_SWITCH, stack, error);
		if (!rc)
			rc = number(s, FAB_CA, stack, error);
	} else if (stack && s->of) {
		memset(s->of, 1, t->count);
		s->count = 1;
		rc = 0;
	}
	free(stack);
	return rc == -ENOMEM ? vb_topo_fail(error, "no memory") : rc;
}

void vb_subnets_free(struct vb_subnets *s)
{
	free(s->of);
	s->of = NULL;
}

const struct vb_topo_node *vb_subnets_manager(const struct vb_subnets *s,
					      unsigned subnet)
{
	const struct vb_topo_node *found = NULL;

	for (uint32_t i = 0; i < s->topo->count; i++) {
		const struct vb_topo_node *n = &s->topo->nodes[i];

		if (s->of[i] != subnet || strchr(n->id, ',') ||
		    n->kind == FAB_ROUTER)
			continue;
		if (n->kind == FAB_SWITCH)
			return n;
		found = found ? found : n;
	}
	return found;
}

/* Returns the subnet of a router's port; 0: it has no link, or one to another
 * router or another process. */
static unsigned subnet_at(const struct vb_subnets *s,
			  const struct vb_topo_node *router, unsigned port)
{
	const struct vb_topo_port *p = &router->port[port];

	return p->linked ? s->of[p->peer] : 0;
}

/* Write the prefix routes that lead by @port of a router: the routes that hold
 * for any prefix if @any is true, otherwise those for one prefix each. */
static void put_routes_by(const struct vb_subnets *s,
			  const struct vb_topo_node *router, unsigned port,
			  bool any, FILE *to)
{
	const struct vb_topo_port *at = &router->port[port];
	const struct vb_topo_routes *r = router->spec.routes;
	uint64_t guid = at->guid ? at->guid : router->guid + port;
	unsigned here = subnet_at(s, router, port);

	for (unsigned p = 1; !any && p <= router->ports; p++) {
		unsigned subnet = subnet_at(s, router, p);

		if (subnet && subnet != here)
			fprintf(to, "%#" PRIx64 " %#" PRIx64 "\n",
				VB_SUBNETS_PREFIX + subnet - 1, guid);
	}
	for (unsigned i = 0; r && i < r->count; i++) {
		if (r->route[i].port == port || r->route[i].any != any)
			continue;
		if (any)
			fprintf(to, "* %#" PRIx64 "\n", guid);
		else
			fprintf(to, "%#" PRIx64 " %#" PRIx64 "\n",
				r->route[i].prefix, guid);
	}
}

/* opensm uses the first line that matches, so the routes for any prefix come
 * last. */
void vb_subnets_put_routes(const struct vb_subnets *s, unsigned subnet,
			   FILE *to)
{
	for (unsigned any = 0; any < 2; any++)
		for (uint32_t i = 0; i < s->topo->count; i++) {
			const struct vb_topo_node *n = &s->topo->nodes[i];

			for (unsigned p = 1;
			     n->kind == FAB_ROUTER && p <= n->ports; p++)
				if (subnet_at(s, n, p) == subnet)
					put_routes_by(s, n, p, any, to);
		}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that join the fabric while it runs. A host is a network namespace. The
 * first program of a host that joins gets a new adapter at a free port of a
 * switch; later programs of that host share this adapter. The link trains, the
 * switch sends trap 128, and the subnet manager configures the port. When no
 * port is free, a new host gets an adapter that no program has used for a
 * while.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/fabricd_priv.h"
#include "fabricd/topology_priv.h"

/* for this long an adapter without programs still belongs to its host */
#define UNUSED_LASTS (60 * VB_SEC)

struct fd_host {
	struct vb_chain link;
	uint64_t space; /* the number of the host's network namespace */
	uint32_t node;
	/* number of the host's programs that have joined and not left */
	unsigned programs;
	/* when the host's last program left; only valid if @programs is 0 */
	vb_time left;
};

static struct fd_host *find_host(const struct vb_fabricd *f, uint64_t space)
{
	for (struct vb_chain *l = f->hosts; l; l = l->next) {
		struct fd_host *h = VB_CONTAINER_OF(l, struct fd_host, link);

		if (h->space == space)
			return h;
	}
	return NULL;
}

/* Returns the host whose last program left longest ago, if that was at least
 * UNUSED_LASTS ago. NULL: every adapter is in use, or was a short time ago. */
static struct fd_host *find_unused(const struct vb_fabricd *f, vb_time now)
{
	struct fd_host *oldest = NULL;

	for (struct vb_chain *l = f->hosts; l; l = l->next) {
		struct fd_host *h = VB_CONTAINER_OF(l, struct fd_host, link);

		if (!h->programs && h->left + UNUSED_LASTS <= now &&
		    (!oldest || h->left < oldest->left))
			oldest = h;
	}
	return oldest;
}

/* Returns the first switch that has a free port, and sets *@port to the lowest
 * such port. NULL: no switch has a free port. */
static struct vb_fab_node *find_free_port(const struct vb_fabricd *f,
					  unsigned *port)
{
	for (uint32_t i = 0; i < vb_fab_nodes(f->net); i++) {
		struct vb_fab_node *n = vb_fab_node(f->net, i);

		for (*port = 1; n->kind == FAB_SWITCH && *port <= n->ports;
		     ++*port)
			if (!n->port[*port].connected)
				return n;
	}
	return NULL;
}

static int add_adapter(struct vb_topo *t, uint32_t *index, char *error)
{
	char id[VB_TOPO_ID];
	unsigned number = 0;
	int rc;

	do
		snprintf(id, sizeof(id), "Hca%u", ++number);
	while (vb_topo_find(t, id));
	rc = vb_topo_add(t, FAB_CA, 1, id, index, error);
	if (rc)
		return rc;
	rc = vb_topo_finish(t, error); /* gives the node a GUID */
	if (rc)
		vb_topo_drop(t);
	return rc;
}

/* Add an adapter to the topology and to the running network, with a link to a
 * free port of a switch. *@index: the adapter's node. */
static int grow(struct vb_fabricd *f, uint32_t *index, char *error, vb_time now)
{
	const struct vb_fab_link_spec spec = { 0 };
	unsigned port;
	struct vb_fab_node *sw = find_free_port(f, &port);
	int rc;

	if (!sw)
		return vb_topo_fail(error,
				    "no switch of the fabric has a free port "
				    "for another host; take the place of a "
				    "node: --device ib:NODE");
	rc = add_adapter(f->topo, index, error);
	if (rc)
		return rc;
	rc = vb_fabricd_add_node(f, &f->topo->nodes[*index]);
	if (rc) {
		vb_topo_drop(f->topo);
		return rc;
	}
	rc = vb_fab_link(f->net, sw, (uint8_t)port, vb_fab_node(f->net, *index),
			 1, &spec, now);
	if (!rc)
		vb_topo_link(f->topo, sw->index, port, *index, 1);
	return rc;
}

static int add_host(struct vb_fabricd *f, uint64_t space, struct fd_host **host,
		    char *error, vb_time now)
{
	struct fd_host *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return -ENOMEM;
	h->space = space;
	rc = grow(f, &h->node, error, now);
	if (rc) {
		free(h);
		return rc;
	}
	vb_chain_add(&f->hosts, &h->link);
	*host = h;
	return 0;
}

static int enter_host(struct vb_fabricd *f, uint64_t space,
		      struct fd_host **host, char *error, vb_time now)
{
	unsigned port;

	*host = find_host(f, space);
	if (*host)
		return 0;
	if (!find_free_port(f, &port))
		*host = find_unused(f, now);
	if (!*host)
		return add_host(f, space, host, error, now);
	(*host)->space = space;
	return 0;
}

int vb_fabricd_join(struct vb_fabricd *f, struct fd_host **host,
		    const char *space, FILE *to, char error[VB_TOPO_ERROR],
		    vb_time now)
{
	char *end;
	uint64_t number = strtoull(space, &end, 10);
	const struct vb_fab_node *n;
	int rc = 0;

	if (!number || *end)
		return vb_topo_fail(error, "usage: join NAMESPACE");
	if (!*host) {
		rc = enter_host(f, number, host, error, now);
		if (rc)
			return rc;
		(*host)->programs++;
	}
	n = vb_fab_node(f->net, (*host)->node);
	fprintf(to, "%s %s %s\n", f->topo->nodes[(*host)->node].id,
		n->port[1].state == FAB_ACTIVE ? "active" : "waits",
		vb_fabricd_is_managed(f) ? "managed" : "alone");
	return 0;
}

void vb_fabricd_leave(struct fd_host *host, vb_time now)
{
	if (--host->programs == 0)
		host->left = now;
}

void vb_fabricd_free_hosts(struct vb_fabricd *f)
{
	while (f->hosts) {
		struct fd_host *h =
			VB_CONTAINER_OF(f->hosts, struct fd_host, link);

		vb_chain_del(&h->link);
		free(h);
	}
}

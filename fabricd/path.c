/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the nodes that a frame passes from one LID to another, by the
 * forwarding tables of the switches. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/draw.h"
#include "fabricd/topology_priv.h"

static bool port_has(const struct vb_fab_port *p, unsigned lid)
{
	return p->lid && lid >= p->lid && lid < p->lid + (1u << p->lmc);
}

/* Returns the port of the node that has the LID; a switch has its LID at port
 * 0. -1: the node does not have the LID. */
static int port_with(const struct vb_fab_node *n, unsigned lid)
{
	unsigned last = n->kind == FAB_SWITCH ? 0 : n->ports;

	for (unsigned p = n->kind == FAB_SWITCH ? 0 : 1; p <= last; p++)
		if (port_has(&n->port[p], lid))
			return (int)p;
	return -1;
}

/* Has the path reached the node that has the LID? LIDs of other subnets do not
 * count. */
static bool is_end(const struct hop *h, uint16_t lid)
{
	const struct vb_fab_node *n = h->node;
	unsigned own = n->kind == FAB_SWITCH ? 0 : h->in ? h->in : h->out;

	return port_has(&n->port[own], lid);
}

static bool read_lid(const char *text, size_t len, uint16_t *lid)
{
	char digits[8] = "";
	unsigned v;
	int end = 0;

	if (len >= sizeof(digits))
		return false;
	memcpy(digits, text, len);
	if (sscanf(digits, "%u%n", &v, &end) != 1 || digits[end] || v < 1 ||
	    v >= VB_FAB_LIDS)
		return false;
	*lid = (uint16_t)v;
	return true;
}

/* Read "LID:LID" or "NODE:LID"; *@from: the node, or NULL. False: @text is
 * neither. */
static bool read_ends(const struct vb_fabricd *f, const char *text,
		      struct fd_path *w, struct vb_fab_node **from)
{
	const char *colon = strrchr(text, ':');
	char name[VB_TOPO_ID];
	size_t len = colon ? (size_t)(colon - text) : 0;

	*from = NULL;
	if (!colon || !read_lid(colon + 1, strlen(colon + 1), &w->to) ||
	    len >= sizeof(name))
		return false;
	if (read_lid(text, len, &w->from))
		return true;
	memcpy(name, text, len);
	name[len] = '\0';
	*from = vb_fabricd_node(f, name);
	return *from;
}

static const char *desc_of(const struct vb_fabricd *f,
			   const struct vb_fab_node *n)
{
	return f->topo->nodes[n->index].desc;
}

/* Returns the port by which the switch forwards frames to the LID;
 * VB_FAB_NO_PORT: by none. */
static unsigned forwards_by(const struct vb_fab_node *sw, uint16_t lid)
{
	const struct vb_fab_switch *s = &sw->sw;

	if (!s->linear || lid > s->linear_top || lid >= s->linear_cap)
		return VB_FAB_NO_PORT;
	return s->linear[lid];
}

/* Add the node behind the last hop to the path. Returns 1: the path goes on; 0:
 * the last hop has the LID; -EINVAL and @error: the path ends before. */
static int walk_on(const struct vb_fabricd *f, struct fd_path *w, char *error)
{
	struct hop *h = &w->hop[w->count - 1];
	struct vb_fab_node *peer;
	uint8_t in;

	if (is_end(h, w->to))
		return 0;
	if (h->node->kind == FAB_SWITCH) {
		unsigned out = forwards_by(h->node, w->to);

		if (out < 1 || out > h->node->ports)
			return vb_topo_fail(error,
					    "\"%.64s\" has no port for LID %u",
					    desc_of(f, h->node), w->to);
		h->out = (uint8_t)out;
	} else if (h->in) {
		return vb_topo_fail(
			error,
			"the way to LID %u ends at \"%.64s\", which "
			"has another LID",
			w->to, desc_of(f, h->node));
	}
	peer = vb_fab_peer(h->node, h->out, &in);
	if (!peer)
		return vb_topo_fail(
			error,
			"the way to LID %u leaves \"%.64s\" by port "
			"%u, which %s",
			w->to, desc_of(f, h->node), h->out,
			h->node->port[h->out].connected
				? "is linked to another process"
				: "has no link");
	if (w->count == VB_HOPS_MOST)
		return vb_topo_fail(error, "the way to LID %u does not end",
				    w->to);
	w->hop[w->count++] = (struct hop){ .node = peer, .in = in };
	return 1;
}

/* Find the path that begins at @port of @from. Result and @error are those of
 * vb_fabricd_path(). */
static int walk_way(const struct vb_fabricd *f, struct vb_fab_node *from,
		    unsigned port, struct fd_path *w, char *error)
{
	int rc;

	memset(w->hop, 0, sizeof(w->hop));
	w->hop[0] = (struct hop){ .node = from, .out = (uint8_t)port };
	w->count = 1;
	do
		rc = walk_on(f, w, error);
	while (rc == 1);
	w->hop[w->count - 1].out = 0;
	return rc;
}

/* Try the path from each port that has the LID w->from, since each subnet may
 * have one. Result and @error are those of vb_fabricd_path(). */
static int walk_from_lid(const struct vb_fabricd *f, struct fd_path *w,
			 char error[VB_TOPO_ERROR])
{
	bool tried = false;

	for (uint32_t i = 0; i < vb_fab_nodes(f->net); i++) {
		struct vb_fab_node *n = vb_fab_node(f->net, i);
		int port = port_with(n, w->from);
		char why[VB_TOPO_ERROR];

		if (port < 0)
			continue;
		if (!walk_way(f, n, (unsigned)port, w, tried ? why : error))
			return 0;
		tried = true;
	}
	return tried ? -EINVAL
		     : vb_topo_fail(error, "no port has LID %u", w->from);
}

int vb_fabricd_path(const struct vb_fabricd *f, const char *text,
		    struct fd_path *w, char error[VB_TOPO_ERROR])
{
	struct vb_fab_node *from;
	unsigned first;

	memset(w, 0, sizeof(*w));
	if (!read_ends(f, text, w, &from))
		return vb_topo_fail(error,
				    "\"%.40s\" is not LID:LID or NODE:LID, "
				    "with LIDs from 1 to %u",
				    text, VB_FAB_LIDS - 1);
	if (!from)
		return walk_from_lid(f, w, error);
	first = from->kind == FAB_SWITCH ? 0 : 1;
	w->from = from->port[first].lid;
	return walk_way(f, from, first, w, error);
}

/* Write a name for a terminal. Bytes that are not printable ASCII become "?",
 * because they might be commands to the terminal. */
static void put_name(FILE *to, const char *s)
{
	for (; *s; s++)
		fputc(*s >= ' ' && *s <= '~' ? *s : '?', to);
}

void vb_fabricd_path_print(const struct vb_fabricd *f, const struct fd_path *w,
			   FILE *to)
{
	fprintf(to, "from LID %u to LID %u:\n", w->from, w->to);
	for (unsigned i = 0; i < w->count; i++) {
		const struct hop *h = &w->hop[i];

		fputs("  ", to);
		if (h->in)
			fprintf(to, "[%u] ", h->in);
		put_name(to, desc_of(f, h->node));
		if (h->out)
			fprintf(to, " [%u], %u Gbit/s", h->out,
				vb_fab_gbits(&h->node->port[h->out]));
		fputc('\n', to);
	}
}

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

/* Returns the node that has the LID, and sets *@port to the port that has it; a
 * switch has its LID at port 0. NULL: no port has the LID. */
static struct vb_fab_node *find_lid(const struct vb_fabricd *f, unsigned lid,
				    uint8_t *port)
{
	for (uint32_t i = 0; i < vb_fab_nodes(f->net); i++) {
		struct vb_fab_node *n = vb_fab_node(f->net, i);
		unsigned last = n->kind == FAB_SWITCH ? 0 : n->ports;

		for (unsigned p = n->kind == FAB_SWITCH ? 0 : 1; p <= last; p++)
			if (port_has(&n->port[p], lid)) {
				*port = (uint8_t)p;
				return n;
			}
	}
	return NULL;
}

static bool read_lids(const char *text, struct fd_path *w)
{
	unsigned from, to;
	int end = 0;

	if (sscanf(text, "%u:%u%n", &from, &to, &end) != 2 || text[end] ||
	    from < 1 || from >= VB_FAB_LIDS || to < 1 || to >= VB_FAB_LIDS)
		return false;
	w->from = (uint16_t)from;
	w->to = (uint16_t)to;
	return true;
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

/* Add the node behind the last hop to the way. Returns 1: the way goes on; 0:
 * the last hop has the LID; -EINVAL and @error: the way ends before. */
static int walk_on(const struct vb_fabricd *f, struct fd_path *w,
		   const struct vb_fab_node *end, char *error)
{
	struct hop *h = &w->hop[w->count - 1];
	struct vb_fab_node *peer;
	uint8_t in;

	if (h->node == end)
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

int vb_fabricd_path(const struct vb_fabricd *f, const char *text,
		    struct fd_path *w, char error[VB_TOPO_ERROR])
{
	struct vb_fab_node *from, *end;
	uint8_t port, end_port;
	int rc;

	memset(w, 0, sizeof(*w));
	if (!read_lids(text, w))
		return vb_topo_fail(error,
				    "\"%.40s\" is not LID:LID, each from 1 to "
				    "%u",
				    text, VB_FAB_LIDS - 1);
	from = find_lid(f, w->from, &port);
	end = find_lid(f, w->to, &end_port);
	if (!from)
		return vb_topo_fail(error, "no port has LID %u", w->from);
	w->hop[0] = (struct hop){ .node = from, .out = port };
	w->count = 1;
	do
		rc = walk_on(f, w, end, error);
	while (rc == 1);
	w->hop[w->count - 1].out = 0;
	return rc;
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

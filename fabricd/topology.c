/* SPDX-License-Identifier: BSD-2-Clause */
/* The nodes of a topology: adding, finding, linking, numbering. */
#include "fabricd/topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/topology_priv.h"

#define NONE	     UINT32_MAX
#define FIRST_HASHES 64

/* By kind of node: where the GUIDs begin that vb_topo_finish() gives. They are
 * locally administered EUI-64s. Each node gets 256 of them, for itself and its
 * ports. */
static const uint64_t first_guid[] = {
	[FAB_CA] = 0x0200ca0000000000,
	[FAB_SWITCH] = 0x0200500000000000,
	[FAB_ROUTER] = 0x0200700000000000,
};

static uint32_t hash_id(const char *id)
{
	uint32_t h = 2166136261u; /* FNV-1a, a hash function for strings */

	for (; *id; id++)
		h = (h ^ (uint8_t)*id) * 16777619u;
	return h;
}

static void enter_id(struct vb_topo *t, uint32_t index)
{
	uint32_t at = hash_id(t->nodes[index].id) & (t->hash_room - 1);

	while (t->by_id[at] != NONE)
		at = (at + 1) & (t->hash_room - 1);
	t->by_id[at] = index;
}

void vb_topo_rehash(struct vb_topo *t)
{
	memset(t->by_id, 0xff, t->hash_room * sizeof(*t->by_id));
	for (uint32_t i = 0; i < t->count; i++)
		enter_id(t, i);
}

static bool grow_hashes(struct vb_topo *t)
{
	uint32_t room = t->hash_room ? t->hash_room * 2 : FIRST_HASHES;
	uint32_t *table;

	if (t->count * 2 < t->hash_room)
		return true;
	table = malloc(room * sizeof(*table));
	if (!table)
		return false;
	free(t->by_id);
	t->by_id = table;
	t->hash_room = room;
	vb_topo_rehash(t);
	return true;
}

static bool grow_nodes(struct vb_topo *t)
{
	uint32_t room = t->room ? t->room * 2 : 32;
	struct vb_topo_node *nodes;

	if (t->count < t->room)
		return true;
	nodes = realloc(t->nodes, room * sizeof(*nodes));
	if (!nodes)
		return false;
	t->nodes = nodes;
	t->room = room;
	return true;
}

uint32_t vb_topo_index(const struct vb_topo *t, const char *id)
{
	uint32_t at;

	if (!t->hash_room)
		return NONE;
	at = hash_id(id) & (t->hash_room - 1);
	for (; t->by_id[at] != NONE; at = (at + 1) & (t->hash_room - 1))
		if (strcmp(t->nodes[t->by_id[at]].id, id) == 0)
			return t->by_id[at];
	return NONE;
}

struct vb_topo_node *vb_topo_find(const struct vb_topo *t, const char *name)
{
	uint32_t index = vb_topo_index(t, name);
	struct vb_topo_node *found = NULL;

	if (index != NONE)
		return &t->nodes[index];
	for (uint32_t i = 0; i < t->count; i++) {
		if (strcmp(t->nodes[i].desc, name) != 0)
			continue;
		if (found)
			return NULL;
		found = &t->nodes[i];
	}
	return found;
}

int vb_topo_add(struct vb_topo *t, uint8_t kind, unsigned ports, const char *id,
		uint32_t *index, char error[VB_TOPO_ERROR])
{
	struct vb_topo_node *n;

	if (vb_topo_index(t, id) != NONE)
		return vb_topo_fail(error, "there are two nodes \"%s\"", id);
	if (t->count == VB_TOPO_NODES)
		return vb_topo_fail(error, "more than %u nodes", VB_TOPO_NODES);
	if (ports < 1 || ports > VB_FAB_PORTS_MAX)
		return vb_topo_fail(error,
				    "node \"%s\" has %u ports; 1 to %u are "
				    "possible",
				    id, ports, VB_FAB_PORTS_MAX);
	if (!grow_nodes(t) || !grow_hashes(t))
		return -ENOMEM;
	n = &t->nodes[t->count];
	memset(n, 0, sizeof(*n));
	n->port = calloc(ports + 1u, sizeof(*n->port));
	if (!n->port)
		return -ENOMEM;
	n->kind = kind;
	n->ports = (uint8_t)ports;
	snprintf(n->id, sizeof(n->id), "%s", id);
	snprintf(n->desc, sizeof(n->desc), "%s", id);
	*index = t->count++;
	enter_id(t, *index);
	return 0;
}

/* Removing an entry of a hash table must not interrupt the search for another
 * one. The last node was entered last, so no other entry lies behind it. */
void vb_topo_drop(struct vb_topo *t)
{
	uint32_t at;

	t->count--;
	at = hash_id(t->nodes[t->count].id) & (t->hash_room - 1);
	while (t->by_id[at] != t->count)
		at = (at + 1) & (t->hash_room - 1);
	t->by_id[at] = NONE;
	vb_topo_free_node(&t->nodes[t->count]);
}

static void link_one(struct vb_topo *t, uint32_t a, unsigned a_port, uint32_t b,
		     unsigned b_port)
{
	struct vb_topo_port *p = &t->nodes[a].port[a_port];

	p->linked = true;
	p->peer = b;
	p->peer_port = (uint8_t)b_port;
}

void vb_topo_link(struct vb_topo *t, uint32_t a, unsigned a_port, uint32_t b,
		  unsigned b_port)
{
	link_one(t, a, a_port, b, b_port);
	link_one(t, b, b_port, a, a_port);
}

struct guid_of {
	uint64_t guid;
	uint32_t node;
};

static int compare_guids(const void *a, const void *b)
{
	const struct guid_of *x = a, *y = b;

	if (x->guid != y->guid)
		return x->guid < y->guid ? -1 : 1;
	return x->node < y->node ? -1 : 1;
}

static int check_guids(struct vb_topo *t, char *error)
{
	struct guid_of *all = calloc(t->count + 1u, sizeof(*all));
	int rc = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->count; i++)
		all[i] = (struct guid_of){ t->nodes[i].guid, i };
	qsort(all, t->count, sizeof(*all), compare_guids);
	for (uint32_t i = 1; i < t->count && !rc; i++)
		if (all[i].guid == all[i - 1].guid)
			rc = vb_topo_fail(error,
					  "the nodes \"%s\" and \"%s\" have "
					  "the same GUID %#jx",
					  t->nodes[all[i - 1].node].id,
					  t->nodes[all[i].node].id,
					  (uintmax_t)all[i].guid);
	free(all);
	return rc;
}

int vb_topo_finish(struct vb_topo *t, char error[VB_TOPO_ERROR])
{
	uint32_t numbered[4] = { 0 };

	if (t->count == 0)
		return vb_topo_fail(error, "there is no node");
	for (uint32_t i = 0; i < t->count; i++) {
		struct vb_topo_node *n = &t->nodes[i];

		numbered[n->kind]++;
		if (!n->guid)
			n->guid = first_guid[n->kind] +
				  ((uint64_t)numbered[n->kind] << 8);
		if (!n->sys_guid)
			n->sys_guid = n->guid;
	}
	return check_guids(t, error);
}

void vb_topo_free_node(struct vb_topo_node *n)
{
	for (unsigned p = 1; p <= n->ports; p++)
		free(n->port[p].far);
	free(n->port);
	vb_topo_spec_free(&n->spec);
}

void vb_topo_free(struct vb_topo *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		vb_topo_free_node(&t->nodes[i]);
	for (unsigned i = 0; i < t->file_count; i++)
		free(t->files[i]);
	free(t->files);
	free(t->nodes);
	free(t->by_id);
	memset(t, 0, sizeof(*t));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the usual topologies (fat trees, tori, dragonflies) from a short
 * text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/topology_priv.h"

#define MOST_NUMBERS 6

const char vb_topo_kinds[] =
	"  empty:PORTS                one switch without hosts; each host that\n"
	"                             runs programs with --device ib gets one\n"
	"  switch:HOSTS               one switch with that many hosts\n"
	"  fat-tree:2:LEAVESxPORTS    leaf and spine switches; half of a leaf's\n"
	"                             ports lead down to hosts, half up\n"
	"  fat-tree:3:LEAVESxPORTS    the same with a level in between\n"
	"  torus:AxB[xC]              a host at each switch of a torus\n"
	"  dragonfly:A:P:H            A switches a group, each with P hosts and\n"
	"                             H links to other groups\n";

struct maker {
	struct vb_topo *topo;
	unsigned switches, hosts;
	char *error;
	int rc;
};

static uint32_t add_made_node(struct maker *m, uint8_t kind, unsigned ports)
{
	char id[VB_TOPO_ID];
	uint32_t index = 0;

	if (kind == FAB_SWITCH)
		snprintf(id, sizeof(id), "Switch%u", ++m->switches);
	else
		snprintf(id, sizeof(id), "Hca%u", ++m->hosts);
	if (!m->rc)
		m->rc = vb_topo_add(m->topo, kind, ports, id, &index, m->error);
	return index;
}

static void link_made(struct maker *m, uint32_t a, unsigned a_port, uint32_t b,
		      unsigned b_port)
{
	if (!m->rc)
		vb_topo_link(m->topo, a, a_port, b, b_port);
}

static void add_hosts(struct maker *m, uint32_t sw, unsigned first,
		      unsigned count)
{
	for (unsigned i = 0; i < count && !m->rc; i++)
		link_made(m, add_made_node(m, FAB_CA, 1), 1, sw, first + i);
}

/* Add @count switches. Returns the index of the first switch; switch i has that
 * index + i, because no hosts are added in between. */
static uint32_t add_switches(struct maker *m, unsigned count, unsigned ports)
{
	uint32_t first = m->topo->count;

	for (unsigned i = 0; i < count && !m->rc; i++)
		(void)add_made_node(m, FAB_SWITCH, ports);
	return first;
}

static int refuse(struct maker *m, const char *why)
{
	return vb_topo_fail(m->error, "%s", why);
}

static int make_switch(struct maker *m, const unsigned *n)
{
	uint32_t sw;

	if (n[0] < 1 || n[0] > VB_FAB_PORTS_MAX)
		return refuse(m, "switch:HOSTS: HOSTS is 1 to 254");
	sw = add_switches(m, 1, n[0]);
	add_hosts(m, sw, 1, n[0]);
	return m->rc;
}

static int make_empty(struct maker *m, const unsigned *n)
{
	if (n[0] < 1 || n[0] > VB_FAB_PORTS_MAX)
		return refuse(m, "empty:PORTS: PORTS is 1 to 254");
	(void)add_switches(m, 1, n[0]);
	return m->rc;
}

/* Make a fat tree of two levels. The upward ports of all leaves, one leaf after
 * the other, are connected to the spines in turn. */
static int make_two_levels(struct maker *m, unsigned leaves, unsigned ports)
{
	unsigned half = ports / 2, spines = leaves * half / ports;
	uint32_t leaf, spine;

	if (leaves < 2 || leaves > ports || leaves * half % ports)
		return refuse(m, "fat-tree:2:LEAVESxPORTS: PORTS is even, 2 to "
				 "254, and LEAVES even, 2 to PORTS");
	leaf = add_switches(m, leaves, ports);
	spine = add_switches(m, spines, ports);
	for (unsigned l = 0; l < leaves; l++) {
		add_hosts(m, leaf + l, 1, half);
		for (unsigned u = 0; u < half; u++) {
			unsigned dealt = l * half + u;

			link_made(m, leaf + l, half + 1 + u,
				  spine + dealt % spines, dealt / spines + 1);
		}
	}
	return m->rc;
}

/* Make a fat tree of three levels. A pod has PORTS / 2 leaves and as many
 * switches above them; switch j of each pod is linked to the core switches of
 * group j. */
static int make_three_levels(struct maker *m, unsigned leaves, unsigned ports)
{
	unsigned half = ports / 2, pods = leaves / half;
	uint32_t leaf, mid, core;

	if (leaves % half || pods < 1 || pods > ports)
		return refuse(m, "fat-tree:3:LEAVESxPORTS: PORTS is even, 2 to "
				 "254, LEAVES a multiple of half of it, and at "
				 "most half of its square");
	leaf = add_switches(m, leaves, ports);
	mid = add_switches(m, leaves, ports);
	core = add_switches(m, half * half, ports);
	for (unsigned l = 0; l < leaves; l++) {
		add_hosts(m, leaf + l, 1, half);
		for (unsigned j = 0; j < half; j++)
			link_made(m, leaf + l, half + 1 + j,
				  mid + l / half * half + j, l % half + 1);
	}
	for (unsigned s = 0; s < leaves; s++)
		for (unsigned c = 0; c < half; c++)
			link_made(m, mid + s, half + 1 + c,
				  core + s % half * half + c, s / half + 1);
	return m->rc;
}

static int make_fat_tree(struct maker *m, const unsigned *n)
{
	if (n[2] < 2 || n[2] % 2 || n[2] > VB_FAB_PORTS_MAX || n[1] > 20000)
		return refuse(m, "fat-tree:LEVELS:LEAVESxPORTS: PORTS is even, "
				 "2 to 254");
	if (n[0] == 2)
		return make_two_levels(m, n[1], n[2]);
	if (n[0] == 3)
		return make_three_levels(m, n[1], n[2]);
	return refuse(m, "fat-tree:LEVELS:...: LEVELS is 2 or 3");
}

/* Make a torus. Ports 1 and 2 of a switch lead along the first dimension, 3 and
 * 4 along the second, 5 and 6 along the third; the last port is the host's. If
 * a dimension has only two switches, both ports of each lead to the other. */
static int make_torus(struct maker *m, const unsigned *n)
{
	unsigned size[3] = { n[0], n[1], n[2] ? n[2] : 1 };
	unsigned dims = n[2] ? 3 : 2, stride = 1;
	uint64_t total = (uint64_t)size[0] * size[1] * size[2];
	uint32_t first;

	if (size[0] < 2 || size[1] < 2 || (n[2] == 1) || size[0] > 254 ||
	    size[1] > 254 || size[2] > 254 || total * 2 > VB_TOPO_NODES)
		return refuse(m, "torus:AxB[xC]: each is 2 to 254, and their "
				 "product at most 32768");
	first = add_switches(m, (unsigned)total, 2 * dims + 1);
	for (unsigned d = 0; d < dims; d++) {
		for (unsigned i = 0; i < total; i++) {
			unsigned at = i / stride % size[d];
			unsigned next =
				i - at * stride + (at + 1) % size[d] * stride;

			link_made(m, first + i, 2 * d + 1, first + next,
				  2 * d + 2);
		}
		stride *= size[d];
	}
	for (unsigned i = 0; i < total; i++)
		add_hosts(m, first + i, 2 * dims + 1, 1);
	return m->rc;
}

/* Make a dragonfly: A * H + 1 groups with one link between each two groups.
 * Link k of a group leads to the k-th other group. The ports of a switch are in
 * this order: to hosts, to the other switches of the group, to other groups. */
static int make_dragonfly(struct maker *m, const unsigned *n)
{
	unsigned a = n[0], p = n[1], h = n[2];
	unsigned groups = a * h + 1, ports = p + a - 1 + h;
	uint32_t first;

	if (a < 1 || p < 1 || h < 1 || a > 200 || p > 200 || h > 200 ||
	    ports > VB_FAB_PORTS_MAX ||
	    (uint64_t)groups * a * (p + 1) > VB_TOPO_NODES)
		return refuse(m, "dragonfly:A:P:H: each is at least 1, A + P + "
				 "H - 1 at most 254, and (A*H+1)*A*(P+1) at "
				 "most 65536");
	first = add_switches(m, groups * a, ports);
	for (unsigned s = 0; s < groups * a; s++)
		add_hosts(m, first + s, 1, p);
	for (unsigned g = 0; g < groups; g++)
		for (unsigned i = 0; i < a; i++)
			for (unsigned j = i + 1; j < a; j++)
				link_made(m, first + g * a + i, p + j,
					  first + g * a + j, p + i + 1);
	for (unsigned g = 0; g < groups; g++)
		for (unsigned to = g + 1; to < groups; to++) {
			unsigned k = to - 1, back = g;

			link_made(m, first + g * a + k / h, p + a + k % h,
				  first + to * a + back / h, p + a + back % h);
		}
	return m->rc;
}

static const struct {
	const char *name;
	/* how many numbers must, and how many may, follow the topology's name:
	 * torus:4x4 has two */
	unsigned least, most;
	int (*make)(struct maker *m, const unsigned *numbers);
} kinds[] = {
	{ "empty", 1, 1, make_empty },	       { "switch", 1, 1, make_switch },
	{ "fat-tree", 3, 3, make_fat_tree },   { "torus", 2, 3, make_torus },
	{ "dragonfly", 3, 3, make_dragonfly },
};

/* Read numbers of at most 6 digits, separated by ":" or "x". False: the text
 * has something else. */
static bool read_numbers(const char *s, unsigned numbers[MOST_NUMBERS],
			 unsigned *count)
{
	for (*count = 0; *count < MOST_NUMBERS; ++*count) {
		char *end;
		unsigned long v = strtoul(s, &end, 10);

		if (end == s || v > 999999 || strchr("+- ", *s))
			return false;
		numbers[*count] = (unsigned)v;
		if (!*end) {
			++*count;
			return true;
		}
		if (*end != ':' && *end != 'x')
			return false;
		s = end + 1;
	}
	return false;
}

int vb_topo_make(struct vb_topo *topo, const char *spec,
		 char error[VB_TOPO_ERROR])
{
	struct maker m = { .topo = topo, .error = error };
	unsigned numbers[MOST_NUMBERS] = { 0 }, count;
	size_t len = strcspn(spec, ":");

	for (unsigned i = 0; i < VB_COUNT(kinds); i++) {
		int rc;

		if (strlen(kinds[i].name) != len ||
		    strncmp(kinds[i].name, spec, len) != 0)
			continue;
		if (!spec[len] ||
		    !read_numbers(spec + len + 1, numbers, &count) ||
		    count < kinds[i].least || count > kinds[i].most)
			break;
		rc = kinds[i].make(&m, numbers);
		return rc ? rc : vb_topo_finish(topo, error);
	}
	return vb_topo_fail(error,
			    "\"%.60s\" is no topology that can be made:\n%s",
			    spec, vb_topo_kinds);
}

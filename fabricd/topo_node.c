/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes the parameters of an emulated node. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/topology_priv.h"

#define LATENCY_MOST 1e9 /* longest latency of a switch, in nanoseconds */

/* Read a whole number from @least to @most. 0: @text is something else. */
static unsigned take_number(const char *text, unsigned least, unsigned most)
{
	double v;

	if (!vb_topo_number(text, vb_topo_plain, &v) || v < least || v > most ||
	    v != (unsigned)v)
		return 0;
	return (unsigned)v;
}

/* Returns the code of the number @text: the i for which @values[i] is the
 * number. 0: no code stands for it. */
static uint8_t take_code(const char *text, const uint16_t *values,
			 unsigned count)
{
	unsigned v = take_number(text, 1, 65535);

	for (unsigned i = 1; v && i < count; i++)
		if (values[i] == v)
			return (uint8_t)i;
	return 0;
}

/* By PortInfo's codes of MTUCap and VLCap: an MTU in bytes, a number of VLs. */
static const uint16_t mtu_of[] = { 0, 256, 512, 1024, 2048, 4096 };
static const uint16_t vls_of[] = { 0, 1, 2, 4, 8, 15 };

static bool set_mtu(struct vb_topo_spec *s, const char *text)
{
	s->mtu_cap = take_code(text, mtu_of, VB_COUNT(mtu_of));
	return s->mtu_cap;
}

static bool set_vls(struct vb_topo_spec *s, const char *text)
{
	s->vl_cap = take_code(text, vls_of, VB_COUNT(vls_of));
	return s->vl_cap;
}

static bool set_pkeys(struct vb_topo_spec *s, const char *text)
{
	s->pkeys = (uint16_t)take_number(text, 1, 65535);
	return s->pkeys;
}

static bool set_linear(struct vb_topo_spec *s, const char *text)
{
	s->linear_cap = (uint16_t)take_number(text, 1, VB_FAB_LIDS);
	return s->linear_cap;
}

static bool set_random(struct vb_topo_spec *s, const char *text)
{
	s->random_cap = (uint16_t)take_number(text, 1, VB_FAB_LIDS);
	return s->random_cap;
}

static bool set_mcast(struct vb_topo_spec *s, const char *text)
{
	s->mcast_cap = (uint16_t)take_number(text, 1, VB_FAB_MLIDS);
	return s->mcast_cap;
}

static bool set_latency(struct vb_topo_spec *s, const char *text)
{
	double v;

	if (!vb_topo_number(text, vb_topo_times, &v) || v < 1 ||
	    v > LATENCY_MOST)
		return false;
	s->latency_ns = (uint32_t)v;
	return true;
}

static bool set_forward(struct vb_topo_spec *s, const char *text)
{
	s->store_and_forward = strcmp(text, "store") == 0;
	return s->store_and_forward || strcmp(text, "cut") == 0;
}

static const struct node_parameter {
	const char *name;
	bool (*set)(struct vb_topo_spec *s, const char *text);
	bool of_switch; /* only switches have the parameter */
	bool any_time;	/* the parameter may change while the fabric runs */
	const char *what;
} parameters[] = {
	{ "mtu", set_mtu, false, false, "256, 512, 1024, 2048 or 4096" },
	{ "vls", set_vls, false, false, "1, 2, 4, 8 or 15" },
	{ "pkeys", set_pkeys, false, false, "1 to 65535 entries" },
	{ "linear", set_linear, true, false, "1 to 49152 entries" },
	{ "random", set_random, true, false, "1 to 49152 entries" },
	{ "mcast", set_mcast, true, false, "1 to 16383 entries" },
	{ "latency", set_latency, true, true, "a time of 1 ns to 1 s" },
	{ "forward", set_forward, true, true, "cut or store" },
};

static int set_node_parameter(const char *word, struct vb_topo_spec *spec,
			      uint8_t kind, bool running, char *error)
{
	size_t len = strcspn(word, "=");
	const struct node_parameter *p = parameters;

	while (p < parameters + VB_COUNT(parameters) &&
	       (strlen(p->name) != len || strncmp(p->name, word, len) != 0))
		p++;
	if (p == parameters + VB_COUNT(parameters))
		return vb_topo_fail(error,
				    "\"%s\" is no parameter of a node: mtu, "
				    "vls, pkeys, linear, random, mcast, "
				    "latency and forward are",
				    word);
	if (p->of_switch && kind != FAB_SWITCH)
		return vb_topo_fail(error, "\"%s\": only switches have %s",
				    word, p->name);
	if (running && !p->any_time)
		return vb_topo_fail(error,
				    "\"%s\": %s stays as it is while the "
				    "fabric runs; latency and forward change",
				    word, p->name);
	if (word[len] && p->set(spec, word + len + 1))
		return 0;
	return vb_topo_fail(error, "\"%s\": %s is %s", word, p->name, p->what);
}

int vb_topo_node_spec(const char *text, uint8_t kind, bool running,
		      struct vb_topo_spec *spec, char error[VB_TOPO_ERROR])
{
	char word[64];
	int n;

	while (sscanf(text, " %63s%n", word, &n) == 1) {
		int rc = set_node_parameter(word, spec, kind, running, error);

		if (rc)
			return rc;
		text += n;
	}
	return 0;
}

void vb_topo_node_put(FILE *to, const struct vb_topo_spec *s)
{
	const struct {
		const char *name;
		unsigned value;
	} numbers[] = {
		{ "mtu", mtu_of[s->mtu_cap] }, { "vls", vls_of[s->vl_cap] },
		{ "pkeys", s->pkeys },	       { "linear", s->linear_cap },
		{ "random", s->random_cap },   { "mcast", s->mcast_cap },
	};

	for (unsigned i = 0; i < VB_COUNT(numbers); i++)
		if (numbers[i].value)
			fprintf(to, " %s=%u", numbers[i].name,
				numbers[i].value);
	if (s->latency_ns)
		fprintf(to, " latency=%uns", s->latency_ns);
	if (s->store_and_forward)
		fputs(" forward=store", to);
}

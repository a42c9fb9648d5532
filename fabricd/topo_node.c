/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes the parameters of an emulated node. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/bridge.h"
#include "fabricd/topology_priv.h"

#define LATENCY_MOST 1e9 /* longest latency of a switch, in nanoseconds */
/* bytes of the longest word of a line, with the NUL at its end */
#define WORD_BYTES 512

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

static bool set_ethernet(struct vb_topo_spec *s, const char *text)
{
	s->ethernet = (uint8_t)take_number(text, 1, VB_BRIDGE_PORTS);
	return s->ethernet;
}

static bool set_adaptive(struct vb_topo_spec *s, const char *text)
{
	s->adaptive = strcmp(text, "on") == 0;
	return s->adaptive || strcmp(text, "off") == 0;
}

/* Set the number of controllers. The services of removed controllers are
 * removed, too. */
static bool set_target(struct vb_topo_spec *s, const char *text)
{
	struct vb_iou_unit *u = s->unit;
	unsigned kept = 0;
	double v;

	if (!vb_topo_number(text, vb_topo_plain, &v) || v > VB_IOU_SLOTS ||
	    v != (uint8_t)v)
		return false;
	u->controllers = (uint8_t)v;
	for (unsigned i = 0; i < u->entries; i++)
		if (u->entry[i].slot <= u->controllers)
			u->entry[kept++] = u->entry[i];
	u->entries = (uint8_t)kept;
	return true;
}

/* Copy the name of a service, which is one word, to @to. */
static bool take_name(const char *text, size_t len, char to[VB_IOU_NAME])
{
	if (len < 1 || len >= VB_IOU_NAME)
		return false;
	for (size_t i = 0; i < len; i++)
		if (iscntrl((unsigned char)text[i]) || text[i] == '"')
			return false;
	memset(to, 0, VB_IOU_NAME);
	memcpy(to, text, len);
	return true;
}

static bool take_id(const char *text, uint64_t *id)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*id = strtoull(text, &end, 0);
	return !*end && !errno;
}

/* Add a service, SLOT:NAME:ID; a name of that slot gets another ID. */
static bool set_service(struct vb_topo_spec *s, const char *text)
{
	struct vb_iou_unit *u = s->unit;
	const char *name = strchr(text, ':'), *id = strrchr(text, ':');
	struct vb_iou_service new;
	char *end;
	unsigned long slot = strtoul(text, &end, 10);
	unsigned at = 0;

	if (!isdigit((unsigned char)*text) || end != name || name == id ||
	    slot < 1 || slot > u->controllers ||
	    !take_name(name + 1, (size_t)(id - name) - 1, new.name) ||
	    !take_id(id + 1, &new.id))
		return false;
	while (at < u->entries &&
	       (u->entry[at].slot != slot ||
		strcmp(u->entry[at].service.name, new.name) != 0))
		at++;
	if (at == VB_IOU_SERVICES)
		return false;
	u->entry[at].slot = (uint8_t)slot;
	u->entry[at].service = new;
	if (at == u->entries)
		u->entries++;
	return true;
}

/* Add a route, PREFIX:PORT; a prefix that has one gets another port. */
static bool set_route(struct vb_topo_spec *s, const char *text)
{
	struct vb_topo_routes *r = s->routes;
	const char *port = strrchr(text, ':');
	struct vb_fab_prefix new = { .any = strncmp(text, "any:", 4) == 0 };
	unsigned at = 0;
	char *end;

	if (strcmp(text, "none") == 0) {
		r->count = 0;
		return true;
	}
	if (!port)
		return false;
	errno = 0;
	new.port = (uint8_t)take_number(port + 1, 1, VB_FAB_PORTS_MAX);
	if (!new.any)
		new.prefix = strtoull(text, &end, 16);
	if (!new.port || errno ||
	    (!new.any && (strncmp(text, "0x", 2) != 0 || end != port)))
		return false;
	while (at < r->count && (r->route[at].any != new.any ||
				 r->route[at].prefix != new.prefix))
		at++;
	if (at == VB_FAB_PREFIXES)
		return false;
	r->route[at] = new;
	r->count = VB_MAX(r->count, at + 1);
	return true;
}

static const struct node_parameter {
	const char *name;
	bool (*set)(struct vb_topo_spec *s, const char *text);
	/* the kind of nodes that have the parameter; 0: every kind */
	uint8_t kind;
	bool any_time; /* the parameter may change while the fabric runs */
	const char *what;
} parameters[] = {
	{ "mtu", set_mtu, 0, false, "256, 512, 1024, 2048 or 4096" },
	{ "vls", set_vls, 0, false, "1, 2, 4, 8 or 15" },
	{ "pkeys", set_pkeys, 0, false, "1 to 65535 entries" },
	{ "linear", set_linear, FAB_SWITCH, false, "1 to 49152 entries" },
	{ "random", set_random, FAB_SWITCH, false, "1 to 49152 entries" },
	{ "mcast", set_mcast, FAB_SWITCH, false, "1 to 16383 entries" },
	{ "latency", set_latency, FAB_SWITCH, true, "a time of 1 ns to 1 s" },
	{ "forward", set_forward, FAB_SWITCH, true, "cut or store" },
	{ "ethernet", set_ethernet, FAB_SWITCH, false, "1 to 32 ports" },
	{ "adaptive", set_adaptive, FAB_SWITCH, true, "on or off" },
	{ "target", set_target, FAB_CA, true, "0 to 16 I/O controllers" },
	{ "service", set_service, FAB_CA, true,
	  "SLOT:NAME:ID, with a controller that target= gives before it, a "
	  "name of 1 to 39 characters, and a number; a node has 64 at most" },
	{ "route", set_route, FAB_ROUTER, true,
	  "0xPREFIX:PORT with the 64 bits of a subnet prefix, any:PORT, or "
	  "none; a router has 64 at most" },
};

/* For error messages: the kinds of nodes that have a parameter. */
static const char *const owners[] = {
	[FAB_CA] = "adapters",
	[FAB_SWITCH] = "switches",
	[FAB_ROUTER] = "routers",
};

/* Allocate the parts of @s that the parameters of this kind of node need. */
static int make_spec_room(struct vb_topo_spec *s, uint8_t kind)
{
	if (kind == FAB_CA && !s->unit)
		s->unit = calloc(1, sizeof(*s->unit));
	if (kind == FAB_ROUTER && !s->routes)
		s->routes = calloc(1, sizeof(*s->routes));
	return (kind == FAB_CA && !s->unit) ||
			       (kind == FAB_ROUTER && !s->routes)
		       ? -ENOMEM
		       : 0;
}

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
				    "latency, forward, ethernet, adaptive, "
				    "target, service and route are",
				    word);
	if (p->kind && p->kind != kind)
		return vb_topo_fail(error, "\"%s\": only %s have %s", word,
				    owners[p->kind], p->name);
	if (running && !p->any_time)
		return vb_topo_fail(error,
				    "\"%s\": %s stays as it is while the "
				    "fabric runs; latency, forward, adaptive, "
				    "target, service and route change",
				    word, p->name);
	if (make_spec_room(spec, p->kind))
		return -ENOMEM;
	if (word[len] && p->set(spec, word + len + 1))
		return 0;
	return vb_topo_fail(error, "\"%s\": %s is %s", word, p->name, p->what);
}

int vb_topo_node_spec(const char *text, uint8_t kind, bool running,
		      struct vb_topo_spec *spec, char error[VB_TOPO_ERROR])
{
	char word[WORD_BYTES];
	int n;

	while (sscanf(text, " %511s%n", word, &n) == 1) {
		int rc = set_node_parameter(word, spec, kind, running, error);

		if (rc)
			return rc;
		text += n;
	}
	if (spec->adaptive && spec->random_cap && !spec->linear_cap)
		return vb_topo_fail(error, "adaptive=on: the switch has no "
					   "linear table, only random=");
	return 0;
}

int vb_topo_check_routes(const struct vb_topo_spec *spec, unsigned ports,
			 char error[VB_TOPO_ERROR])
{
	const struct vb_topo_routes *r = spec->routes;

	for (unsigned i = 0; r && i < r->count; i++)
		if (r->route[i].port > ports)
			return vb_topo_fail(error,
					    "a route leads to port %u, and the "
					    "router has %u",
					    r->route[i].port, ports);
	return 0;
}

int vb_topo_spec_copy(const struct vb_topo_spec *from, struct vb_topo_spec *to)
{
	*to = *from;
	to->unit = NULL;
	to->routes = NULL;
	if ((from->unit && make_spec_room(to, FAB_CA)) ||
	    (from->routes && make_spec_room(to, FAB_ROUTER)))
		return -ENOMEM;
	if (from->unit)
		*to->unit = *from->unit;
	if (from->routes)
		*to->routes = *from->routes;
	return 0;
}

void vb_topo_spec_free(struct vb_topo_spec *s)
{
	free(s->unit);
	free(s->routes);
	s->unit = NULL;
	s->routes = NULL;
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
		{ "ethernet", s->ethernet },
	};

	for (unsigned i = 0; i < VB_COUNT(numbers); i++)
		if (numbers[i].value)
			fprintf(to, " %s=%u", numbers[i].name,
				numbers[i].value);
	if (s->latency_ns)
		fprintf(to, " latency=%uns", s->latency_ns);
	if (s->store_and_forward)
		fputs(" forward=store", to);
	if (s->adaptive)
		fputs(" adaptive=on", to);
	if (s->unit && s->unit->controllers)
		fprintf(to, " target=%u", s->unit->controllers);
}

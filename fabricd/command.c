/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of `verbena fabric ctl` and `verbena fabric show`. A command
 * consists of words, each on a line of its own, since names of nodes may
 * contain spaces. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/draw.h"
#include "fabricd/topology_priv.h"

#define WORDS_MOST 16

struct command {
	struct vb_fabricd *f;
	char **words;
	unsigned count;
	int fd; /* the descriptor that came with the command; -1: none */
	FILE *to;
	char *error;
	vb_time now;
};

#define NAMED_MOST 8 /* most nodes that an error message names */

/* Write to @error that there is no node @name, and which nodes there are.
 * Returns -EINVAL. */
static int refuse_node(const struct vb_topo *t, const char *name, char *error)
{
	size_t len;

	vb_topo_fail(error, "fabric has no node \"%.64s\"; it has", name);
	for (uint32_t i = 0; i < t->count && i < NAMED_MOST; i++) {
		len = strlen(error);
		snprintf(error + len, VB_TOPO_ERROR - len, "%s %s",
			 i ? "," : "", t->nodes[i].desc);
	}
	len = strlen(error);
	if (t->count > NAMED_MOST)
		snprintf(error + len, VB_TOPO_ERROR - len,
			 " and %u others (verbena fabric show)",
			 t->count - NAMED_MOST);
	return -EINVAL;
}

static int do_has(struct command *c)
{
	return vb_fabricd_node(c->f, c->words[1])
		       ? 0
		       : refuse_node(c->f->topo, c->words[1], c->error);
}

/* Find the node that the word NODE names, and set *@port from the word PORT.
 * NULL: the port has no link, and c->error says so. */
static struct vb_fab_node *find_link(const struct command *c, uint8_t *port)
{
	struct vb_fab_node *n = vb_fabricd_node(c->f, c->words[1]);
	char *end;
	unsigned long number = strtoul(c->words[2], &end, 10);

	if (!n) {
		refuse_node(c->f->topo, c->words[1], c->error);
		return NULL;
	}
	if (end == c->words[2] || *end || number < 1 || number > n->ports ||
	    !n->port[number].connected) {
		vb_topo_fail(c->error, "\"%.80s\" has no link at port %.20s",
			     c->words[1], c->words[2]);
		return NULL;
	}
	*port = (uint8_t)number;
	return n;
}

static int plug(struct command *c, bool in)
{
	uint8_t port;
	struct vb_fab_node *n = vb_fabricd_node(c->f, c->words[1]);

	if (n && c->words[2][0] == 'E')
		return vb_fabricd_ether_plug(c->f, n, c->words[2], in,
					     c->error);
	n = find_link(c, &port);
	return n ? vb_fab_plug(c->f->net, n, port, in, c->now) : -EINVAL;
}

static int do_unlink(struct command *c)
{
	return plug(c, false);
}

static int do_link(struct command *c)
{
	return plug(c, true);
}

/* Change the parameters of a link while it runs. A parameter that the command
 * does not name gets the value that the topology has for it. */
static int do_tune(struct command *c)
{
	uint8_t port;
	struct vb_fab_node *n = find_link(c, &port);
	struct vb_fab_link_spec spec;

	if (!n)
		return -EINVAL;
	spec = c->f->topo->nodes[n->index].port[port].spec;
	for (unsigned i = 3; i < c->count; i++) {
		int rc = vb_topo_link_spec(c->words[i], &spec, c->error);

		if (rc)
			return rc;
	}
	return vb_fab_tune(c->f->net, n, port, &spec, c->now);
}

/* Apply @spec to a node while it runs. The data plane reads the values of a
 * switch for each frame, so a change works at once. */
static int retune_node(struct command *c, struct vb_fab_node *n,
		       const struct vb_topo_spec *spec)
{
	int rc = 0;

	if (spec->unit)
		rc = vb_mgmt_set_unit(c->f->mgmt, n, spec->unit, c->now);
	if (rc)
		return rc;
	for (unsigned p = 1; spec->unit && p <= n->ports; p++)
		vb_fabricd_verbs_changed(c->f, n, (uint8_t)p);
	vb_fabricd_set_routes(n, spec);
	if (spec->latency_ns)
		n->sw.latency_ns = spec->latency_ns;
	n->sw.store_and_forward = spec->store_and_forward;
	return n->kind == FAB_SWITCH ? vb_fab_set_adaptive(n, spec->adaptive)
				     : 0;
}

/* Change the parameters of a node while it runs. */
static int do_node(struct command *c)
{
	struct vb_fab_node *n = vb_fabricd_node(c->f, c->words[1]);
	struct vb_topo_node *t;
	struct vb_topo_spec spec;
	int rc;

	if (!n)
		return refuse_node(c->f->topo, c->words[1], c->error);
	t = &c->f->topo->nodes[n->index];
	rc = vb_topo_spec_copy(&t->spec, &spec);
	for (unsigned i = 2; i < c->count && !rc; i++)
		rc = vb_topo_node_spec(c->words[i], t->kind, true, &spec,
				       c->error);
	if (!rc)
		rc = vb_topo_check_routes(&spec, t->ports, c->error);
	if (!rc)
		rc = retune_node(c, n, &spec);
	if (rc) {
		vb_topo_spec_free(&spec);
		return rc;
	}
	vb_topo_spec_free(&t->spec);
	t->spec = spec;
	return 0;
}

static int do_adaptive(struct command *c)
{
	struct vb_fab_node *n = vb_fabricd_node(c->f, c->words[1]);
	bool on = strcmp(c->words[2], "on") == 0;
	int rc;

	if (!n)
		return refuse_node(c->f->topo, c->words[1], c->error);
	if (!on && strcmp(c->words[2], "off") != 0)
		return vb_topo_fail(c->error,
				    "adaptive: \"%.20s\" is neither on nor off",
				    c->words[2]);
	rc = vb_fab_set_adaptive(n, on);
	if (!rc)
		c->f->topo->nodes[n->index].spec.adaptive = on;
	return rc == -EINVAL ? vb_topo_fail(c->error, "\"%.80s\" is no switch",
					    c->words[1])
			     : rc;
}

/* --- Ethernet ports --- */

static int do_attach(struct command *c)
{
	struct vb_fab_node *n = vb_fabricd_node(c->f, c->words[1]);

	if (!n)
		return refuse_node(c->f->topo, c->words[1], c->error);
	if (c->fd < 0)
		return vb_topo_fail(c->error,
				    "attach: no interface was passed; `verbena "
				    "ether` and `verbena gateway` pass one");
	return vb_fabricd_ether_attach(c->f, n, c->words[2], c->fd, c->words[3],
				       c->to, c->error);
}

static int do_detach(struct command *c)
{
	struct vb_fab_node *n = vb_fabricd_node(c->f, c->words[1]);

	return n ? vb_fabricd_ether_detach(c->f, n, c->words[2], c->error)
		 : refuse_node(c->f->topo, c->words[1], c->error);
}

static int do_macs(struct command *c)
{
	struct vb_fab_node *n = vb_fabricd_node(c->f, c->words[1]);

	return n ? vb_fabricd_ether_macs(c->f, n, c->to, c->error, c->now)
		 : refuse_node(c->f->topo, c->words[1], c->error);
}

/* --- show --- */

const char *vb_fabricd_state_name(unsigned state)
{
	static const char *const names[] = { "-", "down", "init", "armed",
					     "active" };

	return state < VB_COUNT(names) ? names[state] : "?";
}

const char *vb_fabricd_kind_name(unsigned kind)
{
	static const char *const names[] = { "?", "ca", "switch", "router" };

	return kind < VB_COUNT(names) ? names[kind] : "?";
}

static uint16_t lid_of(const struct vb_fab_node *n)
{
	return n->port[n->kind == FAB_SWITCH ? 0 : 1].lid;
}

static const struct vb_topo_port *
topo_port(const struct command *c, const struct vb_fab_node *n, unsigned port)
{
	return &c->f->topo->nodes[n->index].port[port];
}

/* Returns the number of I/O controllers of a target; 0: the node is none. */
static unsigned controllers_of(const struct vb_topo_node *t)
{
	return t->spec.unit ? t->spec.unit->controllers : 0;
}

/* Returns the description of the node at the other end of the link at @port,
 * which may be in another process. */
static const char *peer_name(const struct command *c,
			     const struct vb_fab_node *n, unsigned port)
{
	const struct vb_topo_port *p = topo_port(c, n, port);

	return p->linked ? c->f->topo->nodes[p->peer].desc : p->far->desc;
}

static unsigned peer_port(const struct command *c, const struct vb_fab_node *n,
			  unsigned port)
{
	const struct vb_topo_port *p = topo_port(c, n, port);

	return p->linked ? p->peer_port : p->far->peer_port;
}

static void show_port(const struct command *c, const struct vb_fab_node *n,
		      unsigned port)
{
	const struct vb_fab_port *p = &n->port[port];
	char far[VB_REMOTE_TEXT];

	if (!p->connected)
		return;
	fprintf(c->to, "  [%u] %s, %u Gbit/s", port,
		vb_fabricd_state_name(p->state), vb_fab_gbits(p));
	if (n->kind != FAB_SWITCH)
		fprintf(c->to, ", lid %u", p->lid);
	fprintf(c->to, " - %s[%u]", peer_name(c, n, port),
		peer_port(c, n, port));
	if (vb_fabricd_remote_text(c->f, n, (uint8_t)port, far))
		fprintf(c->to, " (%s)", far);
	fputc('\n', c->to);
}

/* Write how many frames a router has forwarded, and how many not, by the
 * reason. */
static void show_router(const struct command *c, const struct vb_fab_router *r)
{
	fprintf(c->to, ", %ju frames forwarded", (uintmax_t)r->routed);
	for (unsigned i = 0; i < DROPS; i++)
		if (r->dropped[i])
			fprintf(c->to, ", %ju dropped (%s)",
				(uintmax_t)r->dropped[i], vb_fab_drops[i].name);
}

static void json_router(const struct command *c, const struct vb_fab_router *r)
{
	const char *comma = "";

	fprintf(c->to, "\"forwarded\": %ju, \"dropped\": {",
		(uintmax_t)r->routed);
	for (unsigned i = 0; i < DROPS; i++) {
		if (!r->dropped[i])
			continue;
		fprintf(c->to, "%s\"%s\": %ju", comma, vb_fab_drops[i].name,
			(uintmax_t)r->dropped[i]);
		comma = ", ";
	}
	fputs("}, ", c->to);
}

static void show_text(const struct command *c)
{
	for (uint32_t i = 0; i < vb_fab_nodes(c->f->net); i++) {
		const struct vb_fab_node *n = vb_fab_node(c->f->net, i);

		fprintf(c->to, "%s %s: guid %#jx",
			vb_fabricd_kind_name(n->kind),
			c->f->topo->nodes[i].desc, (uintmax_t)n->guid);
		if (n->kind == FAB_SWITCH)
			fprintf(c->to, ", lid %u", lid_of(n));
		if (controllers_of(&c->f->topo->nodes[i]))
			fprintf(c->to, ", target, %u I/O controllers",
				controllers_of(&c->f->topo->nodes[i]));
		if (n->router)
			show_router(c, n->router);
		fputc('\n', c->to);
		for (unsigned p = 1; p <= n->ports; p++)
			show_port(c, n, p);
		vb_fabricd_ether_text(c->f, n, c->to, c->now);
	}
}

void vb_fabricd_put_string(FILE *to, const char *s)
{
	fputc('"', to);
	for (; *s; s++) {
		unsigned char ch = (unsigned char)*s;

		if (ch == '"' || ch == '\\')
			fprintf(to, "\\%c", ch);
		else if (ch < 0x20 || ch >= 0x7f)
			fprintf(to, "\\u%04x", ch);
		else
			fputc(ch, to);
	}
	fputc('"', to);
}

/* Write the counters of those virtual lanes that have moved or lost
 * anything. */
static void json_lanes(const struct command *c, const struct vb_fab_port *p)
{
	const char *comma = "";

	fputs(", \"lanes\": [", c->to);
	for (unsigned vl = 0; vl < VB_FAB_VLS; vl++) {
		const struct vb_fab_vl_counters *v = &p->vl[vl];

		if (!(v->xmit_pkts | v->rcv_pkts | v->xmit_wait | v->xmit_late))
			continue;
		fprintf(c->to,
			"%s{\"vl\": %u, \"xmit_words\": %ju, \"rcv_words\": "
			"%ju, \"xmit_pkts\": %ju, \"rcv_pkts\": %ju, "
			"\"xmit_wait\": %ju, \"xmit_fecn\": %ju}",
			comma, vl, (uintmax_t)v->xmit_words,
			(uintmax_t)v->rcv_words, (uintmax_t)v->xmit_pkts,
			(uintmax_t)v->rcv_pkts, (uintmax_t)v->xmit_wait,
			(uintmax_t)v->xmit_fecn);
		comma = ", ";
	}
	fputc(']', c->to);
}

/* Write the state and the counters of a link to another process. */
static void json_remote(const struct command *c, const struct vb_fab_node *n,
			unsigned port)
{
	const struct vb_far_status *s =
		vb_fabricd_remote_status(c->f, n, (uint8_t)port);
	char text[VB_REMOTE_TEXT];

	if (!s || !vb_fabricd_remote_text(c->f, n, (uint8_t)port, text))
		return;
	fputs(", \"remote\": ", c->to);
	vb_fabricd_put_string(c->to, text);
	fprintf(c->to,
		", \"messages_sent\": %ju, \"messages_got\": %ju, "
		"\"messages_lost\": %ju, \"messages_late\": %ju, "
		"\"messages_forged\": %ju",
		(uintmax_t)s->sent, (uintmax_t)s->got, (uintmax_t)s->lost,
		(uintmax_t)s->late, (uintmax_t)s->forged);
}

static void json_port(const struct command *c, struct vb_fab_node *n,
		      unsigned port, bool *any)
{
	const struct vb_fab_port *p = &n->port[port];
	const uint64_t *count = p->count;

	if (!p->connected)
		return;
	vb_fab_count_waits(c->f->net, n, (uint8_t)port, c->now);
	fprintf(c->to,
		"%s\n      {\"port\": %u, \"state\": \"%s\", \"gbits\": %u, "
		"\"lid\": %u, \"lmc\": %u, \"peer\": ",
		*any ? "," : "", port, vb_fabricd_state_name(p->state),
		vb_fab_gbits(p), p->lid, p->lmc);
	vb_fabricd_put_string(c->to, peer_name(c, n, port));
	fprintf(c->to,
		", \"peer_port\": %u, \"xmit_words\": %ju, \"rcv_words\": "
		"%ju, \"xmit_pkts\": %ju, \"rcv_pkts\": %ju, \"xmit_wait\": "
		"%ju, \"xmit_discards\": %ju",
		peer_port(c, n, port), (uintmax_t)count[FAB_XMIT_WORDS],
		(uintmax_t)count[FAB_RCV_WORDS],
		(uintmax_t)count[FAB_XMIT_PKTS], (uintmax_t)count[FAB_RCV_PKTS],
		(uintmax_t)count[FAB_XMIT_WAIT],
		(uintmax_t)count[FAB_XMIT_DISCARDS]);
	json_lanes(c, p);
	json_remote(c, n, port);
	fputc('}', c->to);
	*any = true;
}

static void show_json(const struct command *c)
{
	fputs("{\"nodes\": [", c->to);
	for (uint32_t i = 0; i < vb_fab_nodes(c->f->net); i++) {
		struct vb_fab_node *n = vb_fab_node(c->f->net, i);
		bool any = false;

		fprintf(c->to,
			"%s\n  {\"kind\": \"%s\", \"name\": ", i ? "," : "",
			vb_fabricd_kind_name(n->kind));
		vb_fabricd_put_string(c->to, c->f->topo->nodes[i].desc);
		fprintf(c->to,
			", \"guid\": \"%#jx\", \"lid\": %u, "
			"\"controllers\": %u, ",
			(uintmax_t)n->guid, lid_of(n),
			controllers_of(&c->f->topo->nodes[i]));
		if (n->router)
			json_router(c, n->router);
		fputs("\"ports\": [", c->to);
		for (unsigned p = 1; p <= n->ports; p++)
			json_port(c, n, p, &any);
		fputc(']', c->to);
		vb_fabricd_ether_json(c->f, n, c->to, c->now);
		fputc('}', c->to);
	}
	fputs("\n]}\n", c->to);
}

/* Carry out "show [json|svg|html|path] [LID:LID]". */
static int do_show(struct command *c)
{
	const char *how = c->count > 1 ? c->words[1] : "text";
	struct fd_path w;

	if (c->count > 2 && vb_fabricd_path(c->f, c->words[2], &w, c->error))
		return -EINVAL;
	if (strcmp(how, "json") == 0)
		show_json(c);
	else if (strcmp(how, "svg") == 0 || strcmp(how, "html") == 0)
		return vb_fabricd_draw(c->f, how[0] == 'h',
				       c->count > 2 ? &w : NULL, c->to, c->now);
	else if (strcmp(how, "path") == 0 && c->count > 2)
		vb_fabricd_path_print(c->f, &w, c->to);
	else if (strcmp(how, "text") == 0)
		show_text(c);
	else
		return vb_topo_fail(c->error, "show: \"%.40s\"", how);
	return 0;
}

static int do_mark(struct command *c)
{
	return vb_fabricd_mark(c->f, c->now);
}

static int do_topology(struct command *c)
{
	return vb_topo_write(c->f->topo, c->to) ? 0 : -ENOMEM;
}

static const struct {
	const char *name;
	/* the least and the most words that the command may have, its name
	 * included */
	unsigned least, most;
	int (*run)(struct command *c);
	const char *usage;
} commands[] = {
	{ "unlink", 3, 3, do_unlink, "unlink NODE PORT" },
	{ "link", 3, 3, do_link, "link NODE PORT" },
	{ "tune", 4, WORDS_MOST, do_tune, "tune NODE PORT PARAMETER=VALUE..." },
	{ "node", 3, WORDS_MOST, do_node, "node NODE PARAMETER=VALUE..." },
	{ "adaptive", 3, 3, do_adaptive, "adaptive NODE on|off" },
	{ "show", 1, 3, do_show, "show [json|svg|html|path] [LID:LID]" },
	{ "mark", 1, 1, do_mark, "mark" },
	{ "attach", 4, 4, do_attach, "attach NODE PORT NAME" },
	{ "detach", 3, 3, do_detach, "detach NODE PORT" },
	{ "macs", 2, 2, do_macs, "macs NODE" },
	{ "topology", 1, 1, do_topology, "topology" },
	{ "has", 2, 2, do_has, "has NODE" },
};

static int run_words(struct command *c)
{
	for (unsigned i = 0; i < VB_COUNT(commands); i++) {
		int rc;

		if (strcmp(commands[i].name, c->words[0]) != 0)
			continue;
		if (c->count < commands[i].least || c->count > commands[i].most)
			return vb_topo_fail(c->error, "usage: %s",
					    commands[i].usage);
		rc = commands[i].run(c);
		if (rc && !c->error[0])
			vb_topo_fail(c->error, "%s: %s", c->words[0],
				     strerror(-rc));
		return rc ? -EINVAL : 0;
	}
	return vb_topo_fail(
		c->error,
		"\"%.40s\" is no command: unlink, link, tune, node, "
		"adaptive, show, mark, detach, macs, topology and has are",
		c->words[0]);
}

int vb_fabricd_do(struct vb_fabricd *f, const char *text, int fd, FILE *to,
		  char error[VB_TOPO_ERROR], vb_time now)
{
	char *copy = strdup(text), *words[WORDS_MOST], *rest = copy, *word;
	struct command c = { f, words, 0, fd, to, error, now };
	int rc;

	if (!copy)
		return vb_topo_fail(error, "no memory");
	while (c.count < WORDS_MOST && (word = strsep(&rest, "\n")))
		words[c.count++] = word;
	rc = rest ? vb_topo_fail(error, "a command has at most %d words",
				 WORDS_MOST)
		  : run_words(&c);
	free(copy);
	return rc;
}

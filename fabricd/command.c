/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of `verbena fabric ctl` and `verbena fabric show`. A command
 * consists of words, each on a line of its own, since names of nodes may
 * contain spaces. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/fabricd_priv.h"
#include "fabricd/topology_priv.h"

#define WORDS_MOST 16

struct command {
	struct vb_fabricd *f;
	char **words;
	unsigned count;
	FILE *to;
	char *error;
	vb_time now;
};

/* Find the node that the word NODE names, and set *@port from the word PORT.
 * NULL: the port has no link, and c->error says so. */
static struct vb_fab_node *find_link(const struct command *c, uint8_t *port)
{
	struct vb_fab_node *n = vb_fabricd_node(c->f, c->words[1]);
	char *end;
	unsigned long number = strtoul(c->words[2], &end, 10);
	uint8_t peer_port;

	if (!n) {
		vb_topo_fail(c->error, "there is no node \"%.80s\"",
			     c->words[1]);
		return NULL;
	}
	if (end == c->words[2] || *end || number < 1 || number > n->ports ||
	    !vb_fab_peer(n, (uint8_t)number, &peer_port)) {
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
	struct vb_fab_node *n = find_link(c, &port);

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

/* A parameter that the command does not name gets the topology's value. */
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

/* --- show --- */

static const char *state_name(unsigned state)
{
	static const char *const names[] = { "-", "down", "init", "armed",
					     "active" };

	return state < VB_COUNT(names) ? names[state] : "?";
}

static const char *kind_name(unsigned kind)
{
	static const char *const names[] = { "?", "ca", "switch", "router" };

	return kind < VB_COUNT(names) ? names[kind] : "?";
}

static uint16_t lid_of(const struct vb_fab_node *n)
{
	return n->port[n->kind == FAB_SWITCH ? 0 : 1].lid;
}

static void show_port(const struct command *c, const struct vb_fab_node *n,
		      unsigned port)
{
	const struct vb_fab_port *p = &n->port[port];
	uint8_t peer_port;
	const struct vb_fab_node *peer =
		vb_fab_peer(n, (uint8_t)port, &peer_port);

	if (!peer)
		return;
	fprintf(c->to, "  [%u] %s, %u Gbit/s", port, state_name(p->state),
		vb_fabricd_rate(p));
	if (n->kind != FAB_SWITCH)
		fprintf(c->to, ", lid %u", p->lid);
	fprintf(c->to, " - %s[%u]\n", c->f->topo->nodes[peer->index].desc,
		peer_port);
}

static void show_text(const struct command *c)
{
	for (uint32_t i = 0; i < vb_fab_nodes(c->f->net); i++) {
		const struct vb_fab_node *n = vb_fab_node(c->f->net, i);

		fprintf(c->to, "%s %s: guid %#jx", kind_name(n->kind),
			c->f->topo->nodes[i].desc, (uintmax_t)n->guid);
		if (n->kind == FAB_SWITCH)
			fprintf(c->to, ", lid %u", lid_of(n));
		fputc('\n', c->to);
		for (unsigned p = 1; p <= n->ports; p++)
			show_port(c, n, p);
	}
}

/* Write a string of JSON. Whatever bytes the topology's file had, the output is
 * valid text. */
static void put_string(FILE *to, const char *s)
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

static void json_port(const struct command *c, struct vb_fab_node *n,
		      unsigned port, bool *any)
{
	const struct vb_fab_port *p = &n->port[port];
	const uint64_t *count = p->count;
	uint8_t peer_port;
	const struct vb_fab_node *peer =
		vb_fab_peer(n, (uint8_t)port, &peer_port);

	if (!peer)
		return;
	vb_fab_settle(c->f->net, n, (uint8_t)port, c->now);
	fprintf(c->to,
		"%s\n      {\"port\": %u, \"state\": \"%s\", \"gbits\": %u, "
		"\"lid\": %u, \"lmc\": %u, \"peer\": ",
		*any ? "," : "", port, state_name(p->state), vb_fabricd_rate(p),
		p->lid, p->lmc);
	put_string(c->to, c->f->topo->nodes[peer->index].desc);
	fprintf(c->to,
		", \"peer_port\": %u, \"xmit_words\": %ju, \"rcv_words\": "
		"%ju, \"xmit_pkts\": %ju, \"rcv_pkts\": %ju, \"xmit_wait\": "
		"%ju, \"xmit_discards\": %ju}",
		peer_port, (uintmax_t)count[FAB_XMIT_WORDS],
		(uintmax_t)count[FAB_RCV_WORDS],
		(uintmax_t)count[FAB_XMIT_PKTS], (uintmax_t)count[FAB_RCV_PKTS],
		(uintmax_t)count[FAB_XMIT_WAIT],
		(uintmax_t)count[FAB_XMIT_DISCARDS]);
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
			kind_name(n->kind));
		put_string(c->to, c->f->topo->nodes[i].desc);
		fprintf(c->to,
			", \"guid\": \"%#jx\", \"lid\": %u, \"ports\": [",
			(uintmax_t)n->guid, lid_of(n));
		for (unsigned p = 1; p <= n->ports; p++)
			json_port(c, n, p, &any);
		fputs("]}", c->to);
	}
	fputs("\n]}\n", c->to);
}

static int do_show(struct command *c)
{
	if (c->count == 2 && strcmp(c->words[1], "json") == 0)
		show_json(c);
	else
		show_text(c);
	return 0;
}

static int do_topology(struct command *c)
{
	return vb_topo_write(c->f->topo, c->to) ? 0 : -ENOMEM;
}

static const struct {
	const char *name;
	/* the least and the most words that the command has */
	unsigned least, most;
	int (*run)(struct command *c);
	const char *usage;
} commands[] = {
	{ "unlink", 3, 3, do_unlink, "unlink NODE PORT" },
	{ "link", 3, 3, do_link, "link NODE PORT" },
	{ "tune", 4, WORDS_MOST, do_tune, "tune NODE PORT PARAMETER=VALUE..." },
	{ "show", 1, 2, do_show, "show [json]" },
	{ "topology", 1, 1, do_topology, "topology" },
};

static int run(struct command *c)
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
	return vb_topo_fail(c->error,
			    "\"%.40s\" is no command: unlink, link, tune, show "
			    "and topology are",
			    c->words[0]);
}

int vb_fabricd_do(struct vb_fabricd *f, const char *text, FILE *to,
		  char error[VB_TOPO_ERROR], vb_time now)
{
	char *copy = strdup(text), *words[WORDS_MOST], *rest = copy, *word;
	struct command c = { f, words, 0, to, error, now };
	int rc;

	if (!copy)
		return vb_topo_fail(error, "no memory");
	while (c.count < WORDS_MOST && (word = strsep(&rest, "\n")))
		words[c.count++] = word;
	rc = rest ? vb_topo_fail(error, "a command has at most %d words",
				 WORDS_MOST)
		  : run(&c);
	free(copy);
	return rc;
}

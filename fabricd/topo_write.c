/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a topology in the format of ibnetdiscover. */

#include "fabricd/topology_priv.h"

static const struct {
	const char *word, *guid;
	char letter;
} kinds[] = {
	[FAB_CA] = { "Ca", "caguid", 'H' },
	[FAB_SWITCH] = { "Switch", "switchguid", 'S' },
	[FAB_ROUTER] = { "Rt", "rtguid", 'R' },
};

static void put_id(FILE *to, uint8_t kind, uint64_t guid)
{
	fprintf(to, "\"%c-%016jx\"", kinds[kind].letter, (uintmax_t)guid);
}

static void write_port(FILE *to, const struct vb_topo *t,
		       const struct vb_topo_node *n, unsigned port)
{
	const struct vb_topo_port *p = &n->port[port];
	const struct vb_topo_node *peer = &t->nodes[p->peer];
	char rate[16];

	fprintf(to, "[%u]\t", port);
	if (p->linked) {
		put_id(to, peer->kind, peer->guid);
		fprintf(to, "[%u]\t\t# \"%s\"", p->peer_port, peer->desc);
	} else {
		put_id(to, p->far->kind, p->far->guid);
		fprintf(to, "[%u]\t\t# \"%s\"", p->far->peer_port,
			p->far->desc);
	}
	if (vb_topo_rate_put(p, rate))
		fprintf(to, " %s", rate);
	fputc('\n', to);
}

static void put_odds(FILE *to, const char *name, uint32_t odds)
{
	if (odds)
		fprintf(to, " %s=%.10g", name, odds / 4294967295.0);
}

/* True if all parameters have their defaults. The functions compare fields and
 * not memory, since the padding between fields has no fixed value. */
static bool is_plain_link(const struct vb_fab_link_spec *s)
{
	return !s->bytes_per_sec && !s->unpaced && !s->delay && !s->buffer &&
	       !s->extended && !s->lose && !s->corrupt && !s->lose_flow &&
	       !s->corrupt_flow;
}

static bool is_plain_node(const struct vb_topo_spec *s)
{
	return !s->mtu_cap && !s->vl_cap && !s->pkeys && !s->linear_cap &&
	       !s->random_cap && !s->mcast_cap && !s->latency_ns &&
	       !s->store_and_forward && !s->ethernet && !s->adaptive &&
	       !(s->unit && s->unit->controllers);
}

/* Write the line "#! link" of the link at @port of @n, unless all its
 * parameters are 0 and both ends are in this process. */
static void put_tuning(FILE *to, const struct vb_topo_node *n, unsigned port)
{
	const struct vb_fab_link_spec *s = &n->port[port].spec;
	const struct vb_topo_far *far = n->port[port].far;

	if (is_plain_link(s) && !far)
		return;
	fputs("#! link ", to);
	put_id(to, n->kind, n->guid);
	fprintf(to, "[%u]", port);
	if (far)
		vb_topo_far_put(far, to);
	if (s->delay)
		fprintf(to, " delay=%juns", (uintmax_t)s->delay);
	if (s->unpaced)
		fputs(" rate=free", to);
	else if (s->bytes_per_sec)
		fprintf(to, " rate=%ju", (uintmax_t)s->bytes_per_sec * 8);
	if (s->buffer)
		fprintf(to, " buf=%u", s->buffer);
	if (s->extended)
		fputs(" credits=ext", to);
	put_odds(to, "lose", s->lose);
	put_odds(to, "corrupt", s->corrupt);
	put_odds(to, "lose_flow", s->lose_flow);
	put_odds(to, "corrupt_flow", s->corrupt_flow);
	fputc('\n', to);
}

static void write_node(FILE *to, const struct vb_topo *t,
		       const struct vb_topo_node *n)
{
	fprintf(to, "\nvendid=%#x\ndevid=%#x\nsysimgguid=%#jx\n%s=%#jx\n",
		n->vendor_id, n->device_id, (uintmax_t)n->sys_guid,
		kinds[n->kind].guid, (uintmax_t)n->guid);
	fprintf(to, "%s\t%u ", kinds[n->kind].word, n->ports);
	put_id(to, n->kind, n->guid);
	fprintf(to, "\t\t# \"%s\"\n", n->desc);
	for (unsigned p = 1; p <= n->ports; p++)
		if (n->port[p].linked || n->port[p].far)
			write_port(to, t, n, p);
}

/* Each service has a line of its own, since the length of lines is limited. */
static void put_services(FILE *to, const struct vb_topo_node *n)
{
	const struct vb_iou_unit *u = n->spec.unit;

	for (unsigned i = 0; u && i < u->entries; i++) {
		const struct vb_iou_service *s = &u->entry[i].service;

		fputs("#! node ", to);
		put_id(to, n->kind, n->guid);
		fprintf(to, " service=%u:%s:%#jx\n", u->entry[i].slot, s->name,
			(uintmax_t)s->id);
	}
}

static void put_routes(FILE *to, const struct vb_topo_node *n)
{
	const struct vb_topo_routes *r = n->spec.routes;

	for (unsigned i = 0; r && i < r->count; i++) {
		fputs("#! node ", to);
		put_id(to, n->kind, n->guid);
		if (r->route[i].any)
			fputs(" route=any", to);
		else
			fprintf(to, " route=%#018jx",
				(uintmax_t)r->route[i].prefix);
		fprintf(to, ":%u\n", r->route[i].port);
	}
}

static void put_node_tuning(FILE *to, const struct vb_topo_node *n)
{
	put_routes(to, n);
	if (is_plain_node(&n->spec))
		return;
	fputs("#! node ", to);
	put_id(to, n->kind, n->guid);
	vb_topo_node_put(to, &n->spec);
	fputc('\n', to);
	put_services(to, n);
}

bool vb_topo_write(const struct vb_topo *t, FILE *to)
{
	for (uint32_t i = 0; i < t->count; i++)
		write_node(to, t, &t->nodes[i]);
	fputc('\n', to);
	for (uint32_t i = 0; i < t->count; i++)
		put_node_tuning(to, &t->nodes[i]);
	for (uint32_t i = 0; i < t->count; i++)
		for (unsigned p = 1; p <= t->nodes[i].ports; p++) {
			const struct vb_topo_port *port = &t->nodes[i].port[p];

			if (port->far ||
			    (port->linked &&
			     (port->peer > i ||
			      (port->peer == i && port->peer_port > p))))
				put_tuning(to, &t->nodes[i], p);
		}
	return fflush(to) == 0 && !ferror(to);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pictures of a fabric, as SVG or as a page. A page loads nothing from
 * elsewhere. It is XML, and names of nodes come from files, so names are
 * escaped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/draw.h"

#define HOT_MOST 12 /* most rows of the table of ports that send the most */
/* a link that uses this part of its rate is drawn "hot" */
#define HOT 0.5
/* a link that uses this part of its rate is drawn "warm" */
#define WARM 0.05

struct picture {
	const struct vb_fabricd *f;
	struct layout l;
	const struct fd_path *path;
	FILE *to;
	vb_time now;
	/* by index of the node: where the node's ports begin in f->marks */
	uint32_t *first;
};

/* --- text --- */

/* Write a name as text of XML. A byte that XML does not permit becomes U+FFFD;
 * a byte above ASCII is taken as Latin-1. */
static void put_text(FILE *to, const char *s)
{
	for (; *s; s++) {
		unsigned char ch = (unsigned char)*s;

		if (ch == '<')
			fputs("&lt;", to);
		else if (ch == '>')
			fputs("&gt;", to);
		else if (ch == '&')
			fputs("&amp;", to);
		else if (ch == '"')
			fputs("&quot;", to);
		else if (ch < ' ' || ch == 0x7f)
			fputs("&#xfffd;", to);
		else if (ch > '~')
			fprintf(to, "&#x%02x;", ch);
		else
			fputc(ch, to);
	}
}

static const char *name_of(const struct picture *p, uint32_t node)
{
	return p->f->topo->nodes[node].desc;
}

/* --- what ports do --- */

static uint32_t ports_of(const struct vb_fabricd *f)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < vb_fab_nodes(f->net); i++)
		count += vb_fab_node(f->net, i)->ports + 1u;
	return count;
}

int vb_fabricd_mark(struct vb_fabricd *f, vb_time now)
{
	uint32_t count = ports_of(f), at = 0;

	/* Hosts may have joined since the last mark. */
	if (count != f->mark_count) {
		uint64_t *marks = realloc(f->marks, count * sizeof(*marks));

		if (!marks)
			return -ENOMEM;
		f->marks = marks;
		f->mark_count = count;
	}
	f->marked_at = now;
	for (uint32_t i = 0; i < vb_fab_nodes(f->net); i++) {
		const struct vb_fab_node *n = vb_fab_node(f->net, i);

		for (unsigned k = 0; k <= n->ports; k++)
			f->marks[at++] = n->port[k].count[FAB_XMIT_WORDS];
	}
	return 0;
}

/* Returns which part of the link's rate the port has used since the last mark;
 * 1 is all of it. A port of a node that joined after the mark was not marked,
 * so its part is 0. */
static double use_of(const struct picture *p, const struct vb_fab_node *n,
		     unsigned port)
{
	const struct vb_topo_port *t = &p->f->topo->nodes[n->index].port[port];
	uint64_t rate = t->spec.bytes_per_sec
				? t->spec.bytes_per_sec
				: vb_fab_bytes_per_sec(&n->port[port]);
	uint64_t words = n->port[port].count[FAB_XMIT_WORDS];
	uint32_t mark = p->first[n->index] + port;

	if (mark >= p->f->mark_count || p->now <= p->f->marked_at || !rate)
		return 0;
	words -= p->f->marks[mark];
	return (double)words * 4 * VB_SEC /
	       ((double)rate * (double)(p->now - p->f->marked_at));
}

static const char *class_of_use(double use)
{
	if (use >= HOT)
		return " hot";
	return use >= WARM ? " warm" : "";
}

static bool is_on_path(const struct fd_path *w, const struct vb_fab_node *n,
		       unsigned port)
{
	for (unsigned i = 0; w && i < w->count; i++)
		if (w->hop[i].node == n &&
		    (!port || w->hop[i].in == port || w->hop[i].out == port))
			return true;
	return false;
}

/* --- the picture --- */

static const char style[] =
	"text{font:9px sans-serif;text-anchor:middle}"
	".link{stroke:#2a2;stroke-width:1.5}"
	".link.init,.link.armed{stroke:#e80}"
	".link.down{stroke:#c22;stroke-dasharray:4 3}"
	".link.warm{stroke:#06c;stroke-width:2.5}"
	".link.hot{stroke:#c0c;stroke-width:4}"
	".link.way{stroke:#000;stroke-width:4}"
	".link.far{stroke-dasharray:8 3}"
	".node rect{fill:#def;stroke:#357}.node circle{fill:#fed;stroke:#a63}"
	".node.way rect,.node.way circle{stroke:#000;stroke-width:3}";

/* Several links between two nodes are drawn beside each other. Returns how far
 * the line of the link at @port is from the middle. */
static float offset_of(const struct vb_topo_node *n, unsigned port)
{
	unsigned before = 0;

	for (unsigned k = 1; k < port; k++)
		before += n->port[k].linked &&
			  n->port[k].peer == n->port[port].peer;
	return (float)((before + 1) / 2) * (before % 2 ? 5.f : -5.f);
}

static void put_link_title(struct picture *p, const struct vb_fab_node *n,
			   unsigned port)
{
	const struct vb_topo_port *t = &p->f->topo->nodes[n->index].port[port];
	char far[VB_REMOTE_TEXT];

	fputs("<title>", p->to);
	put_text(p->to, name_of(p, n->index));
	fprintf(p->to, "[%u] - ", port);
	if (t->linked) {
		put_text(p->to, name_of(p, t->peer));
		fprintf(p->to, "[%u]", t->peer_port);
	} else {
		put_text(p->to, t->far->desc);
		fprintf(p->to, "[%u]", t->far->peer_port);
	}
	fprintf(p->to, ": %s, %u Gbit/s, %.1f %%",
		vb_fabricd_state_name(n->port[port].state),
		vb_fab_gbits(&n->port[port]), use_of(p, n, port) * 100);
	if (t->linked)
		fprintf(p->to, " and %.1f %% back",
			use_of(p, vb_fab_node(p->f->net, t->peer),
			       t->peer_port) *
				100);
	else if (vb_fabricd_remote_text(p->f, n, (uint8_t)port, far)) {
		fputs(", ", p->to);
		put_text(p->to, far);
	}
	fputs("</title>", p->to);
}

static void draw_link(struct picture *p, const struct vb_fab_node *n,
		      unsigned port)
{
	const struct vb_topo_node *t = &p->f->topo->nodes[n->index];
	const struct vb_topo_port *tp = &t->port[port];
	struct spot a = p->l.spot[n->index], b = { a.x + 40, a.y - 30 };
	double use = use_of(p, n, port);
	float side = 0;

	if (tp->linked) {
		const struct vb_fab_node *m = vb_fab_node(p->f->net, tp->peer);
		double back = use_of(p, m, tp->peer_port);

		b = p->l.spot[tp->peer];
		use = VB_MAX(use, back);
		side = offset_of(t, port);
	}
	fprintf(p->to,
		"<line class=\"link %s%s%s%s\" x1=\"%.1f\" y1=\"%.1f\" "
		"x2=\"%.1f\" y2=\"%.1f\">",
		vb_fabricd_state_name(n->port[port].state), class_of_use(use),
		is_on_path(p->path, n, port) ? " way" : "",
		tp->linked ? "" : " far", a.x + side, a.y + side, b.x + side,
		b.y + side);
	put_link_title(p, n, port);
	fputs("</line>\n", p->to);
}

/* Draw each link once: from the end at the node with the lower index, or for a
 * link within a node at the lower port. */
static void draw_links(struct picture *p)
{
	for (uint32_t i = 0; i < p->f->topo->count; i++) {
		const struct vb_topo_node *t = &p->f->topo->nodes[i];

		for (unsigned k = 1; k <= t->ports; k++) {
			const struct vb_topo_port *tp = &t->port[k];

			if (tp->linked ? tp->peer > i || (tp->peer == i &&
							  tp->peer_port > k)
				       : tp->far != NULL)
				draw_link(p, vb_fab_node(p->f->net, i), k);
		}
	}
}

static void draw_node(struct picture *p, const struct vb_fab_node *n)
{
	struct spot s = p->l.spot[n->index];
	bool sw = n->kind == FAB_SWITCH;

	fprintf(p->to,
		"<g class=\"node %s%s\" transform=\"translate(%.1f %.1f)\">%s",
		vb_fabricd_kind_name(n->kind),
		is_on_path(p->path, n, 0) ? " way" : "", s.x, s.y,
		sw ? "<rect x=\"-24\" y=\"-9\" width=\"48\" height=\"18\" "
		     "rx=\"3\"/>"
		   : "<circle r=\"7\"/>");
	fprintf(p->to, "<text y=\"%d\">", sw ? 3 : 16);
	put_text(p->to, name_of(p, n->index));
	fputs("</text><title>", p->to);
	put_text(p->to, name_of(p, n->index));
	fprintf(p->to, ": LID %u, GUID %#jx</title></g>\n",
		n->port[sw ? 0 : 1].lid, (uintmax_t)n->guid);
}

static void draw_svg(struct picture *p)
{
	fprintf(p->to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f "
		"%.0f\">\n<style>%s</style>\n<g class=\"links\">\n",
		p->l.width, p->l.height, style);
	draw_links(p);
	fputs("</g>\n<g class=\"nodes\">\n", p->to);
	for (uint32_t i = 0; i < p->f->topo->count; i++)
		draw_node(p, vb_fab_node(p->f->net, i));
	fputs("</g>\n</svg>\n", p->to);
}

/* --- the page --- */

struct hot {
	const struct vb_fab_node *node;
	unsigned port;
	double use;
};

/* Put @h into @list, which has the ports with the most use, the most first. */
static void note_hot(struct hot *list, const struct hot *h)
{
	unsigned at = HOT_MOST;

	while (at > 0 && list[at - 1].use < h->use)
		at--;
	if (at == HOT_MOST)
		return;
	memmove(list + at + 1, list + at, (HOT_MOST - at - 1) * sizeof(*list));
	list[at] = *h;
}

static void put_hot_row(struct picture *p, const struct hot *h)
{
	const uint64_t *count = h->node->port[h->port].count;

	fputs("<tr><td>", p->to);
	put_text(p->to, name_of(p, h->node->index));
	fprintf(p->to,
		"[%u]</td><td>%.1f %%</td><td>%ju</td><td>%ju</td></tr>\n",
		h->port, h->use * 100, (uintmax_t)count[FAB_XMIT_WAIT],
		(uintmax_t)count[FAB_XMIT_DISCARDS]);
}

static void put_hot_ports(struct picture *p)
{
	struct hot list[HOT_MOST] = { 0 };

	for (uint32_t i = 0; i < p->f->topo->count; i++) {
		const struct vb_fab_node *n = vb_fab_node(p->f->net, i);

		for (unsigned k = 1; k <= n->ports; k++) {
			struct hot h = { n, k, use_of(p, n, k) };

			if (h.use > 0)
				note_hot(list, &h);
		}
	}
	if (!list[0].node)
		return;
	fputs("<table id=\"hot\"><caption>The ports that send the most"
	      "</caption>\n<tr><th>port</th><th>of its rate</th>"
	      "<th>XmitWait</th><th>discards</th></tr>\n",
	      p->to);
	for (unsigned i = 0; i < HOT_MOST && list[i].node; i++)
		put_hot_row(p, &list[i]);
	fputs("</table>\n", p->to);
}

static void put_path_text(struct picture *p)
{
	if (!p->path)
		return;
	fprintf(p->to, "<p id=\"way\">LID %u to LID %u: ", p->path->from,
		p->path->to);
	for (unsigned i = 0; i < p->path->count; i++) {
		const struct hop *h = &p->path->hop[i];

		if (h->in)
			fprintf(p->to, " \xe2\x86\x92 [%u] ", h->in);
		put_text(p->to, name_of(p, h->node->index));
		if (h->out)
			fprintf(p->to, " [%u]", h->out);
	}
	fputs("</p>\n", p->to);
}

static void draw_page(struct picture *p)
{
	fputs("<!DOCTYPE html>\n"
	      "<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">"
	      "<head><meta charset=\"utf-8\"/><title>InfiniBand fabric</title>"
	      "<style>body{font:14px sans-serif;margin:1em}"
	      "td,th{padding:0 1em;text-align:right}"
	      "svg{width:100%;max-height:90vh}</style></head><body>\n",
	      p->to);
	fprintf(p->to, "<h1>InfiniBand fabric: %u nodes</h1>\n",
		p->f->topo->count);
	fputs("<p>Links: green active, orange init or armed, red down; blue "
	      "from 5 % of their rate, violet from 50 %; black: the way. "
	      "Point at one to see more.</p>\n",
	      p->to);
	put_path_text(p);
	draw_svg(p);
	put_hot_ports(p);
	fputs("</body></html>\n", p->to);
}

int vb_fabricd_draw(const struct vb_fabricd *f, bool page,
		    const struct fd_path *w, FILE *to, vb_time now)
{
	struct picture p = { .f = f, .path = w, .to = to, .now = now };
	uint32_t at = 0;
	int rc = vb_fabricd_layout(f, &p.l);

	p.first = calloc(f->topo->count, sizeof(*p.first));
	if (!p.first)
		rc = -ENOMEM;
	for (uint32_t i = 0; p.first && i < f->topo->count; i++) {
		p.first[i] = at;
		at += f->topo->nodes[i].ports + 1u;
	}
	if (!rc && page)
		draw_page(&p);
	else if (!rc)
		draw_svg(&p);
	free(p.first);
	free(p.l.spot);
	return rc;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Links to other processes in a topology: reading and writing their parameters
 * (udp=, tcp=, local=), and cutting out the part of a topology that one process
 * runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/topology_priv.h"

#define WHITE " \t\r\n"

/* --- words --- */

static bool take_far_port(const char *text, uint16_t *port)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || v < 1 || v > 65535)
		return false;
	*port = (uint16_t)v;
	return true;
}

/* Read HOST:PORT or [HOST]:PORT into @far. False: @text is something else. */
static bool take_far_address(const char *text, struct vb_topo_far *far)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;

	if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	} else if (len && memchr(text, ':', len)) {
		return false;
	}
	if (!len || len >= sizeof(far->host))
		return false;
	memcpy(far->host, text, len);
	far->host[len] = '\0';
	return take_far_port(colon + 1, &far->port);
}

static bool take_udp(const char *text, struct vb_topo_far *far)
{
	far->via = VIA_UDP;
	return take_far_address(text, far);
}

static bool take_tcp(const char *text, struct vb_topo_far *far)
{
	far->via = VIA_TCP;
	return take_far_address(text, far);
}

static bool take_local(const char *text, struct vb_topo_far *far)
{
	return take_far_port(text, &far->local);
}

static const struct {
	const char *name;
	bool (*take)(const char *text, struct vb_topo_far *far);
	const char *what;
} words[] = {
	{ "udp=", take_udp, "HOST:PORT or [HOST]:PORT" },
	{ "tcp=", take_tcp, "HOST:PORT or [HOST]:PORT" },
	{ "local=", take_local, "a port from 1 to 65535" },
};

static int take_far_word(const char *word, struct vb_topo_far *far, bool *taken,
			 char *error)
{
	enum vb_topo_via before = far->via;

	*taken = false;
	for (unsigned i = 0; i < VB_COUNT(words); i++) {
		size_t len = strlen(words[i].name);

		if (strncmp(word, words[i].name, len) != 0)
			continue;
		*taken = true;
		if (!words[i].take(word + len, far))
			return vb_topo_fail(error, "\"%.80s\": %.*s is %s",
					    word, (int)len - 1, words[i].name,
					    words[i].what);
		if (before != VIA_NONE && words[i].take != take_local)
			return vb_topo_fail(error, "a link has one of udp= "
						   "and tcp=");
	}
	return 0;
}

int vb_topo_far_take(char *text, struct vb_topo_far *far,
		     char error[VB_TOPO_ERROR])
{
	while (*(text += strspn(text, WHITE))) {
		size_t len = strcspn(text, WHITE);
		char word[VB_TOPO_HOST + 16];
		bool taken;
		int rc;

		snprintf(word, sizeof(word), "%.*s", (int)len, text);
		rc = take_far_word(word, far, &taken, error);
		if (rc)
			return rc;
		if (taken)
			memset(text, ' ', len);
		text += len;
	}
	if (far->local && far->via == VIA_NONE)
		return vb_topo_fail(error, "local= belongs to udp= or tcp=");
	if (!far->local)
		far->local = far->port;
	return 0;
}

void vb_topo_far_put(const struct vb_topo_far *far, FILE *to)
{
	bool colons = strchr(far->host, ':');

	fprintf(to, " %s=%s%s%s:%u", far->via == VIA_UDP ? "udp" : "tcp",
		colons ? "[" : "", far->host, colons ? "]" : "", far->port);
	if (far->local != far->port)
		fprintf(to, " local=%u", far->local);
}

/* --- the part that one process runs --- */

/* True if the node @index is not a switch, and all of its links go to switches
 * in @named: it then belongs to the same part. */
static bool goes_along(const struct vb_topo *t, uint32_t index,
		       const bool *named)
{
	const struct vb_topo_node *n = &t->nodes[index];
	bool linked = false;

	if (n->kind == FAB_SWITCH)
		return false;
	for (unsigned p = 1; p <= n->ports; p++) {
		const struct vb_topo_port *port = &n->port[p];

		if (!port->linked)
			continue;
		if (t->nodes[port->peer].kind != FAB_SWITCH ||
		    !named[port->peer])
			return false;
		linked = true;
	}
	return linked;
}

/* Mark in @kept the nodes that @names lists, and the adapters that belong to
 * them. */
static int choose_part(const struct vb_topo *t, const char *const *names,
		       bool *named, bool *kept, char *error)
{
	for (; *names; names++) {
		const struct vb_topo_node *n = vb_topo_find(t, *names);

		if (!n)
			return vb_topo_fail(
				error, "--part: there is no node \"%.80s\"",
				*names);
		named[n - t->nodes] = true;
	}
	for (uint32_t i = 0; i < t->count; i++)
		kept[i] = named[i] || goes_along(t, i, named);
	return 0;
}

/* If the link at @port leads to a node that is not kept, make it a link to
 * another process. */
static int cut_link(struct vb_topo *t, uint32_t index, unsigned port,
		    const bool *kept, char *error)
{
	struct vb_topo_node *n = &t->nodes[index], *peer;
	struct vb_topo_port *p = &n->port[port];

	if (!p->linked || kept[p->peer])
		return 0;
	peer = &t->nodes[p->peer];
	if (!p->far)
		return vb_topo_fail(error,
				    "--part: port %u of \"%s\" is linked to "
				    "\"%s\", which is not in this part: it "
				    "needs a line #! link \"%s\"[%u] "
				    "udp=HOST:PORT or tcp=HOST:PORT",
				    port, n->id, peer->id, n->id, port);
	p->linked = false;
	p->far->guid = peer->guid;
	p->far->peer_port = p->peer_port;
	p->far->kind = peer->kind;
	snprintf(p->far->desc, sizeof(p->far->desc), "%s", peer->desc);
	return 0;
}

/* Remove the nodes that are not in @kept, and renumber the others. */
static int drop_other_parts(struct vb_topo *t, const bool *kept)
{
	uint32_t *now = calloc(t->count, sizeof(*now)), count = 0;

	if (!now)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->count; i++) {
		now[i] = count;
		if (kept[i])
			t->nodes[count++] = t->nodes[i];
		else
			vb_topo_free_node(&t->nodes[i]);
	}
	t->count = count;
	for (uint32_t i = 0; i < count; i++)
		for (unsigned p = 1; p <= t->nodes[i].ports; p++) {
			struct vb_topo_port *port = &t->nodes[i].port[p];

			if (port->linked)
				port->peer = now[port->peer];
		}
	free(now);
	vb_topo_rehash(t);
	return 0;
}

int vb_topo_part(struct vb_topo *t, const char *const *names,
		 char error[VB_TOPO_ERROR])
{
	bool *named = calloc(t->count, sizeof(*named));
	bool *kept = calloc(t->count, sizeof(*kept));
	int rc = -ENOMEM;

	if (named && kept)
		rc = choose_part(t, names, named, kept, error);
	for (uint32_t i = 0; i < t->count && !rc; i++)
		for (unsigned p = 1; kept[i] && p <= t->nodes[i].ports && !rc;
		     p++)
			rc = cut_link(t, i, p, kept, error);
	if (!rc)
		rc = drop_other_parts(t, kept);
	free(named);
	free(kept);
	if (rc == -ENOMEM)
		vb_topo_fail(error, "no memory");
	return rc;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parser of topology files, line by line. A line is blank, a comment, a
 * node ("Switch 8 "Switch1""), a port of the node before it ("[1] "Hca1"[1]"),
 * a value for the node that follows ("switchguid=0x..."), or "include FILE". A
 * port's peer may be named before it is described, so links are made at the
 * end.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/topology_priv.h"

#define LINE_BYTES 1024
#define DEEPEST	   8 /* the most levels of nested includes */
#define WHITE	   " \t\r\n"

/* The line of a port, kept until all nodes are known. @peer may be an id that a
 * later line describes. */
struct wanted {
	uint32_t node;
	uint8_t port, peer_port;
	char peer[VB_TOPO_ID];
	unsigned line;
	const char *file;
};

/* A line "#! link" or "#! node", kept until all nodes and links are known. */
struct tuned {
	char node[VB_TOPO_ID];
	unsigned port; /* the port of a "#! link"; 0: the line is a "#! node" */
	char text[512];
	struct vb_topo_far far;
	struct vb_topo_port rate; /* only width and speed are used */
	unsigned line;
	const char *file;
};

struct parser {
	struct vb_topo *topo;
	const char *file;
	unsigned line, depth;
	/* a node was described, so lines of its ports may follow */
	bool in_node;
	uint32_t node; /* the index of the node to which the ports belong */
	/* values for the node that is described next */
	uint64_t sys_guid, guid;
	uint32_t vendor_id, device_id;
	struct wanted *wanted;
	size_t wanted_count, wanted_room;
	struct tuned *tuned;
	size_t tuned_count, tuned_room;
	char *error;
};

/* Put the name of the file and the line number in front of the message
 * @p->error. */
static int fail_at(struct parser *p, const char *file, unsigned line)
{
	char why[VB_TOPO_ERROR];

	snprintf(why, sizeof(why), "%s", p->error);
	snprintf(p->error, VB_TOPO_ERROR, "%s:%u: %.250s", file, line, why);
	return -EINVAL;
}

#define FAIL(p, ...)                                                           \
	(vb_topo_fail((p)->error, __VA_ARGS__),                                \
	 fail_at(p, (p)->file, (p)->line))

/* --- words --- */

static const char *skip_white(const char *s)
{
	return s + strspn(s, WHITE);
}

/* Copy the quoted text at @s to @to. Returns the text behind it; NULL: @s has
 * no quoted text, or an empty one, or one that is longer than an id. */
static const char *take_quoted(const char *s, char to[VB_TOPO_ID])
{
	const char *end;

	s = skip_white(s);
	if (*s != '"')
		return NULL;
	end = strchr(s + 1, '"');
	if (!end || end == s + 1 || end - s - 1 >= VB_TOPO_ID)
		return NULL;
	snprintf(to, VB_TOPO_ID, "%.*s", (int)(end - s - 1), s + 1);
	return end + 1;
}

/* Read a port's number in brackets, such as "[3]", into *@number. Returns the
 * text behind it; NULL: there is none at @s. */
static const char *take_port(const char *s, unsigned *number)
{
	char *end;
	unsigned long v;

	s = skip_white(s);
	if (*s != '[' || !isdigit((unsigned char)s[1]))
		return NULL;
	v = strtoul(s + 1, &end, 10);
	if (*end != ']' || v > 255)
		return NULL;
	*number = (unsigned)v;
	return end + 1;
}

/* Skip the number of a chassis's port, such as "[ext 3]", and read a GUID in
 * parentheses, such as "(100001)", into *@guid. Both may be missing. Returns
 * the text behind them. */
static const char *take_guid(const char *s, uint64_t *guid)
{
	char *end;

	if (strncmp(s, "[ext", 4) == 0 && strchr(s, ']'))
		s = strchr(s, ']') + 1;
	if (*s != '(')
		return s;
	*guid = strtoull(s + 1, &end, 16);
	return *end == ')' ? end + 1 : s;
}

/* --- nodes --- */

static bool room_for(void **list, size_t count, size_t *room, size_t each)
{
	size_t more = *room ? *room * 2 : 64;
	void *bigger;

	if (count < *room)
		return true;
	bigger = realloc(*list, more * each);
	if (!bigger)
		return false;
	*list = bigger;
	*room = more;
	return true;
}

/* Returns the GUID in an id such as "S-0002c90000000001"; 0: the id has
 * none. */
static uint64_t guid_in(const char *id)
{
	char *end;
	uint64_t guid;

	if (!strchr("SHR", id[0]) || id[1] != '-' ||
	    !isxdigit((unsigned char)id[2]))
		return 0;
	guid = strtoull(id + 2, &end, 16);
	return *end ? 0 : guid;
}

static void take_values(struct parser *p, struct vb_topo_node *n)
{
	n->guid = p->guid ? p->guid : guid_in(n->id);
	n->sys_guid = p->sys_guid;
	n->vendor_id = p->vendor_id;
	n->device_id = p->device_id;
	p->guid = p->sys_guid = 0;
	p->vendor_id = p->device_id = 0;
}

/* Read a line of a node: Switch 8 "S-..." # "description" ... */
static int read_node(struct parser *p, uint8_t kind, const char *s)
{
	char id[VB_TOPO_ID], desc[VB_TOPO_ID];
	struct vb_topo_node *n;
	unsigned long ports;
	char *end;
	int rc;

	ports = strtoul(s, &end, 10);
	if (end == s || ports < 1 || ports > VB_FAB_PORTS_MAX)
		return FAIL(p,
			    "the number of ports is missing, or not in 1 "
			    "to %u",
			    VB_FAB_PORTS_MAX);
	s = take_quoted(end, id);
	if (!s)
		return FAIL(p, "the node's id is missing: 1 to 64 characters "
			       "in quotes");
	rc = vb_topo_add(p->topo, kind, (unsigned)ports, id, &p->node,
			 p->error);
	if (rc)
		return rc == -EINVAL ? fail_at(p, p->file, p->line) : rc;
	n = &p->topo->nodes[p->node];
	n->line = p->line;
	n->file = p->file;
	s = strchr(s, '#');
	if (s && take_quoted(s + 1, desc))
		memcpy(n->desc, desc, sizeof(desc));
	take_values(p, n);
	p->in_node = true;
	return 0;
}

/* Read an option of a port into @port. The options are ibsim's: w=4 s=2 e=1 are
 * the fastest width, speed and extended speed. */
static void take_port_option(struct vb_topo_port *port, const char *word)
{
	unsigned long v = strtoul(word + 2, NULL, 10);
	char name[8];

	if (word[0] == 'w') {
		struct vb_topo_port found;

		snprintf(name, sizeof(name), "%lux", v % 100);
		strcat(name, "SDR");
		if (vb_topo_rate_get(name, &found))
			port->width = found.width;
	} else if (word[0] == 's' && v < 16) {
		port->speed = (uint8_t)(v ? v | (v - 1) : 0);
	} else if (word[0] == 'e' && v < 32) {
		port->speed_ext = (uint8_t)(v ? v | (v - 1) : 0);
	}
}

/* Read the rest of a port's line, behind the peer: options, and a comment that
 * ends in a width and speed such as "4xQDR". */
static void take_rest(struct vb_topo_port *port, const char *s)
{
	bool comment = false;
	char word[64];
	int n;

	while (sscanf(s, " %63s%n", word, &n) == 1) {
		s += n;
		comment = comment || word[0] == '#';
		if (comment)
			(void)vb_topo_rate_get(word, port);
		else if (word[0] && word[1] == '=')
			take_port_option(port, word);
	}
}

/* Read a line of a port: [1](guid) "peer"[3](guid) # comment */
static int read_port_line(struct parser *p, const char *s)
{
	struct wanted w = { .line = p->line, .file = p->file };
	unsigned port, peer_port;
	uint64_t guid = 0, ignored;
	struct vb_topo_node *n;

	if (!p->in_node)
		return FAIL(p, "a port stands before any node");
	n = &p->topo->nodes[p->node];
	s = take_port(s, &port);
	if (!s || port < 1 || port > n->ports)
		return FAIL(p,
			    "the port's number is not in 1 to %u, which "
			    "\"%s\" has",
			    n->ports, n->id);
	s = take_quoted(take_guid(s, &guid), w.peer);
	s = s ? take_port(s, &peer_port) : NULL;
	if (!s)
		return FAIL(p, "the peer of port %u is missing: \"ID\"[PORT]",
			    port);
	if (n->port[port].line)
		return FAIL(p,
			    "port %u of \"%s\" has a peer in line %u already",
			    port, n->id, n->port[port].line);
	n->port[port].line = p->line;
	n->port[port].guid = guid;
	take_rest(&n->port[port], take_guid(s, &ignored));
	w.node = p->node;
	w.port = (uint8_t)port;
	w.peer_port = (uint8_t)peer_port;
	if (!room_for((void **)&p->wanted, p->wanted_count, &p->wanted_room,
		      sizeof(w)))
		return -ENOMEM;
	p->wanted[p->wanted_count++] = w;
	return 0;
}

static bool begins_with(const char *s, const char *word)
{
	size_t len = strlen(word);

	return strncmp(s, word, len) == 0 && strchr(WHITE, s[len]);
}

/* Keep the parameters of a "#!" line. They are checked when the node's kind is
 * known. */
static int take_text(struct parser *p, struct tuned *t, const char *text)
{
	if (strlen(text) >= sizeof(t->text))
		return FAIL(p, "the parameters have more than %zu characters",
			    sizeof(t->text) - 1);
	snprintf(t->text, sizeof(t->text), "%s", text);
	return 0;
}

static int keep_tuning(struct parser *p, const struct tuned *t)
{
	if (!room_for((void **)&p->tuned, p->tuned_count, &p->tuned_room,
		      sizeof(*t)))
		return -ENOMEM;
	p->tuned[p->tuned_count++] = *t;
	return 0;
}

/* Read a line of parameters:
 * #! link "Switch1"[5] delay=50us
 * #! node "Switch1" mtu=2048 */
static int read_tuning(struct parser *p, const char *s)
{
	struct tuned t = { .line = p->line, .file = p->file };
	struct vb_fab_link_spec tried = { 0 };
	bool is_node;
	int rc;

	s = skip_white(s);
	is_node = begins_with(s, "node");
	if (!is_node && !begins_with(s, "link"))
		return FAIL(p, "\"#!\" begins a line for Verbena: #! link "
			       "\"NODE\"[PORT] PARAMETER=VALUE..., or #! node "
			       "\"NODE\" PARAMETER=VALUE...");
	s = take_quoted(s + 4, t.node);
	if (is_node && !s)
		return FAIL(p, "the node is missing: \"NODE\"");
	if (is_node) {
		rc = take_text(p, &t, s);
		return rc ? rc : keep_tuning(p, &t);
	}
	s = s ? take_port(s, &t.port) : NULL;
	if (!s || !t.port)
		return FAIL(p, "the link's end is missing: \"NODE\"[PORT]");
	rc = take_text(p, &t, s);
	if (rc)
		return rc;
	if (vb_topo_far_take(t.text, &t.far, p->error) ||
	    vb_topo_rate_take(t.text, &t.rate, p->error) ||
	    vb_topo_link_spec(t.text, &tried, p->error))
		return fail_at(p, p->file, p->line);
	return keep_tuning(p, &t);
}

/* --- lines --- */

static int read_file(struct parser *p, const char *path);

/* Read the file that a line "include FILE" names. A path that is not absolute
 * begins at the directory of the file that has the line. */
static int read_include(struct parser *p, const char *s)
{
	const char *slash = strrchr(p->file, '/');
	struct parser outer = *p;
	char name[LINE_BYTES], path[2 * LINE_BYTES];
	int rc;

	if (sscanf(s, " %1023s", name) != 1)
		return FAIL(p, "include: the file's name is missing");
	if (p->depth == DEEPEST)
		return FAIL(p, "include: more than %u files deep", DEEPEST);
	snprintf(path, sizeof(path), "%.*s%s",
		 slash && name[0] != '/' ? (int)(slash - p->file + 1) : 0,
		 p->file, name);
	p->depth++;
	rc = read_file(p, path);
	if (rc && rc != -EINVAL && rc != -ENOMEM) {
		p->file = outer.file;
		p->line = outer.line;
		return FAIL(p, "include: cannot read %s: %s", path,
			    strerror(-rc));
	}
	p->file = outer.file;
	p->line = outer.line;
	p->depth = outer.depth;
	p->in_node = false;
	return rc;
}

static const struct {
	const char *word;
	uint8_t kind;
} kinds[] = {
	{ "Switch", FAB_SWITCH }, { "Ca", FAB_CA },	    { "Hca", FAB_CA },
	{ "Rt", FAB_ROUTER },	  { "Router", FAB_ROUTER },
};

static int read_value(struct parser *p, const char *word, size_t len,
		      const char *value)
{
	uint64_t v = strtoull(value, NULL, 16);

	if (strncmp(word, "vendid", len) == 0)
		p->vendor_id = (uint32_t)v & 0xffffff;
	else if (strncmp(word, "devid", len) == 0)
		p->device_id = (uint32_t)v;
	else if (strncmp(word, "sysimgguid", len) == 0)
		p->sys_guid = v;
	else if (strncmp(word, "switchguid", len) == 0 ||
		 strncmp(word, "caguid", len) == 0 ||
		 strncmp(word, "rtguid", len) == 0)
		p->guid = v;
	/* Other words have no effect here; they only inform people. */
	return 0;
}

static bool is_word(const char *line, size_t len, const char *word)
{
	return strlen(word) == len && strncmp(line, word, len) == 0;
}

/* Read a line that begins with a word: a value, a node or an include. */
static int read_word(struct parser *p, const char *s)
{
	size_t len = strspn(s, "abcdefghijklmnopqrstuvwxyz"
			       "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

	if (len > 0 && s[len] == '=')
		return read_value(p, s, len, s + len + 1);
	for (unsigned i = 0; i < VB_COUNT(kinds); i++)
		if (is_word(s, len, kinds[i].word))
			return read_node(p, kinds[i].kind, s + len);
	if (is_word(s, len, "include"))
		return read_include(p, s + len);
	/* Ignored lines: "do" is a command of ibsim's console; "Chassis" begins
	 * a heading, and ibnetdiscover writes further lines about a chassis's
	 * parts. */
	if (is_word(s, len, "do") || is_word(s, len, "Chassis") ||
	    is_word(s, len, "module") || is_word(s, len, "portswitch"))
		return 0;
	return FAIL(p,
		    "\"%.*s\" begins no line of a topology: Switch, Ca, "
		    "Hca, Rt, [PORT], NAME=VALUE and include do",
		    (int)VB_MIN(strcspn(s, WHITE), (size_t)40), s);
}

static int read_line(struct parser *p, const char *line)
{
	const char *s = skip_white(line);

	if (strncmp(s, "#!", 2) == 0)
		return read_tuning(p, s + 2);
	if (*s == '#')
		return 0;
	if (!*s) {
		p->in_node = false;
		return 0;
	}
	return *s == '[' ? read_port_line(p, s) : read_word(p, s);
}

/* Keep a copy of the file's name, which outlives the parser because nodes point
 * to it. */
static const char *keep_name(struct vb_topo *t, const char *path)
{
	char **files = realloc(t->files, (t->file_count + 1) * sizeof(*files));

	if (!files)
		return NULL;
	t->files = files;
	files[t->file_count] = strdup(path);
	return files[t->file_count] ? files[t->file_count++] : NULL;
}

static int read_lines(struct parser *p, FILE *f)
{
	char line[LINE_BYTES];
	int rc = 0;

	while (!rc && fgets(line, sizeof(line), f)) {
		p->line++;
		if (!strchr(line, '\n') && !feof(f))
			rc = FAIL(p, "the line has more than %u characters",
				  LINE_BYTES - 2);
		else
			rc = read_line(p, line);
	}
	if (!rc && ferror(f))
		rc = -errno;
	return rc;
}

static int read_file(struct parser *p, const char *path)
{
	FILE *f = fopen(path, "re");
	int rc;

	if (!f)
		return -errno;
	p->file = keep_name(p->topo, path);
	p->line = 0;
	p->in_node = false;
	rc = p->file ? read_lines(p, f) : -ENOMEM;
	fclose(f);
	return rc;
}

/* --- links --- */

/* Note a peer that is in another process and that no file describes: its GUID
 * and kind are in its id. */
static int link_far(struct parser *p, const struct wanted *w,
		    struct vb_topo_far *far)
{
	static const struct {
		char letter;
		uint8_t kind;
	} letters[] = { { 'S', FAB_SWITCH },
			{ 'H', FAB_CA },
			{ 'R', FAB_ROUTER } };

	far->guid = guid_in(w->peer);
	far->peer_port = w->peer_port;
	if (!far->guid || !w->peer_port)
		return FAIL(p,
			    "there is no node \"%s\"; one in another process "
			    "that no file describes needs an id with its GUID, "
			    "S-0002c90000000001, and a port",
			    w->peer);
	for (unsigned i = 0; i < VB_COUNT(letters); i++)
		if (letters[i].letter == w->peer[0])
			far->kind = letters[i].kind;
	snprintf(far->desc, sizeof(far->desc), "%s", w->peer);
	return 0;
}

/* Note the address of the other process in the port that a line "#! link" with
 * udp= or tcp= names. */
static int attach_far(struct parser *p, const struct tuned *t)
{
	struct vb_topo_node *n = vb_topo_find(p->topo, t->node);
	struct vb_topo_port *port;

	if (t->far.via == VIA_NONE || !n || t->port < 1 || t->port > n->ports)
		/* tune_one() refuses a line that names no node or port */
		return 0;
	port = &n->port[t->port];
	if (!port->far)
		port->far = malloc(sizeof(*port->far));
	if (!port->far)
		return -ENOMEM;
	*port->far = t->far;
	return 0;
}

static int link_ports(struct parser *p, const struct wanted *w)
{
	uint32_t peer = vb_topo_index(p->topo, w->peer);
	struct vb_topo_node *n = &p->topo->nodes[w->node], *other;
	struct vb_topo_port *back;

	p->file = w->file;
	p->line = w->line;
	if (peer == UINT32_MAX && n->port[w->port].far)
		return link_far(p, w, n->port[w->port].far);
	if (peer == UINT32_MAX)
		return FAIL(p, "there is no node \"%s\"", w->peer);
	other = &p->topo->nodes[peer];
	if (w->peer_port < 1 || w->peer_port > other->ports)
		return FAIL(p, "\"%s\" has no port %u: it has %u", w->peer,
			    w->peer_port, other->ports);
	if (peer == w->node && w->peer_port == w->port)
		return FAIL(p, "port %u is linked to itself", w->port);
	back = &other->port[w->peer_port];
	if (back->linked &&
	    (back->peer != w->node || back->peer_port != w->port))
		return FAIL(p,
			    "port %u of \"%s\" is linked to port %u of "
			    "\"%s\" already",
			    w->peer_port, w->peer, back->peer_port,
			    p->topo->nodes[back->peer].id);
	if (n->port[w->port].linked &&
	    (n->port[w->port].peer != peer ||
	     n->port[w->port].peer_port != w->peer_port))
		return FAIL(p,
			    "port %u of \"%s\" says that port %u of \"%s\" "
			    "is its peer",
			    n->port[w->port].peer_port,
			    p->topo->nodes[n->port[w->port].peer].id, w->port,
			    n->id);
	vb_topo_link(p->topo, w->node, w->port, peer, w->peer_port);
	return 0;
}

/* Give the port a width and a speed; what @rate does not give stays as it
 * was. If the port then has only one of the two, it gets the default of the
 * other: 4x or QDR. */
static void set_port_rate(struct vb_topo_port *p,
			  const struct vb_topo_port *rate)
{
	struct vb_topo_port plain = { 0 };

	if (!rate->width && !rate->speed)
		return;
	(void)!vb_topo_rate_get("4xQDR", &plain);
	if (!p->width)
		p->width = plain.width;
	if (!p->speed) {
		p->speed = plain.speed;
		p->speed_ext = plain.speed_ext;
	}
	if (rate->width)
		p->width = rate->width;
	if (rate->speed) {
		p->speed = rate->speed;
		p->speed_ext = rate->speed_ext;
	}
}

static int tune_one(struct parser *p, const struct tuned *t)
{
	struct vb_topo_node *n = vb_topo_find(p->topo, t->node);
	struct vb_topo_port *a, *b;

	p->file = t->file;
	p->line = t->line;
	if (!n)
		return FAIL(p, "there is no node \"%s\"", t->node);
	if (!t->port) {
		int rc = vb_topo_node_spec(t->text, n->kind, false, &n->spec,
					   p->error);

		if (!rc)
			rc = vb_topo_check_routes(&n->spec, n->ports, p->error);
		return rc == -EINVAL ? fail_at(p, t->file, t->line) : rc;
	}
	a = t->port <= n->ports ? &n->port[t->port] : NULL;
	if (!a || !(a->linked || (a->far && a->far->guid)))
		return FAIL(p, "\"%s\" has no link at port %u", t->node,
			    t->port);
	(void)!vb_topo_link_spec(t->text, &a->spec, p->error);
	set_port_rate(a, &t->rate);
	if (!a->linked)
		return 0;
	b = &p->topo->nodes[a->peer].port[a->peer_port];
	b->spec = a->spec;
	set_port_rate(b, &t->rate);
	return 0;
}

static int make_links(struct parser *p)
{
	int rc = 0;

	for (size_t i = 0; i < p->tuned_count && !rc; i++)
		rc = attach_far(p, &p->tuned[i]);
	for (size_t i = 0; i < p->wanted_count && !rc; i++)
		rc = link_ports(p, &p->wanted[i]);
	for (size_t i = 0; i < p->tuned_count && !rc; i++)
		rc = tune_one(p, &p->tuned[i]);
	return rc;
}

int vb_topo_read(struct vb_topo *topo, const char *path,
		 char error[VB_TOPO_ERROR])
{
	struct parser p = { .topo = topo, .error = error };
	int rc = read_file(&p, path);

	if (rc && rc != -EINVAL)
		vb_topo_fail(error, "%.300s: %s", path, strerror(-rc));
	if (!rc)
		rc = make_links(&p);
	if (!rc) {
		rc = vb_topo_finish(topo, error);
		if (rc == -EINVAL) {
			p.file = path;
			fail_at(&p, path, p.line);
		}
	}
	free(p.wanted);
	free(p.tuned);
	return rc;
}

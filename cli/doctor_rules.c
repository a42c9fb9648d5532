/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena doctor`: the rules of this host's firewall, as nft and iptables-save
 * print them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "cli/finding.h"
#include "cli/program.h"

#define ROCE_PORT     4791
#define RULES_BYTES   (256u << 10)
#define TOOL_PATIENCE VB_SEC
#define WORD_MOST     128

/* What the rules say about UDP port 4791. */
struct verdict {
	const char *drops; /* the rule that stops packets; NULL: none */
	/* a rule that may stop packets and that is not understood; or NULL */
	const char *unknown;
	bool accepts;	   /* a rule lets packets pass */
	/* true: the firewall drops packets that no rule accepts */
	bool drop_policy;
};

/* Returns the length of the quoted string at @at, with its quotes. A backslash
 * takes the special meaning from the next character, so \" does not end the
 * string. */
static size_t string_length(const char *at)
{
	size_t length = 1;

	while (at[length] && at[length] != '\n' && at[length] != '"')
		length += at[length] == '\\' && at[length + 1] ? 2 : 1;
	return length + (at[length] == '"');
}

/* Copy the next word of the line at *@rest to @word. A space, a comma or a
 * brace ends a word. A brace is a word of its own, and so is a string in
 * quotes, such as a comment. False: the line has no more words. */
static bool rules_word(const char **rest, char word[WORD_MOST])
{
	const char *at = *rest + strspn(*rest, " \t,");
	size_t length = strcspn(at, " \t,{}\n");

	if (*at == '{' || *at == '}')
		length = 1;
	else if (*at == '"')
		length = string_length(at);
	*rest = at + length;
	snprintf(word, WORD_MOST, "%.*s", (int)length, at);
	return length > 0;
}

/* Is the port the number @word, or in the range "A-B" or "A:B"? */
static bool word_has_port(const char *word)
{
	char *end;
	unsigned long from = strtoul(word, &end, 10), to = from;

	if (!isdigit((unsigned char)*word))
		return false;
	if ((*end == '-' || *end == ':') && isdigit((unsigned char)end[1]))
		to = strtoul(end + 1, &end, 10);
	return *end == '\0' && from <= ROCE_PORT && ROCE_PORT <= to;
}

/* Copy the next word of a list of nft, which may have several lines, to @word.
 * *@begins: it is the first word of an element, which is the key; the caller
 * sets *@begins before the first call. Behind the key may stand a counter, a
 * timeout or a comment. False: the list has no more words. */
static bool list_word(const char **rest, char word[WORD_MOST], bool *begins)
{
	size_t gap = strspn(*rest, " \t,\n");

	*begins = *begins || memchr(*rest, ',', gap);
	*rest += gap;
	return rules_word(rest, word) && strcmp(word, "}") != 0;
}

/* Does the list contain the port? @rest points behind the opening brace of the
 * list. */
static bool list_has_port(const char *rest)
{
	char word[WORD_MOST];

	for (bool begins = true; list_word(&rest, word, &begins);
	     begins = false)
		if (begins && word_has_port(word))
			return true;
	return false;
}

/* Find the next nft set or map (@kind) with the name @name at or behind *@at.
 * Returns the address behind the opening brace of its elements, and moves *@at
 * behind the start of the set. NULL: there is no more such set. The search must
 * cover all rules, because a set stands before the rules that use it. */
static const char *next_elements(const char **at, const char *kind,
				 const char *name)
{
	static const char begin[] = "elements = {";
	char head[WORD_MOST + 8];
	const char *set, *end, *list;

	snprintf(head, sizeof(head), "\t%s %s {", kind, name);
	while ((set = strstr(*at, head))) {
		*at = set + 1;
		end = strstr(set, "\n\t}");
		list = strstr(set, begin);
		if (list && (!end || list < end))
			return list + strlen(begin);
	}
	return NULL;
}

static bool set_has_port(const char *rules, const char *name)
{
	const char *list;

	while ((list = next_elements(&rules, "set", name)))
		if (list_has_port(list))
			return true;
	return false;
}

/* Write the verdict of the port in a map to @what. @rest points behind the
 * opening brace of the map, as in "53 : accept, 4791 counter packets 0 bytes 0
 * : drop }". False: the map has no verdict for the port. */
static bool map_verdict(const char *rest, char what[WORD_MOST])
{
	bool ours = false; /* the element is the port's */

	for (bool begins = true; list_word(&rest, what, &begins);
	     begins = false) {
		if (begins)
			ours = word_has_port(what);
		else if (ours && strcmp(what, ":") == 0)
			return list_word(&rest, what, &begins);
	}
	return false;
}

/* Write the verdict of the port in the map behind the word "vmap" of nft to
 * @what. @rest points behind that word; the map stands there, or its name
 * (@NAME). False: the map has no verdict for the port. */
static bool vmap_verdict(const char *rules, const char *rest,
			 char what[WORD_MOST])
{
	char word[WORD_MOST];
	const char *list;

	if (!rules_word(&rest, word))
		return false;
	if (strcmp(word, "{") == 0)
		return map_verdict(rest, what);
	while (word[0] == '@' &&
	       (list = next_elements(&rules, "map", word + 1)))
		if (map_verdict(list, what))
			return true;
	return false;
}

/* Does the condition behind the word "dport" of nft hold for the port? */
static bool nft_has_port(const char *rules, const char *rest)
{
	char word[WORD_MOST];

	if (!rules_word(&rest, word))
		return false;
	if (word[0] == '@')
		return set_has_port(rules, word + 1);
	return strcmp(word, "{") == 0 ? list_has_port(rest)
				      : word_has_port(word);
}

/* Does the condition behind the word "--dport" or "--dports" of iptables hold
 * for the port? A word that has no digit ends the list. */
static bool iptables_has_port(const char *rest)
{
	char word[WORD_MOST];

	while (rules_word(&rest, word) && isdigit((unsigned char)word[0]))
		if (word_has_port(word))
			return true;
	return false;
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
	return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

/* What the words of a rule say: the protocol, the port, and the verdict. */
struct rule {
	bool udp, port, drop, accept;
	/* The rule tests the port in a way that the doctor does not understand:
	 * together with another field, in an ipset, or by a jump. */
	bool unknown;
};

static void note_verdict(const char *word, struct rule *r)
{
	r->drop = r->drop || is_one_of(word, "drop", "DROP") ||
		  is_one_of(word, "reject", "REJECT");
	r->accept = r->accept || is_one_of(word, "accept", "ACCEPT");
}

/* Judge the ports of a rule of nft: @rest is behind the words "udp dport".
 * @joined: a dot joins another field to the port, and such a rule is not
 * understood. */
static void judge_nft_port(const char *rules, const char *rest, bool joined,
			   struct rule *r)
{
	const char *behind = rest;
	char word[WORD_MOST];

	if (!rules_word(&behind, word))
		return;
	if (joined || strcmp(word, ".") == 0) {
		r->unknown = true;
	} else if (strcmp(word, "vmap") != 0) {
		r->port = r->port || nft_has_port(rules, rest);
	} else if (vmap_verdict(rules, behind, word)) {
		r->port = true;
		r->unknown = is_one_of(word, "jump", "goto");
		note_verdict(word, r);
	}
}

/* Judge a rule, which is the line at @line of @rules. */
static void judge_rule(const char *rules, const char *line, struct verdict *v)
{
	char word[WORD_MOST], before[WORD_MOST] = "", earlier[WORD_MOST] = "";
	const char *rest = line;
	struct rule r = { 0 };
	bool in_map = false; /* the words are in a map */

	while (rules_word(&rest, word)) {
		if (is_one_of(before, "--comment", "--log-prefix"))
			word[0] = '\0'; /* skip the user's text */
		if (is_one_of(word, "udp", "th"))
			r.udp = true;
		else if (strcmp(word, "dport") == 0 &&
			 is_one_of(before, "udp", "th"))
			judge_nft_port(rules, rest, strcmp(earlier, ".") == 0,
				       &r);
		else if (is_one_of(word, "--dport", "--dports") &&
			 strcmp(before, "!") != 0)
			r.port = r.port || iptables_has_port(rest);
		else if (strcmp(word, "--match-set") == 0)
			r.udp = r.unknown = true;
		in_map = in_map || strcmp(word, "vmap") == 0;
		if (!in_map)
			note_verdict(word, &r);
		snprintf(earlier, sizeof(earlier), "%s", before);
		snprintf(before, sizeof(before), "%s", word);
	}
	line += strspn(line, " \t");
	if (r.udp && r.port && r.drop && !v->drops)
		v->drops = line;
	if (r.udp && r.unknown && (r.drop || in_map) && !v->unknown)
		v->unknown = line;
	v->accepts = v->accepts || (r.udp && r.port && r.accept);
}

static struct verdict judge_rules(const char *rules)
{
	struct verdict v = { 0 };
	char line[512];

	for (const char *at = rules; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"),
			 at);
		v.drop_policy = v.drop_policy ||
				(strstr(line, "hook input ") &&
				 strstr(line, "policy drop")) ||
				strncmp(line, ":INPUT DROP", 11) == 0;
		judge_rule(rules, at, &v);
	}
	return v;
}

/* A program that prints the firewall's rules, such as nft. */
struct rule_tool {
	const char *name;
	const char *const words[2]; /* the arguments of the program */
	const char *mend_rule, *mend_policy;
};

enum rules_read { RULES_NO_TOOL, RULES_REFUSED, RULES_TOO_MANY, RULES_READ };

/* Find the tool where administrators' tools are, which an ordinary user's PATH
 * often lacks, and then in PATH. */
static bool find_tool(const char *name, char path[PATH_MAX])
{
	static const char *const places[] = { "/usr/sbin", "/sbin" };

	for (unsigned i = 0; i < VB_COUNT(places); i++) {
		snprintf(path, PATH_MAX, "%s/%s", places[i], name);
		if (access(path, X_OK) == 0)
			return true;
	}
	return vb_program_find(name, path);
}

static void say_verdict(const struct rule_tool *tool, const struct verdict *v)
{
	if (v->drops)
		vb_finding_add("firewall", FINDING_PROBLEM, tool->mend_rule,
			       "a rule of %s stops RoCE's packets: %.*s",
			       tool->name, (int)strcspn(v->drops, "\n"),
			       v->drops);
	else if (v->drop_policy && !v->accepts)
		vb_finding_add("firewall", FINDING_WARNING, tool->mend_policy,
			       "the firewall drops what no rule accepts (%s); "
			       "UDP port 4791 must be accepted",
			       tool->name);
	if (v->unknown && !v->drops)
		vb_finding_add("firewall", FINDING_NOTE, tool->mend_rule,
			       "the doctor does not understand this rule of "
			       "%s, which may stop RoCE's packets (what it "
			       "stops is found by packets only): %.*s",
			       tool->name, (int)strcspn(v->unknown, "\n"),
			       v->unknown);
}

/* Let @tool list its rules, which needs CAP_NET_ADMIN, and say what stands in
 * the way. */
static enum rules_read read_rules(const struct rule_tool *tool, char *rules)
{
	static const char *const env[] = { "PATH=/usr/sbin:/sbin:/usr/bin:/bin",
					   NULL };
	char path[PATH_MAX];
	const char *argv[] = { path, tool->words[0], tool->words[1], NULL };
	struct verdict v;

	if (!find_tool(tool->name, path))
		return RULES_NO_TOOL;
	if (!vb_doctor_run(argv, env, TOOL_PATIENCE, rules, RULES_BYTES)) {
		if (strlen(rules) < RULES_BYTES - 1)
			return RULES_REFUSED;
		vb_finding_add("firewall", FINDING_NOTE, NULL,
			       "the rules of %s are too many to read (more "
			       "than %u KiB); they are found by packets only",
			       tool->name, RULES_BYTES >> 10);
		return RULES_TOO_MANY;
	}
	v = judge_rules(rules);
	say_verdict(tool, &v);
	return RULES_READ;
}

void vb_doctor_rules(void)
{
	static const struct rule_tool tools[] = {
		{ "nft",
		  { "list", "ruleset" },
		  "sudo nft -a list ruleset   # then: sudo nft delete rule "
		  "TABLE CHAIN handle N",
		  "sudo nft insert rule inet filter input udp dport 4791 "
		  "accept" },
		{ "iptables-save",
		  { NULL },
		  "sudo iptables-save | grep 4791   # then: sudo iptables -D "
		  "...",
		  "sudo iptables -I INPUT -p udp --dport 4791 -j ACCEPT" },
	};
	enum rules_read best = RULES_NO_TOOL;
	char *rules = malloc(RULES_BYTES);

	if (!rules)
		return;
	for (unsigned i = 0; i < VB_COUNT(tools); i++) {
		enum rules_read read = read_rules(&tools[i], rules);

		best = VB_MAX(best, read);
	}
	free(rules);
	if (best == RULES_NO_TOOL)
		vb_finding_add("firewall", FINDING_NOTE, NULL,
			       "no nft or iptables here: rules of a firewall "
			       "are found by packets only");
	else if (best == RULES_REFUSED)
		vb_finding_add("firewall", FINDING_NOTE,
			       "sudo nft list ruleset",
			       "this user may not see the firewall's rules; "
			       "they are found by packets only");
}

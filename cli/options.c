/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses options and prints help, both by the tables of cli/commands.c. */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "fabricd/fabricd.h"

#define OPTIONS_MOST 16
#define HELP_KEY     'h'

static const char *const setter_names[] = {
	[SETTER_USER] = "user",
	[SETTER_RUN] = "run",
	[SETTER_TESTS] = "tests",
};

int vb_cli_refuse(const char *name, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "verbena %s: %s; `verbena help %s` says more\n", name,
		text, name);
	return EXIT_USAGE;
}

int vb_cli_refuse_value(const char *name, const char *option, const char *value,
			const char *expected)
{
	return vb_cli_refuse(name, "--%s: \"%s\" is not %s", option, value,
			     expected);
}

/* Functions that parse options. */

static bool is_optional(const struct vb_cli_option *o)
{
	return o->value && o->value[0] == '[';
}

/* Fills in the two tables that getopt_long() wants. */
static void fill_getopt(const struct vb_cli_command *c, struct option *options,
			char *letters)
{
	const struct vb_cli_option *o = c->options;

	if (c->word_ends)
		*letters++ = '+';
	*letters++ = ':';
	*letters++ = HELP_KEY;
	for (; o && o->name; o++) {
		*options++ = (struct option){
			o->name,
			is_optional(o) ? optional_argument
			: o->value     ? required_argument
				       : no_argument,
			NULL,
			o->key,
		};
		if (!o->has_letter)
			continue;
		*letters++ = o->key;
		if (o->value)
			*letters++ = ':';
	}
	*options++ = (struct option){ "help", no_argument, NULL, HELP_KEY };
	*options = (struct option){ 0 };
	*letters = '\0';
}

static const struct vb_cli_option *option_of(const struct vb_cli_command *c,
					     int key)
{
	for (const struct vb_cli_option *o = c->options; o && o->name; o++)
		if (o->key == key)
			return o;
	return NULL;
}

/* Says what is wrong with the option that getopt_long() did not take. */
static void refuse_option(const struct vb_cli_command *c, int found,
			  const char *word)
{
	const struct vb_cli_option *o = option_of(c, optopt);
	bool is_long = word && strncmp(word, "--", 2) == 0;

	if (found == ':' && o)
		vb_cli_refuse(c->name, "--%s needs a value, %s", o->name,
			      o->value);
	else if (is_long && o)
		vb_cli_refuse(c->name, "--%s takes no value", o->name);
	else if (is_long)
		vb_cli_refuse(c->name, "there is no option %s", word);
	else
		vb_cli_refuse(c->name, "there is no option -%c", optopt);
}

/* Was "--", which ends the options, taken for the value of one? */
static bool is_dashes(char **argv)
{
	return optarg && optarg == argv[optind - 1] &&
	       strcmp(optarg, "--") == 0;
}

int vb_cli_next_option(const char *name, int argc, char **argv)
{
	const struct vb_cli_command *c = vb_cli_find_command(name);
	struct option options[OPTIONS_MOST];
	char letters[3 * OPTIONS_MOST];
	int found;

	opterr = 0;
	fill_getopt(c, options, letters);
	found = getopt_long(argc, argv, letters, options, NULL);
	if (found == HELP_KEY) {
		vb_cli_print_help(c);
		exit(fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS);
	}
	if (is_dashes(argv)) {
		optopt = found;
		found = ':';
	}
	if (found != '?' && found != ':')
		return found;
	refuse_option(c, found, optind > 0 ? argv[optind - 1] : NULL);
	return '?';
}

/* Functions that print help. */

static void help_option(const struct vb_cli_option *o, FILE *to)
{
	fprintf(to, "--%s", o->name);
	if (is_optional(o))
		fprintf(to, "[=%s", o->value + 1); /* skip the first "[" */
	else if (o->value)
		fprintf(to, " %s", o->value);
}

static void print_synopsis(const struct vb_cli_command *c)
{
	printf("verbena %s", c->name);
	for (const struct vb_cli_option *o = c->options; o && o->name; o++) {
		printf(" [");
		help_option(o, stdout);
		printf("]");
	}
	printf("%s%s\n", *c->arguments ? " " : "", c->arguments);
}

void vb_cli_print_help(const struct vb_cli_command *c)
{
	printf("usage: ");
	print_synopsis(c);
	printf("\n%s\n\n", c->summary);
	for (const struct vb_cli_option *o = c->options; o && o->name; o++) {
		printf("  ");
		help_option(o, stdout);
		if (o->has_letter)
			printf(", -%c", o->key);
		printf("\n        %s\n", o->help);
	}
	printf("  --help, -h\n        print this text\n");
	if (c->more)
		printf("\n%s", c->more);
	if (strcmp(c->name, "fabric") == 0)
		fputs(vb_topo_kinds, stdout);
}

void vb_cli_print_overview(void)
{
	printf("usage: verbena COMMAND [OPTION]... [ARG]...\n\n");
	for (unsigned i = 0; i < vb_cli_command_count; i++)
		printf("  %-15s %s\n", vb_cli_commands[i].name,
		       vb_cli_commands[i].summary);
	printf("\n`verbena COMMAND --help` says more of a command. With two "
	       "programs on one host:\n\n"
	       "  verbena run -- ibv_rc_pingpong -g 1 &\n"
	       "  verbena run -- ibv_rc_pingpong -g 1 localhost\n\n"
	       "Environment variables:\n\n");
	for (unsigned i = 0; i < vb_cli_variable_count; i++)
		if (vb_cli_variables[i].setter == SETTER_USER)
			printf("  %s=%s\n        %s\n",
			       vb_cli_variables[i].name,
			       vb_cli_variables[i].values,
			       vb_cli_variables[i].help);
}

static void print_options_table(const struct vb_cli_command *c)
{
	for (const struct vb_cli_option *o = c->options; o && o->name; o++) {
		char letter[3] = { '-', o->key, '\0' };

		printf("option\t%s\t--%s\t%s\t%s\t%s\n", c->name, o->name,
		       o->has_letter ? letter : "", o->value ? o->value : "",
		       o->help);
	}
	printf("option\t%s\t--help\t-h\t\tprint this text\n", c->name);
}

void vb_cli_print_tables(void)
{
	for (unsigned i = 0; i < vb_cli_command_count; i++)
		printf("command\t%s\t%s\t%s\n", vb_cli_commands[i].name,
		       vb_cli_commands[i].arguments,
		       vb_cli_commands[i].summary);
	for (unsigned i = 0; i < vb_cli_command_count; i++)
		print_options_table(&vb_cli_commands[i]);
	for (unsigned i = 0; i < vb_cli_variable_count; i++)
		printf("variable\t%s\t%s\t%s\t%s\n", vb_cli_variables[i].name,
		       vb_cli_variables[i].values,
		       setter_names[vb_cli_variables[i].setter],
		       vb_cli_variables[i].help);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbena command: it finds the subcommand in the table of cli/commands.c.
 * The short subcommands are here. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "engine/lease.h"

/* Refuses options and words of a subcommand that has none. */
static bool takes_nothing(const char *name, int argc, char **argv)
{
	int o = vb_cli_next_option(name, argc, argv);

	if (o == -1 && optind < argc)
		vb_cli_refuse(name,
			      "\"%s\" is too much: the command takes no "
			      "arguments",
			      argv[optind]);
	return o == -1 && optind == argc;
}

int vb_cli_status(int argc, char **argv)
{
	struct vb_ipc report;
	int rc;

	if (!takes_nothing("status", argc, argv))
		return EXIT_USAGE;
	rc = vb_lease_status(&report);
	if (rc == -ECONNREFUSED) {
		puts("no broker is running in this network namespace; the "
		     "first program with a RoCE device starts one");
		return EXIT_SUCCESS;
	}
	if (rc) {
		fprintf(stderr, "verbena status: cannot ask the broker: %s\n",
			strerror(-rc));
		return EXIT_FAILURE;
	}
	printf("broker (PID %u): %u program%s with RoCE devices (%s)\n",
	       report.pid, report.programs, report.programs == 1 ? "" : "s",
	       report.text);
	return EXIT_SUCCESS;
}

int vb_cli_version(int argc, char **argv)
{
	if (!takes_nothing("version", argc, argv))
		return EXIT_USAGE;
	puts("verbena " VB_VERSION);
	return EXIT_SUCCESS;
}

/* Prints the help of the command whose name is the words in @argv. */
static int help_with(int argc, char **argv)
{
	const struct vb_cli_command *c;
	char name[32];

	snprintf(name, sizeof(name), "%s%s%s", argv[0], argc > 1 ? " " : "",
		 argc > 1 ? argv[1] : "");
	c = vb_cli_find_command(name);
	if (!c || argc > 2)
		return vb_cli_refuse("help", "there is no command \"%s\"",
				     argc > 2 ? argv[2] : name);
	vb_cli_print_help(c);
	return EXIT_SUCCESS;
}

int vb_cli_help(int argc, char **argv)
{
	bool all = false;
	int o;

	while ((o = vb_cli_next_option("help", argc, argv)) != -1) {
		if (o == '?')
			return EXIT_USAGE;
		all = true;
	}
	if (all && optind < argc)
		return vb_cli_refuse("help", "--all and a command exclude each "
					     "other");
	if (optind < argc)
		return help_with(argc - optind, argv + optind);
	if (all)
		vb_cli_print_tables();
	else
		vb_cli_print_overview();
	return EXIT_SUCCESS;
}

/* Returns the subcommand that @word means: -h and --help stand for "help", and
 * -V and --version for "version", since most commands have these options. */
static const char *real_name(const char *word)
{
	if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0)
		return "help";
	if (strcmp(word, "-V") == 0 || strcmp(word, "--version") == 0)
		return "version";
	return word;
}

/* Returns @status; or a failure if standard output did not take all. */
static int flush_output(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "verbena: cannot write the output: %s\n",
		strerror(errno));
	return status ? status : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	const struct vb_cli_command *c;

	if (argc < 2) {
		fprintf(stderr, "verbena: no command; `verbena help` lists "
				"them\n");
		return EXIT_USAGE;
	}
	c = vb_cli_find_command(real_name(argv[1]));
	if (c && c->main)
		return flush_output(c->main(argc - 1, argv + 1));
	fprintf(stderr,
		"verbena: there is no %s \"%s\"; `verbena help` lists "
		"the commands\n",
		argv[1][0] == '-' ? "option" : "command", argv[1]);
	return EXIT_USAGE;
}

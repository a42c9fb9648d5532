/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena fabric show`: what a fabric is, as text, JSON or a picture. */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "engine/fabric_path.h"
#include "fabricd/fabricd.h"

/* time in which a picture's use of links is measured */
#define LOOK_US 500000

struct show_wish {
	const char *name;
	/* the format that the command `show` of the fabric is asked for */
	const char *how;
	const char *file; /* the file to write to; NULL: standard output */
	const char *path; /* the two LIDs of --path as "LID:LID"; or NULL */
};

static bool read_show(int argc, char **argv, struct show_wish *w)
{
	unsigned ways = 0;
	int o;

	w->how = "text";
	while ((o = vb_cli_next_option("fabric show", argc, argv)) != -1) {
		if (o == 'n') {
			w->name = optarg;
		} else if (o == 'p') {
			w->path = optarg;
		} else if (o == 'j' || o == 't' || o == 's') {
			w->how = o == 'j' ? "json" : o == 't' ? "html" : "svg";
			w->file = o == 'j' ? NULL : optarg;
			ways++;
		} else {
			return false;
		}
	}
	if (w->path && !ways)
		w->how = "path";
	if (optind < argc)
		vb_cli_refuse("fabric show", "\"%s\" is too much",
			      argv[optind]);
	else if (ways > 1 || (w->path && strcmp(w->how, "json") == 0))
		vb_cli_refuse("fabric show",
			      "--json, --html and --svg exclude each other, "
			      "and --json and --path, too");
	else
		return true;
	return false;
}

static int ask_show(const struct show_wish *w, FILE *to)
{
	char command[256], error[VB_TOPO_ERROR] = "";
	int rc = 0;

	if (w->file) {
		rc = vb_fabricd_command(w->name, "mark", to, error);
		usleep(LOOK_US);
	}
	snprintf(command, sizeof(command), "show\n%s%s%s", w->how,
		 w->path ? "\n" : "", w->path ? w->path : "");
	if (!rc)
		rc = vb_fabricd_command(w->name, command, to, error);
	return rc ? vb_cli_fabric_failed(w->name, rc, error) : EXIT_SUCCESS;
}

int vb_cli_fabric_show(int argc, char **argv, const char *name)
{
	struct show_wish w = { .name = name };
	FILE *to = stdout;
	int rc;

	if (!read_show(argc, argv, &w))
		return EXIT_USAGE;
	if (w.file && strcmp(w.file, "-") != 0)
		to = fopen(w.file, "we");
	if (!to)
		return vb_cli_fabric_failed(w.name, -errno, "");
	rc = ask_show(&w, to);
	if ((fflush(to) || ferror(to) || (to != stdout && fclose(to))) && !rc)
		rc = vb_cli_fabric_failed(w.name, -errno, "");
	return rc;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena fabric`: run an InfiniBand fabric, ask one, change one. */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "engine/fabric_path.h"
#include "fabricd/fabricd.h"

#define COMMAND_BYTES 4096

struct wish {
	const char *name, *make;
	bool json, write;
};

static int fabric_usage(void)
{
	fprintf(stderr,
		"usage: verbena fabric [--name NAME] TOPOLOGY\n"
		"       verbena fabric [--name NAME] [--write] --make KIND\n"
		"       verbena fabric ctl [--name NAME] COMMAND...\n"
		"       verbena fabric show [--name NAME] [--json]\n"
		"TOPOLOGY is a file as ibnetdiscover prints it. KIND is one "
		"of\n%s"
		"COMMAND is one of\n"
		"  unlink NODE PORT           pull a cable\n"
		"  link NODE PORT             plug it in again\n"
		"  tune NODE PORT P=VALUE...  delay, rate, buf, credits, ber, "
		"lose, corrupt\n"
		"                             (also lose_flow, corrupt_flow)\n"
		"  topology                   print the topology as a file\n",
		vb_topo_kinds);
	return EXIT_USAGE;
}

static bool read_options(int argc, char **argv, struct wish *w)
{
	static const struct option options[] = {
		{ "name", required_argument, NULL, 'n' },
		{ "make", required_argument, NULL, 'm' },
		{ "json", no_argument, NULL, 'j' },
		{ "write", no_argument, NULL, 'w' },
		{ 0 },
	};
	int o;

	w->name = VB_FABRIC_DEFAULT;
	while ((o = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (o == 'n')
			w->name = optarg;
		else if (o == 'm')
			w->make = optarg;
		else if (o == 'j')
			w->json = true;
		else if (o == 'w')
			w->write = true;
		else
			return false;
	}
	return true;
}

/* --- commands --- */

static int ask(const char *name, const char *command)
{
	char error[VB_TOPO_ERROR] = "";
	int rc = vb_fabricd_command(name, command, stdout, error);

	if (!rc)
		return EXIT_SUCCESS;
	if (rc == -ECONNREFUSED)
		fprintf(stderr,
			"verbena fabric: no fabric \"%s\" is running; start "
			"it: verbena fabric [--name NAME] TOPOLOGY\n",
			name);
	else
		fprintf(stderr, "verbena fabric: %s\n",
			error[0] ? error : strerror(-rc));
	return EXIT_FAILURE;
}

static int control(int argc, char **argv)
{
	char command[COMMAND_BYTES];
	struct wish w = { 0 };
	size_t len = 0;

	if (!read_options(argc, argv, &w) || w.make || w.json || w.write ||
	    optind == argc)
		return fabric_usage();
	for (int i = optind; i < argc; i++) {
		int n = snprintf(command + len, sizeof(command) - len, "%s%s",
				 len ? "\n" : "", argv[i]);

		if (n < 0 || (size_t)n >= sizeof(command) - len)
			return fabric_usage();
		len += (size_t)n;
	}
	return ask(w.name, command);
}

static int fabric_show(int argc, char **argv)
{
	struct wish w = { 0 };

	if (!read_options(argc, argv, &w) || w.make || w.write ||
	    optind != argc)
		return fabric_usage();
	return ask(w.name, w.json ? "show\njson" : "show");
}

/* --- running --- */

static int fabric_fail(const char *why)
{
	fprintf(stderr, "verbena fabric: %s\n", why);
	return EXIT_FAILURE;
}

/* Make a descriptor that becomes readable when the user ends the command with a
 * signal. */
static int open_stop(void)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &ends, NULL) < 0)
		return -1;
	return signalfd(-1, &ends, SFD_CLOEXEC);
}

static int fabric_run(const struct vb_topo *topo, const char *name)
{
	char error[VB_TOPO_ERROR];
	int stop = open_stop(), rc;
	struct vb_fabricd *f;

	if (stop < 0)
		return fabric_fail(strerror(errno));
	f = vb_fabricd_create(topo, name, error);
	if (!f)
		return fabric_fail(error);
	printf("fabric \"%s\": %u nodes; a program takes the place of one by\n"
	       "  verbena run --device ib:%s%s%s -- PROGRAM\n",
	       name, topo->count,
	       strcmp(name, VB_FABRIC_DEFAULT) == 0 ? "" : name,
	       strcmp(name, VB_FABRIC_DEFAULT) == 0 ? "" : "/",
	       topo->nodes[topo->count - 1].id);
	fflush(stdout);
	rc = vb_fabricd_run(f, stop);
	vb_fabricd_destroy(f);
	close(stop);
	return rc ? fabric_fail(strerror(-rc)) : EXIT_SUCCESS;
}

static int start(int argc, char **argv)
{
	char error[VB_TOPO_ERROR] = "no memory";
	struct vb_topo topo = { 0 };
	struct wish w = { 0 };
	int rc;

	if (!read_options(argc, argv, &w) || w.json ||
	    (w.make ? optind != argc : optind + 1 != argc))
		return fabric_usage();
	rc = w.make ? vb_topo_make(&topo, w.make, error)
		    : vb_topo_read(&topo, argv[optind], error);
	if (rc)
		rc = fabric_fail(error);
	else if (w.write)
		rc = vb_topo_write(&topo, stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
	else
		rc = fabric_run(&topo, w.name);
	vb_topo_free(&topo);
	return rc;
}

int vb_cli_fabric(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "ctl") == 0)
		return control(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "show") == 0)
		return fabric_show(argc - 1, argv + 1);
	return start(argc, argv);
}

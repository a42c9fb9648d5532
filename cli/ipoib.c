/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena ipoib`: start the program behind an IPoIB interface, as
 * `verbena run` would, at one place in a fabric. */
#include "cli/cli.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/defs.h"
#include "engine/fabric_places.h"

#define PROGRAM "verbena-ipoib"
#define WORDS	8 /* the program's name, its options, and NULL */

/* Where the program is, relative to this command's directory. */
static const char *const ipoib_places[] = {
	"../ipoib", /* where the build tree has it */
	"../" VB_LIBEXECDIR,
	"../libexec",
};

struct ipoib_wish {
	const char *name, *pkey;
	bool daemon;
};

static int ipoib_usage(void)
{
	fprintf(stderr,
		"usage: verbena ipoib --device ib[:NODE] [--name NAME] "
		"[--pkey 0xPKEY]\n\t[--daemon] [ADDRESS/LENGTH]...\n"
		"Makes the network interface NAME (ib0), which carries IPv4 "
		"and IPv6 over the\nfabric's adapter. It has the partition "
		"PKEY (0xffff), or, if another one is\ngiven, that one and the "
		"name ib0.PKEY.\n");
	return EXIT_USAGE;
}

static bool find_ipoib(char path[PATH_MAX])
{
	char self[PATH_MAX], *slash;

	if (!vb_cli_find_self(self))
		return false;
	slash = strrchr(self, '/');
	for (unsigned i = 0; slash && i < VB_COUNT(ipoib_places); i++) {
		int n = snprintf(path, PATH_MAX, "%.*s/%s/" PROGRAM,
				 (int)(slash - self), self, ipoib_places[i]);

		if (n > 0 && n < PATH_MAX && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* An IPoIB interface has one adapter, and that of a fabric. */
static bool is_one_place(const char *devices)
{
	return devices && !strchr(devices, ',') &&
	       (strcmp(devices, "ib") == 0 ||
		strncmp(devices, VB_FABRIC_PREFIX, strlen(VB_FABRIC_PREFIX)) ==
			0);
}

static int start_ipoib(char *devices, const struct ipoib_wish *w,
		       char **addresses, int count)
{
	char **words = calloc(WORDS + (size_t)count, sizeof(*words));
	static char path[PATH_MAX], name[] = "--name", pkey[] = "--pkey",
				    daemon[] = "--daemon";
	int n = 0;

	if (!words || !find_ipoib(path)) {
		fprintf(stderr, "verbena ipoib: " PROGRAM " is missing: it is "
				"neither in the build tree nor installed with "
				"this command\n");
		free(words);
		free(devices);
		return EXIT_USAGE;
	}
	words[n++] = path;
	if (w->name) {
		words[n++] = name;
		words[n++] = (char *)(uintptr_t)w->name;
	}
	if (w->pkey) {
		words[n++] = pkey;
		words[n++] = (char *)(uintptr_t)w->pkey;
	}
	if (w->daemon)
		words[n++] = daemon;
	memcpy(words + n, addresses, (size_t)count * sizeof(*words));
	n = vb_cli_run_program(devices, words);
	free(words);
	return n;
}

int vb_cli_ipoib(int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'v' },
		{ "name", required_argument, NULL, 'n' },
		{ "pkey", required_argument, NULL, 'p' },
		{ "daemon", no_argument, NULL, 'd' },
		{ 0 },
	};
	struct ipoib_wish w = { 0 };
	char *devices = NULL;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 'n')
			w.name = optarg;
		else if (o == 'p')
			w.pkey = optarg;
		else if (o == 'd')
			w.daemon = true;
		else if (o != 'v' || !vb_cli_add_device(&devices, optarg))
			return ipoib_usage();
	}
	if (!is_one_place(devices)) {
		free(devices);
		return ipoib_usage();
	}
	return start_ipoib(devices, &w, argv + optind, argc - optind);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena ipoib` and `verbena eoib`: start the program behind a network
 * interface on a fabric, as `verbena run` would, at one place in the fabric. */
#include "cli/cli.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/defs.h"
#include "cli/commands.h"
#include "engine/fabric_places.h"

#define PROGRAM "verbena-ipoib"
/* the program's name, 10 words of options, and NULL */
#define WORDS 12

/* Where the program is, relative to this command's directory. */
static const char *const ipoib_places[] = {
	"../ipoib", /* where the build tree has it */
	("../" VB_LIBEXECDIR),
	"../libexec",
};

struct ipoib_wish {
	bool ethernet;
	const char *name, *pkey, *network, *mode;
	bool daemon;
};

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

/* Fills in the program's arguments behind its name. Returns how many they
 * are. */
static int fill_words(const char **words, const struct ipoib_wish *w)
{
	int n = 0;

	if (w->ethernet) {
		words[n++] = "--ethernet";
		words[n++] = w->network ? w->network : "0";
	}
	if (w->name) {
		words[n++] = "--name";
		words[n++] = w->name;
	}
	if (w->pkey) {
		words[n++] = "--pkey";
		words[n++] = w->pkey;
	}
	if (w->mode) {
		words[n++] = "--mode";
		words[n++] = w->mode;
	}
	if (w->daemon)
		words[n++] = "--daemon";
	return n;
}

static int start_ipoib(char *devices, const struct ipoib_wish *w,
		       char **addresses, int count)
{
	const char **words = calloc(WORDS + (size_t)count, sizeof(*words));
	char path[PATH_MAX];
	int n = 1;

	if (!words || !find_ipoib(path)) {
		fprintf(stderr,
			"verbena %s: " PROGRAM " is missing: it is neither in "
			"the build tree nor installed with this command\n",
			w->ethernet ? "eoib" : "ipoib");
		free(words);
		free(devices);
		return EXIT_NO_START;
	}
	words[0] = path;
	n += fill_words(words + 1, w);
	for (int i = 0; i < count; i++)
		words[n++] = addresses[i];
	n = vb_cli_run_program(devices, (char **)(uintptr_t)words);
	free(words);
	return n;
}

/* Is @text a number from @least to 65535? */
static bool is_number(const char *text, unsigned long least)
{
	char *end;
	unsigned long v = strtoul(text, &end, 0);

	return end != text && !*end && *text != '-' && v >= least &&
	       v <= UINT16_MAX;
}

/* Says which value of an option is wrong. 0 if all are right. */
static int ipoib_check(const char *command, const struct ipoib_wish *w)
{
	if (w->pkey && !is_number(w->pkey, 1))
		return vb_cli_refuse_value(command, "pkey", w->pkey,
					   "a number from 1 to 0xffff");
	if (w->network && !is_number(w->network, 0))
		return vb_cli_refuse_value(command, "network", w->network,
					   "a number from 0 to 65535");
	if (w->mode && strcmp(w->mode, "datagram") != 0 &&
	    strcmp(w->mode, "connected") != 0)
		return vb_cli_refuse_value(command, "mode", w->mode,
					   "datagram or connected");
	return 0;
}

static int make_interface(int argc, char **argv, bool ethernet)
{
	const char *command = ethernet ? "eoib" : "ipoib";
	struct ipoib_wish w = { .ethernet = ethernet };
	char *devices = NULL;
	int o;

	while ((o = vb_cli_next_option(command, argc, argv)) != -1) {
		if (o == 'n')
			w.name = optarg;
		else if (o == 'p')
			w.pkey = optarg;
		else if (o == 'b')
			w.daemon = true;
		else if (o == 'w')
			w.network = optarg;
		else if (o == 'm')
			w.mode = optarg;
		else if (o != 'd' || !vb_cli_add_device(&devices, optarg))
			return EXIT_USAGE;
	}
	if (ipoib_check(command, &w)) {
		free(devices);
		return EXIT_USAGE;
	}
	if (!is_one_place(devices)) {
		free(devices);
		return vb_cli_refuse(command, "give one adapter of a fabric, "
					      "--device ib or ib:NODE");
	}
	return start_ipoib(devices, &w, argv + optind, argc - optind);
}

int vb_cli_ipoib(int argc, char **argv)
{
	return make_interface(argc, argv, false);
}

int vb_cli_eoib(int argc, char **argv)
{
	return make_interface(argc, argv, true);
}

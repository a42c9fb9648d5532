/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena ipoib`, `eoib`, `gateway` and `ether`: start the program behind a
 * network interface on a fabric, as `verbena run` would, at one place in the
 * fabric. */
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

/* Where the program is, relative to this command's directory. */
static const char *const ipoib_places[] = {
	"../ipoib", /* where the build tree has it */
	("../" VB_LIBEXECDIR),
	"../libexec",
};

/* The options with a value that this command passes on to the program, where
 * they have the same names. */
static const struct {
	const char *name;
	char key;
} passed_on[] = {
	{ "ethernet", 'w' }, { "gateway", 's' }, { "name", 'n' },
	{ "pkey", 'p' },     { "port", 'o' },	 { "mtu", 'm' },
	{ "router", 'r' },   { "router", 'R' },	 { "mode", 'M' },
};

/* the program's name, --plug and its value, --daemon, the options with values,
 * and NULL */
#define WORDS (5 + 2 * VB_COUNT(passed_on))

struct ipoib_wish {
	const char *command; /* the subcommand, such as "ipoib" */
	/* values of the options, indexed like @passed_on; NULL: the option is
	 * not given */
	const char *value[VB_COUNT(passed_on)];
	bool daemon;
};

static const char **wish_value(struct ipoib_wish *w, int key)
{
	for (unsigned i = 0; i < VB_COUNT(passed_on); i++)
		if (passed_on[i].key == key)
			return &w->value[i];
	return NULL;
}

static bool is_command(const struct ipoib_wish *w, const char *name)
{
	return strcmp(w->command, name) == 0;
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

/* True if @devices is exactly one adapter, and one of a fabric, as an IPoIB
 * interface needs. */
static bool is_one_place(const char *devices)
{
	return devices && !strchr(devices, ',') &&
	       (strcmp(devices, "ib") == 0 ||
		strncmp(devices, VB_FABRIC_PREFIX, strlen(VB_FABRIC_PREFIX)) ==
			0);
}

/* Fills in the program's arguments behind its name. Returns how many they
 * are. */
static int fill_words(const char **words, const struct ipoib_wish *w,
		      const char *place)
{
	int n = 0;

	if (is_command(w, "ether")) {
		words[n++] = "--plug";
		words[n++] = place;
	}
	for (unsigned i = 0; i < VB_COUNT(passed_on); i++) {
		static char option[VB_COUNT(passed_on)][16];

		if (!w->value[i])
			continue;
		snprintf(option[i], sizeof(option[i]), "--%s",
			 passed_on[i].name);
		words[n++] = option[i];
		words[n++] = w->value[i];
	}
	if (w->daemon)
		words[n++] = "--daemon";
	return n;
}

static int start_ipoib(char *devices, const struct ipoib_wish *w,
		       char **addresses, int count)
{
	const char **words = calloc(WORDS + (size_t)count, sizeof(*words));
	char path[PATH_MAX], *place = strdup(devices);
	int n = 1;

	if (!words || !place || !find_ipoib(path)) {
		fprintf(stderr,
			"verbena %s: " PROGRAM " is missing: it is neither in "
			"the build tree nor installed with this command\n",
			w->command);
		free(words);
		free(place);
		free(devices);
		return EXIT_NO_START;
	}
	words[0] = path;
	n += fill_words(words + 1, w, place);
	for (int i = 0; i < count; i++)
		words[n++] = addresses[i];
	n = vb_cli_run_program(devices, (char **)(uintptr_t)words);
	free(words);
	free(place);
	return n;
}

/* Is @text a number from @least to @most? */
static bool is_number(const char *text, unsigned long least, unsigned long most)
{
	char *end;
	unsigned long v = strtoul(text, &end, 0);

	return end != text && !*end && *text != '-' && v >= least && v <= most;
}

/* Does @text name one particular adapter ("ib:NODE"), and not just "ib"? */
static bool is_named_place(const char *text)
{
	struct vb_fabric_place p;

	return text && vb_fabric_place_get(text, strlen(text), &p);
}

/* The values that are permitted for options that take a number. */
static const struct {
	char key;
	unsigned long least, most;
	const char *option, *expected;
} numbers[] = {
	{ 'p', 1, UINT16_MAX, "pkey", "a number from 1 to 0xffff" },
	{ 'w', 0, UINT16_MAX, "network", "a number from 0 to 65535" },
	{ 'm', 1280, 9216, "mtu", "a number of bytes from 1280 to 9216" },
};

/* Says which value of an option is wrong, and returns EXIT_USAGE; 0: all are
 * right. */
static int ipoib_check_values(struct ipoib_wish *w)
{
	const char *mode = *wish_value(w, 'M');

	for (unsigned i = 0; i < VB_COUNT(numbers); i++) {
		const char *text = *wish_value(w, numbers[i].key);

		if (text && !is_number(text, numbers[i].least, numbers[i].most))
			return vb_cli_refuse_value(w->command,
						   numbers[i].option, text,
						   numbers[i].expected);
	}
	if (mode && strcmp(mode, "datagram") != 0 &&
	    strcmp(mode, "connected") != 0)
		return vb_cli_refuse_value(w->command, "mode", mode,
					   "datagram or connected");
	return 0;
}

/* Says what is wrong with the values of options, or missing. 0 if nothing is.
 */
static int ipoib_check(struct ipoib_wish *w, const char *devices)
{
	int rc = ipoib_check_values(w);

	if (rc)
		return rc;
	if (is_command(w, "gateway") && !is_named_place(*wish_value(w, 's')))
		return vb_cli_refuse(w->command,
				     "give the switch, --switch ib:SWITCH");
	if (is_command(w, "ether") &&
	    (!is_one_place(devices) || !is_named_place(devices)))
		return vb_cli_refuse(w->command,
				     "give the switch, --device ib:SWITCH");
	if (!is_one_place(devices))
		return vb_cli_refuse(w->command,
				     "give one adapter of a fabric, --device "
				     "ib or ib:NODE");
	return 0;
}

/* Stores an option's value. --router may come twice, once for each IP family:
 * the second value has the key 'R'. */
static void keep_value(struct ipoib_wish *w, int key, const char *value)
{
	const char **to = wish_value(w, key);

	if (key == 'r' && *to)
		to = wish_value(w, 'R');
	*to = value;
}

static int make_interface(int argc, char **argv, struct ipoib_wish *w)
{
	char *devices = NULL;
	int o;

	while ((o = vb_cli_next_option(w->command, argc, argv)) != -1) {
		if (o == 'b')
			w->daemon = true;
		else if (o == 'd' && vb_cli_add_device(&devices, optarg))
			continue;
		else if (o != 'd' && wish_value(w, o))
			keep_value(w, o, optarg);
		else
			return EXIT_USAGE;
	}
	if (ipoib_check(w, devices)) {
		free(devices);
		return EXIT_USAGE;
	}
	if (is_command(w, "gateway") && optind == argc) {
		free(devices);
		return vb_cli_refuse(w->command,
				     "give the gateway an address with the "
				     "length of its network, 10.9.0.254/24");
	}
	return start_ipoib(devices, w, argv + optind, argc - optind);
}

int vb_cli_ipoib(int argc, char **argv)
{
	struct ipoib_wish w = { .command = "ipoib" };

	return make_interface(argc, argv, &w);
}

int vb_cli_eoib(int argc, char **argv)
{
	struct ipoib_wish w = { .command = "eoib" };

	keep_value(&w, 'w', "0");
	return make_interface(argc, argv, &w);
}

int vb_cli_gateway(int argc, char **argv)
{
	struct ipoib_wish w = { .command = "gateway" };

	return make_interface(argc, argv, &w);
}

int vb_cli_ether(int argc, char **argv)
{
	struct ipoib_wish w = { .command = "ether" };

	return make_interface(argc, argv, &w);
}

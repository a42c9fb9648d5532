/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena run`: put our libibverbs.so.1 and librdmacm.so.1 first on the
 * library path and become the program. The path works for what a program links
 * and for what it opens by dlopen(); the loader ignores it for setuid programs.
 */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/defs.h"
#include "engine/sysfs_tree.h"

#define LIBRARY	 "libibverbs.so.1"
#define FILES	 "libverbena-files.so"
#define RSOCKETS "librspreload.so"

/* From the directory this command is in; they hold our libraries only. */
static const char *const places[] = {
	"../front/verbs", /* the build tree */
	"../" VB_LIBDIR "/verbena",
	"../lib/verbena",
};

/* "A:B", or what there is of them. */
static char *join(const char *a, char between, const char *b)
{
	size_t room = strlen(a) + (b ? strlen(b) : 0) + 2;
	char *both = malloc(room);

	if (both)
		snprintf(both, room, b && *b ? "%s%c%s" : "%s", a, between, b);
	return both;
}

static bool find_self(char self[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);

	if (n <= 0)
		return false;
	self[n] = '\0';
	return true;
}

static bool find_library(const char *self, char directory[PATH_MAX])
{
	const char *slash = strrchr(self, '/');
	char path[PATH_MAX];

	for (unsigned i = 0; slash && i < VB_COUNT(places); i++) {
		int n = snprintf(path, sizeof(path), "%.*s/%s/" LIBRARY,
				 (int)(slash - self), self, places[i]);

		if (n < 0 || n >= PATH_MAX || access(path, R_OK) < 0)
			continue;
		/* The name is a link to a version: only the directory is
		 * resolved. */
		*strrchr(path, '/') = '\0';
		if (realpath(path, directory))
			return true;
	}
	return false;
}

static bool put_first(const char *variable, const char *value, char between)
{
	char *both = join(value, between, getenv(variable));
	bool set = both && setenv(variable, both, 1) == 0;

	free(both);
	return set;
}

/* In a build tree each library has a directory of its own. */
static bool add_neighbour(const char *directory)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/../rdmacm", directory);

	if (n < 0 || n >= PATH_MAX || access(path, X_OK) < 0)
		return true;
	return put_first("LD_LIBRARY_PATH", path, ':');
}

/* Installed, it is beside the others; in a build tree it has its @room. */
static bool find_beside(const char *directory, const char *room,
			const char *name, char path[PATH_MAX])
{
	int n = snprintf(path, PATH_MAX, "%s/%s", directory, name);

	if (n >= 0 && n < PATH_MAX && access(path, R_OK) < 0)
		n = snprintf(path, PATH_MAX, "%s/../%s/%s", directory, room,
			     name);
	return n >= 0 && n < PATH_MAX && access(path, R_OK) == 0;
}

/* Programs that look into /sys/class/infiniband or /dev/infiniband themselves
 * are led to a tree of ours (front/files). Where there is none, or no such
 * library, they see the host's, as they did. */
static bool lead_to_tree(const char *directory)
{
	char path[PATH_MAX], root[PATH_MAX];

	if (!find_beside(directory, "files", FILES, path) ||
	    !vb_sysfs_tree_write(root))
		return unsetenv("VERBENA_TREE") == 0; /* of a run around us */
	return put_first("LD_PRELOAD", path, ':') &&
	       setenv("VERBENA_TREE", root, 1) == 0;
}

/* The program's TCP sockets become rsockets (front/rsockets/preload.c), and if
 * all are to, its UDP sockets too. */
static bool turn_sockets(const char *directory, const char *which)
{
	char path[PATH_MAX];

	if (find_beside(directory, "rdmacm", RSOCKETS, path))
		return put_first("LD_PRELOAD", path, ':') &&
		       setenv("VERBENA_RSOCKETS", which, 1) == 0;
	errno = ENOENT;
	return false;
}

/* @rsockets: which; NULL: none. */
static bool set_up(const char *rsockets)
{
	char self[PATH_MAX], directory[PATH_MAX];

	if (!find_self(self) || !find_library(self, directory)) {
		fprintf(stderr, "verbena run: " LIBRARY
				" of verbena is not found: neither built nor "
				"installed\n");
		return false;
	}
	if (!add_neighbour(directory) ||
	    !put_first("LD_LIBRARY_PATH", directory, ':') ||
	    setenv("VERBENA_BROKER", self, 1) < 0 || !lead_to_tree(directory) ||
	    (rsockets && !turn_sockets(directory, rsockets))) {
		perror("verbena run");
		return false;
	}
	return true;
}

bool vb_cli_add_device(char **devices, const char *spec)
{
	char *more = *devices ? join(*devices, ',', spec) : strdup(spec);

	free(*devices);
	*devices = more;
	return more;
}

static int become(char **argv)
{
	int error;

	execvp(argv[0], argv);
	error = errno;
	fprintf(stderr, "verbena run: %s: %s\n", argv[0], strerror(error));
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
}

static int usage(void)
{
	fprintf(stderr, "usage: verbena run [--device SPEC]... "
			"[--rsockets[=all]] [--] PROGRAM [ARG]...\n");
	return EXIT_USAGE;
}

int vb_cli_run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "rsockets", optional_argument, NULL, 'r' },
		{ 0 },
	};
	char *devices = NULL;
	const char *rsockets = NULL;
	int o;

	/* +: what follows the program's name is the program's. */
	while ((o = getopt_long(argc, argv, "+d:", options, NULL)) != -1) {
		if (o == 'r' && (!optarg || strcmp(optarg, "all") == 0))
			rsockets = optarg ? optarg : "tcp";
		else if (o != 'd' || !vb_cli_add_device(&devices, optarg))
			return usage();
	}
	if (optind == argc)
		return usage();
	if (devices && setenv("VERBENA_DEVICES", devices, 1) < 0) {
		perror("verbena run");
		return EXIT_USAGE;
	}
	if (!set_up(rsockets))
		return EXIT_USAGE;
	return become(argv + optind);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena run`: put our libibverbs.so.1 and librdmacm.so.1 first on the
 * library path and become the program. The path works for what a program links
 * and for what it opens by dlopen(). Where it does not work, we say so.
 */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/defs.h"
#include "cli/program.h"
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

/* Where /proc is not mounted, the kernel has told the name that was executed.
 */
static bool find_self(char self[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);
	const char *executed = (const char *)getauxval(AT_EXECFN);

	if (n <= 0)
		return executed && realpath(executed, self);
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
 * are led to @root, a tree of ours (front/files); empty: there is none, and
 * they see the host's, as they did. */
static bool lead_to_tree(const char *directory, const char *root)
{
	char path[PATH_MAX];

	if (!root[0] || !find_beside(directory, "files", FILES, path))
		return true;
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

/*
 * gcc's AddressSanitizer ends a program when anything is loaded before it. It
 * need not be first: what our preloads call next is its own, so it checks as
 * much. To preload it would be worse: the shells and tools that the program
 * starts would be checked, too. Who says otherwise behind this is obeyed.
 */
static bool calm_sanitizer(void)
{
	return !getenv("LD_PRELOAD") ||
	       put_first("ASAN_OPTIONS", "verify_asan_link_order=0", ':');
}

/* What was asked for. */
struct wish {
	const char *rsockets; /* which; NULL: none */
	bool namespace;
};

/* Where we are, and what there is. */
struct findings {
	char self[PATH_MAX], directory[PATH_MAX];
	char root[PATH_MAX]; /* empty: there is no tree */
	struct vb_program program;
};

static bool find_all(const char *program, struct findings *f)
{
	if (!find_self(f->self) || !find_library(f->self, f->directory)) {
		fprintf(stderr, "verbena run: " LIBRARY
				" of verbena is not found: neither built nor "
				"installed\n");
		return false;
	}
	if (!vb_sysfs_tree_write(f->root))
		f->root[0] = '\0';
	vb_program_look(program, &f->program);
	return true;
}

#define NO_TREE                                                                \
	"no files of the devices could be written in /run/verbena, "           \
	"$XDG_RUNTIME_DIR or /tmp (VERBENA_LOG=info says why); set "           \
	"XDG_RUNTIME_DIR to a directory of yours"

/* Another loader would end the program, or complain, over our libraries. */
static bool can_load(const struct vb_program *p)
{
	return p->kind != PROGRAM_MUSL && p->kind != PROGRAM_FOREIGN;
}

static bool put_libraries(const struct findings *f, const struct wish *w)
{
	return add_neighbour(f->directory) &&
	       put_first("LD_LIBRARY_PATH", f->directory, ':') &&
	       lead_to_tree(f->directory, f->root) &&
	       (!w->rsockets || turn_sockets(f->directory, w->rsockets)) &&
	       calm_sanitizer();
}

/* In a user namespace of ours there is no other user to become; capabilities of
 * files are given there, too. */
static bool is_privileged(const struct vb_program *p, bool as_user)
{
	return p->privilege == PRIVILEGE_CAPABILITIES ||
	       (p->privilege != PRIVILEGE_NONE && !as_user);
}

static void warn(const struct findings *f, bool as_user)
{
	const struct vb_program *p = &f->program;
	static const char *const kinds[] = {
		[PROGRAM_STATIC] =
			"is statically linked and cannot load "
			"Verbena's " LIBRARY "; programs that it starts can",
		[PROGRAM_MUSL] = "is linked for musl, and Verbena's " LIBRARY
				 " for glibc: it runs without that",
		[PROGRAM_FOREIGN] =
			"is no 64-bit program for this processor, "
			"as Verbena's " LIBRARY " is: it runs without that",
	};
	static const char *const privileges[] = {
		[PRIVILEGE_USER] = "is set-user-ID",
		[PRIVILEGE_GROUP] = "is set-group-ID",
		[PRIVILEGE_CAPABILITIES] = "has file capabilities",
	};

	if (!f->root[0])
		fprintf(stderr,
			"verbena run: warning: UCX and others that look into "
			"/dev/infiniband will find no device: " NO_TREE "\n");
	if (p->kind != PROGRAM_PLAIN)
		fprintf(stderr, "verbena run: warning: %s %s\n", p->path,
			kinds[p->kind]);
	else if (is_privileged(p, as_user))
		fprintf(stderr,
			"verbena run: warning: %s %s, so the loader ignores "
			"Verbena's library path; run it as a user who needs "
			"no such privilege (root, say), or install Verbena's "
			"libraries in the system's path\n",
			p->path, privileges[p->privilege]);
}

static bool enter_namespace(const struct findings *f, bool *as_user)
{
	if (f->root[0])
		return vb_cli_enter_namespace(f->root, as_user);
	fprintf(stderr, "verbena run: --namespace: " NO_TREE "\n");
	return false;
}

/* The namespace first: a run around us may have preloaded the library that
 * leads names into us, too, and what is mounted is to be at the real ones. */
static bool set_up(const char *program, const struct wish *w)
{
	struct findings f;
	bool as_user = false;

	if (!find_all(program, &f))
		return false;
	if (setenv("VERBENA_BROKER", f.self, 1) < 0 ||
	    unsetenv("VERBENA_TREE") < 0) {
		perror("verbena run");
		return false;
	}
	if (w->namespace && !enter_namespace(&f, &as_user))
		return false;
	if (can_load(&f.program) && !put_libraries(&f, w)) {
		perror("verbena run");
		return false;
	}
	warn(&f, as_user);
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
			"[--rsockets[=all]] [--namespace] [--] "
			"PROGRAM [ARG]...\n");
	return EXIT_USAGE;
}

int vb_cli_run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "rsockets", optional_argument, NULL, 'r' },
		{ "namespace", no_argument, NULL, 'n' },
		{ 0 },
	};
	char *devices = NULL;
	struct wish w = { 0 };
	int o;

	/* +: what follows the program's name is the program's. */
	while ((o = getopt_long(argc, argv, "+d:", options, NULL)) != -1) {
		if (o == 'r' && (!optarg || strcmp(optarg, "all") == 0))
			w.rsockets = optarg ? optarg : "tcp";
		else if (o == 'n')
			w.namespace = true;
		else if (o != 'd' || !vb_cli_add_device(&devices, optarg))
			return usage();
	}
	if (optind == argc)
		return usage();
	if (devices && setenv("VERBENA_DEVICES", devices, 1) < 0) {
		perror("verbena run");
		return EXIT_USAGE;
	}
	if (!set_up(argv[optind], &w))
		return EXIT_USAGE;
	return become(argv + optind);
}

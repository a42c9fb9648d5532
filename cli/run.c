/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbena run`: put Verbena's libibverbs.so.1 and librdmacm.so.1 first on the
 * library path and execute the program. The path works for libraries that a
 * program is linked with and for those that it opens by dlopen(). This command
 * warns about a program for which the path does not work.
 */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/defs.h"
#include "cli/bundled.h"
#include "cli/commands.h"
#include "cli/finding.h"
#include "cli/program.h"
#include "engine/fabric_places.h"
#include "engine/sysfs_tree.h"

#define LIBRARY	 "libibverbs.so.1"
#define FILES	 "libverbena-files.so"
#define RSOCKETS "librspreload.so"

/* Where the libraries are, relative to this command's directory. These
 * directories have Verbena's libraries only. */
static const char *const places[] = {
	"../front/verbs", /* where the build tree has libibverbs.so.1 */
	"../" VB_LIBDIR "/verbena",
	"../lib/verbena",
};

/* Returns "A:B", or A alone when @b is NULL or empty, which the caller frees.
 */
static char *run_join(const char *a, char between, const char *b)
{
	size_t room = strlen(a) + (b ? strlen(b) : 0) + 2;
	char *both = malloc(room);

	if (both)
		snprintf(both, room, b && *b ? "%s%c%s" : "%s", a, between, b);
	return both;
}

/* Find the name of this program's file. If /proc is not mounted, the auxiliary
 * vector has the name that was executed. */
bool vb_cli_find_self(char self[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);
	const char *executed = (const char *)getauxval(AT_EXECFN);

	if (n <= 0)
		return executed && realpath(executed, self);
	self[n] = '\0';
	return true;
}

bool vb_cli_find_library(const char *self, char directory[PATH_MAX])
{
	const char *slash = strrchr(self, '/');
	char path[PATH_MAX];

	for (unsigned i = 0; slash && i < VB_COUNT(places); i++) {
		int n = snprintf(path, sizeof(path), "%.*s/%s/" LIBRARY,
				 (int)(slash - self), self, places[i]);

		if (n < 0 || n >= PATH_MAX || access(path, R_OK) < 0)
			continue;
		/* Resolve links in the directory only: the library's name
		 * itself is a link to a version of it. */
		*strrchr(path, '/') = '\0';
		if (realpath(path, directory))
			return true;
	}
	return false;
}

static bool set_variable(const char *variable, const char *value)
{
	if (value && setenv(variable, value, 1) == 0)
		return true;
	fprintf(stderr, "verbena run: cannot set %s in the environment: %s\n",
		variable, strerror(errno));
	return false;
}

/* Put @value before the present value of the environment variable. */
static bool put_first(const char *variable, const char *value, char between)
{
	char *both = run_join(value, between, getenv(variable));
	bool set = set_variable(variable, both);

	free(both);
	return set;
}

static bool add_directory(const char *directory, const char *other)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", directory, other);

	if (n < 0 || n >= PATH_MAX || access(path, X_OK) < 0)
		return true;
	return put_first("LD_LIBRARY_PATH", path, ':');
}

/* Add the directory of librdmacm.so.1 to the library path: in the build tree
 * this library has a directory of its own. */
static bool add_neighbour(const char *directory)
{
	return add_directory(directory, "../rdmacm");
}

/* Has one of the devices a port in a fabric? */
static bool wants_fabric(void)
{
	struct vb_fabric_adapter a;
	unsigned count;

	return vb_fabric_adapter_nth(getenv("VERBENA_DEVICES"), 0, &a, &count);
}

/* For places in a fabric, add the directory of libibumad.so.3 to the library
 * path. Verbena's libibumad has a directory of its own because it knows fabrics
 * only: with other devices, programs need the system's libibumad. */
static bool add_umad(const char *directory)
{
	return !wants_fabric() || (add_directory(directory, "../umad") &&
				   add_directory(directory, "umad"));
}

/* Find the library @name: when installed it is in @directory with the others,
 * in the build tree in the directory of its @room. */
static bool find_beside(const char *directory, const char *room,
			const char *name, char path[PATH_MAX])
{
	int n = snprintf(path, PATH_MAX, "%s/%s", directory, name);

	if (n >= 0 && n < PATH_MAX && access(path, R_OK) < 0)
		n = snprintf(path, PATH_MAX, "%s/../%s/%s", directory, room,
			     name);
	return n >= 0 && n < PATH_MAX && access(path, R_OK) == 0;
}

/* Preload the library that redirects paths in /sys/class/infiniband and
 * /dev/infiniband to the tree at @root (front/files). If @root is empty there
 * is no tree, and programs see the host's files. */
static bool redirect_to_tree(const char *directory, const char *root)
{
	char path[PATH_MAX];

	if (!root[0] || !find_beside(directory, "files", FILES, path))
		return true;
	return put_first("LD_PRELOAD", path, ':') &&
	       set_variable("VERBENA_TREE", root);
}

/* Preload the library that turns the program's TCP sockets into rsockets
 * (front/rsockets/preload.c). With @which "all", UDP sockets become rsockets as
 * well. */
static bool turn_sockets(const char *directory, const char *which)
{
	char path[PATH_MAX];

	if (find_beside(directory, "rdmacm", RSOCKETS, path))
		return put_first("LD_PRELOAD", path, ':') &&
		       set_variable("VERBENA_RSOCKETS", which);
	fprintf(stderr, "verbena run: --rsockets: Verbena's " RSOCKETS
			" is missing: it is neither in the build tree nor "
			"installed\n");
	return false;
}

/*
 * gcc's AddressSanitizer ends a program when a library is loaded before it. The
 * sanitizer need not be the first library: the functions that the preloads call
 * next are its own, so it checks as much. Preloading the sanitizer before them
 * would check the shells and tools that the program starts, too. A value that
 * the user has set stands behind this one, and so overrides it.
 *
 * ThreadSanitizer sees the C library's functions that Verbena calls, but not
 * the locks around them, so it is told to look at the program's calls only.
 */
static bool calm_sanitizer(void)
{
	return (!getenv("LD_PRELOAD") ||
		put_first("ASAN_OPTIONS", "verify_asan_link_order=0", ':')) &&
	       put_first("TSAN_OPTIONS", "ignore_noninstrumented_modules=1",
			 ':');
}

/* The options that the user has given. */
struct wish {
	/* the kinds of sockets that become rsockets, "tcp" or "all"; NULL:
	 * none */
	const char *rsockets;
	bool namespace;
};

/* The paths that this command has found. */
struct findings {
	char self[PATH_MAX];	  /* the path of this command itself */
	char directory[PATH_MAX]; /* the directory of libibverbs.so.1 */
	/* the root of the tree of device files; empty: there is no tree */
	char root[PATH_MAX];
	/* errno that explains why there is no tree; ENODEV: no device is
	 * chosen */
	int no_tree;
	struct vb_program program;
};

static bool find_all(const char *program, struct findings *f)
{
	if (!vb_cli_find_self(f->self) ||
	    !vb_cli_find_library(f->self, f->directory)) {
		fprintf(stderr, "verbena run: Verbena's " LIBRARY
				" is missing: it is neither in the build tree "
				"nor installed with this command\n");
		return false;
	}
	f->no_tree = 0;
	if (!vb_sysfs_tree_write(f->root)) {
		f->no_tree = errno;
		f->root[0] = '\0';
	}
	vb_program_look(program, &f->program);
	return true;
}

#define NO_TREE                                                                \
	"the devices' files could not be written to /run/verbena, "            \
	"$XDG_RUNTIME_DIR or /tmp (VERBENA_LOG=info says why); set "           \
	"XDG_RUNTIME_DIR to a directory that you own"

/* True if the program can load Verbena's libraries. The loader of a musl or
 * foreign program would end the program, or complain, when it met them. */
static bool can_load(const struct vb_program *p)
{
	return p->kind != PROGRAM_MUSL && p->kind != PROGRAM_FOREIGN;
}

static bool put_libraries(const struct findings *f, const struct wish *w)
{
	return add_neighbour(f->directory) && add_umad(f->directory) &&
	       put_first("LD_LIBRARY_PATH", f->directory, ':') &&
	       redirect_to_tree(f->directory, f->root) &&
	       (!w->rsockets || turn_sockets(f->directory, w->rsockets)) &&
	       calm_sanitizer();
}

/* Print a message that contains a file's name. This function replaces control
 * characters, because the name may contain commands for the terminal. */
static void VB_PRINTF(1, 2) run_say(const char *format, ...)
{
	char text[3 * PATH_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "verbena run: %s\n", vb_finding_clean(text));
}

/* Does the file give a privilege when it is executed? In a user namespace that
 * this command has made there is no other user or group to become, but files'
 * capabilities are given there, too. */
static bool is_privileged(const struct vb_program *p, bool as_user)
{
	return p->privilege == PRIVILEGE_CAPABILITIES ||
	       (p->privilege != PRIVILEGE_NONE && !as_user);
}

/* Returns what keeps programs of the kind from Verbena's libraries; NULL:
 * nothing that this command can know. */
static const char *fault_of_kind(enum vb_program_kind kind)
{
	static const char *const kinds[PROGRAM_KINDS] = {
		[PROGRAM_STATIC] =
			"is statically linked and cannot load "
			"Verbena's " LIBRARY ": link it dynamically (without "
			"-static); programs that it starts can load it",
		[PROGRAM_MUSL] =
			"is linked for musl and cannot load Verbena's " LIBRARY
			", which needs glibc: build it on a glibc system; it "
			"runs without that library",
		[PROGRAM_FOREIGN] =
			"is not a 64-bit program for this "
			"processor and cannot load Verbena's " LIBRARY
			"; it runs without that library",
	};

	return kinds[kind];
}

static void warn(const struct findings *f, bool as_user)
{
	const struct vb_program *p = &f->program;
	const char *fault = fault_of_kind(p->kind);
	static const char *const privileges[] = {
		[PRIVILEGE_USER] = "is set-user-ID",
		[PRIVILEGE_GROUP] = "is set-group-ID",
		[PRIVILEGE_CAPABILITIES] = "has file capabilities",
	};

	if (f->no_tree == ENODEV)
		fprintf(stderr, "verbena run: warning: the program will find "
				"no RDMA device; `verbena devices` lists "
				"those there are\n");
	else if (f->no_tree)
		fprintf(stderr,
			"verbena run: warning: programs that look into "
			"/dev/infiniband or /sys/class/infiniband (UCX, for "
			"one) will find no device: " NO_TREE "\n");
	if (fault)
		run_say("warning: %s %s (`verbena doctor -- %s` says more)",
			p->path, fault, vb_finding_quoted(p->path));
	else if (is_privileged(p, as_user))
		run_say("warning: %s %s, so the loader ignores Verbena's "
			"library path and the program finds no device of "
			"Verbena; take the privilege from a copy of it (sudo "
			"%s %s), or run it as a user to whom the file gives "
			"none (root, for example); `verbena doctor -- %s` says "
			"more",
			p->path, privileges[p->privilege],
			p->privilege == PRIVILEGE_CAPABILITIES ? "setcap -r"
							       : "chmod ug-s",
			vb_finding_quoted(p->path), vb_finding_quoted(p->path));
}

/* Warn if a package has brought a libibverbs of its own, as Python packages
 * can: the program may load that one. */
static void warn_of_bundled(const struct vb_program *p)
{
	char found[PATH_MAX];

	if (!fault_of_kind(p->kind) && vb_bundled_find(p->path, found))
		run_say("warning: %s is a libibverbs that a package brings "
			"along; what loads it does not see Verbena's devices "
			"(`verbena doctor -- %s` says more)",
			found, vb_finding_quoted(p->path));
}

static void warn_of_variable(const char *name, size_t len, const char *text)
{
	(void)name, (void)len;
	run_say("warning: %s (`verbena help` has the variables)", text);
}

static bool enter_namespace(const struct findings *f, bool *as_user)
{
	if (f->root[0])
		return vb_cli_enter_namespace(f->root, as_user);
	fprintf(stderr, "verbena run: --namespace: " NO_TREE "\n");
	return false;
}

/* Prepare the environment. This clears VERBENA_TREE first: if this command was
 * started by another `verbena run`, the preloaded library would redirect its
 * own paths, and the namespace needs the real ones. */
static bool set_up(const char *program, const struct wish *w)
{
	struct findings f;
	bool as_user = false;

	vb_cli_check_variables(warn_of_variable);
	if (!find_all(program, &f))
		return false;
	if (!set_variable("VERBENA_BROKER", f.self))
		return false;
	unsetenv("VERBENA_TREE");
	if (w->namespace && !enter_namespace(&f, &as_user))
		return false;
	if (can_load(&f.program) && !put_libraries(&f, w))
		return false;
	warn(&f, as_user);
	warn_of_bundled(&f.program);
	return true;
}

/* Write "+" between the ports of VPI adapters in @list, so that they end where
 * the option ends. */
static void join_ports(char *list)
{
	while (*list) {
		size_t len = vb_spec_length(list);

		for (size_t i = 0; i < len && vb_vpi_is(list, len); i++)
			if (list[i] == ',')
				list[i] = '+';
		list += len + (list[len] == ',');
	}
}

bool vb_cli_add_device(char **devices, const char *spec)
{
	char *own = strdup(spec), *more = own;

	if (own)
		join_ports(own);
	if (own && *devices) {
		more = run_join(*devices, ',', own);
		free(own);
	}

	free(*devices);
	*devices = more;
	return more;
}

/* Joins the fabrics in @devices, the list of --device (NULL: the
 * environment's), and exports the list as VERBENA_DEVICES. Frees @devices. */
static bool choose_devices(char *devices)
{
	const char *given = getenv("VERBENA_DEVICES");
	char self[PATH_MAX];
	bool good = true;

	if (!devices && given)
		devices = strdup(given);
	if (devices && vb_cli_find_self(self))
		good = vb_cli_join_fabrics(self, &devices);
	if (good && devices)
		good = set_variable("VERBENA_DEVICES", devices);
	free(devices);
	return good;
}

static int become(char **argv)
{
	int error;

	execvp(argv[0], argv);
	error = errno;
	run_say("cannot execute %s: %s", argv[0], strerror(error));
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
}

int vb_cli_run_program(char *devices, char **argv)
{
	const struct wish w = { 0 };

	if (!choose_devices(devices) || !set_up(argv[0], &w))
		return EXIT_NO_START;
	return become(argv);
}

int vb_cli_run(int argc, char **argv)
{
	char *devices = NULL;
	struct wish w = { 0 };
	int o;

	while ((o = vb_cli_next_option("run", argc, argv)) != -1) {
		if (o == '?')
			return EXIT_USAGE;
		if (o == 'n')
			w.namespace = true;
		else if (o == 'd' && !vb_cli_add_device(&devices, optarg))
			return EXIT_NO_START;
		else if (o == 'r' && optarg && strcmp(optarg, "all") != 0)
			return vb_cli_refuse_value("run", "rsockets", optarg,
						   "\"all\"");
		else if (o == 'r')
			w.rsockets = optarg ? optarg : "tcp";
	}
	if (optind == argc)
		return vb_cli_refuse("run", "no program was named");
	if (!choose_devices(devices) || !set_up(argv[optind], &w))
		return EXIT_NO_START;
	return become(argv + optind);
}

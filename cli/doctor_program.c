/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena doctor -- PROGRAM`: the libraries that a program would load under
 * `verbena run`. The doctor executes neither the program nor the loader that
 * the program names, since the file may be anybody's: it asks the loader of its
 * own file, or the system's, which runs nothing of the program (--list). */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/bundled.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/finding.h"
#include "cli/program.h"

#define LIST_BYTES  (64u << 10)
#define LIST_LIMIT  (1500 * VB_MSEC)
#define OWN_LIBRARY "libibverbs.so.1"

/* the system's loader, for a doctor that is linked statically */
#if defined(__aarch64__)
#define SYSTEM_LOADER "/lib/ld-linux-aarch64.so.1"
#else
#define SYSTEM_LOADER "/lib64/ld-linux-x86-64.so.2"
#endif

static void say_bundled(const char *found)
{
	const char *quoted = vb_finding_quoted(found);
	const char *slash = strrchr(found, '/');

	vb_finding_add(
		"program", FINDING_PROBLEM,
		vb_finding_text("mv %s %s.unused   # and: patchelf "
				"--replace-needed %s " OWN_LIBRARY
				" FILE-THAT-NEEDS-IT",
				quoted, quoted,
				vb_finding_quoted(slash ? slash + 1 : found)),
		"%s is a libibverbs that a package (a Python wheel) "
		"brings along; what loads it does not see Verbena's "
		"devices",
		found);
}

static bool say_kind(const struct vb_program *p)
{
	static const char *const kinds[PROGRAM_KINDS] = {
		[PROGRAM_STATIC] =
			"is statically linked, so it cannot load "
			"Verbena's " OWN_LIBRARY ": link it dynamically",
		[PROGRAM_MUSL] = "is linked for musl, and Verbena's libraries "
				 "need glibc: build it on a glibc system",
		[PROGRAM_FOREIGN] = "is not a 64-bit program for this "
				    "processor, so it cannot load Verbena's "
				    "libraries",
	};

	if (!kinds[p->kind])
		return false;
	vb_finding_add("program", FINDING_PROBLEM, NULL, "%s %s", p->path,
		       kinds[p->kind]);
	return true;
}

/* Add the finding for a program of which the doctor cannot know what it loads.
 * False: @p is no such program. */
static bool say_unknown(const struct vb_program *p)
{
	switch (p->kind) {
	case PROGRAM_OTHER_LOADER:
		vb_finding_add(
			"program", FINDING_NOTE, NULL,
			"%s names a loader that is not glibc's, %s, and the "
			"doctor runs no such loader, so the libraries that "
			"the program loads are not known",
			p->path, p->loader);
		return true;
	case PROGRAM_UNREADABLE:
		vb_finding_add("program", FINDING_NOTE, NULL,
			       "this user may execute %s, but not read it, so "
			       "the libraries that the program loads are not "
			       "known",
			       p->path);
		return true;
	case PROGRAM_NO_ELF:
		vb_finding_add("program", FINDING_NOTE, NULL,
			       "%s is neither an ELF program nor a script that "
			       "begins with #!, so the libraries that it "
			       "loads are not known",
			       p->path);
		return true;
	default:
		return false;
	}
}

static bool say_privilege(const struct vb_program *p)
{
	static const char *const privileges[] = {
		[PRIVILEGE_USER] = "is set-user-ID",
		[PRIVILEGE_GROUP] = "is set-group-ID",
		[PRIVILEGE_CAPABILITIES] = "has file capabilities",
	};

	const char *quoted = vb_finding_quoted(p->path);

	if (p->privilege == PRIVILEGE_NONE)
		return false;
	vb_finding_add("program", FINDING_PROBLEM,
		       p->privilege == PRIVILEGE_CAPABILITIES
			       ? vb_finding_text("sudo setcap -r %s", quoted)
			       : vb_finding_text("sudo chmod ug-s %s", quoted),
		       "%s %s, so the loader ignores Verbena's library path; "
		       "run it as a user to whom the file gives no privilege "
		       "(root, for example)",
		       p->path, privileges[p->privilege]);
	return true;
}

/* Say what the loader finds for the name at @line, "NAME => PATH (...)" */
static void say_library(const struct vb_program *p, const char *line,
			const char *directory)
{
	char name[256], path[PATH_MAX], real[PATH_MAX];

	if (sscanf(line, " %255s => %4095s", name, path) != 2)
		return;
	if (strcmp(name, OWN_LIBRARY) != 0) {
		say_bundled(path[0] == '/' ? path : name);
		return;
	}
	if (!realpath(path, real) ||
	    strncmp(real, directory, strlen(directory)) != 0)
		vb_finding_add("program", FINDING_PROBLEM,
			       vb_finding_text("patchelf --remove-rpath %s",
					       vb_finding_quoted(p->path)),
			       "%s would load %s, not Verbena's: an rpath of "
			       "the program comes before the library path",
			       p->path, path);
	else
		vb_finding_add("program", FINDING_OK, NULL,
			       "%s loads Verbena's %s (%s)", p->path,
			       OWN_LIBRARY, path);
}

/* Returns the path of the loader that lists libraries: the one with which this
 * command, the file @self, was linked; or the system's, if it was linked
 * statically. */
static const char *own_loader(const char *self)
{
	static struct vb_program own;

	vb_program_look(self, &own);
	return own.kind == PROGRAM_PLAIN && own.loader[0] == '/'
		       ? own.loader
		       : SYSTEM_LOADER;
}

static void ask_loader(const struct vb_program *p)
{
	char self[PATH_MAX], directory[PATH_MAX], path[PATH_MAX];
	char *list = malloc(LIST_BYTES), *line;
	const char *argv[] = { NULL, "--list", path, NULL };
	const char *env[2] = { NULL };

	if (!list || !vb_cli_find_self(self) ||
	    !vb_cli_find_library(self, directory)) {
		vb_finding_add("libraries", FINDING_PROBLEM, "make install",
			       "Verbena's " OWN_LIBRARY " is missing");
		free(list);
		return;
	}
	argv[0] = own_loader(self);
	env[0] = vb_finding_text("LD_LIBRARY_PATH=%s:%s/../rdmacm", directory,
				 directory);
	/* Resolve the program's path, because the loader would take a name
	 * without a slash for the name of a library. */
	if (!realpath(p->path, path) ||
	    !vb_doctor_run(argv, env, LIST_LIMIT, list, LIST_BYTES)) {
		vb_finding_add("program", FINDING_NOTE,
			       vb_finding_text("%s --list %s", argv[0],
					       vb_finding_quoted(p->path)),
			       "the loader %s does not say what %s loads",
			       argv[0], p->path);
		free(list);
		return;
	}
	line = strstr(list, "libibverbs");
	if (line)
		say_library(p, line, directory);
	else
		vb_finding_add("program", FINDING_OK, NULL,
			       "%s is not linked with libibverbs; if it, or a "
			       "library of its own, opens " OWN_LIBRARY
			       " later, it gets Verbena's",
			       p->path);
	free(list);
}

void vb_doctor_program(const char *name)
{
	char found[PATH_MAX];
	struct vb_program p;
	struct stat s;

	if (stat(name, &s) == 0 && S_ISDIR(s.st_mode)) {
		if (vb_bundled_walk(name, found))
			say_bundled(found);
		else
			vb_finding_add("program", FINDING_OK, NULL,
				       "nothing in %s brings a libibverbs "
				       "along",
				       name);
		return;
	}
	p.path[0] = '\0';
	vb_program_look(name, &p);
	if (!p.path[0] || access(p.path, X_OK) < 0) {
		vb_finding_add("program", FINDING_PROBLEM, NULL,
			       "there is no program %s: %s", name,
			       strerror(errno ? errno : ENOENT));
		return;
	}
	if (say_kind(&p) || say_privilege(&p) || say_unknown(&p))
		return;
	if (vb_bundled_find(p.path, found))
		say_bundled(found);
	ask_loader(&p);
}

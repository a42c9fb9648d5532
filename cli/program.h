/* SPDX-License-Identifier: BSD-2-Clause */
/* Examines a program's file to find whether the program can load Verbena's
 * libraries. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <limits.h>

#include "base/defs.h"

enum vb_program_kind {
	/* the program loads Verbena's libraries, as far as this command can
	 * know */
	PROGRAM_PLAIN,
	/* the program is statically linked and loads no library */
	PROGRAM_STATIC,
	/* the program's loader is musl's, which cannot load libraries that need
	 * glibc */
	PROGRAM_MUSL,
	/* the program is for another machine, or has 32 bits */
	PROGRAM_FOREIGN,
	/* the program names a loader that is neither glibc's nor musl's */
	PROGRAM_OTHER_LOADER,
	/* the user may execute the file, but not read it */
	PROGRAM_UNREADABLE,
	/* the file is no ELF program, or a damaged one, and no script either */
	PROGRAM_NO_ELF,
	PROGRAM_KINDS,
};

/* A privilege that the file gives and the user does not have. The loader then
 * ignores the library paths in the environment. */
enum vb_privilege {
	PRIVILEGE_NONE,
	PRIVILEGE_USER,
	PRIVILEGE_GROUP,
	PRIVILEGE_CAPABILITIES,
};

struct vb_program {
	/* the program's file; of a script, the interpreter's file */
	char path[PATH_MAX];
	/* the loader that the file names; empty: it names none, or was not read
	 */
	char loader[PATH_MAX];
	enum vb_program_kind kind;
	enum vb_privilege privilege;
};

/* Find the program file @name in the directories of PATH, like execvp(). False:
 * there is none. */
bool vb_program_find(const char *name, char path[PATH_MAX]);

/* Examine the program @name as execvp() would find it. A file that is not found
 * is PROGRAM_UNREADABLE without privilege; p->path is undefined then. */
void vb_program_look(const char *name, struct vb_program *p);

#endif

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
	enum vb_program_kind kind;
	enum vb_privilege privilege;
};

/* Examine the program @name as execvp() would find it. A file that is not found
 * or cannot be read is PROGRAM_PLAIN without privilege; p->path is undefined
 * then. */
void vb_program_look(const char *name, struct vb_program *p);

#endif

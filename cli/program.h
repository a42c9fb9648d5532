/* SPDX-License-Identifier: BSD-2-Clause */
/* Examines a program's file: can it load Verbena's libraries? */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <limits.h>

#include "base/defs.h"

enum vb_program_kind {
	PROGRAM_PLAIN,	 /* loads Verbena's libraries, as far as is known */
	PROGRAM_STATIC,	 /* statically linked: loads no library */
	PROGRAM_MUSL,	 /* its loader, musl's, cannot load what needs glibc */
	PROGRAM_FOREIGN, /* for another machine, or 32 bits */
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
	char path[PATH_MAX]; /* a script's interpreter, instead of the script */
	enum vb_program_kind kind;
	enum vb_privilege privilege;
};

/* Examine the program @name as execvp() would find it. A file that is not found
 * or cannot be read is PROGRAM_PLAIN without privilege; p->path is undefined
 * then. */
void vb_program_look(const char *name, struct vb_program *p);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What kind of file a program is: whether it can load our libraries. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <limits.h>

#include "base/defs.h"

enum vb_program_kind {
	PROGRAM_PLAIN,	 /* or nothing is known of it */
	PROGRAM_STATIC,	 /* has no loader */
	PROGRAM_MUSL,	 /* musl's loader, which cannot load what needs glibc */
	PROGRAM_FOREIGN, /* of another machine, or 32 bits */
};

/* What the file gives that the caller has not: the loader then ignores paths
 * in the environment. */
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

/* @name as execvp() finds it. A file that cannot be read is PROGRAM_PLAIN, and
 * a @path of one that is not is not to be looked at. */
void vb_program_look(const char *name, struct vb_program *p);

#endif

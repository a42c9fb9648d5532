/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a user's files are, and which network namespace somebody is in. */
#ifndef ENGINE_PLACE_H
#define ENGINE_PLACE_H

#include <limits.h>

#include "base/defs.h"

/* The first that can be had of /run/verbena (root's), $XDG_RUNTIME_DIR/verbena
 * and /tmp/verbena-UID, made if need be. It is the user's, and nobody else may
 * write it or list it; files in it have a mode that says who reads them. @path
 * says which. An fd, or -errno. */
int vb_place_open(char path[PATH_MAX]);

/* A directory that is no symbolic link. An fd, or -errno. */
int vb_place_enter(int at, const char *name);

/* Of a process, "self" or a number, below @proc, which is /proc; 0: that is
 * not to be known. */
uint64_t vb_place_namespace(int proc, const char *pid);

#endif

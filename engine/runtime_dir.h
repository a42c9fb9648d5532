/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a user's files are, and which network namespace somebody is in. */
#ifndef ENGINE_RUNTIME_DIR_H
#define ENGINE_RUNTIME_DIR_H

#include <limits.h>

#include "base/defs.h"

/* The first that can be had of /run/verbena (root's), $XDG_RUNTIME_DIR/verbena
 * and /tmp/verbena-UID, made if need be. It is the user's, and nobody else may
 * write it or list it; files in it have a mode that says who reads them. @path
 * says which. An fd, or -errno. */
int vb_runtime_dir_open(char path[PATH_MAX]);

/* A directory that is no symbolic link. An fd, or -errno. */
int vb_runtime_dir_enter(int at, const char *name);

/* Of a process, "self" or a number, below @proc, which is /proc; 0: that is
 * not to be known. */
uint64_t vb_runtime_dir_namespace(int proc, const char *pid);

/* The same of ourselves, and of this life of the host: the number alone is
 * given to another namespace when one is gone. 0 where the kernel does not say.
 */
uint64_t vb_runtime_dir_life(void);

/* Lock @fd for us alone, as long as it is open here: a child of fork closes it.
 * One who has it and does not go on is not waited for: -ETIMEDOUT after 2 s. */
VB_MUST_CHECK int vb_runtime_dir_lock(int fd);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The directory of a user's files, and the network namespace of a process. */
#ifndef ENGINE_RUNTIME_DIR_H
#define ENGINE_RUNTIME_DIR_H

#include <dirent.h>
#include <limits.h>

#include "base/defs.h"

/* Open the directory of this user's files: the first usable one of /run/verbena
 * (root only), $XDG_RUNTIME_DIR/verbena and /tmp/verbena-UID, created if
 * necessary. Only the user may write or list it; each file's mode says who may
 * read that file. @path gets the directory's name. Returns a descriptor that
 * the caller closes, or -errno. */
int vb_runtime_dir_open(char path[PATH_MAX]);

/* Open the directory @name below @at, which must not be a symbolic link.
 * Returns a descriptor that the caller closes, or -errno. */
int vb_runtime_dir_enter(int at, const char *name);

/* Begin to list the directory @name below @at ("." is @at itself, from its
 * first entry whatever was listed before). The caller closes the list, and
 * keeps @at open. NULL, with errno: the directory cannot be opened, or there is
 * no memory. */
DIR *vb_runtime_dir_list(int at, const char *name);

/* Returns the number of the network namespace of process @pid ("self" or a
 * number); @proc is a descriptor of /proc. 0: the number is not known. */
uint64_t vb_runtime_dir_namespace(int proc, const char *pid);

/* Returns a number for the calling process's network namespace that no other
 * namespace ever gets, unlike vb_runtime_dir_namespace()'s number, which is
 * reused after the namespace is gone. 0 where the kernel does not tell. */
uint64_t vb_runtime_dir_space(void);

/* Returns a number that tells the calling process's network namespace from all
 * others that exist now: vb_runtime_dir_space()'s, or
 * vb_runtime_dir_namespace()'s before Linux 5.14, which has no
 * SO_NETNS_COOKIE. 0: the kernel has no such socket option, and there is no
 * /proc. */
uint64_t vb_runtime_dir_host(void);

/* Lock @fd exclusively (flock()), as long as it is open in this process; a
 * child of fork closes it. Waits for at most 2 s: then -ETIMEDOUT; else
 * -errno. */
VB_MUST_CHECK int vb_runtime_dir_lock(int fd);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* How programs find the process of a fabric: by a socket in the directory of
 * the user's files (engine/runtime_dir.h) that has the fabric's name. */
#ifndef ENGINE_FABRIC_PATH_H
#define ENGINE_FABRIC_PATH_H

#include <limits.h>

#include "base/defs.h"

#define VB_FABRIC_DEFAULT "default"
#define VB_FABRIC_NAME	  63 /* the most characters of a fabric's name */

/* May a fabric be called @name: letters, digits, '-', '_', and '.' except at
 * the beginning? */
bool vb_fabric_name_good(const char *name);

/* Bind a socket for the fabric @name, and listen. Returns a descriptor that the
 * caller closes; @dir gets the directory of the fabric's files, which is made.
 * -EADDRINUSE: such a fabric runs; -EINVAL: no such name; else -errno. */
VB_MUST_CHECK int vb_fabric_listen(const char *name, char dir[PATH_MAX]);

/* Remove the socket and the directory @dir, whose other files are gone. The
 * name stays taken until the process ends. */
void vb_fabric_remove(const char *dir);

/* Connect to the fabric @name. Returns a descriptor that the caller closes, or
 * -errno; -ECONNREFUSED: no such fabric runs; -ETIMEDOUT: it accepted no
 * connection for 10 s. A send on the descriptor that waits for 10 s fails with
 * EAGAIN. */
VB_MUST_CHECK int vb_fabric_connect(const char *name);

#endif

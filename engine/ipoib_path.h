/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where programs find the process of an IPoIB interface (wire/ipoib.h): a
 * socket in the directory of the user's files, whose name has the network
 * namespace and the interface. No other user can take the name, or listen in
 * its place.
 */
#ifndef ENGINE_IPOIB_PATH_H
#define ENGINE_IPOIB_PATH_H

#include "base/defs.h"

/* Listen for the programs that ask about the interface @name. The caller is the
 * interface's only process. Returns a descriptor that the caller closes, or
 * -errno; -EOPNOTSUPP: nothing tells this network namespace from others
 * (vb_runtime_dir_host()). */
VB_MUST_CHECK int vb_ipoib_listen(const char *name, int backlog);
/* Remove the socket's file. The caller has closed the descriptor. */
void vb_ipoib_remove(const char *name);
/* Connect to the process of the interface @name. Returns a non-blocking
 * descriptor that the caller closes, or -errno; -ECONNREFUSED: the interface is
 * no IPoIB interface of this user (of a process with the same user and the same
 * XDG_RUNTIME_DIR, see vb_runtime_dir_open()); -EOPNOTSUPP: as above; -EAGAIN:
 * too many programs wait for its process. */
VB_MUST_CHECK int vb_ipoib_connect(const char *name);

#endif

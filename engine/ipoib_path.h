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
#include "wire/ipoib.h"

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

/*
 * engine/ipoib_ask.c: questions to that process. @due: when to give up, of
 * vb_clock_read().
 */

/* As vb_ipoib_connect(); -EPERM: the process is another user's. */
VB_MUST_CHECK int vb_ipoib_reach(const char *name);
/* Send the question @m by @fd. 0 or -errno; -ETIMEDOUT: there was no room until
 * @due. */
int vb_ipoib_say(int fd, const struct vb_ipoib *m, vb_time due);
/* Read the answer to the question @m into @m. 0 or -errno, of asking or in the
 * answer; -EPIPE: the process has closed the connection. */
int vb_ipoib_hear(int fd, struct vb_ipoib *m, vb_time due);
/* Ask the process of the interface @name which adapter it has, again and again
 * until @wait is over if the process serves many others. 0 or -errno; -EAGAIN:
 * it still does; -ETIMEDOUT: it does not answer. */
int vb_ipoib_own(const char *name, vb_time wait, struct vb_ipoib *m);

#endif

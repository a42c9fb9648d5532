/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages with descriptors over UNIX sockets, and who is at the other end. */
#ifndef BASE_FDMAIL_H
#define BASE_FDMAIL_H

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/defs.h"

/* The most descriptors that go with a message. */
#define VB_FDMAIL_FDS 16

/* A socket that has this name, or -errno: -EADDRINUSE is another's. */
VB_MUST_CHECK int vb_fdmail_bind(const struct sockaddr_un *name, socklen_t len);

/* @flags as for sendmsg(); a broken connection is -EPIPE and no signal. */
VB_MUST_CHECK int vb_fdmail_send(int fd, const void *bytes, size_t len,
				 const int *fds, unsigned count, int flags);

/*
 * The length of what came, 0 at the end of file, or -errno with nothing left
 * open. *@count: how many descriptors @fds has room for, and then how many
 * came; they are close-on-exec. -EMSGSIZE: longer than @room. -EMFILE: more
 * descriptors than there is room for, in @fds or in this process.
 */
VB_MUST_CHECK ssize_t vb_fdmail_recv(int fd, void *bytes, size_t room, int *fds,
				     unsigned *count, int flags);

/* Last to first. */
void vb_fdmail_close(const int *fds, unsigned count);

/* Does a socket option that is an int have this value? */
bool vb_fdmail_has_option(int fd, int option, int value);

/*
 * Is who connected, or who listens, at the other end of @fd our own user, or
 * root? *@uid is that user, (uid_t)-1 when the kernel does not say.
 */
VB_MUST_CHECK bool vb_fdmail_trusts_peer(int fd, uid_t *uid);

#endif

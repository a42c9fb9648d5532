/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages with file descriptors over UNIX sockets, and the identity of the
 * peer. */
#ifndef BASE_FDMAIL_H
#define BASE_FDMAIL_H

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/defs.h"

/* The most descriptors that this project sends with one message, and the most
 * that the kernel lets any program send (SCM_MAX_FD). */
#define VB_FDMAIL_FDS  16
#define VB_FDMAIL_MOST 253

/* Bind a new SOCK_SEQPACKET socket to @name. Returns a descriptor that the
 * caller closes, or -errno; -EADDRINUSE: another socket has the name. */
VB_MUST_CHECK int vb_fdmail_bind(const struct sockaddr_un *name, socklen_t len);

/* Send one message with @count descriptors, which the caller still owns. @flags
 * as for sendmsg(). 0 or -errno; a broken connection is -EPIPE and raises no
 * signal. */
VB_MUST_CHECK int vb_fdmail_send(int fd, const void *bytes, size_t len,
				 const int *fds, unsigned count, int flags);

/*
 * Receive one message. Returns its length in bytes, 0 at the end of file, or
 * -errno, in which case no descriptor is left open. *@count: the room in @fds,
 * and then how many descriptors came; they are close-on-exec, and the caller
 * closes them. -ECONNRESET: the peer closed with messages that it had not read,
 * and no message of its own waits. -EMSGSIZE: the message is longer than @room.
 * -EMFILE: more descriptors came than @fds, or this process, has room for.
 */
VB_MUST_CHECK ssize_t vb_fdmail_recv(int fd, void *bytes, size_t room, int *fds,
				     unsigned *count, int flags);

/* As vb_fdmail_recv(), but after -EMSGSIZE and -EMFILE the caller closes the
 * *@count descriptors @fds that came, too. With room for VB_FDMAIL_MOST the
 * kernel closes none itself, unless this process has no descriptor left. For
 * messages of untrusted programs, see base/apart.h. */
VB_MUST_CHECK ssize_t vb_fdmail_take(int fd, void *bytes, size_t room, int *fds,
				     unsigned *count, int flags);

/* Close the @count descriptors @fds, from the last to the first. */
void vb_fdmail_close(const int *fds, unsigned count);

/* Does the socket option @option (SOL_SOCKET) have the int value @value? */
bool vb_fdmail_has_option(int fd, int option, int value);

/*
 * Does the process at the other end of @fd, which connected or listens, belong
 * to this process's user or to root? *@uid is that process's user, (uid_t)-1
 * when the kernel does not say.
 */
VB_MUST_CHECK bool vb_fdmail_trusts_peer(int fd, uid_t *uid);

/* Is @uid the number that the kernel reports, inside a user namespace, for
 * every user whom the namespace does not map? */
bool vb_fdmail_is_stranger(uid_t uid);

#endif

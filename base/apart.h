/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Closing descriptors that an untrusted process made, without waiting for it.
 * close() can wait for as long as the maker of a file likes: a file of FUSE
 * waits for its file system's answer (FLUSH), and a TCP socket with SO_LINGER
 * for its peer. The kernel also closes such sockets inside other calls, when
 * they wait unread in a UNIX socket. A process that serves many users with one
 * thread would serve nobody meanwhile.
 */
#ifndef BASE_APART_H
#define BASE_APART_H

#include "base/defs.h"

/* While @on, a signal each millisecond (SIGVTALRM, which the process must not
 * use otherwise) ends the waits of this thread that a signal can end, above all
 * SO_LINGER. Calls may return EINTR meanwhile. */
void vb_apart_limit(bool on);

/* Close the @count descriptors @fds, from the last to the first: sockets at
 * once, other files each in a thread of its own. */
void vb_apart_close(const int *fds, unsigned count);
/* May the process receive descriptors? Not while the limit of files whose
 * close() waits is reached. */
bool vb_apart_has_room(void);

#endif

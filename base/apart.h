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

#include <stdint.h>

#include "base/defs.h"

/* While @on, a signal each millisecond (SIGVTALRM, which the process must not
 * use otherwise) ends the waits of this thread that a signal can end, above all
 * SO_LINGER. Calls may return EINTR meanwhile. */
void vb_apart_limit(bool on);

/* Start a thread with all signals blocked, for a call that may wait for as long
 * as another process likes. 0 or -errno. */
VB_MUST_CHECK int vb_apart_run(void *(*run)(void *), void *arg);

/*
 * For a process that serves several users and uses vb_apart_limit(). @owner is
 * the number of the user that sent the descriptors, or VB_APART_TRUSTED. The
 * process receives no more descriptors of a user while 8 files of that user wait
 * in close(). It receives none of any untrusted user while 64 files of untrusted
 * users wait.
 */
#define VB_APART_TRUSTED (UINT64_C(1) << 32)
/* Close the @count descriptors @fds, from the last to the first: sockets at
 * once, other files each in a thread of its own. */
void vb_apart_close(const int *fds, unsigned count, uint64_t owner);
/* May the process receive more descriptors of @owner? False while too many
 * files of @owner wait in close(). */
bool vb_apart_has_room(uint64_t owner);

/*
 * The functions below are for a library, which cannot use signals and so not
 * vb_apart_limit(). Each call keeps a thread while close() waits.
 */
/* Close the @count descriptors @fds, of any kind, in a thread. */
void vb_apart_drop(const int *fds, unsigned count);
/* May the process accept a connection of another program, which could send
 * descriptors? Not while 32 threads of vb_apart_drop() wait. */
bool vb_apart_may_drop(void);
/* End the connected local socket @fd and close it: in a thread if descriptors
 * are in unread messages, because closing the socket closes them, too. */
void vb_apart_hang_up(int fd);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Conversion between the descriptor sets of select(2) and the array of
 * poll(2). librdmacm and the preload library each link a copy. */
#ifndef FRONT_RSOCKETS_FDSET_H
#define FRONT_RSOCKETS_FDSET_H

#include <poll.h>
#include <sys/select.h>
#include <sys/time.h>

/* Fills @fds, which has room for @n entries, with the descriptors below @n
 * <= FD_SETSIZE that are in any of the sets. A set may be NULL. Returns the
 * number of entries. */
nfds_t rs_from_fdsets(int n, const fd_set *r, const fd_set *w, const fd_set *e,
		      struct pollfd *fds);
/* Removes from the sets the descriptors that poll() did not find ready. Returns
 * the number of bits set; -1 with EBADF if poll() reported POLLNVAL. */
int rs_to_fdsets(const struct pollfd *fds, nfds_t count, fd_set *r, fd_set *w,
		 fd_set *e);
/* Returns the timeout in milliseconds, rounded up; -1 (no limit) for NULL. */
int rs_select_timeout(const struct timeval *t);

#endif

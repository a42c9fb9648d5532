/* SPDX-License-Identifier: BSD-2-Clause */
/* select(2) by poll(2): what is asked and what came, between the two. Of the
 * library and of the preload, each with a copy. */
#ifndef FRONT_RSOCKETS_FDSET_H
#define FRONT_RSOCKETS_FDSET_H

#include <poll.h>
#include <sys/select.h>
#include <sys/time.h>

/* What the sets, any of which may be NULL, ask of descriptors below @n, which
 * is FD_SETSIZE at most: into @fds, with room for as many. Returns how many. */
nfds_t rs_from_fdsets(int n, const fd_set *r, const fd_set *w, const fd_set *e,
		      struct pollfd *fds);
/* What came of it. Returns how many bits are set now; -1 with EBADF. */
int rs_to_fdsets(const struct pollfd *fds, nfds_t count, fd_set *r, fd_set *w,
		 fd_set *e);
/* Milliseconds, rounded up; NULL: -1, for ever. */
int rs_select_timeout(const struct timeval *t);

#endif

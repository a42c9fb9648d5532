/* SPDX-License-Identifier: BSD-2-Clause */
/* The descriptor sets of select(2) as arrays of poll(2). */
#include "front/rsockets/fdset.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"

static bool in_set(int fd, const fd_set *set)
{
	return set && FD_ISSET(fd, set);
}

nfds_t rs_from_fdsets(int n, const fd_set *r, const fd_set *w, const fd_set *e,
		      struct pollfd *fds)
{
	nfds_t count = 0;
	short events;

	for (int fd = 0; fd < n; fd++) {
		events = in_set(fd, r) ? POLLIN : 0;
		events |= in_set(fd, w) ? POLLOUT : 0;
		events |= in_set(fd, e) ? POLLPRI : 0;
		if (events)
			fds[count++] = (struct pollfd){ fd, events, 0 };
	}
	return count;
}

/* Removes @fd from the set unless it is ready. Returns 1 if @fd stays in the
 * set, else 0. */
static int leave_in_set(int fd, fd_set *set, bool ready)
{
	if (!in_set(fd, set))
		return 0;
	if (!ready)
		FD_CLR(fd, set);
	return ready;
}

int rs_to_fdsets(const struct pollfd *fds, nfds_t count, fd_set *r, fd_set *w,
		 fd_set *e)
{
	int set = 0;

	for (nfds_t i = 0; i < count; i++) {
		short got = fds[i].revents;

		if (got & POLLNVAL) {
			errno = EBADF;
			return -1;
		}
		set += leave_in_set(fds[i].fd, r,
				    got & (POLLIN | POLLHUP | POLLERR));
		set += leave_in_set(fds[i].fd, w, got & (POLLOUT | POLLERR));
		set += leave_in_set(fds[i].fd, e, got & POLLPRI);
	}
	return set;
}

int rs_select_timeout(const struct timeval *t)
{
	if (!t)
		return -1;
	return (int)VB_MIN(t->tv_sec * 1000LL + (t->tv_usec + 999) / 1000,
			   (long long)INT32_MAX);
}

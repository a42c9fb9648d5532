/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * poll(), select() and epoll for descriptors that may be rsockets. Every epoll
 * set is one of repoll_create(), because it may get rsockets later.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/defs.h"
#include "front/rsockets/fdset.h"
#include "front/rsockets/preload.h"

int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int maxevents,
		int timeout);

static bool any_ours(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; !rsp_inside && i < count; i++)
		if (rsp_is_ours(fds[i].fd))
			return true;
	return false;
}

/* Does rpoll() with each descriptor replaced by its target. */
static int poll_targets(struct pollfd *fds, nfds_t count, int timeout)
{
	struct pollfd few[64], *targets = few;
	int rc;

	if (count > VB_COUNT(few))
		targets = calloc(count, sizeof(*targets));
	if (!targets)
		return -1;
	for (nfds_t i = 0; i < count; i++) {
		targets[i] = fds[i];
		if (rsp_is_ours(fds[i].fd))
			targets[i].fd = rsp_target(fds[i].fd);
	}
	rc = INSIDE(rpoll(targets, count, timeout));
	for (nfds_t i = 0; i < count; i++)
		fds[i].revents = targets[i].revents;
	if (targets != few)
		free(targets);
	return rc;
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	return any_ours(fds, count) ? poll_targets(fds, count, timeout)
				    : REAL(poll)(fds, count, timeout);
}

static int milliseconds(const struct timespec *t)
{
	if (!t)
		return -1;
	return (int)VB_MIN(t->tv_sec * 1000LL + (t->tv_nsec + 999999) / 1000000,
			   (long long)INT32_MAX);
}

/* Does ppoll(). Unlike ppoll(2), this function sets the mask before the wait
 * and not atomically with it. */
static int poll_masked(struct pollfd *fds, nfds_t count,
		       const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t before;
	int rc;

	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &before);
	rc = poll_targets(fds, count, milliseconds(timeout));
	if (mask)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count,
		 const struct timespec *timeout, const sigset_t *mask)
{
	return any_ours(fds, count) ? poll_masked(fds, count, timeout, mask)
				    : REAL(ppoll)(fds, count, timeout, mask);
}

static bool set_has_ours(int n, const fd_set *set)
{
	for (int fd = 0; set && !rsp_inside && fd < n; fd++)
		if (FD_ISSET(fd, set) && rsp_is_ours(fd))
			return true;
	return false;
}

/* Does select() by poll(), because a target may be larger than FD_SETSIZE. */
static int select_targets(int n, fd_set *r, fd_set *w, fd_set *e, int timeout)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t count = rs_from_fdsets(VB_MIN(n, FD_SETSIZE), r, w, e, fds);

	if (poll_targets(fds, count, timeout) < 0)
		return -1;
	return rs_to_fdsets(fds, count, r, w, e);
}

EXPORT int select(int n, fd_set *r, fd_set *w, fd_set *e,
		  struct timeval *timeout)
{
	if (set_has_ours(n, r) || set_has_ours(n, w) || set_has_ours(n, e))
		return select_targets(n, r, w, e, rs_select_timeout(timeout));
	return REAL(select)(n, r, w, e, timeout);
}

static int select_masked(int n, fd_set *r, fd_set *w, fd_set *e,
			 const struct timespec *timeout, const sigset_t *mask)
{
	sigset_t before;
	int rc;

	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &before);
	rc = select_targets(n, r, w, e, milliseconds(timeout));
	if (mask)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

EXPORT int pselect(int n, fd_set *r, fd_set *w, fd_set *e,
		   const struct timespec *timeout, const sigset_t *mask)
{
	if (set_has_ours(n, r) || set_has_ours(n, w) || set_has_ours(n, e))
		return select_masked(n, r, w, e, timeout, mask);
	return REAL(pselect)(n, r, w, e, timeout, mask);
}

EXPORT int epoll_create1(int flags)
{
	return rsp_inside ? REAL(epoll_create1)(flags)
			  : rsp_now_ours(INSIDE(repoll_create(flags)), RSP_SET);
}

EXPORT int epoll_create(int size)
{
	if (size <= 0) {
		errno = EINVAL;
		return -1;
	}
	return epoll_create1(0);
}

EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int target = rsp_is_ours(fd) ? rsp_target(fd) : fd;

	return rsp_kind_now(epfd) == RSP_SET
		       ? INSIDE(repoll_ctl(epfd, op, target, event))
		       : REAL(epoll_ctl)(epfd, op, fd, event);
}

EXPORT int epoll_wait(int epfd, struct epoll_event *events, int max,
		      int timeout)
{
	return rsp_kind_now(epfd) == RSP_SET
		       ? INSIDE(repoll_wait(epfd, events, max, timeout))
		       : REAL(epoll_wait)(epfd, events, max, timeout);
}

EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int max,
		       int timeout, const sigset_t *mask)
{
	sigset_t before;
	int rc;

	if (rsp_kind_now(epfd) != RSP_SET)
		return REAL(epoll_pwait)(epfd, events, max, timeout, mask);
	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &before);
	rc = epoll_wait(epfd, events, max, timeout);
	if (mask)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

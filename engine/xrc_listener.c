/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/xrc_listener.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/fork.h"

#define BACKLOG 64
#define AGAIN	(10 * VB_MSEC)

socklen_t vb_xrc_name(uint32_t slot, struct sockaddr_un *a)
{
	int n;

	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "verbena-xrc-%u",
		     slot);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)n);
}

/* The events are edge-triggered, because a waiting caller that cannot be
 * accepted would otherwise wake the owner's thread again and again. */
static int xrc_watch(const struct vb_xrc_listener *l, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

	return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int vb_xrc_listener_init(struct vb_xrc_listener *l, int epoll_fd)
{
	int rc;

	*l = (struct vb_xrc_listener){ .fd = { -1, -1 },
				       .epoll_fd = epoll_fd };
	l->again_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (l->again_fd < 0)
		return -errno;
	vb_fork_closes(l->again_fd);
	rc = xrc_watch(l, l->again_fd);
	if (rc)
		close(l->again_fd);
	return rc;
}

static int listen_at(uint32_t slot)
{
	struct sockaddr_un a;
	socklen_t len = vb_xrc_name(slot, &a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);

	if (fd < 0)
		return -errno;
	vb_fork_closes(fd);
	if (bind(fd, (struct sockaddr *)&a, len) || listen(fd, BACKLOG)) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

int vb_xrc_listener_add(struct vb_xrc_listener *l, unsigned i, uint32_t slot)
{
	int fd = listen_at(slot), rc = fd < 0 ? fd : xrc_watch(l, fd);

	if (rc == 0)
		l->fd[i] = fd;
	else if (fd >= 0)
		close(fd);
	return rc;
}

/* The kernel reports each waiting caller only once, so this timer makes the
 * listener readable again for callers that could not be accepted. */
static void accept_again(const struct vb_xrc_listener *l)
{
	const struct itimerspec soon = { .it_value.tv_nsec = AGAIN };

	(void)timerfd_settime(l->again_fd, 0, &soon, NULL);
}

int vb_xrc_listener_accept(struct vb_xrc_listener *l)
{
	for (unsigned i = 0; i < VB_COUNT(l->fd); i++) {
		int fd;

		if (l->fd[i] < 0)
			continue;
		if (!vb_apart_may_drop()) {
			accept_again(l);
			return -1;
		}
		do
			fd = accept4(l->fd[i], NULL, NULL,
				     SOCK_CLOEXEC | SOCK_NONBLOCK);
		while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
		if (fd >= 0)
			return fd;
		if (errno != EAGAIN) {
			accept_again(l);
			return -1;
		}
	}
	return -1;
}

void vb_xrc_listener_fini(struct vb_xrc_listener *l)
{
	for (unsigned i = 0; i < VB_COUNT(l->fd); i++)
		if (l->fd[i] >= 0)
			close(l->fd[i]);
	close(l->again_fd);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accepts connections of programs, as many as the process has descriptors for.
 * While a connection waits that the process cannot accept, epoll does not watch
 * the listener.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/fdmail.h"
#include "base/log.h"
#include "fabricd/fabricd_priv.h"

#define CLIENTS_MOST 1024
/* descriptors that the process needs for other things than connections of
 * programs */
#define OTHER_FDS    32
#define ACCEPT_AGAIN (100 * VB_MSEC)

unsigned vb_fabricd_clients_most(void)
{
	struct rlimit r, more;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return CLIENTS_MOST;
	more = (struct rlimit){ r.rlim_max, r.rlim_max };
	if (setrlimit(RLIMIT_NOFILE, &more) < 0)
		vb_log(LOG_INFO, "fabric: RLIMIT_NOFILE cannot be raised: %s",
		       strerror(errno));
	else
		r = more;
	if (r.rlim_cur < 2 * OTHER_FDS)
		return VB_MAX((unsigned)r.rlim_cur / 2, 1u);
	return (unsigned)VB_MIN(r.rlim_cur - OTHER_FDS, CLIENTS_MOST + 0u);
}

void vb_fabricd_accept_more(struct vb_fabricd *f, bool more)
{
	if (!vb_fabricd_watch(f, &f->listener, more ? EPOLLIN : 0, true))
		f->full = !more;
}

void vb_fabricd_accept_again(struct fd_later *l, vb_time now)
{
	struct vb_fabricd *f = VB_CONTAINER_OF(l, struct vb_fabricd, accept_on);

	if (f->full)
		vb_fabricd_accept_more(f, true);
}

/* Accept a connection. Returns its descriptor; -1: no connection waits, or no
 * descriptor is free. If none is free, the listener is watched again when a
 * client leaves, and after ACCEPT_AGAIN at the latest, since something else
 * than clients may have used the descriptors up. */
static int accept_program(struct vb_fabricd *f, vb_time now)
{
	int fd = -1;

	errno = EMFILE;
	if (f->client_count < f->clients_most)
		fd = accept4(f->listener.fd, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
		vb_fabricd_accept_more(f, false);
		vb_fabricd_later(f, &f->accept_on, now + ACCEPT_AGAIN);
	}
	return fd;
}

/* Returns the id of the process at the other end of @fd; 0: the kernel does not
 * tell it. */
static pid_t peer_pid(int fd)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return 0;
	return peer.pid;
}

void vb_fabricd_accept(struct fd_watch *w, uint32_t events, vb_time now)
{
	struct vb_fabricd *f = VB_CONTAINER_OF(w, struct vb_fabricd, listener);
	int fd = accept_program(f, now);
	uid_t uid;

	if (fd < 0)
		return;
	if (!vb_fdmail_trusts_peer(fd, &uid) ||
	    !vb_fabricd_take_client(
		    f, fd, vb_fabricd_is_manager(f, peer_pid(fd)), now)) {
		vb_apart_limit(true);
		close(fd);
		vb_apart_limit(false);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is at the other end of a session, and the programs that call this one.
 * The engine thread makes no call here that another program can hold up: such
 * calls are errands (base/errand.h).
 */
#include "near/session_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/birth.h"
#include "base/fork.h"
#include "base/log.h"
#include "wire/ipc.h"

/* Connect to the program that listens on the name of @slot. */
int vb_session_connect(unsigned slot, int *out)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	struct sockaddr_un a;
	socklen_t len = vb_ipc_slot_address(&a, slot);

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&a, len) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	*out = fd;
	return 0;
}

static bool ask_who(int fd, struct ucred *who)
{
	socklen_t len = sizeof(*who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &len) == 0;
}

static struct vb_outlaw process_of(const struct vb_peer *p)
{
	return (struct vb_outlaw){ p->pid, p->born };
}

bool vb_session_is_outlaw(const struct vb_near *n, const struct vb_peer *p)
{
	const struct vb_outlaw who = process_of(p);

	if (VB_LIKELY(!vb_outlaws_have(&n->outlaws, &who)))
		return false;
	vb_log(LOG_INFO,
	       "near: process %d was expelled: using packets to it for as long "
	       "as it lives",
	       p->pid);
	return true;
}

void vb_session_outlaw(struct vb_near *n, const struct vb_peer *p)
{
	const struct vb_outlaw who = process_of(p);

	vb_outlaws_add(&n->outlaws, &who);
}

int vb_session_identify(const struct vb_near *n, struct vb_peer *p)
{
	struct ucred who;

	if (!ask_who(p->session, &who) || who.uid != geteuid() || who.pid <= 0)
		return -EPERM;
	p->pid = who.pid;
	p->born = vb_birth_of(who.pid);
	return vb_session_is_outlaw(n, p) ? -EACCES : 0;
}

/* Connecting asks the kernel which process listens on the name. That process
 * sees a caller that says nothing and hangs up. */
bool vb_session_has_slot(const struct vb_peer *p, unsigned slot)
{
	struct ucred who = { 0 };
	int fd = -1;

	if (vb_session_connect(slot, &fd))
		return false;
	if (!ask_who(fd, &who))
		who.pid = 0;
	close(fd);
	return who.pid == p->pid;
}

/*
 * Listening. The broker made the socket of a name, and O_NONBLOCK belongs to
 * all who have it: a process that has kept the socket can clear the flag and
 * accept the caller first, and accept4() then waits for another caller.
 */

static long accept_caller(const void *args)
{
	const int name = *(const int *)args;
	int fd = -1;

	if (fcntl(name, F_SETFL, O_NONBLOCK) == 0)
		fd = accept4(name, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		fd = -errno;
	close(name);
	return fd;
}

static void reject_caller(long fd)
{
	if (fd >= 0)
		vb_apart_hang_up((int)fd);
}

static const struct vb_errand_kind accepting = { accept_caller, reject_caller };

static void callers_listen_at(struct vb_near *n, struct vb_near_name *name)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = name };

	if (name->fd < 0 || name->listens || name->accepts)
		return;
	name->listens =
		epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, name->fd, &ev) == 0;
}

static void stop_listening_at(struct vb_near *n, struct vb_near_name *name)
{
	if (name->listens)
		epoll_ctl(n->epoll_fd, EPOLL_CTL_DEL, name->fd, NULL);
	name->listens = false;
}

static bool callers_have_room(const struct vb_near *n)
{
	return n->sessions < n->max_sessions && vb_apart_may_drop();
}

void vb_callers_listen(struct vb_near *n)
{
	for (unsigned i = 0; callers_have_room(n) && i < VB_COUNT(n->names);
	     i++)
		callers_listen_at(n, &n->names[i]);
}

bool vb_callers_are_unheard(const struct vb_near *n)
{
	bool unheard = false;

	for (unsigned i = 0; i < VB_COUNT(n->names); i++)
		unheard |= n->names[i].fd >= 0 && !n->names[i].listens &&
			   !n->names[i].accepts;
	return unheard && n->sessions < n->max_sessions;
}

/* There are enough sessions, or no descriptors or threads are left. Programs
 * that call meanwhile use packets. */
static void listen_no_more(struct vb_near *n)
{
	for (unsigned i = 0; i < VB_COUNT(n->names); i++)
		stop_listening_at(n, &n->names[i]);
}

/* The errand has a descriptor of its own, because the engine closes the name
 * without waiting for the errand. */
void vb_callers_accept(struct vb_near *n, struct vb_near_name *name)
{
	int fd;

	if (!callers_have_room(n)) {
		listen_no_more(n);
		return;
	}
	stop_listening_at(n, name);
	fd = fcntl(name->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return;
	vb_fork_closes(fd);
	name->accepts =
		vb_errand_start(n->errands, &accepting, &fd, sizeof(fd));
	if (!name->accepts)
		close(fd);
}

int vb_session_watch(struct vb_near *n, struct vb_peer *p)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP,
				  .data.ptr = p };

	if (epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, p->session, &ev) < 0)
		return -errno;
	vb_fork_closes(p->session); /* a child of fork closes this descriptor */
	n->sessions++;
	return 0;
}

/* @strayed: the program has called the second slot. */
static void take_caller(struct vb_near *n, int fd, bool strayed)
{
	struct vb_peer *p = vb_peer_create(0, n->world, n->helper);

	if (!p) {
		reject_caller(fd);
		return;
	}
	p->session = fd;
	p->strayed = strayed;
	atomic_store(&p->state, PEER_CALLING);
	if (vb_session_identify(n, p) || vb_session_watch(n, p)) {
		vb_peer_put(p);
		return;
	}
	p->next = n->callers;
	n->callers = p;
}

static bool is_passing(long error)
{
	return error == -EAGAIN || error == -EINTR || error == -ECONNABORTED;
}

void vb_callers_hear(struct vb_near *n)
{
	for (unsigned i = 0; i < VB_COUNT(n->names); i++) {
		struct vb_near_name *name = &n->names[i];
		long fd;

		if (!name->accepts || !vb_errand_end(name->accepts, &fd))
			continue;
		name->accepts = NULL;
		if (fd >= 0)
			take_caller(n, (int)fd, i > 0);
		if (fd >= 0 || is_passing(fd))
			vb_callers_listen(n);
		else
			listen_no_more(n);
	}
}

void vb_callers_forget(struct vb_near *n, struct vb_peer *p)
{
	struct vb_peer **at = &n->callers;

	while (*at && *at != p)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
}

void vb_callers_fini(struct vb_near *n)
{
	for (unsigned i = 0; i < VB_COUNT(n->names); i++)
		if (n->names[i].accepts)
			vb_errand_drop(n->names[i].accepts);
}

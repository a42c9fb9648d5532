/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so, a library for LD_PRELOAD that turns a program's TCP sockets
 * into rsockets. socket() creates an rsocket, and every other call on a
 * descriptor goes to rsockets or to the C library, depending on the
 * descriptor. Calls from inside this library and the libraries below it always
 * go to the C library (rsp_inside).
 */
/* The library replaces both fcntl() and fcntl64(), so neither name may be a
 * macro for the other. */
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/defs.h"
#include "front/rsockets/preload_relay.h"
#include "front/rsockets/private_options.h"

static pid_t own_pid;

/* True in a child of vfork(), which runs in its parent's memory but has a
 * descriptor table of its own: it must not change the table of this library. */
static bool is_visitor(void)
{
	return own_pid != getpid();
}

/* Runs in a child of fork(): the child has the descriptors, but the rsockets
 * behind them belong to the parent. */
static void begin_again(void)
{
	own_pid = getpid();
	rsp_inherit_all();
}

static void preload_watch_forks(void)
{
	own_pid = getpid();
	pthread_atfork(NULL, NULL, begin_again);
	rsp_watch_forks();
}

int rsp_now_ours(int fd, enum rsp_kind kind)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, preload_watch_forks);
	if (fd >= RSP_DESCRIPTORS) {
		(void)INSIDE(rclose(fd));
		errno = EMFILE;
		return -1;
	}
	if (fd >= 0) {
		(void)rsp_abandon(fd);
		rsp_hold(fd);
		rsp_enter(fd, kind, fd);
	}
	return fd;
}

/* Returns whether a socket becomes an rsocket. UDP peers, such as name servers,
 * need not speak rsockets, so datagram sockets become rsockets only with
 * VERBENA_RSOCKETS=all. */
static bool is_turned(int type, int protocol)
{
	const char *which = getenv("VERBENA_RSOCKETS");

	if (type == SOCK_STREAM)
		return !protocol || protocol == IPPROTO_TCP;
	return type == SOCK_DGRAM && which && strcmp(which, "all") == 0 &&
	       (!protocol || protocol == IPPROTO_UDP);
}

static void wants_cloexec(int fd, bool wants)
{
	if (fd >= 0)
		rsp_set_cloexec(fd, wants);
}

EXPORT int socket(int domain, int type, int protocol)
{
	int plain = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC), fd;

	if (rsp_inside || (domain != AF_INET && domain != AF_INET6) ||
	    !is_turned(plain, protocol))
		return REAL(socket)(domain, type, protocol);
	fd = INSIDE(rsocket(domain, type, protocol));
	/* There is no RDMA device, so the program gets a TCP socket. */
	if (fd < 0)
		return REAL(socket)(domain, type, protocol);
	fd = rsp_now_ours(fd, RSP_SOCKET);
	wants_cloexec(fd, type & SOCK_CLOEXEC);
	return fd;
}

/* Closes a descriptor of a socket at once, unless it is the socket's own
 * number. The own number stays open until the program has closed the last
 * descriptor, because rsockets identifies the socket by it. */
static int close_socket(int fd)
{
	int target = rsp_target(fd);

	rsp_forget(fd);
	if (fd != target)
		(void)REAL(close)(fd);
	return rsp_release(target);
}

EXPORT int close(int fd)
{
	enum rsp_kind kind = rsp_kind_now(fd);

	if (kind == RSP_OTHER || is_visitor())
		return REAL(close)(fd);
	if (kind == RSP_SOCKET)
		return close_socket(fd);
	if (kind == RSP_INHERITED)
		rsp_disown(fd);
	rsp_forget(fd);
	return kind == RSP_SET ? INSIDE(rclose(fd)) : REAL(close)(fd);
}

EXPORT int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return rsp_is_ours(fd) ? INSIDE(rbind(rsp_target(fd), addr, len))
			       : REAL(bind)(fd, addr, len);
}

EXPORT int listen(int fd, int backlog)
{
	const int on = 1;

	if (!rsp_is_ours(fd))
		return REAL(listen)(fd, backlog);
	(void)INSIDE(rsetsockopt(rsp_target(fd), SOL_RDMA, RS_LISTEN_LATER, &on,
				 sizeof(on)));
	return INSIDE(rlisten(rsp_target(fd), backlog));
}

EXPORT int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return rsp_is_ours(fd) ? rsp_now_ours(INSIDE(raccept(rsp_target(fd),
							     addr, len)),
					      RSP_SOCKET)
			       : REAL(accept)(fd, addr, len);
}

EXPORT int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int taken;

	if (!rsp_is_ours(fd))
		return REAL(accept4)(fd, addr, len, flags);
	taken = accept(fd, addr, len);
	if (taken >= 0 && (flags & SOCK_NONBLOCK))
		(void)INSIDE(rfcntl(taken, F_SETFL, O_NONBLOCK));
	if (taken >= 0 && (flags & SOCK_CLOEXEC))
		wants_cloexec(taken, true);
	return taken;
}

/* Returns a TCP socket with the options that the program has set on @fd; -1:
 * failed, with errno. */
static int tcp_like(int fd, int domain)
{
	static const int options[][2] = {
		{ SOL_SOCKET, SO_REUSEADDR },
		{ SOL_SOCKET, SO_KEEPALIVE },
		{ IPPROTO_TCP, TCP_NODELAY },
	};
	bool cloexec = rsp_cloexec(fd);
	int value;
	int tcp = REAL(socket)(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t bytes;

	for (unsigned i = 0; tcp >= 0 && i < VB_COUNT(options); i++) {
		bytes = sizeof(value);
		if (INSIDE(rgetsockopt(rsp_target(fd), options[i][0],
				       options[i][1], &value, &bytes)) == 0)
			(void)REAL(setsockopt)(tcp, options[i][0],
					       options[i][1], &value, bytes);
	}
	if (tcp >= 0 && !cloexec)
		(void)REAL(fcntl)(tcp, F_SETFD, 0);
	return tcp;
}

/*
 * True if this library repeats a failed connect() over TCP, because the peer
 * may listen there only. False for a non-blocking socket, whose failure shows
 * later, outside connect(), and for a socket with further descriptors, because
 * only one number can be replaced.
 */
static bool may_fall_back(int fd)
{
	struct sockaddr_storage own;
	socklen_t bytes = sizeof(own);
	int error = errno;
	bool may = !(INSIDE(rfcntl(rsp_target(fd), F_GETFL)) & O_NONBLOCK) &&
		   INSIDE(rgetsockname(rsp_target(fd), (struct sockaddr *)&own,
				       &bytes)) == 0 &&
		   error != EAFNOSUPPORT && error != EINVAL &&
		   rsp_target(fd) == fd && !rsp_shared(fd);

	errno = error;
	return may;
}

/* Replaces the rsocket @fd by a TCP socket. The number is never free in
 * between, because another thread could get it. */
static int fall_back(int fd, const struct sockaddr *addr, socklen_t len)
{
	int tcp = tcp_like(fd, addr->sa_family);
	int cloexec = tcp < 0 ? 0 : REAL(fcntl)(tcp, F_GETFD) & FD_CLOEXEC;
	int moved = tcp < 0 ? -1 : INSIDE(rfcntl(rsp_target(fd), RS_MOVE));

	if (moved < 0 || REAL(dup3)(tcp, fd, cloexec ? O_CLOEXEC : 0) < 0) {
		(void)REAL(close)(tcp);
		return -1;
	}
	rsp_forget(fd);
	(void)rsp_abandon(fd);
	(void)INSIDE(rclose(moved));
	(void)REAL(close)(tcp);
	return REAL(connect)(fd, addr, len);
}

EXPORT int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	int rc;

	if (!rsp_is_ours(fd))
		return REAL(connect)(fd, addr, len);
	rc = INSIDE(rconnect(rsp_target(fd), addr, len));
	if (rc == 0 || errno == EINPROGRESS || errno == EALREADY ||
	    errno == EISCONN || errno == EINTR || !may_fall_back(fd))
		return rc;
	return fall_back(fd, addr, len);
}

/* Adds @to, the kernel's duplicate of @fd, to the table and returns it. If @to
 * is -1, the kernel has failed, and so does this function. */
static int alias(int fd, int to, bool cloexec)
{
	if (to < 0)
		return to;
	if (to >= RSP_DESCRIPTORS) {
		(void)REAL(close)(to);
		errno = EMFILE;
		return -1;
	}
	rsp_hold(rsp_target(fd));
	rsp_enter(to, RSP_SOCKET, rsp_target(fd));
	rsp_set_cloexec(to, cloexec);
	return to;
}

/* True if this library adds duplicates of @fd to the table. */
static bool has_aliases(int fd)
{
	return !is_visitor() && rsp_is_ours(fd);
}

EXPORT int dup(int fd)
{
	return has_aliases(fd) ? alias(fd, REAL(fcntl)(fd, F_DUPFD, 0), false)
			       : REAL(dup)(fd);
}

/* Returns a descriptor other than @to whose target is @to; -1: there is
 * none. */
static int other_of(int to)
{
	for (int i = 0; i < RSP_DESCRIPTORS; i++)
		if (i != to && rsp_kind(i) == RSP_SOCKET && rsp_target(i) == to)
			return i;
	return -1;
}

/* True if anything other than the descriptor @to needs the socket whose number
 * is @to. */
static bool is_needed(int to)
{
	bool own = rsp_kind(to) == RSP_SOCKET && rsp_target(to) == to;

	return own ? rsp_shared(to) : rsp_is_held(to);
}

/* Gives the socket @to another number, one of its other descriptors or a new
 * one, and tells the relay. False: failed, with errno. */
static bool move_on(int to)
{
	int other = other_of(to), moved;

	rsp_relay_stop();
	moved = other < 0 ? INSIDE(rfcntl(to, RS_MOVE))
			  : INSIDE(rfcntl(to, RS_MOVE_TO, other));
	if (moved >= 0) {
		rsp_move(to, moved);
		rsp_relay_moved(to, moved);
	}
	rsp_relay_go_on();
	/* EBADF: another thread has closed the socket */
	return moved >= 0 || errno == EBADF;
}

/* The program wants the number @to for another descriptor: a socket that owns
 * this number and stays in use gets another number. Another thread may still be
 * closing this socket, even if the program has no descriptor @to. False:
 * failed, with errno. */
static bool move_away(int to)
{
	if (to < 0 || to >= RSP_DESCRIPTORS)
		return true;
	if (is_needed(to))
		return move_on(to);
	if (rsp_kind(to) != RSP_OTHER)
		return true;
	return INSIDE(rfcntl(to, RS_MOVE)) >= 0 || errno == EBADF;
}

/* Returns the errno with which dup3() would fail, or 0. The caller asks before
 * it closes the old descriptor @to, because a dup3() that fails must not close
 * @to. */
static int refused(int fd, int to, int flags)
{
	struct rlimit most;

	if (flags & ~O_CLOEXEC)
		return EINVAL;
	if (REAL(fcntl)(fd, F_GETFD) < 0 || to < 0 ||
	    getrlimit(RLIMIT_NOFILE, &most) || (rlim_t)to >= most.rlim_cur)
		return EBADF;
	return 0;
}

/* Closes the rsocket or epoll set that the program has as descriptor @to, if it
 * has no other descriptor. The number @to stays open, because dup3() replaces
 * it next. */
static void end_before(int to, enum rsp_kind was)
{
	if (was == RSP_OTHER)
		return;
	rsp_forget(to);
	if (was == RSP_SET || (rsp_target(to) == to && rsp_let_go(to)))
		(void)INSIDE(rfcntl(to, RS_FORGET));
}

/* Does dup3(). The number @to is never free in between, because another thread
 * could get it. */
static int dup_over(int fd, int to, int flags)
{
	bool ours = has_aliases(fd);
	int target, error = refused(fd, to, flags);
	enum rsp_kind was;

	if (error) {
		errno = error;
		return -1;
	}
	if (!move_away(to))
		return -1;
	was = rsp_kind(to);
	target = was == RSP_SOCKET ? rsp_target(to) : -1;
	if (was == RSP_INHERITED)
		rsp_disown(to);
	end_before(to, was);
	if (REAL(dup3)(fd, to, flags) < 0)
		return -1;
	if (target >= 0 && target != to)
		(void)rsp_release(target);
	return ours ? alias(fd, to, flags & O_CLOEXEC) : to;
}

EXPORT int dup2(int fd, int to)
{
	return fd == to || rsp_inside || is_visitor() ? REAL(dup2)(fd, to)
						      : dup_over(fd, to, 0);
}

EXPORT int dup3(int fd, int to, int flags)
{
	return fd == to || rsp_inside || is_visitor()
		       ? REAL(dup3)(fd, to, flags)
		       : dup_over(fd, to, flags);
}

/* True if the program has no descriptor @fd, but a socket still owns the
 * number: the socket has other descriptors, or another thread is closing it. */
static bool is_hidden(int fd)
{
	return rsp_kind_now(fd) == RSP_OTHER && !rsp_inside &&
	       (rsp_is_held(fd) || INSIDE(rfcntl(fd, RS_TAKEN)));
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	unsigned end = VB_MIN(last, (unsigned)RSP_DESCRIPTORS - 1);
	bool done = false;

	for (unsigned fd = first; !flags && !is_visitor() && fd <= end; fd++) {
		if (rsp_kind_now((int)fd) != RSP_OTHER)
			(void)close((int)fd);
		if (!is_hidden((int)fd))
			continue;
		if (fd > first)
			(void)REAL(close_range)(first, fd - 1, 0);
		first = fd + 1;
		done = fd == last;
	}
	return done ? 0 : REAL(close_range)(first, last, flags);
}

EXPORT void closefrom(int first)
{
	(void)close_range((unsigned)VB_MAX(first, 0), ~0u, 0);
}

/* Returns the value of FIONREAD: the number of unread bytes, up to the size of
 * the buffer. */
static int readable(int fd)
{
	char buf[16384];
	ssize_t n = INSIDE(rrecv(rsp_target(fd), buf, sizeof(buf),
				 MSG_PEEK | MSG_DONTWAIT));

	return n > 0 ? (int)n : 0;
}

static int control(int fd, unsigned long what, void *value)
{
	switch (what) {
	case FIONBIO:
		return INSIDE(rfcntl(rsp_target(fd), F_SETFL,
				     *(int *)value ? O_NONBLOCK : 0));
	case FIONREAD:
		*(int *)value = readable(fd);
		return 0;
	case FIOCLEX:
	case FIONCLEX:
		wants_cloexec(fd, what == FIOCLEX);
		return 0;
	default:
		errno = ENOTTY;
		return -1;
	}
}

EXPORT int ioctl(int fd, unsigned long what, ...)
{
	va_list args;
	void *value;

	va_start(args, what);
	value = va_arg(args, void *);
	va_end(args);
	return rsp_is_ours(fd) ? control(fd, what, value)
			       : REAL(ioctl)(fd, what, value);
}

EXPORT int shutdown(int fd, int how)
{
	return rsp_is_ours(fd) ? INSIDE(rshutdown(rsp_target(fd), how))
			       : REAL(shutdown)(fd, how);
}

/* Does fcntl() of an rsocket. Sets of repoll_create() go to the C library,
 * because they are epoll descriptors of the kernel. */
static int control_socket(int fd, int cmd, void *value)
{
	int number = (int)(intptr_t)value;

	switch (cmd) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return alias(fd, REAL(fcntl)(fd, cmd, number),
			     cmd == F_DUPFD_CLOEXEC);
	case F_SETFD:
		wants_cloexec(fd, number & FD_CLOEXEC);
		return 0;
	case F_GETFD:
		return rsp_cloexec(fd) ? FD_CLOEXEC : 0;
	default:
		return INSIDE(rfcntl(rsp_target(fd), cmd, number));
	}
}

/* Defines a function like fcntl(). The third argument is read as a pointer,
 * which can also hold an int. */
#define CONTROL(name)                                                          \
	EXPORT int name(int fd, int cmd, ...)                                  \
	{                                                                      \
		va_list args;                                                  \
		void *value;                                                   \
                                                                               \
		va_start(args, cmd);                                           \
		value = va_arg(args, void *);                                  \
		va_end(args);                                                  \
		return !is_visitor() && rsp_is_ours(fd)                        \
			       ? control_socket(fd, cmd, value)                \
			       : REAL(name)(fd, cmd, value);                   \
	}
CONTROL(fcntl)
CONTROL(fcntl64)

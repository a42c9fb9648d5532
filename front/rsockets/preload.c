/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: a program's TCP sockets become rsockets without its
 * knowing. socket() of such a kind makes one, and the other calls go where
 * their descriptor belongs. What this library and those below it call
 * themselves is the C library's: a thread that is inside stays there.
 */
/* Both names of a function are wanted, fcntl and fcntl64, each as itself. */
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/defs.h"
#include "front/rsockets/preload.h"
#include "front/rsockets/ticket.h"

int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int maxevents,
		int timeout);

__thread unsigned rsp_inside;

/* Which descriptors are ours, and what they are. */
static struct {
	_Atomic uint8_t kind;
	_Atomic bool cloexec;
	_Atomic uint16_t target;
	_Atomic uint16_t holds; /* of a target */
} table[RSP_DESCRIPTORS];
static pid_t own_pid;

enum rsp_kind rsp_kind(int fd)
{
	if (fd < 0 || fd >= RSP_DESCRIPTORS)
		return RSP_OTHER;
	return (enum rsp_kind)atomic_load_explicit(&table[fd].kind,
						   memory_order_relaxed);
}

int rsp_target(int fd)
{
	return atomic_load_explicit(&table[fd].target, memory_order_relaxed);
}

bool rsp_cloexec(int fd)
{
	return atomic_load(&table[fd].cloexec);
}

void rsp_enter(int fd, enum rsp_kind kind, int target)
{
	atomic_store(&table[fd].target, (uint16_t)target);
	atomic_store(&table[fd].cloexec, false);
	atomic_store(&table[fd].kind, (uint8_t)kind);
}

void rsp_forget(int fd)
{
	atomic_store(&table[fd].kind, RSP_OTHER);
}

void rsp_hold(int target)
{
	atomic_fetch_add(&table[target].holds, 1);
}

int rsp_release(int target)
{
	uint16_t before = atomic_load(&table[target].holds);

	/* 0: somebody took its number, and it is closed */
	while (before && !atomic_compare_exchange_weak(&table[target].holds,
						       &before, before - 1))
		;
	return before == 1 ? INSIDE(rclose(target)) : 0;
}

bool rsp_shared(int target)
{
	return atomic_load(&table[target].holds) > 1;
}

/* A child of vfork() has its parent's memory, but not its descriptors. */
static bool is_visitor(void)
{
	return own_pid != getpid();
}

static enum rsp_kind kind_of(int fd)
{
	return rsp_inside ? RSP_OTHER : rsp_kind(fd);
}

static bool is_socket(int fd, bool reads)
{
	enum rsp_kind kind = kind_of(fd);

	if (kind == RSP_INHERITED) {
		rsp_inherit(fd, reads);
		kind = kind_of(fd);
	}
	return kind == RSP_SOCKET;
}

static bool is_ours(int fd)
{
	return is_socket(fd, true);
}

static int at(int fd)
{
	return rsp_target(fd);
}

/* A child of fork has its parent's descriptors, and none of its sockets. */
static void begin_again(void)
{
	own_pid = getpid();
	for (unsigned i = 0; i < RSP_DESCRIPTORS; i++) {
		atomic_store_explicit(&table[i].holds, 0, memory_order_relaxed);
		if (rsp_kind((int)i) == RSP_SOCKET)
			atomic_store(&table[i].kind, RSP_INHERITED);
		else if (rsp_kind((int)i) == RSP_SET)
			atomic_store(&table[i].kind, RSP_OTHER);
	}
}

static void watch_forks(void)
{
	own_pid = getpid();
	pthread_atfork(NULL, NULL, begin_again);
	rsp_watch_forks();
}

static int now_ours(int fd, enum rsp_kind kind)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	if (fd >= RSP_DESCRIPTORS) {
		(void)INSIDE(rclose(fd));
		errno = EMFILE;
		return -1;
	}
	if (fd >= 0) {
		atomic_store(&table[fd].holds, 1);
		rsp_enter(fd, kind, fd);
	}
	return fd;
}

/* Datagrams go to whoever listens by UDP, who may know no rsockets (a name
 * server): they are turned only for who asks for it. */
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
		atomic_store(&table[fd].cloexec, wants);
}

EXPORT int socket(int domain, int type, int protocol)
{
	int plain = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC), fd;

	if (rsp_inside || (domain != AF_INET && domain != AF_INET6) ||
	    !is_turned(plain, protocol))
		return REAL(socket)(domain, type, protocol);
	fd = INSIDE(rsocket(domain, type, protocol));
	/* No device here: the program is better off with TCP. */
	if (fd < 0)
		return REAL(socket)(domain, type, protocol);
	fd = now_ours(fd, RSP_SOCKET);
	wants_cloexec(fd, type & SOCK_CLOEXEC);
	return fd;
}

/* A descriptor that is not the socket's own number goes at once; that one is
 * taken, and stays so, until the last is gone. */
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
	enum rsp_kind kind = kind_of(fd);

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
	return is_ours(fd) ? INSIDE(rbind(at(fd), addr, len))
			   : REAL(bind)(fd, addr, len);
}

EXPORT int listen(int fd, int backlog)
{
	const int on = 1;

	if (!is_ours(fd))
		return REAL(listen)(fd, backlog);
	(void)INSIDE(rsetsockopt(at(fd), SOL_RDMA, RS_LATER, &on, sizeof(on)));
	return INSIDE(rlisten(at(fd), backlog));
}

EXPORT int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return is_ours(fd) ? now_ours(INSIDE(raccept(at(fd), addr, len)),
				      RSP_SOCKET)
			   : REAL(accept)(fd, addr, len);
}

EXPORT int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int taken;

	if (!is_ours(fd))
		return REAL(accept4)(fd, addr, len, flags);
	taken = accept(fd, addr, len);
	if (taken >= 0 && (flags & SOCK_NONBLOCK))
		(void)INSIDE(rfcntl(taken, F_SETFL, O_NONBLOCK));
	if (taken >= 0 && (flags & SOCK_CLOEXEC))
		wants_cloexec(taken, true);
	return taken;
}

/* A TCP socket like ours, as far as a program can tell; -1: errno. */
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
		if (INSIDE(rgetsockopt(at(fd), options[i][0], options[i][1],
				       &value, &bytes)) == 0)
			(void)REAL(setsockopt)(tcp, options[i][0],
					       options[i][1], &value, bytes);
	}
	if (tcp >= 0 && !cloexec)
		(void)REAL(fcntl)(tcp, F_SETFD, 0);
	return tcp;
}

/*
 * Where no listener speaks RDMA there may be one that speaks TCP. A program
 * that does not wait for its connection is told of the refusal later, when
 * there is nothing to put in its place; one that has bound its socket has
 * chosen how it wants to be seen.
 */
static bool may_fall_back(int fd)
{
	struct sockaddr_storage own;
	socklen_t bytes = sizeof(own);
	int error = errno;
	bool may = !(INSIDE(rfcntl(at(fd), F_GETFL)) & O_NONBLOCK) &&
		   INSIDE(rgetsockname(at(fd), (struct sockaddr *)&own,
				       &bytes)) == 0 &&
		   error != EAFNOSUPPORT && error != EINVAL && at(fd) == fd &&
		   !rsp_shared(fd);

	errno = error;
	return may;
}

/* The number is never free meanwhile: another thread would be given it. */
static int fall_back(int fd, const struct sockaddr *addr, socklen_t len)
{
	int tcp = tcp_like(fd, addr->sa_family);
	int cloexec = tcp < 0 ? 0 : REAL(fcntl)(tcp, F_GETFD) & FD_CLOEXEC;
	int moved = tcp < 0 ? -1 : INSIDE(rfcntl(at(fd), RS_MOVE));

	if (moved < 0 || REAL(dup3)(tcp, fd, cloexec ? O_CLOEXEC : 0) < 0) {
		(void)REAL(close)(tcp);
		return -1;
	}
	rsp_forget(fd);
	atomic_store(&table[fd].holds, 0);
	(void)INSIDE(rclose(moved));
	(void)REAL(close)(tcp);
	return REAL(connect)(fd, addr, len);
}

EXPORT int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	int rc;

	if (!is_ours(fd))
		return REAL(connect)(fd, addr, len);
	rc = INSIDE(rconnect(at(fd), addr, len));
	if (rc == 0 || errno == EINPROGRESS || errno == EALREADY ||
	    errno == EISCONN || errno == EINTR || !may_fall_back(fd))
		return rc;
	return fall_back(fd, addr, len);
}

/* What had the number is closed by the kernel, without a word to us. One that
 * is hidden behind its other descriptors ends with it. */
static void make_way(int to)
{
	if (kind_of(to) != RSP_OTHER) {
		(void)close(to);
	} else if (!rsp_inside && to >= 0 && to < RSP_DESCRIPTORS &&
		   atomic_exchange(&table[to].holds, 0)) {
		(void)INSIDE(rclose(to));
	}
}

/* @to: what the kernel has made of @fd, or -1. */
static int alias(int fd, int to)
{
	if (to < 0)
		return to;
	if (to >= RSP_DESCRIPTORS) {
		(void)REAL(close)(to);
		errno = EMFILE;
		return -1;
	}
	rsp_hold(at(fd));
	rsp_enter(to, RSP_SOCKET, at(fd));
	return to;
}

/* Of which a descriptor can be made another. */
static bool has_aliases(int fd)
{
	return !is_visitor() && is_ours(fd);
}

EXPORT int dup(int fd)
{
	return has_aliases(fd) ? alias(fd, REAL(fcntl)(fd, F_DUPFD, 0))
			       : REAL(dup)(fd);
}

EXPORT int dup2(int fd, int to)
{
	bool ours = has_aliases(fd);

	if (fd == to || is_visitor())
		return REAL(dup2)(fd, to);
	make_way(to);
	return ours ? alias(fd, REAL(dup2)(fd, to)) : REAL(dup2)(fd, to);
}

EXPORT int dup3(int fd, int to, int flags)
{
	bool ours = has_aliases(fd);

	if (fd == to || is_visitor())
		return REAL(dup3)(fd, to, flags);
	make_way(to);
	return ours ? alias(fd, REAL(dup3)(fd, to, flags))
		    : REAL(dup3)(fd, to, flags);
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	unsigned end = VB_MIN(last, (unsigned)RSP_DESCRIPTORS - 1);

	for (unsigned fd = first; !flags && !is_visitor() && fd <= end; fd++)
		make_way((int)fd);
	return REAL(close_range)(first, last, flags);
}

EXPORT void closefrom(int first)
{
	(void)close_range((unsigned)VB_MAX(first, 0), ~0u, 0);
}

/* How much is there, up to what one look shows. */
static int readable(int fd)
{
	char buf[16384];
	ssize_t n = INSIDE(
		rrecv(at(fd), buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT));

	return n > 0 ? (int)n : 0;
}

static int control(int fd, unsigned long what, void *value)
{
	switch (what) {
	case FIONBIO:
		return INSIDE(rfcntl(at(fd), F_SETFL,
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
	return is_ours(fd) ? control(fd, what, value)
			   : REAL(ioctl)(fd, what, value);
}

EXPORT int shutdown(int fd, int how)
{
	return is_ours(fd) ? INSIDE(rshutdown(at(fd), how))
			   : REAL(shutdown)(fd, how);
}

EXPORT ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	return is_ours(fd) ? INSIDE(rrecv(at(fd), buf, len, flags))
			   : REAL(recv)(fd, buf, len, flags);
}

EXPORT ssize_t recvfrom(int fd, void *buf, size_t len, int flags,
			struct sockaddr *addr, socklen_t *alen)
{
	return is_ours(fd)
		       ? INSIDE(rrecvfrom(at(fd), buf, len, flags, addr, alen))
		       : REAL(recvfrom)(fd, buf, len, flags, addr, alen);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	return is_ours(fd) ? INSIDE(rrecvmsg(at(fd), msg, flags))
			   : REAL(recvmsg)(fd, msg, flags);
}

EXPORT ssize_t read(int fd, void *buf, size_t count)
{
	return is_ours(fd) ? INSIDE(rread(at(fd), buf, count))
			   : REAL(read)(fd, buf, count);
}

EXPORT ssize_t readv(int fd, const struct iovec *iov, int count)
{
	return is_ours(fd) ? INSIDE(rreadv(at(fd), iov, count))
			   : REAL(readv)(fd, iov, count);
}

EXPORT ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	return is_socket(fd, false) ? INSIDE(rsend(at(fd), buf, len, flags))
				    : REAL(send)(fd, buf, len, flags);
}

EXPORT ssize_t sendto(int fd, const void *buf, size_t len, int flags,
		      const struct sockaddr *addr, socklen_t alen)
{
	return is_socket(fd, false)
		       ? INSIDE(rsendto(at(fd), buf, len, flags, addr, alen))
		       : REAL(sendto)(fd, buf, len, flags, addr, alen);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return is_socket(fd, false) ? INSIDE(rsendmsg(at(fd), msg, flags))
				    : REAL(sendmsg)(fd, msg, flags);
}

EXPORT ssize_t write(int fd, const void *buf, size_t count)
{
	return is_socket(fd, false) ? INSIDE(rwrite(at(fd), buf, count))
				    : REAL(write)(fd, buf, count);
}

EXPORT ssize_t writev(int fd, const struct iovec *iov, int count)
{
	return is_socket(fd, false) ? INSIDE(rwritev(at(fd), iov, count))
				    : REAL(writev)(fd, iov, count);
}

/* Through a buffer; what did not go is left in the file. */
static ssize_t send_from(int fd, int in, off_t *offset, size_t count)
{
	char buf[16384];
	size_t want = VB_MIN(count, sizeof(buf));
	off_t at = offset ? *offset : lseek(in, 0, SEEK_CUR);
	ssize_t got, sent;

	got = pread(in, buf, want, at);
	if (got <= 0)
		return got;
	sent = INSIDE(rsend(rsp_target(fd), buf, (size_t)got, 0));
	if (sent <= 0)
		return sent;
	if (offset)
		*offset = at + sent;
	else
		(void)lseek(in, at + sent, SEEK_SET);
	return sent;
}

EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
	return is_socket(out, false) ? send_from(out, in, offset, count)
				     : REAL(sendfile)(out, in, offset, count);
}

EXPORT ssize_t sendfile64(int out, int in, off64_t *offset, size_t count)
{
	return is_socket(out, false)
		       ? send_from(out, in, (off_t *)offset, count)
		       : REAL(sendfile64)(out, in, offset, count);
}

static bool any_ours(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; !rsp_inside && i < count; i++)
		if (is_ours(fds[i].fd))
			return true;
	return false;
}

/* rpoll() of the targets. */
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
		if (is_ours(fds[i].fd))
			targets[i].fd = at(fds[i].fd);
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

/* The mask is in force while it waits, though not from the same instant. */
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
		if (FD_ISSET(fd, set) && is_ours(fd))
			return true;
	return false;
}

static bool in_set(int fd, const fd_set *set)
{
	return set && FD_ISSET(fd, set);
}

static nfds_t from_sets(int n, const fd_set *r, const fd_set *w,
			const fd_set *e, struct pollfd *fds)
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

/* Returns 1 if it stays in. */
static int leave_in_set(int fd, fd_set *set, bool ready)
{
	if (!in_set(fd, set))
		return 0;
	if (!ready)
		FD_CLR(fd, set);
	return ready;
}

static int to_sets(const struct pollfd *fds, nfds_t count, fd_set *r, fd_set *w,
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

/* By poll(), since a target may have a number that fits no set. */
static int select_targets(int n, fd_set *r, fd_set *w, fd_set *e, int timeout)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t count = from_sets(VB_MIN(n, FD_SETSIZE), r, w, e, fds);

	if (poll_targets(fds, count, timeout) < 0)
		return -1;
	return to_sets(fds, count, r, w, e);
}

static int until(const struct timeval *t)
{
	if (!t)
		return -1;
	return (int)VB_MIN(t->tv_sec * 1000LL + (t->tv_usec + 999) / 1000,
			   (long long)INT32_MAX);
}

EXPORT int select(int n, fd_set *r, fd_set *w, fd_set *e,
		  struct timeval *timeout)
{
	if (set_has_ours(n, r) || set_has_ours(n, w) || set_has_ours(n, e))
		return select_targets(n, r, w, e, until(timeout));
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
			  : now_ours(INSIDE(repoll_create(flags)), RSP_SET);
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
	int target = is_ours(fd) ? at(fd) : fd;

	return kind_of(epfd) == RSP_SET
		       ? INSIDE(repoll_ctl(epfd, op, target, event))
		       : REAL(epoll_ctl)(epfd, op, fd, event);
}

EXPORT int epoll_wait(int epfd, struct epoll_event *events, int max,
		      int timeout)
{
	return kind_of(epfd) == RSP_SET
		       ? INSIDE(repoll_wait(epfd, events, max, timeout))
		       : REAL(epoll_wait)(epfd, events, max, timeout);
}

EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int max,
		       int timeout, const sigset_t *mask)
{
	sigset_t before;
	int rc;

	if (kind_of(epfd) != RSP_SET)
		return REAL(epoll_pwait)(epfd, events, max, timeout, mask);
	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &before);
	rc = epoll_wait(epfd, events, max, timeout);
	if (mask)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

EXPORT int getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	if (is_ours(fd))
		return INSIDE(rgetpeername(at(fd), addr, len));
	return !rsp_inside && rsp_relayed_name(fd, true, addr, len)
		       ? 0
		       : REAL(getpeername)(fd, addr, len);
}

EXPORT int getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	if (is_ours(fd))
		return INSIDE(rgetsockname(at(fd), addr, len));
	return !rsp_inside && rsp_relayed_name(fd, false, addr, len)
		       ? 0
		       : REAL(getsockname)(fd, addr, len);
}

/* TCP's and IP's of one that stands for a parent's are passed over. */
static bool is_passed_over(int fd, int level, int rc)
{
	int error = errno;
	bool passed = rc < 0 && !rsp_inside &&
		      (level == IPPROTO_TCP || level == IPPROTO_IP ||
		       level == IPPROTO_IPV6) &&
		      rsp_relayed_name(fd, true, NULL, NULL);

	errno = error;
	return passed;
}

EXPORT int setsockopt(int fd, int level, int name, const void *value,
		      socklen_t len)
{
	int rc;

	if (is_ours(fd))
		return INSIDE(rsetsockopt(at(fd), level, name, value, len));
	rc = REAL(setsockopt)(fd, level, name, value, len);
	return is_passed_over(fd, level, rc) ? 0 : rc;
}

EXPORT int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int rc;

	if (is_ours(fd))
		return INSIDE(rgetsockopt(at(fd), level, name, value, len));
	rc = REAL(getsockopt)(fd, level, name, value, len);
	if (!is_passed_over(fd, level, rc))
		return rc;
	/* No IP option came with it; of others there is one number. */
	*len = level == IPPROTO_IP && name == IP_OPTIONS
		       ? 0
		       : VB_MIN(*len, (socklen_t)sizeof(int));
	memset(value, 0, *len);
	return 0;
}

/* A set is an epoll of the kernel's, and a descriptor like others. */
static int control_socket(int fd, int cmd, void *value)
{
	int number = (int)(intptr_t)value;

	switch (cmd) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return alias(fd, REAL(fcntl)(fd, cmd, number));
	case F_SETFD:
		wants_cloexec(fd, number & FD_CLOEXEC);
		return 0;
	case F_GETFD:
		return rsp_cloexec(fd) ? FD_CLOEXEC : 0;
	default:
		return INSIDE(rfcntl(at(fd), cmd, number));
	}
}

/* Numbers and pointers alike fit the third argument. */
#define CONTROL(name)                                                          \
	EXPORT int name(int fd, int cmd, ...)                                  \
	{                                                                      \
		va_list args;                                                  \
		void *value;                                                   \
                                                                               \
		va_start(args, cmd);                                           \
		value = va_arg(args, void *);                                  \
		va_end(args);                                                  \
		return !is_visitor() && is_ours(fd)                            \
			       ? control_socket(fd, cmd, value)                \
			       : REAL(name)(fd, cmd, value);                   \
	}
CONTROL(fcntl)
CONTROL(fcntl64)

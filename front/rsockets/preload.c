/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: a program's TCP sockets become rsockets without its
 * knowing. socket() of such a kind makes one, and the other calls go where
 * their descriptor belongs. What this library and those below it call
 * themselves is the C library's: a thread that is inside stays there.
 */
/* Both names of a function are wanted, fcntl and fcntl64, each as itself. */
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
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

#define EXPORT __attribute__((visibility("default")))

int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int maxevents,
		int timeout);

static __thread unsigned inside;

/* The C library's function of the same name, found once. */
#define REAL(name)                                                             \
	({                                                                     \
		static _Atomic(void *) found;                                  \
		if (!atomic_load(&found))                                      \
			atomic_store(&found, dlsym(RTLD_NEXT, #name));         \
		(__typeof__(&name))atomic_load(&found);                        \
	})

#define INSIDE(call)                                                           \
	({                                                                     \
		__typeof__(call) result_;                                      \
		inside++;                                                      \
		result_ = (call);                                              \
		inside--;                                                      \
		result_;                                                       \
	})

/* Which descriptors are ours, and what they are. */
enum { DESCRIPTORS = 1 << 16 };
enum kind { OTHER, STREAM, SET };
static _Atomic uint8_t kinds[DESCRIPTORS];

static enum kind kind_of(int fd)
{
	if (inside || fd < 0 || fd >= DESCRIPTORS)
		return OTHER;
	return (enum kind)atomic_load_explicit(&kinds[fd],
					       memory_order_relaxed);
}

static bool is_ours(int fd)
{
	return kind_of(fd) == STREAM;
}

/* A child of fork has its parent's descriptors, and none of its sockets. */
static void forget_all(void)
{
	for (unsigned i = 0; i < DESCRIPTORS; i++)
		atomic_store_explicit(&kinds[i], OTHER, memory_order_relaxed);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_all);
}

static int now_ours(int fd, enum kind kind)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	if (fd < DESCRIPTORS) {
		if (fd >= 0)
			atomic_store(&kinds[fd], kind);
		return fd;
	}
	(void)INSIDE(rclose(fd));
	errno = EMFILE;
	return -1;
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

EXPORT int socket(int domain, int type, int protocol)
{
	int plain = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC), fd;

	if (inside || (domain != AF_INET && domain != AF_INET6) ||
	    !is_turned(plain, protocol))
		return REAL(socket)(domain, type, protocol);
	fd = INSIDE(rsocket(domain, type, protocol));
	/* No device here: the program is better off with TCP. */
	if (fd < 0)
		return REAL(socket)(domain, type, protocol);
	return now_ours(fd, STREAM);
}

EXPORT int close(int fd)
{
	enum kind kind = kind_of(fd);

	if (kind == OTHER)
		return REAL(close)(fd);
	atomic_store(&kinds[fd], OTHER);
	return INSIDE(rclose(fd));
}

EXPORT int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return is_ours(fd) ? INSIDE(rbind(fd, addr, len))
			   : REAL(bind)(fd, addr, len);
}

EXPORT int listen(int fd, int backlog)
{
	return is_ours(fd) ? INSIDE(rlisten(fd, backlog))
			   : REAL(listen)(fd, backlog);
}

EXPORT int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return is_ours(fd) ? now_ours(INSIDE(raccept(fd, addr, len)), STREAM)
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
	int cloexec = INSIDE(rfcntl(fd, F_GETFD)) & FD_CLOEXEC, value;
	int tcp = REAL(socket)(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t bytes;

	for (unsigned i = 0; tcp >= 0 && i < VB_COUNT(options); i++) {
		bytes = sizeof(value);
		if (INSIDE(rgetsockopt(fd, options[i][0], options[i][1], &value,
				       &bytes)) == 0)
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
	bool may = !(INSIDE(rfcntl(fd, F_GETFL)) & O_NONBLOCK) &&
		   INSIDE(rgetsockname(fd, (struct sockaddr *)&own, &bytes)) ==
			   0 &&
		   error != EAFNOSUPPORT && error != EINVAL;

	errno = error;
	return may;
}

static int fall_back(int fd, const struct sockaddr *addr, socklen_t len)
{
	int tcp = tcp_like(fd, addr->sa_family);
	int flags = tcp < 0 ? 0 : REAL(fcntl)(tcp, F_GETFD);

	if (tcp < 0)
		return -1;
	(void)close(fd);
	if (REAL(dup3)(tcp, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0) {
		(void)REAL(close)(tcp);
		return -1;
	}
	(void)REAL(close)(tcp);
	return REAL(connect)(fd, addr, len);
}

EXPORT int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	int rc;

	if (!is_ours(fd))
		return REAL(connect)(fd, addr, len);
	rc = INSIDE(rconnect(fd, addr, len));
	if (rc == 0 || errno == EINPROGRESS || errno == EALREADY ||
	    errno == EISCONN || errno == EINTR || !may_fall_back(fd))
		return rc;
	return fall_back(fd, addr, len);
}

/* What had the number is closed by the kernel, without a word to us. */
static void make_way(int fd)
{
	if (kind_of(fd) != OTHER)
		(void)close(fd);
}

EXPORT int dup2(int fd, int to)
{
	if (fd != to)
		make_way(to);
	return REAL(dup2)(fd, to);
}

EXPORT int dup3(int fd, int to, int flags)
{
	if (fd != to)
		make_way(to);
	return REAL(dup3)(fd, to, flags);
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	unsigned end = VB_MIN(last, (unsigned)DESCRIPTORS - 1);

	for (unsigned fd = first; !flags && fd <= end; fd++)
		make_way((int)fd);
	return REAL(close_range)(first, last, flags);
}

/* How much is there, up to what one look shows. */
static int readable(int fd)
{
	char buf[16384];
	ssize_t n =
		INSIDE(rrecv(fd, buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT));

	return n > 0 ? (int)n : 0;
}

static int control(int fd, unsigned long what, void *value)
{
	switch (what) {
	case FIONBIO:
		return INSIDE(
			rfcntl(fd, F_SETFL, *(int *)value ? O_NONBLOCK : 0));
	case FIONREAD:
		*(int *)value = readable(fd);
		return 0;
	case FIOCLEX:
		return INSIDE(rfcntl(fd, F_SETFD, FD_CLOEXEC));
	case FIONCLEX:
		return INSIDE(rfcntl(fd, F_SETFD, 0));
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
	return is_ours(fd) ? INSIDE(rshutdown(fd, how))
			   : REAL(shutdown)(fd, how);
}

EXPORT ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	return is_ours(fd) ? INSIDE(rrecv(fd, buf, len, flags))
			   : REAL(recv)(fd, buf, len, flags);
}

EXPORT ssize_t recvfrom(int fd, void *buf, size_t len, int flags,
			struct sockaddr *addr, socklen_t *alen)
{
	return is_ours(fd) ? INSIDE(rrecvfrom(fd, buf, len, flags, addr, alen))
			   : REAL(recvfrom)(fd, buf, len, flags, addr, alen);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	return is_ours(fd) ? INSIDE(rrecvmsg(fd, msg, flags))
			   : REAL(recvmsg)(fd, msg, flags);
}

EXPORT ssize_t read(int fd, void *buf, size_t count)
{
	return is_ours(fd) ? INSIDE(rread(fd, buf, count))
			   : REAL(read)(fd, buf, count);
}

EXPORT ssize_t readv(int fd, const struct iovec *iov, int count)
{
	return is_ours(fd) ? INSIDE(rreadv(fd, iov, count))
			   : REAL(readv)(fd, iov, count);
}

EXPORT ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	return is_ours(fd) ? INSIDE(rsend(fd, buf, len, flags))
			   : REAL(send)(fd, buf, len, flags);
}

EXPORT ssize_t sendto(int fd, const void *buf, size_t len, int flags,
		      const struct sockaddr *addr, socklen_t alen)
{
	return is_ours(fd) ? INSIDE(rsendto(fd, buf, len, flags, addr, alen))
			   : REAL(sendto)(fd, buf, len, flags, addr, alen);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return is_ours(fd) ? INSIDE(rsendmsg(fd, msg, flags))
			   : REAL(sendmsg)(fd, msg, flags);
}

EXPORT ssize_t write(int fd, const void *buf, size_t count)
{
	return is_ours(fd) ? INSIDE(rwrite(fd, buf, count))
			   : REAL(write)(fd, buf, count);
}

EXPORT ssize_t writev(int fd, const struct iovec *iov, int count)
{
	return is_ours(fd) ? INSIDE(rwritev(fd, iov, count))
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
	sent = INSIDE(rsend(fd, buf, (size_t)got, 0));
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
	return is_ours(out) ? send_from(out, in, offset, count)
			    : REAL(sendfile)(out, in, offset, count);
}

EXPORT ssize_t sendfile64(int out, int in, off64_t *offset, size_t count)
{
	return is_ours(out) ? send_from(out, in, (off_t *)offset, count)
			    : REAL(sendfile64)(out, in, offset, count);
}

static bool any_ours(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; !inside && i < count; i++)
		if (is_ours(fds[i].fd))
			return true;
	return false;
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	return any_ours(fds, count) ? INSIDE(rpoll(fds, count, timeout))
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
	rc = INSIDE(rpoll(fds, count, milliseconds(timeout)));
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
	for (int fd = 0; set && !inside && fd < n; fd++)
		if (FD_ISSET(fd, set) && is_ours(fd))
			return true;
	return false;
}

EXPORT int select(int n, fd_set *r, fd_set *w, fd_set *e,
		  struct timeval *timeout)
{
	if (set_has_ours(n, r) || set_has_ours(n, w) || set_has_ours(n, e))
		return INSIDE(rselect(n, r, w, e, timeout));
	return REAL(select)(n, r, w, e, timeout);
}

static int select_masked(int n, fd_set *r, fd_set *w, fd_set *e,
			 const struct timespec *timeout, const sigset_t *mask)
{
	struct timeval t;
	sigset_t before;
	int rc;

	if (timeout)
		t = (struct timeval){ timeout->tv_sec,
				      (timeout->tv_nsec + 999) / 1000 };
	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &before);
	rc = INSIDE(rselect(n, r, w, e, timeout ? &t : NULL));
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
	return inside ? REAL(epoll_create1)(flags)
		      : now_ours(INSIDE(repoll_create(flags)), SET);
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
	return kind_of(epfd) == SET ? INSIDE(repoll_ctl(epfd, op, fd, event))
				    : REAL(epoll_ctl)(epfd, op, fd, event);
}

EXPORT int epoll_wait(int epfd, struct epoll_event *events, int max,
		      int timeout)
{
	return kind_of(epfd) == SET
		       ? INSIDE(repoll_wait(epfd, events, max, timeout))
		       : REAL(epoll_wait)(epfd, events, max, timeout);
}

EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int max,
		       int timeout, const sigset_t *mask)
{
	sigset_t before;
	int rc;

	if (kind_of(epfd) != SET)
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
	return is_ours(fd) ? INSIDE(rgetpeername(fd, addr, len))
			   : REAL(getpeername)(fd, addr, len);
}

EXPORT int getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return is_ours(fd) ? INSIDE(rgetsockname(fd, addr, len))
			   : REAL(getsockname)(fd, addr, len);
}

EXPORT int setsockopt(int fd, int level, int name, const void *value,
		      socklen_t len)
{
	return is_ours(fd) ? INSIDE(rsetsockopt(fd, level, name, value, len))
			   : REAL(setsockopt)(fd, level, name, value, len);
}

EXPORT int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	return is_ours(fd) ? INSIDE(rgetsockopt(fd, level, name, value, len))
			   : REAL(getsockopt)(fd, level, name, value, len);
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
		return is_ours(fd)                                             \
			       ? INSIDE(rfcntl(fd, cmd, (int)(intptr_t)value)) \
			       : REAL(name)(fd, cmd, value);                   \
	}
CONTROL(fcntl)
CONTROL(fcntl64)

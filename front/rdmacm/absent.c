/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names that are promised, so that programs load, and not supported yet: they
 * refuse. docs/RDMACM.md lists them.
 */
#include "front/rdmacm/rdmacm.h"

#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>

struct rdma_addrinfo;
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
			  const char *service,
			  const struct rdma_addrinfo *hints);
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
			int status, uint64_t arg);
struct epoll_event;
int repoll_create(int size);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int maxevents,
		int timeout);

#define ABSENT(name, type, ...)                                                \
	VB_EXPORT type name(__VA_ARGS__)                                       \
	{                                                                      \
		return rcm_fail(EOPNOTSUPP);                                   \
	}

ABSENT(rdma_query_addrinfo, int, struct rdma_cm_id *id,
       struct rdma_addrinfo **info)
ABSENT(rdma_resolve_addrinfo, int, struct rdma_cm_id *id, const char *node,
       const char *service, const struct rdma_addrinfo *hints)
ABSENT(rdma_write_cm_event, int, struct rdma_cm_id *id,
       enum rdma_cm_event_type event, int status, uint64_t arg)

ABSENT(rsocket, int, int domain, int type, int protocol)
ABSENT(rbind, int, int socket, const struct sockaddr *addr, socklen_t addrlen)
ABSENT(rlisten, int, int socket, int backlog)
ABSENT(raccept, int, int socket, struct sockaddr *addr, socklen_t *addrlen)
ABSENT(rconnect, int, int socket, const struct sockaddr *addr,
       socklen_t addrlen)
ABSENT(rshutdown, int, int socket, int how)
ABSENT(rclose, int, int socket)
ABSENT(rrecv, ssize_t, int socket, void *buf, size_t len, int flags)
ABSENT(rrecvfrom, ssize_t, int socket, void *buf, size_t len, int flags,
       struct sockaddr *src_addr, socklen_t *addrlen)
ABSENT(rrecvmsg, ssize_t, int socket, struct msghdr *msg, int flags)
ABSENT(rsend, ssize_t, int socket, const void *buf, size_t len, int flags)
ABSENT(rsendto, ssize_t, int socket, const void *buf, size_t len, int flags,
       const struct sockaddr *dest_addr, socklen_t addrlen)
ABSENT(rsendmsg, ssize_t, int socket, const struct msghdr *msg, int flags)
ABSENT(rread, ssize_t, int socket, void *buf, size_t count)
ABSENT(rreadv, ssize_t, int socket, const struct iovec *iov, int iovcnt)
ABSENT(rwrite, ssize_t, int socket, const void *buf, size_t count)
ABSENT(rwritev, ssize_t, int socket, const struct iovec *iov, int iovcnt)
ABSENT(rpoll, int, struct pollfd *fds, nfds_t nfds, int timeout)
ABSENT(rselect, int, int nfds, fd_set *readfds, fd_set *writefds,
       fd_set *exceptfds, struct timeval *timeout)
ABSENT(rgetpeername, int, int socket, struct sockaddr *addr, socklen_t *addrlen)
ABSENT(rgetsockname, int, int socket, struct sockaddr *addr, socklen_t *addrlen)
ABSENT(rsetsockopt, int, int socket, int level, int optname, const void *optval,
       socklen_t optlen)
ABSENT(rgetsockopt, int, int socket, int level, int optname, void *optval,
       socklen_t *optlen)
ABSENT(rfcntl, int, int socket, int cmd, ...)
ABSENT(riomap, off_t, int socket, void *buf, size_t len, int prot, int flags,
       off_t offset)
ABSENT(riounmap, int, int socket, void *buf, size_t len)
ABSENT(riowrite, size_t, int socket, const void *buf, size_t count,
       off_t offset, int flags)
ABSENT(repoll_create, int, int size)
ABSENT(repoll_ctl, int, int epfd, int op, int fd, struct epoll_event *event)
ABSENT(repoll_wait, int, int epfd, struct epoll_event *events, int maxevents,
       int timeout)
#undef ABSENT

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket calls that `verbena run` preloads. A program that opens a socket
 * of NETLINK_RDMA gets a UNIX datagram socket that is connected to itself. When
 * the program sends a request, this file sends the answer to that socket
 * instead, where the program reads it. So poll, epoll, dup and close are the
 * kernel's own.
 *
 * Other sockets cost one comparison a call until the program has opened such a
 * socket, and one system call afterwards.
 *
 * All state is in the kernel's socket: its name marks it and has its port ID,
 * and two of its options, which do nothing for UNIX sockets, keep
 * NETLINK_CAP_ACK and NETLINK_EXT_ACK. The code allocates only while it answers
 * a request, takes no lock and starts no thread.
 */
#include "front/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/netlink_mark.h"
#include "front/netlink/answer.h"
#include "front/netlink/links.h"

#define PREFIX "verbena-netlink-rdma-"

/* The socket options that store NETLINK_CAP_ACK and NETLINK_EXT_ACK. */
#define KEEPS_CAP_ACK SO_BROADCAST
#define KEEPS_EXT_ACK SO_KEEPALIVE

static atomic_bool any; /* this program has opened a NETLINK_RDMA socket */

static const char *tree(void)
{
	return getenv("VERBENA_TREE");
}

/* Functions that make the sockets and recognize them. */

static socklen_t name_socket(struct sockaddr_un *name, uint32_t portid)
{
	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	/* The first byte stays 0, which makes the name abstract: such a name
	 * disappears with its socket. */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(name->sun_path + 1,
					    sizeof(name->sun_path) - 1,
					    PREFIX "%08x", portid));
}

/* Is @fd a socket of NETLINK_RDMA? If so, read its port ID. Keeps errno. */
static bool is_named(int fd, uint32_t *portid)
{
	struct sockaddr_un name = { 0 };
	socklen_t length = sizeof(name);
	int error = errno;
	bool is =
		NEXT(getsockname)(fd, (struct sockaddr *)&name, &length) == 0 &&
		name.sun_family == AF_UNIX && length < sizeof(name) &&
		name.sun_path[0] == '\0' &&
		sscanf(name.sun_path + 1, PREFIX "%8x", portid) == 1;

	errno = error;
	return is;
}

static bool calls_is_ours(int fd, uint32_t *portid)
{
	return __builtin_expect(
		       atomic_load_explicit(&any, memory_order_relaxed),
		       false) &&
	       is_named(fd, portid);
}

/* Open a socket with the port ID @portid, connected to itself. Returns -1 and
 * errno; EADDRINUSE: another socket has that port ID. */
static int open_port(uint32_t portid, int flags)
{
	struct sockaddr_un name;
	socklen_t length = name_socket(&name, portid);
	int fd = NEXT(socket)(AF_UNIX, SOCK_DGRAM | flags, 0), error;
	char drop;

	if (fd < 0)
		return -1;
	if (NEXT(bind)(fd, (struct sockaddr *)&name, length) == 0 &&
	    NEXT(connect)(fd, (struct sockaddr *)&name, length) == 0) {
		/* Drop the messages that other processes sent before connect().
		 * A connected socket receives only from its peer, which is the
		 * socket itself. */
		while (NEXT(recv)(fd, &drop, 1, MSG_DONTWAIT) >= 0)
			;
		return fd;
	}
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* Open a socket and choose its port ID as the kernel does: the process's
 * number, or, if that is in use, a number that no process can have. */
static int open_any(int flags)
{
	uint32_t portid = (uint32_t)getpid();
	int fd;

	for (int i = 0; i < 16; i++) {
		fd = open_port(portid, flags);
		if (fd >= 0 || errno != EADDRINUSE)
			return fd;
		if (getrandom(&portid, sizeof(portid), GRND_NONBLOCK) < 0)
			portid = (uint32_t)getpid() + (uint32_t)i;
		portid |= 1u << 31;
	}
	return -1;
}

EXPORTED int socket(int domain, int type, int protocol)
{
	const int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
	int fd;

	if (__builtin_expect(domain != AF_NETLINK, true) ||
	    protocol != NETLINK_RDMA || !tree())
		return NEXT(socket)(domain, type, protocol);
	if ((type & ~flags) != SOCK_RAW && (type & ~flags) != SOCK_DGRAM) {
		errno = ESOCKTNOSUPPORT;
		return -1;
	}
	fd = open_any(type & flags);
	if (fd >= 0)
		atomic_store(&any, true);
	return fd;
}

static bool has_flag(int fd, int option)
{
	int value = 0;
	socklen_t length = sizeof(value);

	return NEXT(getsockopt)(fd, SOL_SOCKET, option, &value, &length) == 0 &&
	       value;
}

static int set_flag(int fd, int option, int value)
{
	value = !!value;
	return NEXT(setsockopt)(fd, SOL_SOCKET, option, &value, sizeof(value));
}

/* Change the port ID of a socket. A socket's name cannot be changed, so a new
 * socket with the new name replaces the old one at its descriptor. */
static int rename_socket(int fd, uint32_t portid)
{
	int status = fcntl(fd, F_GETFL);
	bool cloexec = fcntl(fd, F_GETFD) & FD_CLOEXEC;
	int other = open_port(portid, status & O_NONBLOCK ? SOCK_NONBLOCK : 0);
	int rc;

	if (other < 0)
		return -1;
	(void)set_flag(other, KEEPS_CAP_ACK, has_flag(fd, KEEPS_CAP_ACK));
	(void)set_flag(other, KEEPS_EXT_ACK, has_flag(fd, KEEPS_EXT_ACK));
	rc = dup3(other, fd, cloexec ? O_CLOEXEC : 0);
	close(other);
	return rc < 0 ? -1 : 0;
}

EXPORTED int bind(int fd, const struct sockaddr *addr, socklen_t length)
{
	struct sockaddr_nl to;
	uint32_t portid;

	if (!calls_is_ours(fd, &portid))
		return NEXT(bind)(fd, addr, length);
	if (!addr || length < sizeof(to)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(&to, addr, sizeof(to));
	if (to.nl_family != AF_NETLINK) {
		errno = EINVAL;
		return -1;
	}
	/* Accept multicast groups, although no notification is ever sent to
	 * them. */
	return to.nl_pid == 0 || to.nl_pid == portid
		       ? 0
		       : rename_socket(fd, to.nl_pid);
}

/* Ignore the call: a netlink socket needs no connect() to talk to the kernel,
 * and this socket must stay connected to itself. */
EXPORTED int connect(int fd, const struct sockaddr *addr, socklen_t length)
{
	uint32_t portid;

	return calls_is_ours(fd, &portid) ? 0 : NEXT(connect)(fd, addr, length);
}

static int give_address(uint32_t portid, struct sockaddr *addr,
			socklen_t *length)
{
	const struct sockaddr_nl nl = { .nl_family = AF_NETLINK,
					.nl_pid = portid };

	if (!addr || !length) {
		errno = EFAULT;
		return -1;
	}
	memcpy(addr, &nl, VB_MIN((size_t)*length, sizeof(nl)));
	*length = sizeof(nl);
	return 0;
}

EXPORTED int getsockname(int fd, struct sockaddr *addr, socklen_t *length)
{
	uint32_t portid;

	return calls_is_ours(fd, &portid) ? give_address(portid, addr, length)
					  : NEXT(getsockname)(fd, addr, length);
}

EXPORTED int getpeername(int fd, struct sockaddr *addr, socklen_t *length)
{
	uint32_t portid;

	return calls_is_ours(fd, &portid) ? give_address(0, addr, length)
					  : NEXT(getpeername)(fd, addr, length);
}

EXPORTED int setsockopt(int fd, int level, int option, const void *value,
			socklen_t length)
{
	uint32_t portid;
	int on;

	if (__builtin_expect(level != SOL_NETLINK, true) ||
	    !calls_is_ours(fd, &portid))
		return NEXT(setsockopt)(fd, level, option, value, length);
	if (!value || length < sizeof(on)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(&on, value, sizeof(on));
	if (option == NETLINK_CAP_ACK)
		return set_flag(fd, KEEPS_CAP_ACK, on);
	if (option == NETLINK_EXT_ACK)
		return set_flag(fd, KEEPS_EXT_ACK, on);
	return 0; /* the other options have no effect on an answer */
}

EXPORTED int getsockopt(int fd, int level, int option, void *value,
			socklen_t *length)
{
	uint32_t portid;
	int answer;

	if (!calls_is_ours(fd, &portid))
		return NEXT(getsockopt)(fd, level, option, value, length);
	if (level == SOL_SOCKET && option == SO_DOMAIN)
		answer = AF_NETLINK;
	else if (level == SOL_SOCKET && option == SO_PROTOCOL)
		answer = NETLINK_RDMA;
	else if (level == SOL_NETLINK && option == NETLINK_CAP_ACK)
		answer = has_flag(fd, KEEPS_CAP_ACK);
	else if (level == SOL_NETLINK && option == NETLINK_EXT_ACK)
		answer = has_flag(fd, KEEPS_EXT_ACK);
	else
		return NEXT(getsockopt)(fd, level, option, value, length);
	if (!value || !length || *length < sizeof(answer)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(value, &answer, sizeof(answer));
	*length = sizeof(answer);
	return 0;
}

/*
 * Functions that send answers. A list may have more datagrams than the socket's
 * queue can have. Then this file queues a bookmark behind the first of them: an
 * NLMSG_NOOP, which means nothing to a program, with the request and the
 * cursor. When the program has read up to the bookmark, the next part of the
 * list replaces the bookmark.
 */

/* The number of datagrams of an answer that are sent at once. A socket's queue
 * has room for more. */
#define AT_ONCE	       16
#define BOOKMARK_MAGIC 0x76626e6c63757273u

struct bookmark {
	struct nlmsghdr head;
	uint64_t magic;
	struct vb_nl_cursor cursor;
	uint32_t length; /* length of the request in bytes */
	uint8_t request[VB_NL_REQUEST];
};

static int send_self(int fd, const void *bytes, size_t length)
{
	return NEXT(send)(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0
		       ? -errno
		       : 0;
}

static int put_bookmark(int fd, const struct vb_nl_request *r,
			const struct vb_nl_cursor *cursor)
{
	struct bookmark p = {
		.head = { .nlmsg_type = NLMSG_NOOP,
			  .nlmsg_len = sizeof(p),
			  .nlmsg_pid = r->portid },
		.magic = BOOKMARK_MAGIC,
		.cursor = *cursor,
		.length = r->length,
	};

	memcpy(p.request, r->bytes, VB_MIN(r->length, sizeof(p.request)));
	return send_self(fd, &p, sizeof(p));
}

static int send_answer(int fd, const struct vb_nl_request *r,
		       const struct vb_nl_facts *facts,
		       struct vb_nl_cursor *cursor)
{
	uint8_t bytes[VB_NL_ANSWER];
	int rc = 0;

	for (int i = 0; i < AT_ONCE && rc == 0 && !cursor->done; i++) {
		size_t length = vb_nl_answer(r, facts, cursor, bytes);

		if (length == 0)
			return 0;
		rc = send_self(fd, bytes, length);
	}
	return rc || cursor->done ? rc : put_bookmark(fd, r, cursor);
}

static int play(int fd, const struct vb_nl_request *r,
		struct vb_nl_cursor *cursor)
{
	const char *root = tree();
	struct vb_nl_facts facts = { 0 };
	uint8_t bytes[VB_NL_ANSWER];
	int rc = root ? vb_nl_gather(root, vb_nl_needs(r), &facts) : -ENODEV;

	if (rc == 0)
		rc = send_answer(fd, r, &facts, cursor);
	else
		rc = send_self(fd, bytes, vb_nl_refuse(r, rc, cursor, bytes));
	vb_nl_forget(&facts);
	return rc;
}

/* Answer the requests in @length bytes: a program may send several in one
 * call. */
static ssize_t ask(int fd, uint32_t portid, const uint8_t *bytes, size_t length)
{
	struct vb_nl_request r = {
		.portid = portid,
		.cap_ack = has_flag(fd, KEEPS_CAP_ACK),
		.ext_ack = has_flag(fd, KEEPS_EXT_ACK),
	};
	int error = errno, rc = 0;
	size_t n;

	for (size_t at = 0; rc == 0 && at < length; at += n) {
		struct vb_nl_cursor cursor = { 0 };

		n = vb_nl_split(bytes + at, length - at, &r);
		if (n == 0)
			break;
		rc = play(fd, &r, &cursor);
	}
	/* The queue is full of answers that the program has not read: the
	 * kernel also reports ENOBUFS then. */
	errno = rc ? ENOBUFS : error;
	return rc ? -1 : (ssize_t)length;
}

EXPORTED ssize_t sendto(int fd, const void *bytes, size_t length, int flags,
			const struct sockaddr *to, socklen_t to_length)
{
	uint32_t portid;

	return calls_is_ours(fd, &portid)
		       ? ask(fd, portid, bytes, length)
		       : NEXT(sendto)(fd, bytes, length, flags, to, to_length);
}

EXPORTED ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
	uint32_t portid;

	return calls_is_ours(fd, &portid)
		       ? ask(fd, portid, bytes, length)
		       : NEXT(send)(fd, bytes, length, flags);
}

static ssize_t ask_pieces(int fd, uint32_t portid, const struct msghdr *m)
{
	uint8_t bytes[4 * VB_NL_REQUEST];
	size_t length = 0;

	for (size_t i = 0; i < m->msg_iovlen; i++) {
		const struct iovec *v = &m->msg_iov[i];

		if (v->iov_len > sizeof(bytes) - length) {
			errno = EMSGSIZE;
			return -1;
		}
		if (v->iov_len)
			memcpy(bytes + length, v->iov_base, v->iov_len);
		length += v->iov_len;
	}
	return ask(fd, portid, bytes, length);
}

EXPORTED ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	uint32_t portid;

	return calls_is_ours(fd, &portid) ? ask_pieces(fd, portid, m)
					  : NEXT(sendmsg)(fd, m, flags);
}

static bool is_bookmark(const struct bookmark *p, ssize_t length)
{
	return length == sizeof(*p) && p->head.nlmsg_type == NLMSG_NOOP &&
	       p->magic == BOOKMARK_MAGIC && p->length >= NLMSG_HDRLEN &&
	       p->length <= sizeof(p->request);
}

/* While the next datagram is a bookmark, which is the position in a list that did
 * not fit into the socket, replace it by the next part of its
 * list. Returns false and errno when nothing can be received. */
static bool go_on(int fd, uint32_t portid, int flags)
{
	const int wait = flags & MSG_DONTWAIT;
	struct bookmark p;
	ssize_t n;

	while ((n = NEXT(recv)(fd, &p, sizeof(p), MSG_PEEK | wait)) >= 0) {
		struct vb_nl_request r = {
			.bytes = p.request,
			.length = p.length,
			.portid = portid,
		};

		if (!is_bookmark(&p, n))
			return true;
		if (NEXT(recv)(fd, &p, sizeof(p), MSG_DONTWAIT) < 0 ||
		    play(fd, &r, &p.cursor))
			return false;
	}
	return false;
}

/* Receive an answer. Its sender is the kernel, whose port ID is 0. */
static ssize_t receive(int fd, uint32_t portid, struct msghdr *m, int flags)
{
	struct sockaddr *name = m->msg_name;
	socklen_t room = m->msg_namelen;
	ssize_t n;

	if (!go_on(fd, portid, flags))
		return -1;
	m->msg_name = NULL;
	m->msg_namelen = 0;
	n = NEXT(recvmsg)(fd, m, flags);
	m->msg_name = name;
	m->msg_namelen = room;
	if (n >= 0 && name)
		(void)give_address(0, name, &m->msg_namelen);
	return n;
}

/* Does the message come from the kernel by a netlink socket? */
static bool is_of_kernel(const struct msghdr *m)
{
	struct sockaddr_nl from;

	if (!m->msg_name || m->msg_namelen < sizeof(from))
		return false;
	memcpy(&from, m->msg_name, sizeof(from));
	return from.nl_family == AF_NETLINK && from.nl_pid == 0;
}

/* Is this a program's socket of NETLINK_ROUTE, not one of Verbena's? */
static bool is_about_links(int fd)
{
	int protocol;
	socklen_t length = sizeof(protocol);

	return NEXT(getsockopt)(fd, SOL_SOCKET, SO_PROTOCOL, &protocol,
				&length) == 0 &&
	       protocol == NETLINK_ROUTE && !has_flag(fd, VB_NETLINK_MARK);
}

/* If the program has received messages about links, write the addresses of
 * IPoIB interfaces into them. Only a message buffer in one piece is handled,
 * since libraries of netlink read in this way. */
static void complete_links(int fd, struct msghdr *m, size_t length)
{
	int error = errno;
	uint8_t *bytes;

	if (m->msg_iovlen != 1)
		return;
	bytes = m->msg_iov[0].iov_base;
	length = VB_MIN(length, m->msg_iov[0].iov_len);
	if (vb_nl_links_lack(bytes, length) && is_about_links(fd))
		vb_nl_links_complete(bytes, length, vb_files_ipoib_address);
	errno = error;
}

EXPORTED ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	uint32_t portid;
	ssize_t n;

	if (calls_is_ours(fd, &portid))
		return receive(fd, portid, m, flags);
	n = NEXT(recvmsg)(fd, m, flags);
	if (n > 0 && is_of_kernel(m))
		complete_links(fd, m, (size_t)n);
	return n;
}

static ssize_t receive_from(int fd, uint32_t portid, void *bytes, size_t length,
			    int flags, struct sockaddr *from,
			    socklen_t *from_length)
{
	struct iovec v = { .iov_base = bytes, .iov_len = length };
	struct msghdr m = {
		.msg_name = from_length ? from : NULL,
		.msg_namelen = from && from_length ? *from_length : 0,
		.msg_iov = &v,
		.msg_iovlen = 1,
	};
	ssize_t n = receive(fd, portid, &m, flags);

	if (n >= 0 && from && from_length)
		*from_length = m.msg_namelen;
	return n;
}

EXPORTED ssize_t recvfrom(int fd, void *bytes, size_t length, int flags,
			  struct sockaddr *from, socklen_t *from_length)
{
	uint32_t portid;

	return calls_is_ours(fd, &portid)
		       ? receive_from(fd, portid, bytes, length, flags, from,
				      from_length)
		       : NEXT(recvfrom)(fd, bytes, length, flags, from,
					from_length);
}

EXPORTED ssize_t recv(int fd, void *bytes, size_t length, int flags)
{
	uint32_t portid;

	return calls_is_ours(fd, &portid)
		       ? receive_from(fd, portid, bytes, length, flags, NULL,
				      NULL)
		       : NEXT(recv)(fd, bytes, length, flags);
}

/* Programs that were compiled with _FORTIFY_SOURCE call these functions. */
ssize_t __recv_chk(int fd, void *bytes, size_t length, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *bytes, size_t length, size_t room,
		       int flags, struct sockaddr *from,
		       socklen_t *from_length);

EXPORTED ssize_t __recv_chk(int fd, void *bytes, size_t length, size_t room,
			    int flags)
{
	uint32_t portid;

	return length <= room && calls_is_ours(fd, &portid)
		       ? receive_from(fd, portid, bytes, length, flags, NULL,
				      NULL)
		       : NEXT(__recv_chk)(fd, bytes, length, room, flags);
}

EXPORTED ssize_t __recvfrom_chk(int fd, void *bytes, size_t length, size_t room,
				int flags, struct sockaddr *from,
				socklen_t *from_length)
{
	uint32_t portid;

	return length <= room && calls_is_ours(fd, &portid)
		       ? receive_from(fd, portid, bytes, length, flags, from,
				      from_length)
		       : NEXT(__recvfrom_chk)(fd, bytes, length, room, flags,
					      from, from_length);
}

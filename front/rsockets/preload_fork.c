/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets that a child of fork() inherits. When the child first uses a
 * listener, it gets a listener of its own on that port, on the child's own
 * adapter; listeners of siblings take connections in turn, and the parent's
 * listener gets none while there are others. A connection stays with the
 * parent, which relays its bytes (preload_relay.h). Any other socket the child
 * can only close.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/defs.h"
#include "front/rsockets/preload_relay.h"
#include "front/rsockets/private_options.h"

enum { BACKLOG = 511 };

struct listener {
	int target;
	struct sockaddr_storage address;
	socklen_t length;
	int v6only, flags;
	uint64_t secret;
};

/* The parent's listeners at the time of the last fork(), which the child
 * reads. */
static struct listener *listeners;
static unsigned listener_count;
/* In a child: its end of the control socket pair; the parent has the other
 * end. */
static int control = -1;

/* The rsockets that the child may claim, and both ends of its control pair;
 * valid from prepare() to in_parent() or preload_fork_in_child(). */
static struct rsp_target *connections;
static unsigned connection_count;
static int parents_end = -1, childs_end = -1;
/* Held by a thread that asks the parent, so that only one asks at a time. */
static pthread_mutex_t inheriting = PTHREAD_MUTEX_INITIALIZER;

static int number(int target, int level, int option)
{
	socklen_t n = sizeof(int);
	int value = 0;

	(void)rgetsockopt(target, level, option, &value, &n);
	return value;
}

static void note_listener(int target)
{
	struct listener *more =
		realloc(listeners, (listener_count + 1) * sizeof(*listeners));
	struct listener *l;
	socklen_t n = sizeof(l->secret);

	if (!more)
		return;
	listeners = more;
	l = &listeners[listener_count];
	*l = (struct listener){ .target = target,
				.length = sizeof(l->address) };
	if (rgetsockname(target, (struct sockaddr *)&l->address, &l->length) ||
	    rgetsockopt(target, SOL_RDMA, RS_PORT_SECRET, &l->secret, &n))
		return;
	if (l->address.ss_family == AF_INET6)
		l->v6only = number(target, IPPROTO_IPV6, IPV6_V6ONLY);
	l->flags = rfcntl(target, F_GETFL) & O_NONBLOCK;
	listener_count++;
}

static void note_connection(int target)
{
	struct sockaddr_storage peer;
	socklen_t n = sizeof(peer);
	struct rsp_target *more;

	/* A relay is a byte stream and would lose the boundaries of
	 * datagrams. */
	if (number(target, SOL_SOCKET, SO_TYPE) != SOCK_STREAM ||
	    rgetpeername(target, (struct sockaddr *)&peer, &n))
		return;
	more = realloc(connections, (connection_count + 1) * sizeof(*more));
	if (!more)
		return;
	connections = more;
	connections[connection_count++] = (struct rsp_target){ target, target };
}

static void note(int fd)
{
	if (rsp_kind(fd) != RSP_SOCKET || rsp_target(fd) != fd)
		return;
	if (number(fd, SOL_SOCKET, SO_ACCEPTCONN))
		note_listener(fd);
	else
		note_connection(fd);
}

static void make_pair(void)
{
	int ends[2];

	if (connection_count == 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		connection_count = 0;
		return;
	}
	parents_end = ends[0];
	childs_end = ends[1];
	for (unsigned i = 0; i < connection_count; i++)
		rsp_hold(connections[i].now);
}

static void prepare(void)
{
	/* If this process is a child itself, it first makes its inherited
	 * sockets its own, so that its child can inherit them in turn. */
	for (int fd = 0; control >= 0 && fd < RSP_DESCRIPTORS; fd++)
		if (rsp_kind(fd) == RSP_INHERITED)
			rsp_inherit(fd, true);
	rsp_relay_stop();
	rsp_stdio_stop();
	rsp_inside++;
	free(listeners);
	listeners = NULL;
	listener_count = 0;
	for (int fd = 0; fd < RSP_DESCRIPTORS; fd++)
		note(fd);
	make_pair();
	rsp_inside--;
}

static void in_parent(void)
{
	if (parents_end >= 0) {
		(void)REAL(close)(childs_end);
		rsp_relay_child(parents_end, connections, connection_count);
	} else {
		free(connections);
	}
	connections = NULL;
	connection_count = 0;
	parents_end = childs_end = -1;
	rsp_stdio_go_on();
	rsp_relay_go_on();
}

static void preload_fork_in_child(void)
{
	pthread_mutex_init(&inheriting, NULL);
	rsp_stdio_go_on();
	rsp_relay_forget();
	if (control >= 0)
		(void)REAL(close)(control);
	if (parents_end >= 0)
		(void)REAL(close)(parents_end);
	control = childs_end;
	free(connections);
	connections = NULL;
	connection_count = 0;
	parents_end = childs_end = -1;
}

void rsp_watch_forks(void)
{
	pthread_atfork(prepare, in_parent, preload_fork_in_child);
}

/* Functions that run in the child of fork(). */

/* Replaces all descriptors of the inherited socket @target by duplicates of
 * @fd. */
static void replace(int target, int fd, enum rsp_kind kind)
{
	for (int i = 0; i < RSP_DESCRIPTORS; i++) {
		bool cloexec = rsp_cloexec(i);

		if (rsp_kind(i) != RSP_INHERITED || rsp_target(i) != target)
			continue;
		(void)REAL(dup3)(fd, i, cloexec ? O_CLOEXEC : 0);
		if (kind == RSP_SOCKET)
			rsp_hold(fd);
		rsp_enter(i, kind, fd);
		rsp_set_cloexec(i, cloexec);
	}
}

static int open_listener(const struct listener *l)
{
	int fd = rsocket(l->address.ss_family, SOCK_STREAM, 0), on = 1;

	if (fd < 0)
		return -1;
	if (l->v6only)
		(void)rsetsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on,
				  sizeof(on));
	if (fd < RSP_DESCRIPTORS &&
	    rsetsockopt(fd, SOL_RDMA, RS_PORT_SECRET, &l->secret,
			sizeof(l->secret)) == 0 &&
	    rbind(fd, (const struct sockaddr *)&l->address, l->length) == 0 &&
	    rlisten(fd, BACKLOG) == 0) {
		(void)rfcntl(fd, F_SETFL, l->flags);
		return fd;
	}
	(void)rclose(fd);
	return -1;
}

static bool inherit_listener(int target)
{
	int fd;

	for (unsigned i = 0; i < listener_count; i++) {
		if (listeners[i].target != target)
			continue;
		fd = open_listener(&listeners[i]);
		if (fd < 0)
			return false;
		replace(target, fd, RSP_SOCKET);
		return true;
	}
	return false;
}

/* Asks the parent to relay its connection @target. Returns the child's end of
 * the UNIX pair. -1: the parent relays no such connection. */
static int claim(int target, bool reads)
{
	struct rsp_request q = { reads ? RSP_CLAIM : RSP_CLAIM_TO_WRITE,
				 target };
	char word;
	struct iovec iov = { &word, 1 };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} c = {};
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &c,
			      .msg_controllen = sizeof(c) };
	int fd;

	if (control < 0 || send(control, &q, sizeof(q), MSG_NOSIGNAL) < 0 ||
	    recvmsg(control, &msg, MSG_CMSG_CLOEXEC) <= 0 ||
	    msg.msg_controllen < CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(&c.head), sizeof(fd));
	return fd;
}

/* Returns a socket on which reads return end of file and writes fail. -1:
 * failed, with errno. */
static int dead_end(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -1;
	(void)REAL(close)(ends[1]);
	return ends[0];
}

void rsp_inherit(int fd, bool reads)
{
	int target = rsp_target(fd), error = errno, end;

	pthread_mutex_lock(&inheriting);
	rsp_inside++;
	if (rsp_kind(fd) == RSP_INHERITED && !inherit_listener(target)) {
		end = claim(target, reads);
		if (end < 0)
			end = dead_end();
		replace(target, end, RSP_OTHER);
		if (end >= 0)
			(void)close(end);
	}
	rsp_inside--;
	pthread_mutex_unlock(&inheriting);
	errno = error;
}

/* Tells the parent when the child closes its last descriptor of the socket. */
void rsp_disown(int fd)
{
	struct rsp_request q = { RSP_DROP, rsp_target(fd) };

	for (int i = 0; i < RSP_DESCRIPTORS; i++)
		if (i != fd && rsp_kind(i) == RSP_INHERITED &&
		    rsp_target(i) == q.target)
			return;
	rsp_inside++;
	if (control >= 0)
		(void)send(control, &q, sizeof(q), MSG_NOSIGNAL | MSG_DONTWAIT);
	rsp_inside--;
}

/* Does the peer belong to this user or to root? Any process can bind a UNIX
 * socket to such a name, so others are not trusted. */
static bool is_trusted(int fd)
{
	struct ucred who;
	socklen_t n = sizeof(who);

	return REAL(getsockopt)(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 &&
	       (who.uid == 0 || who.uid == getuid());
}

bool rsp_relayed_name(int fd, bool peer, struct sockaddr *addr,
		      socklen_t *length)
{
	struct sockaddr_un a;
	struct rsp_name name;
	socklen_t n = sizeof(a), all;
	int error = errno;
	bool is = REAL(getpeername)(fd, (struct sockaddr *)&a, &n) == 0 &&
		  a.sun_family == AF_UNIX &&
		  n == offsetof(struct sockaddr_un, sun_path) + sizeof(name) &&
		  memcmp(a.sun_path, RSP_MARK, sizeof(RSP_MARK)) == 0 &&
		  is_trusted(fd);

	errno = error;
	if (!is)
		return false;
	memcpy(&name, a.sun_path, sizeof(name));
	if (!addr || !length)
		return true;
	if (!peer)
		name.peer = name.own;
	all = name.peer.sin6_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						: sizeof(struct sockaddr_in);
	memcpy(addr, &name.peer, VB_MIN(*length, all));
	*length = all;
	return true;
}

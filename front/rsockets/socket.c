/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that create, connect and close a socket: rsocket(), rbind(),
 * rlisten(), raccept(), rconnect(), rshutdown(), rclose(), and its names. */
#include "front/rsockets/rs.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/defs.h"
#include "base/rand.h"
#include "front/rdmacm/rdmacm.h"

/* How long closing a datagram socket, or the program's end, waits for sends
 * under way. */
enum { PATIENCE_MS = 1000 };

static const struct rs_wishes defaults = {
	/* A quarter of the buffers halves the throughput, because the peer
	 * waits for the message about a free half ring as long as many packets
	 * take. Buffer pages that stay unused cost no memory. */
	.send_bytes = 1024 * 1024, .receive_bytes = 1024 * 1024, .sends = 384,
	.receives = 384,	   .inline_bytes = 64,
};

static int new_id(struct rs_sock *rs)
{
	struct epoll_event event = { .events = EPOLLIN };

	rs->channel = rdma_create_event_channel();
	if (!rs->channel ||
	    rdma_create_id(rs->channel, &rs->id, rs, RDMA_PS_TCP) ||
	    fcntl(rs->channel->fd, F_SETFL, O_NONBLOCK) ||
	    epoll_ctl(rs->fd, EPOLL_CTL_ADD, rs->channel->fd, &event))
		return -errno;
	return 0;
}

struct rs_sock *rs_make(int domain, int type, const struct rs_wishes *wishes)
{
	struct rs_sock *rs = calloc(1, sizeof(*rs));
	int rc;

	if (!rs)
		return NULL;
	rs->refs = 1;
	rs->domain = domain;
	rs->wishes = *wishes;
	rs->last = &rs->first;
	pthread_mutex_init(&rs->lock, NULL);
	rs->fd = epoll_create1(EPOLL_CLOEXEC);
	if (rs->fd < 0)
		rc = -errno;
	else
		rc = type == SOCK_DGRAM ? rs_dgram_make(rs) : new_id(rs);
	if (rc == 0)
		return rs;
	rs_unmake(rs);
	errno = -rc;
	return NULL;
}

/* Closes the connections that the program has not accepted, because their
 * listener @rs is closed. */
static void drop_waiting(struct rs_sock *rs)
{
	struct rs_sock *next;

	for (; rs->first; rs->first = next) {
		next = rs->first->next;
		rs_unmake(rs->first);
	}
}

void rs_unmake(struct rs_sock *rs)
{
	int fd;

	drop_waiting(rs);
	rs_dgram_unmake(rs);
	if (rs->id && rs->state >= RS_CONNECTED)
		rdma_disconnect(rs->id);
	rs_qp_close(rs);
	if (rs->id)
		rdma_destroy_id(rs->id);
	if (rs->channel)
		rdma_destroy_event_channel(rs->channel);
	fd = rs_departed(rs);
	if (fd >= 0)
		close(fd);
	pthread_mutex_destroy(&rs->lock);
	free(rs);
}

/* Puts @rs into the table and returns its descriptor. -1: failed, with errno,
 * and @rs is freed. */
static int hand_out(struct rs_sock *rs)
{
	int fd = rs->fd, rc;

	rs_lock(rs);
	rc = rs_enter(rs);
	if (rc == 0)
		rs_keep_alive(rs);
	pthread_mutex_unlock(&rs->lock);
	if (rc == 0)
		return fd;
	rs_unmake(rs);
	return rs_fail(-rc);
}

RS_EXPORT int rsocket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct rs_sock *rs;

	if (domain != AF_INET && domain != AF_INET6)
		return rs_fail(EAFNOSUPPORT);
	if (kind != SOCK_STREAM && kind != SOCK_DGRAM)
		return rs_fail(EPROTONOSUPPORT);
	if (protocol &&
	    protocol != (kind == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP))
		return rs_fail(EPROTONOSUPPORT);
	rs = rs_make(domain, kind, &defaults);
	if (!rs)
		return -1;
	rs->file_flags = type & SOCK_NONBLOCK ? O_NONBLOCK : 0;
	return hand_out(rs);
}

static bool address_fits(const struct rs_sock *rs, const struct sockaddr *a,
			 socklen_t length)
{
	socklen_t least = rs->domain == AF_INET ? sizeof(struct sockaddr_in)
						: sizeof(struct sockaddr_in6);

	return a && length >= least && a->sa_family == rs->domain;
}

static int socket_bind_to(struct rs_sock *rs, const struct sockaddr *a,
			  socklen_t length)
{
	struct sockaddr_storage copy = {};

	if (rs->state != RS_NEW || !address_fits(rs, a, length))
		return -EINVAL;
	if (rs->dgram)
		return rs_dgram_bind(rs, a, length);
	memcpy(&copy, a, VB_MIN(length, (socklen_t)sizeof(copy)));
	if (!rs->joins)
		rs->secret = (uint64_t)vb_rand32() << 32 | vb_rand32();
	if (rdma_set_option(rs->id, RDMA_OPTION_ID,
			    rs->joins ? RCM_OPTION_JOIN : RCM_OPTION_SECRET,
			    &rs->secret, sizeof(rs->secret)))
		return -errno;
	if (rdma_bind_addr(rs->id, (struct sockaddr *)&copy))
		return -errno;
	rs->state = RS_BOUND;
	return 0;
}

RS_EXPORT int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rs_sock *rs = rs_take(socket);
	int rc;

	if (!rs)
		return -1;
	rc = socket_bind_to(rs, addr, addrlen);
	return (int)rs_done(rs, rc);
}

/* True if RS_LISTEN_LATER takes effect. It does not over iWARP: there TCP
 * refuses a peer that connects before rdma_listen(), and a child of fork()
 * cannot share the port anyway. */
static bool listens_later(const struct rs_sock *rs)
{
	const struct ibv_context *verbs = rs->id->verbs;
	bool iwarp =
		verbs ? verbs->device->transport_type == IBV_TRANSPORT_IWARP
		      : rcm.has_iwarp && !rcm.has_roce;

	return rs->later && !iwarp;
}

static int listen_socket(struct rs_sock *rs, int backlog)
{
	struct sockaddr_storage any = { .ss_family = (sa_family_t)rs->domain };
	int rc;

	if (rs->dgram)
		return -EOPNOTSUPP;
	if (rs->state == RS_NEW) {
		rc = socket_bind_to(rs, (struct sockaddr *)&any, sizeof(any));
		if (rc)
			return rc;
	}
	if (rs->state != RS_BOUND && rs->state != RS_LISTENING)
		return -EINVAL;
	rs->backlog = backlog < 1 ? 1 : VB_MIN(backlog, SOMAXCONN);
	rc = listens_later(rs) ? 0 : rs_announce(rs);
	if (rc == 0)
		rs->state = RS_LISTENING;
	return rc;
}

RS_EXPORT int rlisten(int socket, int backlog)
{
	struct rs_sock *rs = rs_take(socket);
	int rc;

	if (!rs)
		return -1;
	rc = listen_socket(rs, backlog);
	return (int)rs_done(rs, rc);
}

static void socket_copy_address(const struct sockaddr *from,
				struct sockaddr *to, socklen_t *length)
{
	socklen_t bytes = from->sa_family == AF_INET6
				  ? sizeof(struct sockaddr_in6)
				  : sizeof(struct sockaddr_in);

	if (!to || !length)
		return;
	memcpy(to, from, VB_MIN(*length, bytes));
	*length = bytes;
}

static bool has_waiting(struct rs_sock *rs)
{
	return rs->waiting > 0 || rs->state != RS_LISTENING;
}

static int block_for(const struct rs_sock *rs, int which)
{
	if (rs->file_flags & O_NONBLOCK)
		return 0;
	return rs->timeout[which] ? rs->timeout[which] : -1;
}

/* Waits for the first connection of the listener's queue. 0 or -errno. */
static int socket_take(struct rs_sock *rs, struct rs_sock **taken)
{
	int rc = -EINVAL;

	if (rs->dgram)
		return -EOPNOTSUPP;
	rs_lock(rs);
	if (rs->state == RS_LISTENING)
		rc = rs_wait(rs, has_waiting, block_for(rs, 0));
	if (rc == 0 && rs->state != RS_LISTENING)
		rc = -EINVAL;
	if (rc == 0) {
		*taken = rs->first;
		rs->first = rs->first->next;
		if (!rs->first)
			rs->last = &rs->first;
		rs->waiting--;
	}
	pthread_mutex_unlock(&rs->lock);
	return rc;
}

RS_EXPORT int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs_sock *rs = rs_find(socket), *taken;
	int rc;

	if (!rs)
		return -1;
	rc = socket_take(rs, &taken);
	rs_put(rs);
	if (rc)
		return rs_fail(-rc);
	taken->next = NULL;
	socket_copy_address(rdma_get_peer_addr(taken->id), addr, addrlen);
	return hand_out(taken);
}

/* Gives a socket that failed to connect a new id, so that it can connect again.
 * On failure the socket keeps the old one. 0 or -errno. */
static int renew(struct rs_sock *rs)
{
	struct rdma_event_channel *channel = rs->channel;
	struct rdma_cm_id *id = rs->id;
	int rc;

	rs_qp_close(rs);
	rc = new_id(rs);
	if (rc) {
		if (rs->channel && rs->channel != channel)
			rdma_destroy_event_channel(rs->channel);
		rs->channel = channel;
		rs->id = id;
		return rc;
	}
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	rs->error = 0;
	rs->state = RS_NEW;
	rs_options_again(rs);
	return 0;
}

static int socket_begin(struct rs_sock *rs, const struct sockaddr *a,
			socklen_t length)
{
	int rc = 0;

	if (rs_connecting(rs))
		return -EALREADY;
	/* the error of the last attempt, which was not reported yet */
	if (rs->error) {
		rc = -rs->error;
		rs->error = 0;
		return rc;
	}
	if (rs->state == RS_CONNECTED || rs->state == RS_GONE)
		return -EISCONN;
	if (rs->state == RS_LISTENING)
		return -EINVAL;
	if (!address_fits(rs, a, length))
		return -EAFNOSUPPORT;
	if (rs->state == RS_FAILED)
		rc = renew(rs);
	if (rc)
		return rc;
	memcpy(&rs->peer, a, VB_MIN(length, (socklen_t)sizeof(rs->peer)));
	return rs_connection_begin(rs);
}

static int connect_socket(struct rs_sock *rs, const struct sockaddr *a,
			  socklen_t length)
{
	int rc;

	if (rs->dgram)
		return rs_dgram_connect(rs, a, length);
	rc = socket_begin(rs, a, length);
	if (rc)
		return rc;
	rc = rs_wait(rs, rs_is_decided, block_for(rs, 1));
	if (rc == -EAGAIN)
		return -EINPROGRESS;
	/* A peer may have closed by now (RS_GONE). connect() succeeds even so, as
	 * with TCP, because the bytes that the peer sent can be read. */
	if (rc == 0 && rs->state != RS_CONNECTED && rs->state != RS_GONE) {
		rc = rs->error ? -rs->error : -ECONNABORTED;
		rs->error = 0;
	}
	return rc;
}

RS_EXPORT int rconnect(int socket, const struct sockaddr *addr,
		       socklen_t addrlen)
{
	struct rs_sock *rs = rs_take(socket);
	int rc;

	if (!rs)
		return -1;
	rc = connect_socket(rs, addr, addrlen);
	return (int)rs_done(rs, rc);
}

/* Waits as rs_wait() does, but a signal does not end the wait: rshutdown() and
 * rclose() never fail with EINTR. */
static int wait_out(struct rs_sock *rs, rs_test *test, int timeout)
{
	int rc;

	do
		rc = rs_wait(rs, test, timeout);
	while (rc == -EINTR);
	return rc;
}

/* Sends a control message, and waits until the peer's adapter has acknowledged
 * everything that was sent. 0 or -errno. */
static int tell(struct rs_sock *rs, enum rs_control what, int timeout)
{
	int rc = wait_out(rs, rs_can_control, timeout);

	if (rc == 0 && rs->state == RS_CONNECTED)
		rc = rs_qp_control(rs, what);
	if (rc == 0)
		rc = wait_out(rs, rs_all_sent, timeout);
	return rc;
}

static int shut(struct rs_sock *rs, int how)
{
	bool wrote = rs->writes;

	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (rs->dgram)
		return rs_dgram_shut(rs, how);
	if (rs->state == RS_GONE)
		return 0;
	if (rs->state != RS_CONNECTED)
		return -ENOTCONN;
	if (how != SHUT_WR)
		rs->reads = false;
	if (how != SHUT_RD)
		rs->writes = false;
	if (rs->reads || rs->writes)
		return wrote && !rs->writes ? tell(rs, RS_SHUTDOWN, -1) : 0;
	how = tell(rs, RS_DISCONNECT, -1);
	if (rs->state == RS_CONNECTED)
		rs->state = RS_GONE;
	return how;
}

RS_EXPORT int rshutdown(int socket, int how)
{
	struct rs_sock *rs = rs_take(socket);
	int rc;

	if (!rs)
		return -1;
	rc = shut(rs, how);
	rs_ring(rs);
	return (int)rs_done(rs, rc);
}

int rs_close(int socket, bool number)
{
	struct rs_sock *rs;

	if (rs_close_set(socket, number))
		return 0;
	rs = rs_find(socket);
	if (!rs)
		return -1;
	if (!rs_depart(rs)) {
		rs_put(rs);
		return rs_fail(EBADF);
	}
	rs_leave_sets(socket);
	rs_lock(rs);
	if (rs->dgram)
		(void)wait_out(rs, rs_all_sent, PATIENCE_MS);
	else if (rs->state == RS_CONNECTED)
		(void)shut(rs, SHUT_RDWR);
	else if (rs->state < RS_CONNECTED)
		rs_connection_end(rs, ECONNABORTED);
	rs_ring(rs);
	if (!number)
		rs->fd = -1;
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs); /* drop the reference that rs_find() took */
	rs_put(rs); /* drop the reference of the table of sockets */
	return 0;
}

RS_EXPORT int rclose(int socket)
{
	return rs_close(socket, true);
}

/*
 * Shuts a socket down when the program ends with open sockets, because it may
 * expect that the bytes it wrote arrive. A socket that another thread has
 * locked is skipped, because that thread may never release it.
 */
static void leave_peer(struct rs_sock *rs)
{
	if (pthread_mutex_trylock(&rs->lock))
		return;
	if (rs->state == RS_CONNECTED)
		(void)tell(rs, RS_DISCONNECT, PATIENCE_MS);
	pthread_mutex_unlock(&rs->lock);
}

__attribute__((destructor)) static void at_exit(void)
{
	rs_for_each(leave_peer);
}

RS_EXPORT int rgetpeername(int socket, struct sockaddr *addr,
			   socklen_t *addrlen)
{
	struct rs_sock *rs = rs_take(socket);

	if (!rs)
		return -1;
	if (rs->dgram)
		return (int)rs_done(rs, rs_dgram_name(rs, true, addr, addrlen));
	if (rs->state != RS_CONNECTED && rs->state != RS_GONE)
		return (int)rs_done(rs, -ENOTCONN);
	socket_copy_address(rdma_get_peer_addr(rs->id), addr, addrlen);
	return (int)rs_done(rs, 0);
}

RS_EXPORT int rgetsockname(int socket, struct sockaddr *addr,
			   socklen_t *addrlen)
{
	struct sockaddr_storage none = {};
	struct rs_sock *rs = rs_take(socket);

	if (!rs)
		return -1;
	if (rs->dgram)
		return (int)rs_done(rs,
				    rs_dgram_name(rs, false, addr, addrlen));
	none.ss_family = (sa_family_t)rs->domain;
	socket_copy_address(rs->state == RS_NEW ? (struct sockaddr *)&none
						: rdma_get_local_addr(rs->id),
			    addr, addrlen);
	return (int)rs_done(rs, 0);
}

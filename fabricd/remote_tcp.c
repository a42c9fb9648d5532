/* SPDX-License-Identifier: BSD-2-Clause */
/* Carries the messages of a link over TCP: makes connections, and cuts the
 * stream into messages. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "fabricd/remote.h"

#define CALL_AGAIN (500 * VB_MSEC)
/* most bytes that wait for the socket to send; a message that would exceed this
 * is lost */
#define STREAM_ROOM (1 << 20)
#define BACKLOG	    4

struct stream {
	/* bytes[at] to bytes[len - 1] wait: to be sent, or for the rest of
	 * their message */
	size_t at, len;
	uint8_t bytes[STREAM_ROOM];
};

static void hang_up(struct remote *r)
{
	if (r->watch.fd >= 0)
		close(r->watch.fd);
	r->watch.fd = -1;
	r->connected = false;
	r->in->at = r->in->len = r->out->at = r->out->len = 0;
}

static void watch_writing(struct remote *r, bool on)
{
	if (vb_fabricd_watch(r->f, &r->watch, EPOLLIN | (on ? EPOLLOUT : 0u),
			     true))
		hang_up(r);
}

/* --- sending --- */

/* Send the bytes that wait, as far as the socket takes them. If it took all
 * bytes, stop watching it for room. */
static void push_stream(struct remote *r)
{
	struct stream *s = r->out;
	bool waited = s->at < s->len;

	while (s->at < s->len) {
		ssize_t n = send(r->watch.fd, s->bytes + s->at, s->len - s->at,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			hang_up(r);
			return;
		}
		s->at += (size_t)n;
	}
	s->at = s->len = 0;
	if (waited)
		watch_writing(r, false);
}

static void compact(struct stream *s)
{
	memmove(s->bytes, s->bytes + s->at, s->len - s->at);
	s->len -= s->at;
	s->at = 0;
}

void vb_fabricd_tcp_send(struct remote *r, const uint8_t *bytes, size_t len)
{
	struct stream *s = r->out;
	bool idle = s->at == s->len;

	if (!r->connected)
		return;
	if (s->len + VB_STREAM_HEAD + len > STREAM_ROOM)
		compact(s);
	if (s->len + VB_STREAM_HEAD + len > STREAM_ROOM)
		return;
	vb_store_be(s->bytes + s->len, len, VB_STREAM_HEAD);
	memcpy(s->bytes + s->len + VB_STREAM_HEAD, bytes, len);
	s->len += VB_STREAM_HEAD + len;
	if (!idle)
		return;
	push_stream(r);
	if (s->at < s->len)
		watch_writing(r, true);
}

/* --- receiving --- */

/* Hand the whole messages in the stream to the link. False: a message has an
 * impossible length, so the connection must end. */
static bool cut_stream(struct remote *r, vb_time now)
{
	struct stream *s = r->in;

	while (s->len - s->at >= VB_STREAM_HEAD) {
		const uint8_t *p = s->bytes + s->at;
		size_t len = vb_load_be(p, VB_STREAM_HEAD);

		if (len > VB_FAR_MESSAGE)
			return false;
		if (s->len - s->at < VB_STREAM_HEAD + len)
			break;
		s->at += VB_STREAM_HEAD + len;
		vb_far_hear(r->far, p + VB_STREAM_HEAD, len, now);
	}
	compact(s);
	return true;
}

static void pull_stream(struct remote *r, vb_time now)
{
	struct stream *s = r->in;
	ssize_t n = recv(r->watch.fd, s->bytes + s->len, STREAM_ROOM - s->len,
			 MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0)
		s->len += (size_t)n;
	if (n <= 0 || !cut_stream(r, now))
		hang_up(r);
}

static void finish_call(struct remote *r)
{
	int why = 0;
	socklen_t len = sizeof(why);

	if (getsockopt(r->watch.fd, SOL_SOCKET, SO_ERROR, &why, &len) < 0 ||
	    why) {
		hang_up(r);
		return;
	}
	r->connected = true;
	watch_writing(r, false);
}

static void stream_ready(struct fd_watch *w, uint32_t events, vb_time now)
{
	struct remote *r = VB_CONTAINER_OF(w, struct remote, watch);

	if (r->watch.fd < 0)
		return; /* the socket was closed after epoll had reported it */
	if (!r->connected)
		finish_call(r);
	else if (events & EPOLLOUT)
		push_stream(r);
	if (r->connected && events & ~EPOLLOUT)
		pull_stream(r, now);
}

/* --- connections --- */

static void adopt(struct remote *r, int fd, bool connected)
{
	int on = 1;

	hang_up(r);
	r->watch.fd = fd;
	r->watch.ready = stream_ready;
	r->connected = connected;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (vb_fabricd_watch(r->f, &r->watch, connected ? EPOLLIN : EPOLLOUT,
			     false))
		hang_up(r);
}

static bool is_same_host(const struct sockaddr_storage *a,
			 const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) ==
	       0;
}

/* Accept a connection from the peer's host. It replaces the earlier connection,
 * whose other end may have died without the kernel of this host having learned
 * of it. */
static void accept_call(struct fd_watch *w, uint32_t events, vb_time now)
{
	struct remote *r = VB_CONTAINER_OF(w, struct remote, listener);
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	int fd = accept4(w->fd, (struct sockaddr *)&from, &len,
			 SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (is_same_host(&from, &r->peer)) {
		adopt(r, fd, true);
		return;
	}
	vb_log(LOG_INFO, "fabric: port %u: a call from another host than %s",
	       r->where->local, r->where->host);
	close(fd);
}

static void connect_far(struct remote *r)
{
	int fd = socket(r->peer.ss_family,
			SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (connect(fd, (struct sockaddr *)&r->peer, r->peer_len) < 0 &&
	    errno != EINPROGRESS)
		close(fd);
	else
		adopt(r, fd, false);
}

vb_time vb_fabricd_tcp_run(struct remote *r, vb_time now)
{
	if (r->listener.fd >= 0 || r->connected)
		return VB_NEVER;
	if (now >= r->call_at) {
		r->call_at = now + CALL_AGAIN;
		connect_far(r);
	}
	return r->call_at;
}

static bool listens(const struct remote *r)
{
	uint64_t far = r->where->guid;

	return r->node->guid < far ||
	       (r->node->guid == far && r->port < r->where->peer_port);
}

int vb_fabricd_tcp_open(struct remote *r, vb_time now)
{
	r->in = calloc(1, sizeof(*r->in));
	r->out = calloc(1, sizeof(*r->out));
	r->call_at = now;
	if (!r->in || !r->out)
		return -ENOMEM;
	if (!listens(r))
		return 0;
	r->listener.fd = vb_fabricd_bind(r->peer.ss_family, SOCK_STREAM,
					 r->where->local);
	r->listener.ready = accept_call;
	if (r->listener.fd < 0)
		return r->listener.fd;
	if (listen(r->listener.fd, BACKLOG) < 0)
		return -errno;
	return vb_fabricd_watch(r->f, &r->listener, EPOLLIN, false);
}

void vb_fabricd_tcp_close(struct remote *r)
{
	if (r->listener.fd >= 0)
		close(r->listener.fd);
	free(r->in);
	free(r->out);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* rsend(), rrecv() and their variants with vectors and messages. */
#include "front/rsockets/rs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/defs.h"

/* The position of the next byte in a vector of buffers. */
struct cursor {
	const struct iovec *at;
	int left;
	size_t offset;
};

/* Returns the number of bytes left in the current buffer; 0: the vector is used
 * up. */
static size_t piece(struct cursor *c)
{
	while (c->left && c->offset == c->at->iov_len) {
		c->at++;
		c->left--;
		c->offset = 0;
	}
	return c->left ? c->at->iov_len - c->offset : 0;
}

static uint8_t *here(const struct cursor *c)
{
	return (uint8_t *)c->at->iov_base + c->offset;
}

/* Returns the timeout with which a call of the program uses rs_wait(). @which:
 * 0 if the call receives, 1 if it sends. */
static int patience(const struct rs_sock *rs, int flags, int which)
{
	if ((rs->file_flags & O_NONBLOCK) || (flags & MSG_DONTWAIT))
		return 0;
	return rs->timeout[which] ? rs->timeout[which] : -1;
}

/* Waits until a connecting socket is connected or has failed; then returns and
 * clears the socket's error. 0: the socket is or was connected. Else -errno. */
static int usable(struct rs_sock *rs, int timeout)
{
	int rc;

	if (rs_connecting(rs)) {
		rc = rs_wait(rs, rs_is_decided, timeout);
		if (rc)
			return rc;
	}
	if (rs->state < RS_CONNECTED)
		return -ENOTCONN;
	if (rs->error) {
		rc = -rs->error;
		rs->error = 0;
		return rc;
	}
	return 0;
}

static int why_not_writable(const struct rs_sock *rs)
{
	return rs->state == RS_CONNECTED ? -EPIPE : -ECONNRESET;
}

/* Sends everything; with a @timeout of 0, only what fits without waiting.
 * Returns the number of bytes sent, or -errno if none were. */
static ssize_t send_all(struct rs_sock *rs, struct cursor *c, int flags,
			int timeout)
{
	ssize_t sent = 0;
	size_t n;
	int rc = usable(rs, timeout);

	if (rc == 0 && rs->iomaps_wait)
		rc = rs_iomaps_send(rs, timeout);
	while (rc == 0 && (n = piece(c)) != 0) {
		if (!rs->writes) {
			rc = why_not_writable(rs);
			break;
		}
		n = VB_MIN(n, rs_stream_room(&rs->stream));
		if (n == 0) {
			rc = rs_wait(rs, rs_can_write, timeout);
			continue;
		}
		rc = rs_qp_send(rs, here(c), (uint32_t)n);
		c->offset += n;
		sent += (ssize_t)n;
	}
	/* Handle completions in each call: otherwise a thread would handle them
	 * only when the ring is full. */
	rs_look(rs);
	return sent ? sent : rc;
}

/* Copies to @c the unread bytes of the ring, as many as fit there. The bytes
 * may wrap at the end of the ring. */
static size_t io_copy_out(struct rs_sock *rs, struct cursor *c, bool peek)
{
	struct rs_stream *s = &rs->stream;
	const uint8_t *ring = (const uint8_t *)(uintptr_t)s->ring.addr;
	uint32_t at = s->in_at, ready = s->in_ready;
	size_t n, copied = 0;

	while (ready && (n = piece(c)) != 0) {
		n = VB_MIN(n, VB_MIN(ready, s->ring.length - at));
		memcpy(here(c), ring + at, n);
		at = (at + (uint32_t)n) % s->ring.length;
		ready -= (uint32_t)n;
		c->offset += n;
		copied += n;
	}
	if (!peek && copied)
		rs_stream_read(s, (uint32_t)copied);
	return copied;
}

static ssize_t receive(struct rs_sock *rs, struct cursor *c, int flags,
		       int timeout)
{
	ssize_t got = 0;
	int rc = usable(rs, timeout);

	rs_look(rs);
	while (rc == 0 && piece(c)) {
		got += (ssize_t)io_copy_out(rs, c, flags & MSG_PEEK);
		if (got && (!(flags & MSG_WAITALL) || (flags & MSG_PEEK)))
			break;
		if (!rs->stream.in_ready && !rs->reads)
			break;
		if (piece(c))
			rc = rs_wait(rs, rs_can_read, timeout);
	}
	/* Tell the peer of ring space that became free, because the peer may be
	 * waiting for space. */
	rs_qp_work(rs);
	return got ? got : rc;
}

static bool too_long(const struct iovec *iov, int count)
{
	size_t total = 0;

	for (int i = 0; i < count; i++)
		if (iov[i].iov_len > SSIZE_MAX ||
		    (total += iov[i].iov_len) > SSIZE_MAX)
			return true;
	return count < 0 || count > IOV_MAX;
}

static ssize_t send_any(struct rs_sock *rs, const struct msghdr *msg, int flags)
{
	struct cursor c = { msg->msg_iov, (int)msg->msg_iovlen, 0 };
	int timeout = patience(rs, flags, 1);

	/* For a stream the address in @msg is ignored. */
	return rs->dgram ? rs_dgram_send(rs, msg, flags, timeout)
			 : send_all(rs, &c, flags, timeout);
}

static ssize_t receive_any(struct rs_sock *rs, struct msghdr *msg, int flags)
{
	struct cursor c = { msg->msg_iov, (int)msg->msg_iovlen, 0 };
	int timeout = patience(rs, flags, 0);

	if (rs->dgram)
		return rs_dgram_receive(rs, msg, flags, timeout);
	msg->msg_controllen = 0;
	msg->msg_flags = 0;
	return receive(rs, &c, flags, timeout);
}

/* Can this library send or receive @msg with @flags? -EOPNOTSUPP: out-of-band
 * data; -EINVAL: the vector is too long. */
static int check(const struct msghdr *msg, int flags)
{
	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	return msg->msg_iovlen > IOV_MAX ||
			       too_long(msg->msg_iov, (int)msg->msg_iovlen)
		       ? -EINVAL
		       : 0;
}

static ssize_t send_message(int socket, const struct msghdr *msg, int flags)
{
	struct rs_sock *rs = rs_take(socket);
	int rc;

	if (!rs)
		return -1;
	rc = check(msg, flags);
	return rs_done(rs, rc ? rc : send_any(rs, msg, flags));
}

/* Receives a message. Sets the sender's address in @msg for datagrams only; for
 * streams the caller uses rgetpeername(). */
static ssize_t receive_message(int socket, struct msghdr *msg, int flags)
{
	struct rs_sock *rs = rs_take(socket);
	int rc;

	if (!rs)
		return -1;
	rc = check(msg, flags);
	return rs_done(rs, rc ? rc : receive_any(rs, msg, flags));
}

static ssize_t sendv(int socket, const struct iovec *iov, int count, int flags)
{
	const struct msghdr msg = { .msg_iov = (struct iovec *)iov,
				    .msg_iovlen = (size_t)count };

	return count < 0 ? rs_fail(EINVAL) : send_message(socket, &msg, flags);
}

static ssize_t recvv(int socket, const struct iovec *iov, int count, int flags)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov,
			      .msg_iovlen = (size_t)count };

	return count < 0 ? rs_fail(EINVAL)
			 : receive_message(socket, &msg, flags);
}

RS_EXPORT ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	struct iovec iov = { (void *)buf, len };

	return sendv(socket, &iov, 1, flags);
}

RS_EXPORT ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
			  const struct sockaddr *dest_addr, socklen_t addrlen)
{
	struct iovec iov = { (void *)buf, len };
	const struct msghdr msg = { .msg_name = (void *)dest_addr,
				    .msg_namelen = addrlen,
				    .msg_iov = &iov,
				    .msg_iovlen = 1 };

	return send_message(socket, &msg, flags);
}

RS_EXPORT ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	if (msg->msg_control && msg->msg_controllen)
		return rs_fail(EOPNOTSUPP);
	return send_message(socket, msg, flags);
}

RS_EXPORT ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return rsend(socket, buf, count, 0);
}

RS_EXPORT ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	return sendv(socket, iov, iovcnt, 0);
}

RS_EXPORT ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	struct iovec iov = { buf, len };

	return recvv(socket, &iov, 1, flags);
}

static bool is_stream(int socket)
{
	struct rs_sock *rs = rs_find(socket);
	bool stream = rs && !rs->dgram;

	if (rs)
		rs_put(rs);
	return stream;
}

RS_EXPORT ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags,
			    struct sockaddr *src_addr, socklen_t *addrlen)
{
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_name = addrlen ? src_addr : NULL,
			      .msg_namelen = addrlen ? *addrlen : 0,
			      .msg_iov = &iov,
			      .msg_iovlen = 1 };
	ssize_t got = receive_message(socket, &msg, flags);

	if (got < 0 || !msg.msg_name)
		return got;
	if (is_stream(socket))
		(void)rgetpeername(socket, src_addr, addrlen);
	else
		*addrlen = msg.msg_namelen;
	return got;
}

RS_EXPORT ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	ssize_t got = receive_message(socket, msg, flags);

	if (got >= 0 && msg->msg_name && is_stream(socket))
		(void)rgetpeername(socket, msg->msg_name, &msg->msg_namelen);
	return got;
}

RS_EXPORT ssize_t rread(int socket, void *buf, size_t count)
{
	return rrecv(socket, buf, count, 0);
}

RS_EXPORT ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	return recvv(socket, iov, iovcnt, 0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The MPA request and reply (RFC 5044 s7.1) over a non-blocking socket. */
#include "front/rdmacm/iw.h"

#include <string.h>
#include <sys/epoll.h>

/* How long to wait for the peer's MPA reply, as long as Linux's siw. */
#define REPLY_WAIT   (10 * VB_SEC)
#define CONNECT_WAIT (30 * VB_SEC)
/* If the peer refuses a TCP connect and its last MPA reply is older than this,
 * this side does not try again. */
#define REACHED_LASTS (2 * VB_SEC)
/* Limit of the time in which a refused connect is repeated. */
#define PATIENCE (500 * VB_MSEC)
/* Pause between a refusal and the next connect to the peer. */
#define ASK_AGAIN (20 * VB_MSEC)
/* How long the program may take to accept; most peers give up earlier. */
#define ASKED_WAIT (60 * VB_SEC)

/* Sends the frame. It always fits the socket's empty send buffer, so a short
 * write is an error. */
int iw_send_frame(struct rcm_stream *s)
{
	ssize_t n = send(s->fd, s->setup.out, s->setup.out_bytes,
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno;
	return n == s->setup.out_bytes ? 0 : EPROTO;
}

/*
 * Returns whether to connect again after a refusal. perftest's server closes
 * its listener between its two connections. When the server runs on a kernel
 * RNIC, its TCP refuses a second connection that comes in that gap; this
 * library connects faster than kernel clients do. So if a peer that replied
 * less than REACHED_LASTS ago refuses, this side connects again, for PATIENCE.
 */
static bool may_ask_again(struct rcm_stream *s, int error)
{
	vb_time now = iw_now();

	if (error != ECONNREFUSED ||
	    (!s->patient_until && now - iw.reached_at > REACHED_LASTS) ||
	    memcmp(&s->peer, &iw.reached, sizeof(s->peer)) != 0)
		return false;
	if (!s->patient_until)
		s->patient_until = now + PATIENCE;
	s->again = now < s->patient_until;
	return s->again;
}

static void on_refused(struct rcm_stream *s, int error)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	if (!may_ask_again(s, error)) {
		iw_say_failed(s, error);
		return;
	}
	/* Without this connect() to no address, Linux lets the next connect()
	 * on the socket report the previous refusal. */
	(void)connect(s->fd, &none, sizeof(none));
	iw_watch(s, 0);
	s->until = iw_now() + ASK_AGAIN;
}

void iw_connect(struct rcm_stream *s)
{
	const struct sockaddr *to = (struct sockaddr *)&s->peer;

	s->again = false;
	if (connect(s->fd, to, rcm_address_bytes(to)) < 0 &&
	    errno != EINPROGRESS) {
		on_refused(s, errno);
		return;
	}
	iw_watch(s, EPOLLOUT);
	s->until = iw_now() + CONNECT_WAIT;
}

void iw_on_connected(struct rcm_stream *s)
{
	socklen_t len = sizeof(int);
	int error = 0;

	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (!error)
		error = iw_send_frame(s);
	if (error) {
		on_refused(s, error);
		return;
	}
	s->step = AWAIT_REPLY;
	s->until = iw_now() + REPLY_WAIT;
	iw_watch(s, EPOLLIN);
}

/* Passes the next bytes of a frame to s->setup. 0: s->setup.state has the
 * result; EAGAIN: no bytes have come yet; another errno: the connection
 * failed. */
static int read_frame(struct rcm_stream *s)
{
	uint8_t bytes[VB_MPA_FRAME_MAX];
	unsigned want = vb_mpa_want(&s->setup);
	ssize_t n;

	if (want == 0 || want > sizeof(bytes))
		return EPROTO;
	n = recv(s->fd, bytes, want, MSG_DONTWAIT);
	if (n == 0)
		return ECONNRESET;
	if (n < 0)
		return errno == EINTR ? EAGAIN : errno;
	(void)vb_mpa_got(&s->setup, bytes, (unsigned)n);
	return 0;
}

void iw_on_reply(struct rcm_stream *s)
{
	struct vb_ipc_cm m;
	int error = read_frame(s);

	while (!error && s->setup.state == MPA_ASKING)
		error = read_frame(s);
	if (error == EAGAIN)
		return;
	if (error) {
		iw_say_failed(s, error);
		return;
	}
	s->until = VB_NEVER;
	if (s->setup.state == MPA_OPEN) {
		iw_watch(s, 0);
		s->step = REPLIED;
		iw.reached = s->peer;
		iw.reached_at = iw_now();
		m = iw_cm_event(s, IPC_CM_REPLY, 0);
		iw_fill_depths(&m, s->setup.terms.ird, s->setup.terms.ord);
		rcm_event_iwarp(&m, s->serial, iw_private(s));
		return;
	}
	if (s->setup.state == MPA_REFUSED) {
		m = iw_cm_event(s, IPC_CM_REJECTED, -ECONNRESET);
		iw_close_fd(s);
		s->step = OVER;
		rcm_event_iwarp(&m, s->serial, iw_private(s));
		return;
	}
	if (s->setup.out_bytes) /* send a Terminate message (RFC 6581 s9.2) */
		(void)iw_send_frame(s);
	iw_say_failed(s, EPROTO);
}

static void iw_setup_take_address(const struct sockaddr_storage *a,
				  struct vb_gid *gid, uint16_t *port)
{
	*gid = rcm_gid_of((const struct sockaddr *)a);
	*port = ntohs(((const struct sockaddr_in *)a)->sin_port);
}

static void fill_addresses(const struct rcm_stream *s, struct vb_ipc_cm *m)
{
	struct sockaddr_storage a = { 0 };
	socklen_t len = sizeof(a);

	if (getsockname(s->fd, (struct sockaddr *)&a, &len) == 0)
		iw_setup_take_address(&a, &m->src, &m->src_port);
	len = sizeof(a);
	if (getpeername(s->fd, (struct sockaddr *)&a, &len) == 0)
		iw_setup_take_address(&a, &m->dst, &m->dst_port);
}

void iw_say_request(const struct rcm_stream *s)
{
	struct vb_ipc_cm m = iw_cm_event(s, IPC_CM_REQUEST, 0);

	fill_addresses(s, &m);
	iw_fill_depths(&m, s->setup.peer_ord, s->setup.peer_ird);
	rcm_event_iwarp(&m, s->serial, iw_private(s));
}

void iw_on_request(struct rcm_stream *s)
{
	int error = read_frame(s);

	while (!error && s->setup.state == MPA_WAITING)
		error = read_frame(s);
	if (error == EAGAIN)
		return;
	if (error || s->setup.state != MPA_ASKED) {
		iw_end_stream(s);
		return;
	}
	iw_count_caller(s);
	s->until = iw_now() + ASKED_WAIT;
	s->step = ASKED;
	iw_watch(s, 0);
	iw_say_request(s);
}

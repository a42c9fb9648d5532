/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners of iWARP devices, and the connections that peers open to them. */
#include "front/rdmacm/iw.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The time that an accepted connection has to send its MPA request. */
#define REQUEST_WAIT (5 * VB_SEC)
/* Time after which a connection without a request counts as silent. */
#define REQUEST_SOON (100 * VB_MSEC)
#define SILENT_LEAST 16
#define LINGER	     (500 * VB_MSEC)
/* Pause before the next accept() after one failed for lack of resources. */
#define ACCEPT_AGAIN	(100 * VB_MSEC)
#define ACCEPTS_AT_ONCE 64

/*
 * Silent connections. A peer sends its MPA request right after connecting. A
 * connection without a request after REQUEST_SOON is silent: it no longer
 * counts in the backlog, so that it cannot keep other peers out. When too many
 * are silent, the thread closes the one that has been silent for the longest
 * time.
 */

void iw_count_silent(struct rcm_stream *s)
{
	s->counted = false;
	s->listener->callers--;
	s->listener->silent++;
	s->until = iw_now() + REQUEST_WAIT - REQUEST_SOON;
	iw_attend(s->listener);
}

void iw_count_caller(struct rcm_stream *s)
{
	s->listener->callers += !s->counted;
	s->listener->silent -= !s->counted;
	s->counted = true;
}

static void drop_silent(struct rcm_stream *listener)
{
	struct rcm_stream *oldest = NULL;

	if (listener->silent < VB_MAX(listener->most, SILENT_LEAST))
		return;
	for (struct rcm_stream *s = iw.first; s; s = s->next)
		if (s->listener == listener && !s->counted &&
		    (!oldest || s->until < oldest->until))
			oldest = s;
	if (oldest)
		iw_end_stream(oldest);
}

static void take_connection(struct rcm_stream *listener, int fd)
{
	const struct vb_mpa_offer offer = iw_offer();
	struct rcm_stream *s = iw_make(fd, listener->number);
	const int on = 1;

	if (!s) {
		close(fd);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	vb_mpa_listen(&s->setup, &offer);
	drop_silent(listener);
	s->listener = listener;
	s->counted = true;
	listener->callers++;
	s->step = AWAIT_REQUEST;
	s->until = iw_now() + REQUEST_SOON;
	iw_watch(s, EPOLLIN);
}

void iw_on_listener(struct rcm_stream *s)
{
	for (unsigned i = 0; i < ACCEPTS_AT_ONCE && s->callers < s->most; i++) {
		int fd = accept4(s->fd, NULL, NULL,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			take_connection(s, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		    errno == ENOBUFS) {
			iw_watch(s, 0);
			s->until = iw_now() + ACCEPT_AGAIN;
		}
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
	iw_attend(s);
}

/*
 * Lingering listeners. Some programs (perftest) close a listener and at once
 * listen again on that port for their next connection. A peer that connects
 * between the two must not be refused. So a closed listener lingers for LINGER
 * together with its connections, and the next bind to its address takes it up
 * again.
 */

void iw_end_listener(struct rcm_stream *listener)
{
	struct rcm_stream *next;

	for (struct rcm_stream *s = iw.first; s; s = next) {
		next = s->next;
		if (s->listener == listener)
			iw_end_stream(s);
	}
	iw_end_stream(listener);
}

void iw_leave_listener(struct rcm_stream *s)
{
	iw_watch(s, 0);
	s->step = LINGERING;
	s->until = iw_now() + LINGER;
	iw_ring();
}

static bool is_bound_to(const struct rcm_stream *s, const struct sockaddr *a)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = sizeof(at);
	struct vb_gid ours, wanted = rcm_gid_of(a);

	if (getsockname(s->fd, (struct sockaddr *)&at, &len) < 0 ||
	    at.ss_family != a->sa_family)
		return false;
	ours = rcm_gid_of((struct sockaddr *)&at);
	return vb_gid_equal(&ours, &wanted) &&
	       ((struct sockaddr_in *)&at)->sin_port ==
		       ((const struct sockaddr_in *)a)->sin_port;
}

struct rcm_stream *iw_find_lingering(const struct sockaddr *a)
{
	struct rcm_stream *s = iw.first;

	while (s && !(s->step == LINGERING && is_bound_to(s, a)))
		s = s->next;
	return s;
}

void iw_take_up(struct rcm_stream *s, uint32_t number)
{
	for (struct rcm_stream *c = iw.first; c; c = c->next)
		if (c->listener == s)
			c->number = number;
	s->number = number;
	s->until = VB_NEVER;
}

void iw_hear_again(const struct rcm_stream *listener)
{
	for (struct rcm_stream *c = iw.first; c; c = c->next)
		if (c->listener == listener && c->step == ASKED)
			iw_say_request(c);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The lists of iWARP streams, their sockets, and the events about streams. */
#include "front/rdmacm/iw.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/log.h"

vb_time iw_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (vb_time)t.tv_sec * VB_SEC + (vb_time)t.tv_nsec;
}

void iw_ring(void)
{
	if (eventfd_write(iw.bell, 1) < 0)
		vb_log(LOG_DEBUG, "rdmacm: the iWARP thread was not woken");
}

void iw_link(struct rcm_stream *s, struct rcm_stream **list)
{
	s->next = *list;
	s->at = list;
	if (s->next)
		s->next->at = &s->next;
	*list = s;
}

void iw_unlink(struct rcm_stream *s)
{
	*s->at = s->next;
	if (s->next)
		s->next->at = s->at;
	s->at = NULL;
}

struct rcm_stream *iw_make(int fd, uint32_t number)
{
	struct rcm_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fd = fd;
	vb_fork_closes(fd);
	s->number = number;
	s->until = VB_NEVER;
	do
		s->serial = ++iw.serial;
	while (!s->serial);
	iw_link(s, &iw.first);
	return s;
}

void iw_watch(struct rcm_stream *s, uint32_t events)
{
	struct epoll_event want = { .events = events, .data.ptr = s };

	if (!events && s->watched)
		epoll_ctl(iw.set, EPOLL_CTL_DEL, s->fd, NULL);
	else if (events &&
		 epoll_ctl(iw.set, s->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
			   s->fd, &want) < 0)
		vb_log(LOG_WARN, "rdmacm: a connection is not watched: %s",
		       strerror(errno));
	s->watched = events != 0;
}

void iw_close_fd(struct rcm_stream *s)
{
	if (s->fd < 0)
		return;
	iw_watch(s, 0);
	close(s->fd);
	s->fd = -1;
	s->until = VB_NEVER;
}

/* Accepts connections only while the backlog of @listener has room, because
 * each accepted connection that no id has adopted costs a descriptor. Further
 * connections wait in the kernel's accept queue. */
void iw_attend(struct rcm_stream *listener)
{
	bool room = listener->callers < listener->most;

	if (listener->step == LISTENING && listener->watched != room)
		iw_watch(listener, room ? EPOLLIN : 0);
}

void iw_leave_caller(struct rcm_stream *s)
{
	if (!s->listener)
		return;
	s->listener->callers -= s->counted;
	s->listener->silent -= !s->counted;
	if (s->listener->until == VB_NEVER)
		iw_attend(s->listener);
	s->listener = NULL;
}

void iw_end_stream(struct rcm_stream *s)
{
	iw_close_fd(s);
	iw_leave_caller(s);
	iw_unlink(s);
	s->step = OVER;
	s->next = iw.dead;
	iw.dead = s;
	iw_ring();
}

struct rcm_stream *iw_find(uint32_t serial)
{
	struct rcm_stream *s = iw.first;

	while (s && s->serial != serial)
		s = s->next;
	return s;
}

/* Functions that make events for the program. */

struct rcm_private *iw_private(const struct rcm_stream *s)
{
	struct rcm_private *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->bytes = (uint8_t)VB_MIN(s->setup.private_bytes, UINT8_MAX);
	if (p->bytes)
		memcpy(p->data, s->setup.private_data, p->bytes);
	return p;
}

struct vb_ipc_cm iw_cm_event(const struct rcm_stream *s,
			     enum vb_ipc_cm_event event, int status)
{
	return (struct vb_ipc_cm){ .event = (uint8_t)event,
				   .id = s->number,
				   .listener = s->number,
				   .status = status };
}

void iw_say(const struct rcm_stream *s, enum vb_ipc_cm_event event, int status)
{
	const struct vb_ipc_cm m = iw_cm_event(s, event, status);

	rcm_event_iwarp(&m, s->serial, NULL);
}

void iw_fill_depths(struct vb_ipc_cm *m, uint16_t ird, uint16_t ord)
{
	m->responder_resources = (uint8_t)VB_MIN(ird, UINT8_MAX);
	m->initiator_depth = (uint8_t)VB_MIN(ord, UINT8_MAX);
}

/* Reports a failed connection by the event that Linux's rdma_cm reports for the
 * error: a refusal or reset is REJECTED, a timeout or missing route
 * UNREACHABLE, any other CONNECT_ERROR. */
void iw_say_failed(struct rcm_stream *s, int error)
{
	iw_close_fd(s);
	s->step = OVER;
	switch (error) {
	case ECONNREFUSED:
	case ECONNRESET:
	case EPIPE:
		iw_say(s, IPC_CM_REJECTED,
		       error == EPIPE ? -ECONNRESET : -error);
		break;
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
		iw_say(s, IPC_CM_UNREACHABLE, -error);
		break;
	default:
		iw_say(s, IPC_CM_FAILED, error);
	}
}

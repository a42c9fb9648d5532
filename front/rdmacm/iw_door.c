/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of a program on ids of iWARP devices: bind, listen, connect,
 * accept, reject, disconnect, close. The program's own thread does the parts
 * that need no waiting; the thread of iw.c does the rest.
 */
#include "front/rdmacm/iw.h"

#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "front/verbs/streams.h"

/* The most bytes of private data. Linux's siw accepts 256 bytes, of which the
 * READ depths of an MPA revision 2 frame use 4 (RFC 6581). */
#define MOST_PRIVATE 252
/* The largest backlog, which is also used for a backlog of 0, as in Linux's
 * rdma_ucm. */
#define MOST_BACKLOG 1024

/* Returns the stream of @id. NULL if this process is a child that inherited @id
 * over fork(): the stream belongs to the parent. */
static struct rcm_stream *stream_of(const struct rcm_id *id)
{
	return id->forks == rcm.forks ? id->stream : NULL;
}

/* Gives @id the closed listener that still lingers at the address @a. False: no
 * listener lingers there. */
static bool bind_again(struct rcm_id *id, const struct sockaddr *a)
{
	struct rcm_stream *s;

	pthread_mutex_lock(&iw.lock);
	s = iw_find_lingering(a);
	if (s)
		iw_take_up(s, id->number);
	pthread_mutex_unlock(&iw.lock);
	id->stream = s;
	return s;
}

static int door_bind_to(struct rcm_id *id, const struct sockaddr *a,
			uint16_t *port)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = rcm_address_bytes(a);
	const int on = 1, only = id->flags & IPC_CM_V6ONLY ? 1 : 0;
	int fd = socket(a->sa_family,
			SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	memcpy(&at, a, len);
	if (at.ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only,
				 sizeof(only));
	/* Without SO_REUSEADDR, bind() to a given port fails while ended
	 * connections of that port are in TIME_WAIT. */
	if (*port)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&at, len) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	*port = ntohs(((struct sockaddr_in *)&at)->sin_port);
	id->tcp = fd;
	return 0;
}

int rcm_iw_bind(struct rcm_id *id, const struct sockaddr *a, uint16_t *port)
{
	return bind_again(id, a) ? 0 : door_bind_to(id, a, port);
}

/* Makes a stream in state @step of the bound socket of @id. The caller holds
 * iw.lock. */
static struct rcm_stream *use_socket(struct rcm_id *id, enum step step)
{
	struct rcm_stream *s = iw_make(id->tcp, id->number);

	if (!s)
		return NULL;
	s->step = step;
	s->adopted = true;
	id->tcp = -1;
	id->stream = s;
	return s;
}

int rcm_iw_listen(struct rcm_id *id, int backlog)
{
	struct rcm_stream *s;
	int rc;

	if (id->forks != rcm.forks)
		return -ECONNRESET;
	pthread_mutex_lock(&iw.lock);
	rc = iw_begin();
	if (rc == 0 && !id->stream && !use_socket(id, LISTENING))
		rc = -ENOMEM;
	s = id->stream;
	if (backlog <= 0 || backlog > MOST_BACKLOG)
		backlog = MOST_BACKLOG;
	if (rc == 0 && listen(s->fd, backlog) < 0)
		rc = -errno;
	if (rc == 0) {
		s->step = LISTENING;
		s->most = (unsigned)backlog;
		iw_attend(s);
		iw_hear_again(s);
	}
	pthread_mutex_unlock(&iw.lock);
	return rc;
}

static void set_tos(const struct rcm_id *id)
{
	const struct sockaddr *to = &id->pub.route.addr.dst_addr;
	const int tos = id->tos;

	if (tos && to->sa_family == AF_INET)
		(void)setsockopt(id->tcp, IPPROTO_IP, IP_TOS, &tos,
				 sizeof(tos));
	if (tos && to->sa_family == AF_INET6)
		(void)setsockopt(id->tcp, IPPROTO_IPV6, IPV6_TCLASS, &tos,
				 sizeof(tos));
}

static int door_begin_connect(struct rcm_id *id,
			      const struct rdma_conn_param *p)
{
	struct vb_mpa_offer offer = iw_offer();
	struct vb_mpa_setup setup;
	struct rcm_stream *s;
	int rc;

	offer.ird = id->responder_resources;
	offer.ord = id->initiator_depth;
	offer.near = vb_verbs_streams.may_be_near(&id->pub.route.addr.dst_addr);
	rc = vb_mpa_connect(&setup, &offer, p->private_data,
			    p->private_data_len);
	if (rc)
		return rc;
	rc = iw_begin();
	if (rc)
		return rc;
	set_tos(id);
	s = use_socket(id, CONNECTING);
	if (!s)
		return -ENOMEM;
	s->setup = setup;
	memcpy(&s->peer, &id->pub.route.addr.dst_addr,
	       rcm_address_bytes(&id->pub.route.addr.dst_addr));
	s->verbs = id->pub.verbs;
	s->qpn = id->pub.qp ? id->pub.qp->qp_num : p->qp_num;
	iw_connect(s);
	iw_ring();
	return 0;
}

int rcm_iw_connect(struct rcm_id *id, const struct rdma_conn_param *p)
{
	int rc;

	if (id->forks != rcm.forks)
		return -ECONNRESET;
	if (p->private_data_len > MOST_PRIVATE ||
	    (p->private_data_len && !p->private_data))
		return -EINVAL;
	/* the id has listened, so its socket cannot connect */
	if (id->tcp < 0) {
		rcm_iw_close(id);
		rc = door_bind_to(id, &id->pub.route.addr.src_addr, &id->port);
		if (rc)
			return rc;
	}
	pthread_mutex_lock(&iw.lock);
	rc = door_begin_connect(id, p);
	pthread_mutex_unlock(&iw.lock);
	return rc;
}

/* Gives the socket of @s to the queue pair. The caller holds iw.lock. 0 or
 * -errno. */
static int hand_over(struct rcm_stream *s)
{
	const struct vb_stream_listener listener = { iw_hear, s };
	int rc = vb_verbs_streams.start(s->verbs, s->qpn, s->fd,
					&s->setup.terms, &listener);

	if (rc)
		return rc;
	s->fd = -1;
	s->step = OPEN;
	iw_unlink(s);
	iw_link(s, &iw.open);
	return 0;
}

int rcm_iw_establish(struct rcm_id *id)
{
	struct rcm_stream *s = stream_of(id);
	int rc = -ECONNRESET;

	pthread_mutex_lock(&iw.lock);
	if (s && s->step == REPLIED) {
		id->responder_resources = (uint8_t)s->setup.terms.ird;
		id->initiator_depth = (uint8_t)s->setup.terms.ord;
		/* The caller reports ESTABLISHED, so iw.c must not report it
		 * again. */
		s->live = true;
		rc = hand_over(s);
		if (rc)
			iw_close_fd(s);
	}
	pthread_mutex_unlock(&iw.lock);
	return rc;
}

/* True if the queue pair owns the socket of @s. The caller holds iw.lock. */
static bool is_handed_over(const struct rcm_stream *s)
{
	return s->verbs && s->fd < 0;
}

bool rcm_iw_is_handed_over(const struct rcm_id *id)
{
	const struct rcm_stream *s = stream_of(id);
	bool is;

	pthread_mutex_lock(&iw.lock);
	is = s && is_handed_over(s);
	pthread_mutex_unlock(&iw.lock);
	return is;
}

int rcm_iw_adopt(const struct rcm_event *e, struct rcm_id *id)
{
	struct rcm_stream *s;

	pthread_mutex_lock(&iw.lock);
	s = iw_find(e->stream);
	if (s && s->step == ASKED && !s->adopted) {
		iw_leave_caller(s);
		s->until = VB_NEVER;
		s->number = id->number;
		s->adopted = true;
		s->verbs = id->pub.verbs;
		id->stream = s;
	} else {
		s = NULL;
	}
	pthread_mutex_unlock(&iw.lock);
	return s ? 0 : -ENOENT;
}

void rcm_iw_refuse(const struct rcm_event *e)
{
	struct rcm_stream *s;

	pthread_mutex_lock(&iw.lock);
	s = iw_find(e->stream);
	if (s && !s->adopted)
		iw_end_stream(s);
	pthread_mutex_unlock(&iw.lock);
}

static bool caller_may_be_near(const struct rcm_stream *s)
{
	struct sockaddr_storage a = { 0 };
	socklen_t len = sizeof(a);

	return getpeername(s->fd, (struct sockaddr *)&a, &len) == 0 &&
	       vb_verbs_streams.may_be_near((struct sockaddr *)&a);
}

/* Sends the MPA reply and gives the socket to the queue pair. The caller holds
 * iw.lock. 0 or -errno. */
static int door_answer(struct rcm_stream *s, struct rcm_id *id,
		       const struct rdma_conn_param *p)
{
	int rc;

	s->setup.offer.near = s->setup.peer.near && caller_may_be_near(s);
	rc = vb_mpa_accept(&s->setup, id->responder_resources,
			   id->initiator_depth, p->private_data,
			   p->private_data_len);
	if (rc)
		return rc;
	s->qpn = id->pub.qp ? id->pub.qp->qp_num : p->qp_num;
	rc = iw_send_frame(s);
	return rc ? -rc : hand_over(s);
}

int rcm_iw_accept(struct rcm_id *id, const struct rdma_conn_param *p)
{
	struct rcm_stream *s = stream_of(id);
	int rc = -EINVAL;

	if (p->private_data_len > MOST_PRIVATE ||
	    (p->private_data_len && !p->private_data))
		return -EINVAL;
	pthread_mutex_lock(&iw.lock);
	if (s && s->step == ASKED) {
		rc = door_answer(s, id, p);
		if (rc)
			iw_close_fd(s);
	}
	pthread_mutex_unlock(&iw.lock);
	return rc;
}

int rcm_iw_reject(struct rcm_id *id, const void *data, uint8_t bytes)
{
	struct rcm_stream *s = stream_of(id);
	int rc = -EINVAL;

	pthread_mutex_lock(&iw.lock);
	if (s && s->step == ASKED && bytes <= MOST_PRIVATE)
		rc = vb_mpa_reject(&s->setup, data, bytes);
	if (rc == 0) {
		rc = -iw_send_frame(s);
		iw_close_fd(s);
		s->step = OVER;
	}
	pthread_mutex_unlock(&iw.lock);
	return rc;
}

int rcm_iw_disconnect(struct rcm_id *id)
{
	struct rcm_stream *s = stream_of(id);
	struct ibv_context *verbs = NULL;
	uint32_t qpn = 0;

	if (!s)
		return -EINVAL;
	pthread_mutex_lock(&iw.lock);
	if (s->step == OPEN) {
		verbs = s->verbs;
		qpn = s->qpn;
	} else if (s->fd >= 0) { /* the stream was never connected */
		iw_close_fd(s);
		s->step = OVER;
	}
	pthread_mutex_unlock(&iw.lock);
	if (verbs)
		vb_verbs_streams.finish(verbs, qpn, s);
	return 0;
}

/* Closes the stream of @id. Destroying the id ends an open connection; the
 * queue pair itself lives until the program destroys it. finish() and forget()
 * take the engine's locks, so this function releases iw.lock around them (lock
 * order: docs/LOCKING.md). */
void rcm_iw_close(struct rcm_id *id)
{
	struct rcm_stream *s = stream_of(id);
	bool handed_over;

	if (id->tcp >= 0)
		close(id->tcp);
	id->tcp = -1;
	id->stream = NULL;
	if (!s)
		return;
	pthread_mutex_lock(&iw.lock);
	handed_over = is_handed_over(s);
	pthread_mutex_unlock(&iw.lock);
	if (handed_over) {
		vb_verbs_streams.finish(s->verbs, s->qpn, s);
		vb_verbs_streams.forget(s->verbs, s->qpn, s);
	}
	pthread_mutex_lock(&iw.lock);
	if (s->step == LISTENING)
		iw_leave_listener(s);
	else if (s->step == LINGERING)
		iw_end_listener(s);
	else
		iw_end_stream(s);
	pthread_mutex_unlock(&iw.lock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Event channels, and what an event does before the program sees it. */
#include "front/rdmacm/rdmacm.h"

#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sync.h"
#include "wire/mad.h"

static struct rcm_channel *channel_of(struct rdma_event_channel *c)
{
	return VB_CONTAINER_OF(c, struct rcm_channel, pub);
}

static struct rcm_event *event_of(struct rdma_cm_event *e)
{
	return VB_CONTAINER_OF(e, struct rcm_event, pub);
}

VB_EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rcm_channel *c;
	int rc = rcm_session_start();

	if (rc) {
		errno = -rc;
		return NULL;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->last = &c->first;
	c->pub.fd = eventfd(0, EFD_CLOEXEC);
	if (c->pub.fd < 0) {
		free(c);
		return NULL;
	}
	(void)sem_init(&c->pushed, 0, 0);
	return &c->pub;
}

/* With the lock, all of these, and so no cancellation points. The descriptor is
 * readable exactly while events wait: so neither call here blocks. */

static void mark_full(struct rcm_channel *c)
{
	int cancel = vb_cancel_off();

	if (eventfd_write(c->pub.fd, 1) < 0)
		vb_log(LOG_WARN, "rdmacm: an event channel is closed");
	vb_cancel_back(cancel);
}

static void mark_empty(struct rcm_channel *c)
{
	int cancel = vb_cancel_off();
	eventfd_t n;

	if (!c->first && eventfd_read(c->pub.fd, &n) < 0)
		vb_log(LOG_WARN, "rdmacm: an event channel is closed");
	vb_cancel_back(cancel);
}

static void push(struct rcm_channel *c, struct rcm_event *e)
{
	bool was_empty = !c->first;

	e->next = NULL;
	*c->last = e;
	c->last = &e->next;
	if (was_empty)
		mark_full(c);
	(void)sem_post(&c->pushed);
}

static struct rcm_event *pop(struct rcm_channel *c)
{
	struct rcm_event *e = c->first;

	if (!e)
		return NULL;
	c->first = e->next;
	if (!c->first)
		c->last = &c->first;
	mark_empty(c);
	return e;
}

static void drop(struct rcm_event *e)
{
	if (e)
		free(e->more);
	free(e);
}

/* With the lock. A broker that comes after has to hear of it until an id
 * stands for it. */
static void await_sight(struct rcm_event *e)
{
	e->next_unseen = rcm.unseen;
	if (e->next_unseen)
		e->next_unseen->unseen_at = &e->next_unseen;
	rcm.unseen = e;
	e->unseen_at = &rcm.unseen;
}

static void take_out_of_unseen(struct rcm_event *e)
{
	if (!e->unseen_at)
		return;
	*e->unseen_at = e->next_unseen;
	if (e->next_unseen)
		e->next_unseen->unseen_at = e->unseen_at;
	e->unseen_at = NULL;
}

/* Another thread may have been at it: only what leads on is believed. */
void rcm_event_after_fork(void)
{
	for (struct rcm_event *e = rcm.unseen; e; e = e->next_unseen)
		e->unseen_at = NULL;
	rcm.unseen = NULL;
}

/* Take out what is of @id, or of any: into @to, or thrown away. */
static void sift(struct rcm_channel *c, struct rcm_id *id,
		 struct rcm_channel *to)
{
	struct rcm_event *e = c->first, *next;
	bool had = e;

	c->first = NULL;
	c->last = &c->first;
	for (; e; e = next) {
		next = e->next;
		e->next = NULL;
		if (id && e->id != id) {
			*c->last = e;
			c->last = &e->next;
		} else if (to) {
			push(to, e);
		} else {
			take_out_of_unseen(e);
			drop(e);
		}
	}
	if (had)
		mark_empty(c);
}

/* A request that nobody will see is refused by closing it: one of @id's, or of
 * any. */
static void refuse_unseen(struct rcm_channel *c, const struct rcm_id *id)
{
	uint8_t bytes[VB_IPC_CM_BYTES];
	int cancel = vb_cancel_off();

	for (struct rcm_event *e = c->first; e; e = e->next) {
		struct vb_ipc_cm m = { .kind = IPC_CM_CLOSE,
				       .version = VB_IPC_CM_VERSION,
				       .id = e->m.id };

		if ((id && e->id != id) || e->local || e->stream ||
		    e->m.event != IPC_CM_REQUEST)
			continue;
		(void)vb_ipc_cm_put(bytes, &m);
		if (rcm.fd >= 0 && write(rcm.fd, bytes, sizeof(bytes)) < 0)
			vb_log(LOG_DEBUG, "rdmacm: the broker is gone");
	}
	vb_cancel_back(cancel);
}

/* With the lock: ids that outlive their channel hear of nothing. */
static void forget_channel(const struct rdma_event_channel *channel)
{
	for (unsigned i = 0; i < VB_COUNT(rcm.ids); i++)
		for (struct rcm_id *id = rcm.ids[i]; id; id = id->next)
			if (id->pub.channel == channel)
				id->pub.channel = NULL;
}

static void release(struct rcm_channel *c)
{
	(void)sem_destroy(&c->pushed);
	free(c);
}

VB_EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct rcm_channel *c = channel_of(channel);
	int cancel = vb_cancel_off();
	bool last;

	pthread_mutex_lock(&rcm.lock);
	forget_channel(channel);
	refuse_unseen(c, NULL);
	sift(c, NULL, NULL);
	close(c->pub.fd);
	c->closed = true;
	last = c->inside == 0;
	pthread_mutex_unlock(&rcm.lock);
	if (last)
		release(c);
	vb_cancel_back(cancel);
}

/* With the lock: the program has acknowledged what it was given. */
static void await_acks(struct rcm_id *id)
{
	int cancel = vb_cancel_off();

	while (id->delivered != id->acked)
		pthread_cond_wait(&id->acks, &rcm.lock);
	vb_cancel_back(cancel);
}

void rcm_event_forget(struct rcm_id *id)
{
	pthread_mutex_lock(&rcm.lock);
	if (id->pub.channel && id->life == rcm.life) {
		refuse_unseen(channel_of(id->pub.channel), id);
		sift(channel_of(id->pub.channel), id, NULL);
	}
	await_acks(id);
	pthread_mutex_unlock(&rcm.lock);
}

void rcm_event_move(struct rcm_id *id, struct rcm_channel *to)
{
	pthread_mutex_lock(&rcm.lock);
	await_acks(id);
	if (id->pub.channel)
		sift(channel_of(id->pub.channel), id, to);
	id->pub.channel = &to->pub;
	pthread_mutex_unlock(&rcm.lock);
}

static bool is_to_be_resumed(const struct rcm_event *e)
{
	return e->m.event == IPC_CM_REQUEST && !e->stream &&
	       e->m.type != IPC_CM_UD;
}

static void put_arrived(const struct vb_ipc_cm *m, struct rcm_event *e)
{
	struct rcm_id *id;

	pthread_mutex_lock(&rcm.lock);
	id = rcm_id_find(m->event == IPC_CM_REQUEST ? m->listener : m->id);
	if (id && m->event != IPC_CM_REQUEST)
		rcm_note_heard(id, m);
	if (e && id && id->pub.channel) {
		e->id = id;
		e->m = *m;
		push(channel_of(id->pub.channel), e);
		if (is_to_be_resumed(e))
			await_sight(e);
		e = NULL;
	}
	pthread_mutex_unlock(&rcm.lock);
	drop(e);
}

void rcm_event_arrived(const struct vb_ipc_cm *m)
{
	put_arrived(m, calloc(1, sizeof(struct rcm_event)));
}

void rcm_event_iwarp(const struct vb_ipc_cm *m, uint32_t stream,
		     struct rcm_private *more)
{
	struct rcm_event *e = calloc(1, sizeof(*e));

	if (e) {
		e->stream = stream;
		e->more = more;
	} else {
		free(more);
	}
	put_arrived(m, e);
}

/* With the lock. */
static int push_made(struct rcm_id *id, const struct rdma_cm_event *pub)
{
	struct rcm_event *e;

	if (!id->pub.channel)
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->id = id;
	e->local = true;
	e->pub = *pub;
	push(channel_of(id->pub.channel), e);
	return 0;
}

static int push_local(struct rcm_id *id, const struct rdma_cm_event *pub)
{
	int rc;

	pthread_mutex_lock(&rcm.lock);
	rc = push_made(id, pub);
	pthread_mutex_unlock(&rcm.lock);
	return rc;
}

void rcm_event_removed(struct rcm_id *id)
{
	const struct rdma_cm_event pub = {
		.event = RDMA_CM_EVENT_DEVICE_REMOVAL,
	};

	if (id->removed)
		return;
	id->removed = true;
	if (push_made(id, &pub))
		vb_log(LOG_WARN, "rdmacm: no memory to tell of a removal");
}

int rcm_event_local(struct rcm_id *id, enum rdma_cm_event_type what, int status)
{
	const struct rdma_cm_event pub = { .event = what, .status = status };

	return push_local(id, &pub);
}

int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
			int status, uint64_t arg);

VB_EXPORT int rdma_write_cm_event(struct rdma_cm_id *id,
				  enum rdma_cm_event_type event, int status,
				  uint64_t arg)
{
	struct rdma_cm_event pub = { .event = event, .status = status };
	int rc = -EINVAL;

	memcpy(&pub.param, &arg, sizeof(arg));
	if (id && id->channel && (int)event == RCM_EVENT_USER)
		rc = push_local(rcm_id_of(id), &pub);
	return rc ? rcm_fail(-rc) : 0;
}

int rcm_event_group(struct rcm_id *id, const struct rdma_ud_param *ud)
{
	const struct rdma_cm_event pub = {
		.event = RDMA_CM_EVENT_MULTICAST_JOIN,
		.param.ud = *ud,
	};

	return push_local(id, &pub);
}

/* What an event means to the program. */

static void fill_connection(struct rcm_event *e)
{
	struct rdma_conn_param *p = &e->pub.param.conn;
	const struct vb_ipc_cm *m = &e->m;

	p->private_data = m->private_bytes ? e->m.private_data : NULL;
	p->private_data_len = m->private_bytes;
	if (e->more) {
		p->private_data = e->more->bytes ? e->more->data : NULL;
		p->private_data_len = e->more->bytes;
	}
	p->responder_resources = m->responder_resources;
	p->initiator_depth = m->initiator_depth;
	p->flow_control = m->flow_control;
	p->retry_count = m->retry_count;
	p->rnr_retry_count = m->rnr_retry;
	p->srq = m->srq;
	p->qp_num = m->qpn;
}

static void fill_datagram(struct rcm_event *e, const struct rcm_id *id)
{
	struct rdma_ud_param *p = &e->pub.param.ud;
	const struct vb_ipc_cm *m = &e->m;

	p->private_data = m->private_bytes ? e->m.private_data : NULL;
	p->private_data_len = m->private_bytes;
	p->qp_num = m->qpn;
	p->qkey = m->qkey;
	rcm_fill_ah(id, &p->ah_attr, &id->way.dst);
}

static void close_request(uint32_t number)
{
	const struct vb_ipc_cm m = { .kind = IPC_CM_CLOSE,
				     .version = VB_IPC_CM_VERSION,
				     .id = number };

	(void)!rcm_session_tell(&m);
}

static const struct vb_gid *name_of(const struct vb_gid *name,
				    const struct vb_gid *way)
{
	return vb_gid_is_zero(name) ? way : name;
}

/* As its listener's. Who calls an AF_IB one says no port. */
static void put_addresses(const struct rcm_id *listener, struct rcm_id *id,
			  const struct vb_ipc_cm *m)
{
	struct rdma_addr *a = &id->pub.route.addr;
	const struct vb_gid *src = name_of(&m->src_name, &m->src);
	const struct vb_gid *dst = name_of(&m->dst_name, &m->dst);

	if (listener->pub.route.addr.src_addr.sa_family == AF_IB) {
		rcm_address_of_ib(&a->src_addr, &m->src, m->space, m->src_port);
		rcm_address_of_ib(&a->dst_addr, &m->dst, 0, 0);
	} else {
		rcm_address_of(&a->src_addr, src, m->src_port, id->way.ifindex);
		rcm_address_of(&a->dst_addr, dst, m->dst_port, id->way.ifindex);
	}
	memcpy(a->addr.ibaddr.sgid.raw, m->src.raw, 16);
	memcpy(a->addr.ibaddr.dgid.raw, m->dst.raw, 16);
	a->addr.ibaddr.pkey = htobe16(0xffff);
}

/* TCP leads to 127.0.0.1 without a device: any that can have the stream. */
static int choose_device(struct rcm_id *id, const struct rcm_event *e)
{
	const struct vb_gid *own = &e->m.src;
	int rc;

	if (!e->stream)
		return rcm_device_choose(id, own, RCM_ROCE);
	rc = rcm_device_choose(id, own, RCM_IWARP);
	if (rc == -ENODEV && vb_gid_is_loopback(own))
		rc = rcm_device_choose_home(id, own, RCM_IWARP);
	return rc;
}

/* An id for who wants to connect. */
static struct rcm_id *adopt(struct rcm_id *listener, const struct rcm_event *e)
{
	const struct vb_ipc_cm *m = &e->m;
	struct rcm_id *id =
		rcm_id_create(listener->pub.channel, listener->pub.context,
			      listener->pub.ps, listener->pub.qp_type);

	if (!id)
		return NULL;
	id->way = *m;
	if (choose_device(id, e) || (e->stream && rcm_iw_adopt(e, id))) {
		(void)rdma_destroy_id(&id->pub);
		return NULL;
	}
	if (!e->stream) {
		rcm_id_renumber(id, m->id);
		id->in_broker = true;
	}
	id->peer = *m;
	id->port = m->src_port;
	id->state = RCM_CONNECTING;
	id->tos = listener->tos;
	id->responder_resources = m->responder_resources;
	id->initiator_depth = m->initiator_depth;
	put_addresses(listener, id, m);
	return id;
}

/* In one step: now @id, if there is one, is what the next broker hears of. */
static void note_seen(struct rcm_event *e, struct rcm_id *id)
{
	pthread_mutex_lock(&rcm.lock);
	take_out_of_unseen(e);
	if (id) {
		id->record.ticket = e->m;
		id->record.stage = RCM_ASKED;
	}
	pthread_mutex_unlock(&rcm.lock);
}

/* Both ends of a connection cut their messages alike: one who asks for more
 * than this interface carries is told how much that is, and asks again or
 * knows why not (IBA 12.6.7.2, reason 26). */
static bool is_too_long_for(const struct rcm_event *e, const struct rcm_id *id)
{
	return !e->stream && !rcm_is_ud(id) && e->m.mtu > id->device->mtu;
}

static void ask_for_less(struct rcm_id *id)
{
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_REJECT);

	vb_log(LOG_INFO,
	       "rdmacm: a request for path MTU %u, of which %s carries %u: refused as such",
	       128u << id->way.mtu, id->device->verbs->device->name,
	       128u << id->device->mtu);
	m.status = CM_REJ_INVALID_MTU;
	m.private_bytes = 1;
	m.private_data[0] = id->device->mtu;
	(void)!rcm_session_tell(&m);
}

/* False: the program is not to see it. */
static bool take_request(struct rcm_event *e)
{
	struct rcm_id *id = adopt(e->id, e);

	note_seen(e, id);
	if (id && is_too_long_for(e, id)) {
		ask_for_less(id);
		(void)rdma_destroy_id(&id->pub);
		return false;
	}
	if (!id) {
		if (e->stream)
			rcm_iw_refuse(e);
		else
			close_request(e->m.id);
		return false;
	}
	e->pub.event = RDMA_CM_EVENT_CONNECT_REQUEST;
	e->pub.listen_id = &e->id->pub;
	e->pub.id = &id->pub;
	if (rcm_is_ud(id))
		fill_datagram(e, id);
	else
		fill_connection(e);
	return true;
}

static void take_failure(struct rcm_event *e, enum rdma_cm_event_type what,
			 int status)
{
	e->pub.event = what;
	e->pub.status = status;
	rcm_qp_fail(e->id);
}

/* The queue pair, whoever made it, is at the peer's disposal. */
static bool take_stream(struct rcm_event *e)
{
	int rc = rcm_iw_establish(e->id);

	fill_connection(e);
	if (rc)
		take_failure(e, RDMA_CM_EVENT_CONNECT_ERROR, rc);
	else
		e->pub.event = RDMA_CM_EVENT_ESTABLISHED;
	return true;
}

/* With a queue pair of ours, the connection is made here; without one, the
 * program makes it and calls rdma_establish(). */
static bool take_reply(struct rcm_event *e)
{
	struct rcm_id *id = e->id;
	struct vb_ipc_cm m = rcm_message(id, IPC_CM_ESTABLISH);
	int rc;

	id->peer = e->m;
	if (e->stream)
		return take_stream(e);
	if (e->m.mtu) { /* the peer wanted less than was asked for */
		id->way.mtu = e->m.mtu;
		if (id->pub.route.path_rec)
			id->pub.route.path_rec->mtu = e->m.mtu;
	}
	fill_connection(e);
	e->pub.event = RDMA_CM_EVENT_CONNECT_RESPONSE;
	if (!id->pub.qp)
		return true;
	rc = rcm_qp_connect(id);
	if (rc) {
		m = rcm_message(id, IPC_CM_REJECT);
		take_failure(e, RDMA_CM_EVENT_CONNECT_ERROR, rc);
	} else {
		e->pub.event = RDMA_CM_EVENT_ESTABLISHED;
	}
	(void)!rcm_session_tell(&m);
	return true;
}

/* As Linux says it: what a SIDR REP refuses is unreachable, and why. */
static bool take_address(struct rcm_event *e)
{
	e->id->peer = e->m;
	if (e->m.status)
		take_failure(e, RDMA_CM_EVENT_UNREACHABLE, e->m.status);
	else
		e->pub.event = RDMA_CM_EVENT_ESTABLISHED;
	fill_datagram(e, e->id);
	return true;
}

/* False: it was left again meanwhile. */
static bool take_group(struct rcm_event *e)
{
	int rc = rcm_group_joined(e->id, &e->pub.param.ud.ah_attr);

	if (rc == -ENOENT)
		return false;
	if (rc) {
		e->pub.event = RDMA_CM_EVENT_MULTICAST_ERROR;
		e->pub.status = rc;
	}
	return true;
}

static bool digest(struct rcm_event *e)
{
	if (e->local)
		return e->pub.event != RDMA_CM_EVENT_MULTICAST_JOIN ||
		       take_group(e);

	switch (e->m.event) {
	case IPC_CM_REQUEST:
		return take_request(e);
	case IPC_CM_REPLY:
		return take_reply(e);
	case IPC_CM_ADDRESS:
		return take_address(e);
	case IPC_CM_ESTABLISHED:
		e->pub.event = RDMA_CM_EVENT_ESTABLISHED;
		if (e->stream)
			fill_connection(e);
		return true;
	case IPC_CM_REJECTED:
		take_failure(e, RDMA_CM_EVENT_REJECTED, e->m.status);
		fill_connection(e);
		return true;
	case IPC_CM_UNREACHABLE:
		take_failure(e, RDMA_CM_EVENT_UNREACHABLE,
			     e->m.status < 0 ? e->m.status : -ETIMEDOUT);
		return true;
	case IPC_CM_DISCONNECTED:
		e->pub.event = RDMA_CM_EVENT_DISCONNECTED;
		return true;
	case IPC_CM_OVER:
		e->pub.event = RDMA_CM_EVENT_TIMEWAIT_EXIT;
		return true;
	case IPC_CM_FAILED:
		take_failure(e, RDMA_CM_EVENT_CONNECT_ERROR, -e->m.status);
		return true;
	default:
		return false;
	}
}

/* 0: the channel blocks, or is gone and never has anything again; -EAGAIN. */
static int blocks(struct rcm_channel *c)
{
	int flags = 0;

	pthread_mutex_lock(&rcm.lock);
	if (!c->closed)
		flags = fcntl(c->pub.fd, F_GETFL);
	pthread_mutex_unlock(&rcm.lock);
	if (flags < 0)
		return -errno;
	return flags & O_NONBLOCK ? -EAGAIN : 0;
}

/* Who is cancelled may have been woken for an event that it does not take. */
static void wake_another(void *arg)
{
	struct rcm_channel *c = arg;

	pthread_mutex_lock(&rcm.lock);
	if (!c->closed && c->first)
		(void)sem_post(&c->pushed);
	pthread_mutex_unlock(&rcm.lock);
}

/*
 * Until something was pushed. The sleep alone is a cancellation point, if it
 * was one for the caller. By a semaphore, as that goes on after a signal where
 * read(2) would and poll(2) does not, and as the C library sees to it that a
 * cancellation on its way does not come later (base/bell.c).
 */
static int await_push(struct rcm_channel *c, int cancel)
{
	int rc;

	if (sem_trywait(&c->pushed) == 0)
		return 0;
	rc = blocks(c);
	if (rc)
		return rc;
	pthread_cleanup_push(wake_another, c);
	vb_cancel_back(cancel);
	rc = sem_wait(&c->pushed) < 0 ? -errno : 0;
	(void)vb_cancel_off();
	pthread_cleanup_pop(0);
	return rc;
}

/* 0: an event; -EAGAIN: the program does not want to wait; -EINTR. */
static int wait_event(struct rcm_channel *c, struct rcm_event **e, int cancel)
{
	int rc;

	do {
		rc = await_push(c, cancel);
		if (rc)
			return rc;
		pthread_mutex_lock(&rcm.lock);
		*e = c->closed ? NULL : pop(c);
		if (*e)
			(*e)->id->delivered++;
		pthread_mutex_unlock(&rcm.lock);
	} while (!*e);
	return 0;
}

VB_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct rcm_event *e;

	if (!event)
		return rcm_fail(EINVAL);
	e = event_of(event);
	pthread_mutex_lock(&rcm.lock);
	e->id->acked++;
	pthread_cond_broadcast(&e->id->acks);
	pthread_mutex_unlock(&rcm.lock);
	drop(e);
	return 0;
}

static int next_event(struct rcm_channel *c, struct rdma_cm_event **event)
{
	int cancel = vb_cancel_off(), rc;
	bool done = false;
	struct rcm_event *e;

	do {
		rc = wait_event(c, &e, cancel);
		if (rc)
			break;
		e->pub.id = &e->id->pub;
		done = digest(e);
		if (done)
			*event = &e->pub;
		else
			(void)rdma_ack_cm_event(&e->pub);
	} while (!done);
	vb_cancel_back(cancel);
	return rc;
}

static void enter(struct rcm_channel *c)
{
	pthread_mutex_lock(&rcm.lock);
	c->inside++;
	pthread_mutex_unlock(&rcm.lock);
}

static void leave(void *arg)
{
	struct rcm_channel *c = arg;
	bool last;

	pthread_mutex_lock(&rcm.lock);
	last = --c->inside == 0 && c->closed;
	pthread_mutex_unlock(&rcm.lock);
	if (last)
		release(c);
}

/*
 * Whoever waits while the channel is destroyed hears of nothing any more: so it
 * is with the kernel's, where the call keeps the file open, and programs count
 * on it: rping ends so, and an error would be its exit status.
 */
VB_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel,
				struct rdma_cm_event **event)
{
	struct rcm_channel *c;
	int rc;

	if (!channel || !event)
		return rcm_fail(EINVAL);
	c = channel_of(channel);
	enter(c);
	pthread_cleanup_push(leave, c);
	rc = next_event(c, event);
	pthread_cleanup_pop(1);
	return rc ? rcm_fail(-rc) : 0;
}

int rcm_event_complete(struct rcm_id *id)
{
	int status;

	if (!id->sync)
		return 0;
	if (id->pub.event) {
		(void)rdma_ack_cm_event(id->pub.event);
		id->pub.event = NULL;
	}
	if (rdma_get_cm_event(id->pub.channel, &id->pub.event))
		return -1;
	status = id->pub.event->status;
	if (id->pub.event->event == RDMA_CM_EVENT_REJECTED)
		return rcm_fail(ECONNREFUSED);
	/* No answer to what was asked, and none comes. */
	if (id->pub.event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return rcm_fail(ENODEV);
	return status ? rcm_fail(status < 0 ? -status : status) : 0;
}

VB_EXPORT const char *rdma_event_str(enum rdma_cm_event_type event)
{
	// clang-format off
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED]	 = "RDMA_CM_EVENT_ADDR_RESOLVED",
		[RDMA_CM_EVENT_ADDR_ERROR]	 = "RDMA_CM_EVENT_ADDR_ERROR",
		[RDMA_CM_EVENT_ROUTE_RESOLVED]	 = "RDMA_CM_EVENT_ROUTE_RESOLVED",
		[RDMA_CM_EVENT_ROUTE_ERROR]	 = "RDMA_CM_EVENT_ROUTE_ERROR",
		[RDMA_CM_EVENT_CONNECT_REQUEST]	 = "RDMA_CM_EVENT_CONNECT_REQUEST",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
		[RDMA_CM_EVENT_CONNECT_ERROR]	 = "RDMA_CM_EVENT_CONNECT_ERROR",
		[RDMA_CM_EVENT_UNREACHABLE]	 = "RDMA_CM_EVENT_UNREACHABLE",
		[RDMA_CM_EVENT_REJECTED]	 = "RDMA_CM_EVENT_REJECTED",
		[RDMA_CM_EVENT_ESTABLISHED]	 = "RDMA_CM_EVENT_ESTABLISHED",
		[RDMA_CM_EVENT_DISCONNECTED]	 = "RDMA_CM_EVENT_DISCONNECTED",
		[RDMA_CM_EVENT_DEVICE_REMOVAL]	 = "RDMA_CM_EVENT_DEVICE_REMOVAL",
		[RDMA_CM_EVENT_MULTICAST_JOIN]	 = "RDMA_CM_EVENT_MULTICAST_JOIN",
		[RDMA_CM_EVENT_MULTICAST_ERROR]	 = "RDMA_CM_EVENT_MULTICAST_ERROR",
		[RDMA_CM_EVENT_ADDR_CHANGE]	 = "RDMA_CM_EVENT_ADDR_CHANGE",
		[RDMA_CM_EVENT_TIMEWAIT_EXIT]	 = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
		[RCM_EVENT_ADDRINFO_RESOLVED] = "RDMA_CM_EVENT_ADDRINFO_RESOLVED",
		[RCM_EVENT_ADDRINFO_ERROR]	 = "RDMA_CM_EVENT_ADDRINFO_ERROR",
		[RCM_EVENT_USER]		 = "RDMA_CM_EVENT_USER",
	};
	// clang-format on

	return (unsigned)event < VB_COUNT(names) ? names[event]
						 : "UNKNOWN EVENT";
}

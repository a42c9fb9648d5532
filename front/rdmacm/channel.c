/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels: the queue of events, its eventfd, waiting for an event, and
 * dropping the events of an id or a channel that is destroyed.
 */
#include "front/rdmacm/event_priv.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sync.h"

static void *no_channel(int error)
{
	(void)rcm_fail_of(error, "rdma_create_event_channel");
	return NULL;
}

VB_EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rcm_channel *c;
	int rc = rcm_session_start();

	if (rc)
		return no_channel(-rc);
	c = calloc(1, sizeof(*c));
	if (!c)
		return no_channel(ENOMEM);
	c->last = &c->first;
	c->pub.fd = eventfd(0, EFD_CLOEXEC);
	if (c->pub.fd < 0) {
		free(c);
		return no_channel(errno);
	}
	(void)sem_init(&c->pushed, 0, 0);
	return &c->pub;
}

/*
 * The caller of each function below holds rcm.lock, so none of them may be a
 * cancellation point: a cancelled thread would keep the lock. The eventfd is
 * readable exactly while the queue has events, so neither reading nor writing
 * it blocks here.
 */

/* Makes the descriptor of the channel readable. */
static void mark_full(struct rcm_channel *c)
{
	int cancel = vb_cancel_off();

	if (eventfd_write(c->pub.fd, 1) < 0)
		vb_log(LOG_WARN, "rdmacm: an event channel is closed");
	vb_cancel_back(cancel);
}

/* The caller has removed events from the queue: if none is left, makes the
 * channel's descriptor unreadable. */
static void mark_empty(struct rcm_channel *c)
{
	int cancel = vb_cancel_off();
	eventfd_t n;

	if (!c->first && eventfd_read(c->pub.fd, &n) < 0)
		vb_log(LOG_WARN, "rdmacm: an event channel is closed");
	vb_cancel_back(cancel);
}

void rcm_channel_push(struct rcm_channel *c, struct rcm_event *e)
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

void rcm_event_free(struct rcm_event *e)
{
	if (e)
		free(e->more);
	free(e);
}

void rcm_unseen_add(struct rcm_event *e)
{
	e->next_unseen = rcm.unseen;
	if (e->next_unseen)
		e->next_unseen->unseen_at = &e->next_unseen;
	rcm.unseen = e;
	e->unseen_at = &rcm.unseen;
}

void rcm_unseen_remove(struct rcm_event *e)
{
	if (!e->unseen_at)
		return;
	*e->unseen_at = e->next_unseen;
	if (e->next_unseen)
		e->next_unseen->unseen_at = e->unseen_at;
	e->unseen_at = NULL;
}

/* Empties rcm.unseen in the child of fork(). The child's copy can be half
 * changed, because another thread of the parent may have been changing it
 * during fork(). So this function follows only next_unseen, which is consistent
 * at every moment of a change; unseen_at is not. */
void rcm_event_after_fork(void)
{
	for (struct rcm_event *e = rcm.unseen; e; e = e->next_unseen)
		e->unseen_at = NULL;
	rcm.unseen = NULL;
}

/* Removes the events of @id from the queue (@id NULL: all events) and appends
 * them to @to, or frees them if @to is NULL. The caller holds rcm.lock. */
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
			rcm_channel_push(to, e);
		} else {
			rcm_unseen_remove(e);
			rcm_event_free(e);
		}
	}
	if (had)
		mark_empty(c);
}

/* Tells the broker to close each connection request that is still in the queue
 * and that arrived for the listener @id (NULL: for any listener), so that its
 * peer is refused and does not wait. The caller holds rcm.lock. */
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
		if (rcm.fd >= 0 &&
		    send(rcm.fd, bytes, sizeof(bytes), MSG_NOSIGNAL) < 0)
			vb_log(LOG_DEBUG, "rdmacm: the broker has ended");
	}
	vb_cancel_back(cancel);
}

/* The program destroys @channel: removes it from all ids that have it, so that
 * they get no more events. The caller holds rcm.lock. */
static void forget_channel(const struct rdma_event_channel *channel)
{
	for (unsigned i = 0; i < VB_COUNT(rcm.ids); i++)
		for (struct rcm_id *id = rcm.ids[i]; id; id = id->next)
			if (id->pub.channel == channel)
				id->pub.channel = NULL;
}

static void channel_release(struct rcm_channel *c)
{
	(void)sem_destroy(&c->pushed);
	free(c);
}

VB_EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct rcm_channel *c = rcm_channel_of(channel);
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
		channel_release(c);
	vb_cancel_back(cancel);
}

/* Waits until the program has acknowledged every event of @id that it has read,
 * because acknowledging refers to the id. The caller holds rcm.lock. */
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
	if (id->pub.channel && id->forks == rcm.forks) {
		refuse_unseen(rcm_channel_of(id->pub.channel), id);
		sift(rcm_channel_of(id->pub.channel), id, NULL);
	}
	await_acks(id);
	pthread_mutex_unlock(&rcm.lock);
}

void rcm_event_move(struct rcm_id *id, struct rcm_channel *to)
{
	pthread_mutex_lock(&rcm.lock);
	await_acks(id);
	if (id->pub.channel)
		sift(rcm_channel_of(id->pub.channel), id, to);
	id->pub.channel = &to->pub;
	pthread_mutex_unlock(&rcm.lock);
}

/* Decides whether a call that finds no event sleeps. Returns 0 if it is to
 * sleep: the descriptor of the channel blocks, or the program has destroyed the
 * channel, and then nothing wakes the caller any more (see
 * rdma_get_cm_event()). -EAGAIN: the descriptor does not block. */
static int may_sleep(struct rcm_channel *c)
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

/* Runs when a thread is cancelled in await_push(). That thread may have
 * consumed the wakeup for an event that it will not read, so this function
 * wakes another thread that waits. */
static void wake_another(void *arg)
{
	struct rcm_channel *c = arg;

	pthread_mutex_lock(&rcm.lock);
	if (!c->closed && c->first)
		(void)sem_post(&c->pushed);
	pthread_mutex_unlock(&rcm.lock);
}

/*
 * Waits until an event has been pushed. Only the sleep is a cancellation point,
 * and only if the caller's thread had cancellation enabled. The sleep uses a
 * semaphore for two reasons: sem_wait() resumes after a signal handler with
 * SA_RESTART, as read(2) on the kernel's channel does and poll(2) does not; and
 * a cancellation that arrives during the sleep takes effect in sem_wait()
 * itself, not in a later call of the program.
 */
static int await_push(struct rcm_channel *c, int cancel)
{
	int rc;

	if (sem_trywait(&c->pushed) == 0)
		return 0;
	rc = may_sleep(c);
	if (rc)
		return rc;
	pthread_cleanup_push(wake_another, c);
	vb_cancel_back(cancel);
	rc = sem_wait(&c->pushed) < 0 ? -errno : 0;
	(void)vb_cancel_off();
	pthread_cleanup_pop(0);
	return rc;
}

int rcm_channel_wait(struct rcm_channel *c, struct rcm_event **e, int cancel)
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

void rcm_channel_enter(struct rcm_channel *c)
{
	pthread_mutex_lock(&rcm.lock);
	c->inside++;
	pthread_mutex_unlock(&rcm.lock);
}

void rcm_channel_leave(void *arg)
{
	struct rcm_channel *c = arg;
	bool last;

	pthread_mutex_lock(&rcm.lock);
	last = --c->inside == 0 && c->closed;
	pthread_mutex_unlock(&rcm.lock);
	if (last)
		channel_release(c);
}

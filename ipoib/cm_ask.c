/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that asks the host's connection manager, and a ring of questions.
 * A question keeps its place in the ring until its answer has been taken, so
 * there is always room for the answer. */
#include "ipoib/cm_ask.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

#define ASK_MS	2000
#define BACKLOG 16
#define END_MS	200

struct cm_asker {
	struct rdma_event_channel *channel;
	pthread_t thread;
	int fd;
	/* The fields below are under @lock; @wakes: there is a question, or
	 * the thread shall end. */
	pthread_mutex_t lock;
	pthread_cond_t wakes;
	struct cm_question list[CM_QUESTIONS];
	/* free-running numbers of questions that were put, that the thread has
	 * begun with and answered, and whose answers were taken */
	unsigned put, begun, answered, taken;
	bool ends;
};

static struct cm_question *question_at(struct cm_asker *a, unsigned n)
{
	return &a->list[n % CM_QUESTIONS];
}

/* Until the route is found, the id has no channel, so these calls wait for
 * their events themselves. */
static int find_path(struct cm_asker *a, struct cm_question *q)
{
	if (rdma_create_id(NULL, &q->id, NULL, RDMA_PS_IB)) {
		q->id = NULL;
		return errno;
	}
	if (rdma_resolve_addr(q->id, (struct sockaddr *)&q->from,
			      (struct sockaddr *)&q->to, ASK_MS) ||
	    rdma_resolve_route(q->id, ASK_MS) ||
	    rdma_migrate_id(q->id, a->channel))
		return errno;
	return 0;
}

static int begin_to_listen(struct cm_asker *a, struct cm_question *q)
{
	if (rdma_create_id(a->channel, &q->id, NULL, RDMA_PS_IB)) {
		q->id = NULL;
		return errno;
	}
	if (rdma_bind_addr(q->id, (struct sockaddr *)&q->from) ||
	    rdma_listen(q->id, BACKLOG))
		return errno;
	return 0;
}

static void ask_manager(struct cm_asker *a, struct cm_question *q)
{
	q->error = q->kind == CM_ASK_PATH ? find_path(a, q)
					  : begin_to_listen(a, q);
	if (q->error && q->id) {
		rdma_destroy_id(q->id);
		q->id = NULL;
	}
}

/* The error of a withdrawn question is set, so this thread does not ask it. */
static void *ask_questions(void *arg)
{
	struct cm_asker *a = arg;
	const uint64_t one = 1;

	pthread_mutex_lock(&a->lock);
	while (!a->ends) {
		struct cm_question *q = question_at(a, a->begun);

		if (a->begun == a->put) {
			pthread_cond_wait(&a->wakes, &a->lock);
			continue;
		}
		a->begun++;
		if (!q->error) {
			/* No other thread uses this entry of the ring until the
			 * question is answered. */
			pthread_mutex_unlock(&a->lock);
			ask_manager(a, q);
			pthread_mutex_lock(&a->lock);
		}
		a->answered++;
		(void)!write(a->fd, &one, sizeof(one));
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

struct cm_asker *ipoib_asker_start(struct rdma_event_channel *channel)
{
	struct cm_asker *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return NULL;
	a->channel = channel;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->wakes, NULL);
	a->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	rc = a->fd < 0 ? errno
		       : vb_thread_start(&a->thread, NULL, ask_questions, a);
	if (!rc)
		return a;
	if (a->fd >= 0)
		close(a->fd);
	free(a);
	errno = rc;
	return NULL;
}

bool ipoib_asker_end(struct cm_asker *a)
{
	const struct timespec nap = { 0, 1000000 }; /* 1 ms */

	pthread_mutex_lock(&a->lock);
	a->ends = true;
	pthread_cond_signal(&a->wakes);
	pthread_mutex_unlock(&a->lock);
	for (unsigned i = 0; i < END_MS; i++) {
		if (pthread_tryjoin_np(a->thread, NULL) == 0) {
			close(a->fd);
			free(a);
			return true;
		}
		nanosleep(&nap, NULL);
	}
	pthread_detach(a->thread);
	return false;
}

int ipoib_asker_fd(const struct cm_asker *a)
{
	return a->fd;
}

bool ipoib_asker_ask(struct cm_asker *a, const struct cm_question *q)
{
	bool room;

	pthread_mutex_lock(&a->lock);
	room = a->put - a->taken < CM_QUESTIONS;
	if (room) {
		*question_at(a, a->put) = *q;
		a->put++;
		pthread_cond_signal(&a->wakes);
	}
	pthread_mutex_unlock(&a->lock);
	return room;
}

void ipoib_asker_withdraw(struct cm_asker *a, uint32_t query)
{
	pthread_mutex_lock(&a->lock);
	for (unsigned i = a->begun; i != a->put; i++) {
		struct cm_question *q = question_at(a, i);

		if (q->kind == CM_ASK_PATH && q->query == query)
			q->error = ECANCELED;
	}
	pthread_mutex_unlock(&a->lock);
}

bool ipoib_asker_take(struct cm_asker *a, struct cm_question *q)
{
	uint64_t count;
	bool any;

	(void)!read(a->fd, &count, sizeof(count));
	pthread_mutex_lock(&a->lock);
	any = a->taken != a->answered;
	if (any)
		*q = *question_at(a, a->taken++);
	pthread_mutex_unlock(&a->lock);
	return any;
}

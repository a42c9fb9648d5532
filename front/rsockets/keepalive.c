/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SO_KEEPALIVE: a connection of which nothing is heard for TCP_KEEPIDLE seconds
 * is asked by a message that means nothing (stream.h: RS_KEEPALIVE), as
 * rdma-core's does; over iWARP by a READ of no bytes. The peer's adapter
 * answers that, or the queue pair fails;
 * what takes that longer than TCP_KEEPCNT times TCP_KEEPINTVL is not waited
 * for. One thread does it for all sockets, begun by the first.
 */
#include "front/rsockets/rs.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/defs.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t news;
	bool runs, changed;
	uint64_t next; /* of all sockets; the thread's */
} keeper = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t seconds(const struct rs_sock *rs, int option)
{
	return (uint64_t)rs_number(rs, IPPROTO_TCP, option) * VB_SEC;
}

static bool is_kept(const struct rs_sock *rs)
{
	return !rs->dgram && rs->state == RS_CONNECTED &&
	       rs_number(rs, SOL_SOCKET, SO_KEEPALIVE);
}

/* One that is under way is repeated by the adapter. */
static void probe(struct rs_sock *rs)
{
	int count = rs_number(rs, IPPROTO_TCP, TCP_KEEPCNT), rc = 0;

	if (rs->probes++ >= (unsigned)count)
		rc = -ETIMEDOUT;
	else if (rs->stream.controls == 0)
		rc = rs_qp_probe(rs);
	if (rc)
		rs_connection_end(rs, -rc);
	if (rc)
		rs_ring(rs);
}

static uint64_t due(const struct rs_sock *rs)
{
	return rs->heard + seconds(rs, TCP_KEEPIDLE) +
	       rs->probes * seconds(rs, TCP_KEEPINTVL);
}

static void visit(struct rs_sock *rs)
{
	rs_lock(rs);
	if (is_kept(rs) && vb_clock_read() >= due(rs)) {
		rs_look(rs); /* the program may not have */
		if (is_kept(rs) && vb_clock_read() >= due(rs))
			probe(rs);
	}
	if (is_kept(rs))
		keeper.next = VB_MIN(keeper.next, due(rs));
	pthread_mutex_unlock(&rs->lock);
}

/* With the lock. */
static void sleep_until(uint64_t then)
{
	struct timespec t = { (time_t)(then / VB_SEC), (long)(then % VB_SEC) };

	if (keeper.changed)
		return;
	if (then == UINT64_MAX)
		pthread_cond_wait(&keeper.news, &keeper.lock);
	else
		pthread_cond_timedwait(&keeper.news, &keeper.lock, &t);
}

static void *keep(void *none)
{
	pthread_mutex_lock(&keeper.lock);
	for (;;) {
		keeper.changed = false;
		keeper.next = UINT64_MAX;
		pthread_mutex_unlock(&keeper.lock);
		rs_for_each(visit);
		pthread_mutex_lock(&keeper.lock);
		sleep_until(keeper.next);
	}
	return none;
}

static int begin(void)
{
	pthread_condattr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int rc;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&keeper.news, &attr);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, keep, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0)
		pthread_detach(thread);
	return rc;
}

void rs_keep_alive(struct rs_sock *rs)
{
	if (!is_kept(rs))
		return;
	rs->heard = vb_clock_read();
	rs->probes = 0;
	pthread_mutex_lock(&keeper.lock);
	if (!keeper.runs)
		keeper.runs = begin() == 0;
	keeper.changed = true;
	if (keeper.runs)
		pthread_cond_signal(&keeper.news);
	pthread_mutex_unlock(&keeper.lock);
}

/* A child of fork has no such thread. */
void rs_keeper_forget(void)
{
	pthread_mutex_init(&keeper.lock, NULL);
	keeper.runs = false;
}

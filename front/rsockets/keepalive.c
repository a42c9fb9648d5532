/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The option SO_KEEPALIVE. When nothing has come on a connection for
 * TCP_KEEPIDLE seconds, the socket sends an RS_KEEPALIVE message (stream.h), as
 * rdma-core's does, or a READ of no bytes over iWARP. The peer's adapter
 * acknowledges that or the queue pair fails. After TCP_KEEPCNT probes,
 * TCP_KEEPINTVL apart, the connection ends with ETIMEDOUT. One thread serves
 * all sockets; the first socket with the option starts it.
 */
#include "front/rsockets/rs.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <time.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/thread.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wakes;
	bool runs, changed;
	/* ns: the time of the earliest probe; only the thread uses this */
	uint64_t next;
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

/* Sends a keepalive message, or ends the connection after enough of them. Sends
 * none while a control message is under way, which the adapter already
 * retransmits. */
static void probe(struct rs_sock *rs)
{
	int count = rs_number(rs, IPPROTO_TCP, TCP_KEEPCNT), rc = 0;

	rs->probed = vb_clock_read();
	if (rs->probes++ >= (unsigned)count)
		rc = -ETIMEDOUT;
	else if (rs->stream.controls == 0)
		rc = rs_qp_probe(rs);
	if (rc)
		rs_connection_end(rs, -rc);
	if (rc)
		rs_ring(rs);
}

/* Returns the time of the next probe, in ns. Its interval begins when the last
 * probe was sent, and not when that one was due: a program that was stopped for
 * minutes must hear the answer to a probe before it sends the next one. */
static uint64_t due(const struct rs_sock *rs)
{
	return rs->probes ? rs->probed + seconds(rs, TCP_KEEPINTVL)
			  : rs->heard + seconds(rs, TCP_KEEPIDLE);
}

static void visit(struct rs_sock *rs)
{
	rs_lock(rs);
	if (is_kept(rs) && vb_clock_read() >= due(rs)) {
		/* Handle completions: bytes may have come that no thread has
		 * handled yet. */
		rs_look(rs);
		if (is_kept(rs) && vb_clock_read() >= due(rs))
			probe(rs);
	}
	if (is_kept(rs))
		keeper.next = VB_MIN(keeper.next, due(rs));
	pthread_mutex_unlock(&rs->lock);
}

/* Sleeps until @then (CLOCK_MONOTONIC in ns) or until keeper.wakes is
 * signalled. The caller holds keeper.lock. */
static void sleep_until(uint64_t then)
{
	struct timespec t = { (time_t)(then / VB_SEC), (long)(then % VB_SEC) };

	if (keeper.changed)
		return;
	if (then == UINT64_MAX)
		pthread_cond_wait(&keeper.wakes, &keeper.lock);
	else
		pthread_cond_timedwait(&keeper.wakes, &keeper.lock, &t);
}

static void *keepalive_run(void *none)
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

static int keepalive_begin(void)
{
	pthread_condattr_t attr;
	pthread_t thread;
	int rc;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&keeper.wakes, &attr);
	rc = vb_thread_start(&thread, NULL, keepalive_run, NULL);
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
		keeper.runs = keepalive_begin() == 0;
	keeper.changed = true;
	if (keeper.runs)
		pthread_cond_signal(&keeper.wakes);
	pthread_mutex_unlock(&keeper.lock);
}

/* Runs in a child of fork(), which has no copy of the thread: rs_keep_alive()
 * may start one again. */
void rs_keeper_forget(void)
{
	pthread_mutex_init(&keeper.lock, NULL);
	keeper.runs = false;
}

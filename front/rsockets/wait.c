/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting: rpoll(), rselect(), and the blocking of all other calls. A thread
 * that must sleep adds a waiter to each socket and polls its eventfd (its bell)
 * together with the sockets' descriptors. A thread that handles completions of
 * a socket rings the other waiters, because it has consumed the event that
 * would have made the descriptor readable for them.
 */
#include "front/rsockets/rs.h"

#include <errno.h>
#include <rdma/rsocket.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "front/rsockets/fdset.h"

/*
 * Between a packet and a sleeping program are two wake-ups of up to 50 us each,
 * of the engine's thread and of the program. A wait for the peer to read or
 * write half a ring takes 100 to 300 us, so a program that sleeps in each of
 * them loses half of its throughput or more (docs/RDMACM.md). If a thread's
 * last sleep was short, it spins for that long before it sleeps again.
 */
enum {
	SPIN_LEAST_NS = 10000,
	SPIN_MOST_NS = 400000,
	/* ns: a sleep shorter than this makes the next spin long */
	SHORT_NS = 450000,
	/* ns between two reads of a connected socket's event channel */
	LOOK_NS = 1000000,

	/* number of free bytes that makes a socket writable */
	LOW_WATER = 2048,
};

/* The key by which the bell of a thread is closed when the thread ends. A
 * program may have taken all keys; then the bell stays open until the program
 * ends. */
static pthread_key_t bell_key;
static bool has_bell_key;
static pthread_once_t bell_once = PTHREAD_ONCE_INIT;
/* the thread's eventfd (its bell) plus 1; 0: it has none yet */
static __thread int thread_bell;

static void close_bell(void *bell)
{
	close(*(int *)bell - 1);
	thread_bell = 0;
}

static void make_key(void)
{
	has_bell_key = pthread_key_create(&bell_key, close_bell) == 0;
}

/* Returns the eventfd of this thread, made at the first call. -1: failed, with
 * errno. */
static int own_bell(void)
{
	pthread_once(&bell_once, make_key);
	if (thread_bell)
		return thread_bell - 1;
	thread_bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) + 1;
	if (thread_bell && has_bell_key)
		(void)pthread_setspecific(bell_key, &thread_bell);
	return thread_bell - 1;
}

static __thread uint64_t spin = SPIN_LEAST_NS;

/* Calls poll() and then sets how long this thread spins before its next sleep:
 * long if this sleep was short, unless the thread had just spun for long
 * without a result. Returns the result of poll(), or -errno. */
static int wait_nap(struct pollfd *fds, nfds_t count, int timeout)
{
	uint64_t then = vb_clock_read();
	int rc = poll(fds, count, timeout);

	rc = rc < 0 ? -errno : rc;
	if (timeout)
		spin = spin == SPIN_LEAST_NS &&
				       vb_clock_read() - then < SHORT_NS
			       ? SPIN_MOST_NS
			       : SPIN_LEAST_NS;
	return rc;
}

static void silence(int bell)
{
	eventfd_t count;

	(void)eventfd_read(bell, &count);
}

void rs_waiter_add(struct rs_sock *rs, struct rs_waiter *me, int bell,
		   _Atomic(struct rs_waiter *) *all_rung)
{
	me->bell = bell;
	me->rung = false;
	me->all_rung = all_rung;
	me->next = rs->waiters;
	me->link = &rs->waiters;
	if (me->next)
		me->next->link = &me->next;
	rs->waiters = me;
}

void rs_waiter_remove(struct rs_waiter *me)
{
	*me->link = me->next;
	if (me->next)
		me->next->link = me->link;
}

static void gather_rung(struct rs_waiter *s)
{
	s->rung_next = atomic_load(s->all_rung);
	while (!atomic_compare_exchange_weak(s->all_rung, &s->rung_next, s))
		;
}

void rs_ring(struct rs_sock *rs)
{
	for (struct rs_waiter *s = rs->waiters; s; s = s->next) {
		if (atomic_exchange(&s->rung, true))
			continue;
		if (s->all_rung)
			gather_rung(s);
		(void)eventfd_write(s->bell, 1);
	}
}

/* The fields of a socket on which the test of a waiter may depend: rs_look()
 * wakes the waiters only when one of these has changed. */
struct snapshot {
	enum rs_state state;
	bool reads, writes;
	uint16_t may_send;
	uint32_t ready, kept;
	unsigned sends, controls, targets;
	int waiting;
	unsigned headers, leaving;
};

static struct snapshot take_snapshot(const struct rs_sock *rs)
{
	return (struct snapshot){
		rs->state,
		rs->reads,
		rs->writes,
		rs->stream.may_send,
		rs->stream.in_ready,
		rs->stream.out_used,
		rs->stream.sends,
		rs->stream.controls,
		rs->stream.nexts,
		rs->waiting,
		rs->dgram ? rs_dgram_waiting(rs->dgram) : 0,
		rs->dgram ? rs_dgram_leaving(rs->dgram) : 0,
	};
}

static bool same_snapshot(const struct snapshot *a, const struct snapshot *b)
{
	return a->state == b->state && a->reads == b->reads &&
	       a->writes == b->writes && a->may_send == b->may_send &&
	       a->ready == b->ready && a->kept == b->kept &&
	       a->sends == b->sends && a->controls == b->controls &&
	       a->targets == b->targets && a->waiting == b->waiting &&
	       a->headers == b->headers && a->leaving == b->leaving;
}

static void work(struct rs_sock *rs)
{
	uint64_t now;

	if (rs->dgram) {
		rs_dgram_work(rs);
		return;
	}
	rs_qp_work(rs);
	now = vb_clock_read();
	if (rs->state == RS_CONNECTED && now - rs->looked < LOOK_NS)
		return;
	rs->looked = now;
	rs_connection_take_events(rs);
}

void rs_look(struct rs_sock *rs)
{
	struct snapshot before = take_snapshot(rs), after;

	work(rs);
	if (!rs->waiters)
		return;
	after = take_snapshot(rs);
	if (!same_snapshot(&before, &after))
		rs_ring(rs);
}

bool rs_can_read(struct rs_sock *rs)
{
	return rs->stream.in_ready || !rs->reads;
}

bool rs_can_write(struct rs_sock *rs)
{
	uint32_t room;

	if (!rs->writes)
		return true;
	room = rs_stream_room(&rs->stream);
	return room && rs->stream.out_size - rs->stream.out_used >=
			       VB_MIN(LOW_WATER, rs->stream.out_size);
}

bool rs_all_sent(struct rs_sock *rs)
{
	if (rs->dgram)
		return rs_dgram_leaving(rs->dgram) == 0;
	return rs->state != RS_CONNECTED ||
	       (rs->stream.sends == 0 && rs->stream.controls == 0);
}

bool rs_can_control(struct rs_sock *rs)
{
	return rs->state != RS_CONNECTED || rs->stream.controls < RS_CONTROLS;
}

bool rs_is_decided(struct rs_sock *rs)
{
	return !rs_connecting(rs);
}

int rs_until(uint64_t deadline)
{
	uint64_t now = vb_clock_read();

	if (deadline == UINT64_MAX)
		return -1;
	return now >= deadline ? 0 : (int)((deadline - now) / VB_MSEC + 1);
}

static uint64_t deadline_of(int timeout)
{
	return timeout < 0 ? UINT64_MAX
			   : vb_clock_read() + (uint64_t)timeout * 1000000;
}

/* Sleeps until the socket changes. The caller holds rs->lock; this function
 * releases it meanwhile. 0, -EAGAIN or -EINTR. */
static int doze(struct rs_sock *rs, uint64_t deadline)
{
	struct rs_waiter me;
	struct pollfd fds[2] = { { .fd = own_bell(), .events = POLLIN },
				 { .fd = rs->fd, .events = POLLIN } };
	int rc;

	if (fds[0].fd < 0)
		return -errno;
	rs_waiter_add(rs, &me, fds[0].fd, NULL);
	pthread_mutex_unlock(&rs->lock);
	rc = wait_nap(fds, VB_COUNT(fds), rs_until(deadline));
	rc = rc < 0 ? rc : rc == 0 ? -EAGAIN : 0;
	rs_lock(rs);
	rs_waiter_remove(&me);
	silence(me.bell);
	if (fds[1].revents) {
		rs_qp_woken(rs);
		rs->looked = 0;
	}
	return rc;
}

/* Releases rs->lock while other threads wait for it, at most until @until: a
 * thread that spins may be waiting for the answer to a message that another
 * thread is about to send. */
static void give_way(struct rs_sock *rs, uint64_t until)
{
	if (!atomic_load_explicit(&rs->callers, memory_order_relaxed))
		return;
	pthread_mutex_unlock(&rs->lock);
	do
		sched_yield();
	while (atomic_load(&rs->callers) && vb_clock_read() < until);
	rs_lock(rs);
}

int rs_wait(struct rs_sock *rs, rs_test *test, int timeout)
{
	uint64_t deadline = deadline_of(timeout), spun = 0, now;
	int rc = 0;

	for (;;) {
		rs_look(rs);
		if (test(rs))
			return 0;
		if (rc || timeout == 0)
			return rc ? rc : -EAGAIN;
		now = vb_clock_read();
		if (!spun)
			spun = now + spin;
		if ((rs->state == RS_CONNECTED || rs->dgram) && now < spun)
			give_way(rs, spun);
		else if (!rs_qp_arm(rs))
			rc = doze(rs, deadline);
	}
}

static short dgram_ready(struct rs_sock *rs, short events)
{
	short ready = rs->error ? POLLERR : 0;

	if (rs_dgram_waiting(rs->dgram) || rs->error || !rs->reads)
		ready |= events & (POLLIN | POLLRDNORM);
	if (rs_dgram_can_write(rs))
		ready |= events & (POLLOUT | POLLWRNORM);
	return ready;
}

short rs_ready(struct rs_sock *rs, short events)
{
	short ready = 0;

	if (rs->dgram)
		return dgram_ready(rs, events);
	if (rs->state == RS_LISTENING)
		return rs->waiting ? events & POLLIN : 0;
	if (rs->state == RS_NEW || rs->state == RS_BOUND)
		return events & POLLOUT ? POLLOUT | POLLHUP : POLLHUP;
	if (rs_connecting(rs))
		return 0;
	if (rs_can_read(rs))
		ready |= events & (POLLIN | POLLRDNORM);
	if (rs_can_write(rs))
		ready |= events & (POLLOUT | POLLWRNORM);
	if (!rs->reads)
		ready |= events & POLLRDHUP;
	/* Programs take POLLHUP for the end of the stream, so unread bytes come
	 * first. */
	if (rs->state != RS_CONNECTED && !rs->stream.in_ready)
		ready |= POLLHUP;
	if (rs->state == RS_FAILED)
		ready |= POLLERR;
	return ready;
}

/* The state of one call of rpoll(). It holds a reference to each socket, so
 * that none is freed while the thread sleeps. */
struct polling {
	nfds_t count;
	bool others; /* some of the program's descriptors are not rsockets */
	struct pollfd *asked; /* the array that the program gave to rpoll() */
	/* the array for the kernel's poll(); its last entry is the thread's
	 * eventfd */
	struct pollfd *watched;
	/* the rsocket of each entry; NULL: the descriptor is no rsocket */
	struct rs_sock **socks;
	struct rs_waiter *waiters;
};

static void wait_release(struct polling *p)
{
	for (nfds_t i = 0; p->socks && i < p->count; i++)
		if (p->socks[i])
			rs_put(p->socks[i]);
	free(p->socks);
	free(p->watched);
	free(p->waiters);
}

static int gather(struct polling *p)
{
	p->socks = calloc(p->count + 1, sizeof(struct rs_sock *));
	p->watched = calloc(p->count + 1, sizeof(*p->watched));
	p->waiters = calloc(p->count + 1, sizeof(*p->waiters));
	if (!p->socks || !p->watched || !p->waiters)
		return -ENOMEM;
	for (nfds_t i = 0; i < p->count; i++) {
		p->socks[i] = rs_find(p->asked[i].fd);
		p->watched[i] = p->asked[i];
		if (p->socks[i])
			p->watched[i].events = POLLIN;
		else
			p->others = true;
	}
	p->watched[p->count] = (struct pollfd){ own_bell(), POLLIN, 0 };
	return p->watched[p->count].fd < 0 ? -errno : 0;
}

/* Returns the number of rsockets that are ready. */
static int look_at_socks(struct polling *p)
{
	struct rs_sock *rs;
	int ready = 0;

	for (nfds_t i = 0; i < p->count; i++) {
		rs = p->socks[i];
		if (!rs)
			continue;
		rs_lock(rs);
		if (p->watched[i].revents) {
			rs_qp_woken(rs);
			rs->looked = 0;
		}
		rs_look(rs);
		p->asked[i].revents = rs_ready(rs, p->asked[i].events);
		ready += p->asked[i].revents != 0;
		pthread_mutex_unlock(&rs->lock);
	}
	return ready;
}

/* Adds a waiter to each socket and arms it. True: no socket is ready, so the
 * thread may sleep. */
static bool add_waiters(struct polling *p)
{
	struct rs_sock *rs;
	bool idle = true;

	for (nfds_t i = 0; i < p->count; i++) {
		rs = p->socks[i];
		if (!rs)
			continue;
		rs_lock(rs);
		rs_waiter_add(rs, &p->waiters[i], p->watched[p->count].fd,
			      NULL);
		/* the socket may have got another number */
		p->watched[i].fd = rs->fd;
		if (rs_qp_arm(rs))
			rs_look(rs);
		if (rs_ready(rs, p->asked[i].events))
			idle = false;
		pthread_mutex_unlock(&rs->lock);
	}
	return idle;
}

static void remove_waiters(struct polling *p)
{
	for (nfds_t i = 0; i < p->count; i++) {
		if (!p->socks[i])
			continue;
		rs_lock(p->socks[i]);
		rs_waiter_remove(&p->waiters[i]);
		pthread_mutex_unlock(&p->socks[i]->lock);
	}
	silence(p->watched[p->count].fd);
}

/* Copies the events that the kernel reported for descriptors that are no
 * rsockets to the program's array. Returns how many of these are ready. */
static int copy_others(struct polling *p)
{
	int ready = 0;

	for (nfds_t i = 0; i < p->count; i++) {
		if (p->socks[i])
			continue;
		p->asked[i].revents = p->watched[i].revents;
		ready += p->asked[i].revents != 0;
	}
	return ready;
}

/* Waits in the kernel's poll() for all descriptors, for at most @timeout ms. 0
 * or -errno. */
static int watch(struct polling *p, int timeout)
{
	int rc = wait_nap(p->watched, p->count + 1, timeout);

	return rc < 0 ? rc : 0;
}

/* Asks the kernel without waiting, but only if there are descriptors other than
 * rsockets, which are examined without a system call. */
static int glance(struct polling *p)
{
	return p->others ? watch(p, 0) : 0;
}

static int sleep_once(struct polling *p, uint64_t deadline)
{
	int rc = watch(p, add_waiters(p) ? rs_until(deadline) : 0);

	remove_waiters(p);
	return rc;
}

/* Waits for all descriptors. The last test is made at the deadline or later, so
 * an event that came before the deadline is found even if the thread did not
 * run then. */
static int poll_all(struct polling *p, int timeout)
{
	uint64_t now = vb_clock_read(), spun = now + spin;
	uint64_t deadline = deadline_of(timeout);
	int ready, rc = glance(p);

	for (; rc == 0; now = vb_clock_read()) {
		ready = copy_others(p) + look_at_socks(p);
		if (ready || now >= deadline)
			return ready;
		rc = now < spun ? glance(p) : sleep_once(p, deadline);
	}
	return rc;
}

RS_EXPORT int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct polling p = { .count = nfds, .asked = fds };
	int rc = gather(&p);

	if (rc == 0)
		rc = poll_all(&p, timeout);
	wait_release(&p);
	return rc < 0 ? rs_fail(-rc) : rc;
}

RS_EXPORT int rselect(int nfds, fd_set *readfds, fd_set *writefds,
		      fd_set *exceptfds, struct timeval *timeout)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t count;

	if (nfds < 0 || nfds > FD_SETSIZE)
		return rs_fail(EINVAL);
	count = rs_from_fdsets(nfds, readfds, writefds, exceptfds, fds);
	if (rpoll(fds, count, rs_select_timeout(timeout)) < 0)
		return -1;
	return rs_to_fdsets(fds, count, readfds, writefds, exceptfds);
}

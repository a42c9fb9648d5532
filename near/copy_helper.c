/* SPDX-License-Identifier: BSD-2-Clause */
/* The second hand. */
#include "core/lock_order.h"
#include "near/copy_helper.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/bell.h"
#include "base/clock.h"
#include "base/sync.h"
#include "core/types.h"

#define WORTH_IT  (512u * 1024) /* less is in the caches of one processor */
#define LAST	  256u		/* bytes that go when all others are there */
#define STREAK	  8 /* large copies, each close behind the last... */
#define CLOSE	  (300 * VB_USEC)
#define LINGER	  (100 * VB_USEC)
#define LOOKS	  64
#define ALONE	  (3 * VB_USEC) /* a yield to nobody takes less */
#define IS_SLOW	  (100 * VB_USEC)
#define AWAY	  (4 * VB_MSEC)
#define AWAY_MOST (1 * VB_SEC)
#define MANY	  2000 /* parts between disturbances: they are rare */

/*
 * The kernel finds a part's pages first, then copies. Two that find pages of
 * the same 2 MiB take turns at one lock, for each page, which costs more than
 * half of what was won. So one begins when the other is through with that.
 */
#define FINDS_PAGE 80 /* ns */

enum helper_state {
	HELPER_ASLEEP,
	HELPER_READY,
	HELPER_OFFERED, /* either may still take the part */
	HELPER_TAKEN,
	HELPER_DONE,
};

struct vb_copy_helper {
	_Atomic uint32_t state;
	/* the part, for who has taken it */
	struct vb_copy part __attribute__((aligned(64)));
	struct iovec list[VB_MAX_SGE];
	_Atomic vb_time begin_at;
	bool whole; /* it was copied */

	struct vb_bell bell __attribute__((aligned(64)));
	_Atomic bool stop;
	_Atomic vb_time away_until;
	_Atomic uint64_t parts;
	/* its own */
	vb_time away;
	uint64_t parts_before;

	struct vb_mutex lock; /* of who is helped: trylock only */
	/* lock */
	bool started;
	pthread_t thread;
	unsigned streak;
	vb_time last;
};

static bool near_copy_helper_copy(const struct vb_copy *c)
{
	struct iovec there = { (void *)(uintptr_t)c->far, c->len };
	ssize_t n = vb_permit_copy(&c->permit, c->pid, c->put, c->near,
				   c->count, &there, 1);

	return n >= 0 && (uint64_t)n == c->len;
}

/* @len bytes of @c from @from on; their list is put into @list. */
static struct vb_copy cut(const struct vb_copy *c, uint64_t from, uint64_t len,
			  struct iovec list[VB_MAX_SGE])
{
	struct vb_copy part = *c;
	uint64_t skip = from, left = len;

	part.near = list;
	part.count = 0;
	part.far = c->far + from;
	part.len = len;
	for (unsigned i = 0; i < c->count && left; i++) {
		uint64_t has = c->near[i].iov_len, take;

		if (skip >= has) {
			skip -= has;
			continue;
		}
		take = VB_MIN(left, has - skip);
		list[part.count++] =
			(struct iovec){ (char *)c->near[i].iov_base + skip,
					take };
		left -= take;
		skip = 0;
	}
	return part;
}

/*
 * The thread.
 */

static bool move_state(struct vb_copy_helper *h, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong(&h->state, &from, to);
}

static bool is_offered(struct vb_copy_helper *h)
{
	return atomic_load_explicit(&h->state, memory_order_acquire) ==
	       HELPER_OFFERED;
}

/* False: there was nothing, or it was taken back. */
static bool lend(struct vb_copy_helper *h)
{
	if (!is_offered(h))
		return false;
	while (is_offered(h) && vb_clock_read() < atomic_load(&h->begin_at))
		;
	if (!move_state(h, HELPER_OFFERED, HELPER_TAKEN))
		return false;
	h->whole = near_copy_helper_copy(&h->part);
	atomic_fetch_add_explicit(&h->parts, 1, memory_order_relaxed);
	atomic_store_explicit(&h->state, HELPER_DONE, memory_order_release);
	return true;
}

static void near_copy_helper_stay_away(struct vb_copy_helper *h)
{
	uint64_t parts = atomic_load_explicit(&h->parts, memory_order_relaxed);

	h->away = parts - h->parts_before >= MANY
			  ? AWAY
			  : VB_MIN(VB_MAX(2 * h->away, AWAY), AWAY_MOST);
	h->parts_before = parts;
	atomic_store(&h->away_until, vb_clock_read() + h->away);
}

static bool near_yield_alone(void)
{
	vb_time then = vb_clock_read();

	sched_yield();
	return vb_clock_read() - then < ALONE;
}

/* Until nothing has come for a while, or somebody wants the processor. */
static void stand_by(struct vb_copy_helper *h)
{
	vb_time until = vb_clock_read() + LINGER;

	while (!atomic_load(&h->stop) && vb_clock_read() < until) {
		/* Twice: an interrupt is not somebody. */
		if (!near_yield_alone() && !near_yield_alone()) {
			near_copy_helper_stay_away(h);
			return;
		}
		for (unsigned i = 0; i < LOOKS; i++)
			if (lend(h))
				until = vb_clock_read() + LINGER;
	}
}

static void *helper_main(void *arg)
{
	struct vb_copy_helper *h = arg;

	prctl(PR_SET_NAME, "verbena-hand");
	while (!atomic_load(&h->stop)) {
		atomic_store(&h->state, HELPER_READY);
		stand_by(h);
		/* What was offered meanwhile is taken back by who did. */
		while (!move_state(h, HELPER_READY, HELPER_ASLEEP))
			if (!lend(h))
				sched_yield();
		vb_bell_set(&h->bell);
		if (!atomic_load(&h->stop))
			(void)!vb_bell_wait(&h->bell);
	}
	return NULL;
}

/* What the program asked for its own threads is not for this one. */
static int start_helper(struct vb_copy_helper *h)
{
	struct sched_param param = { 0 };
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &param);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&h->thread, &attr, helper_main, h);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

/*
 * Who is helped.
 */

/* Where the caller may run and does not. */
static bool find_elsewhere(cpu_set_t *set)
{
	int cpu = sched_getcpu();

	if (cpu < 0 || sched_getaffinity(0, sizeof(*set), set) != 0)
		return false;
	CPU_CLR(cpu, set);
	return CPU_COUNT(set) > 0;
}

static void near_call(struct vb_copy_helper *h)
{
	cpu_set_t set;

	if (!find_elsewhere(&set))
		return;
	if (!h->started)
		h->started = start_helper(h) == 0;
	if (!h->started)
		return;
	(void)pthread_setaffinity_np(h->thread, sizeof(set), &set);
	vb_bell_ring(&h->bell);
}

/* Large copies follow each other: is it there? Else it is called. */
static bool helps(struct vb_copy_helper *h)
{
	vb_time now = vb_clock_read();

	h->streak = now - h->last < CLOSE ? h->streak + 1 : 0;
	if (atomic_load(&h->state) == HELPER_READY)
		return true;
	if (h->streak >= STREAK && now >= atomic_load(&h->away_until))
		near_call(h);
	return false;
}

/* False: it has just gone to sleep. */
static bool offer(struct vb_copy_helper *h, const struct vb_copy *c,
		  uint64_t from, uint64_t len)
{
	h->part = cut(c, from, len, h->list);
	atomic_store(&h->begin_at, vb_clock_read() + from / 4096 * FINDS_PAGE);
	return move_state(h, HELPER_READY, HELPER_OFFERED);
}

static bool is_done(struct vb_copy_helper *h)
{
	return atomic_load_explicit(&h->state, memory_order_acquire) ==
	       HELPER_DONE;
}

/* It has its part in hand, and something may have taken the processor from it:
 * it may want ours. */
static void near_await(struct vb_copy_helper *h)
{
	static const struct timespec moment = { .tv_nsec = 20000 };
	vb_time then = vb_clock_read();

	while (!is_done(h) && vb_clock_read() - then < IS_SLOW)
		;
	if (is_done(h))
		return;
	atomic_store(&h->away_until, vb_clock_read() + AWAY);
	/* A yield is no way out where we are of a higher priority. */
	while (!is_done(h))
		(void)nanosleep(&moment, NULL);
}

/* Was the part copied in whole? One that was not taken is ours. */
static bool near_take_back(struct vb_copy_helper *h, bool offered)
{
	bool whole;

	if (!offered || move_state(h, HELPER_OFFERED, HELPER_READY))
		return near_copy_helper_copy(&h->part);
	near_await(h);
	whole = h->whole;
	atomic_store(&h->state, HELPER_READY);
	return whole;
}

static bool copy_together(struct vb_copy_helper *h, const struct vb_copy *c)
{
	/* It begins later. */
	uint64_t first = c->len / 16 * 9, second = c->len - LAST - first;
	struct iovec list[VB_MAX_SGE];
	struct vb_copy part = cut(c, 0, first, list);
	bool offered = offer(h, c, first, second);
	bool whole = near_copy_helper_copy(&part);

	whole &= near_take_back(h, offered);
	part = cut(c, first + second, LAST, list);
	return whole && near_copy_helper_copy(&part);
}

bool vb_copy_helper_copy(struct vb_copy_helper *h, const struct vb_copy *c)
{
	bool whole;

	if (c->len < WORTH_IT || !vb_mutex_trylock(&h->lock))
		return false;
	whole = helps(h) && copy_together(h, c);
	h->last = vb_clock_read();
	vb_mutex_unlock(&h->lock);
	return whole;
}

struct vb_copy_helper *vb_copy_helper_create(void)
{
	struct vb_copy_helper *h = aligned_alloc(64, sizeof(*h));

	if (!h)
		return NULL;
	memset(h, 0, sizeof(*h));
	vb_mutex_init(&h->lock, RANK_COPY_HELPER);
	return h;
}

void vb_copy_helper_destroy(struct vb_copy_helper *h)
{
	if (h->started) {
		atomic_store(&h->stop, true);
		vb_bell_wake(&h->bell);
		pthread_join(h->thread, NULL);
	}
	vb_mutex_fini(&h->lock);
	free(h);
}

uint64_t vb_copy_helper_parts(const struct vb_copy_helper *h)
{
	return atomic_load(&h->parts);
}

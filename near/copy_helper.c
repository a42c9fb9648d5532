/* SPDX-License-Identifier: BSD-2-Clause */
/* The copy helper: a thread that copies a part of large copies
 * (near/copy_helper.h). */
#include "core/lock_order.h"
#include "near/copy_helper.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/bell.h"
#include "base/clock.h"
#include "base/sync.h"
#include "base/thread.h"
#include "core/types.h"

/* bytes; a shorter copy is not split, because it fits the caches of one
 * processor */
#define WORTH_IT (512u * 1024)
/* The caller's part of a split copy, in sixteenths: the helper begins later. */
#define CALLERS_16THS 9
/* Bytes at the end of the message, which are copied after all others. */
#define LAST 256u
/* Large copies in quick succession after which the helper starts. */
#define STREAK 8
#define CLOSE  (300 * VB_USEC)
#define LINGER (100 * VB_USEC)
#define LOOKS  64
/* a sched_yield() that takes less than this found no other thread to run */
#define ALONE	  (3 * VB_USEC)
#define IS_SLOW	  (100 * VB_USEC)
#define AWAY	  (4 * VB_MSEC)
#define AWAY_MOST (1 * VB_SEC)
/* If the helper has copied this many parts before another thread disturbed it,
 * disturbances are rare: the next pause is the shortest again. */
#define MANY 2000

/*
 * Time to look up the pages of a part. The kernel first looks up the pages,
 * then copies. Two threads that look up pages of one 2 MiB range contend for
 * one lock at each page, which costs more than half of the time that was
 * gained. So the helper begins when the caller's lookups are over.
 */
#define FINDS_PAGE 80 /* nanoseconds for each page */

enum helper_state {
	HELPER_ASLEEP,
	HELPER_READY,
	/* the helper may begin to copy the part, and the caller may withdraw
	 * it */
	HELPER_OFFERED,
	HELPER_TAKEN,
	HELPER_DONE,
};

struct vb_copy_helper {
	_Atomic uint32_t state;
	/* The part that is offered to the helper's thread. */
	struct vb_copy part __attribute__((aligned(64)));
	struct iovec list[VB_MAX_SGE];
	_Atomic vb_time begin_at;
	bool whole; /* the helper has copied all bytes of its part */

	struct vb_bell bell __attribute__((aligned(64)));
	_Atomic bool stop;
	_Atomic vb_time away_until;
	_Atomic uint64_t parts;
	/* Fields that only the helper's thread uses. */
	vb_time away;
	uint64_t parts_before;

	/* a caller never waits for this lock, but only tries it */
	struct vb_mutex lock;
	/* The fields below are guarded by lock. */
	bool started;
	pthread_t thread;
	unsigned streak;
	vb_time last;
};

static bool near_copy_helper_copy(const struct vb_copy *c)
{
	struct iovec there = { (void *)(uintptr_t)c->remote, c->len };
	ssize_t n = vb_permit_copy(&c->permit, c->pid, c->put, c->local,
				   c->count, &there, 1);

	return n >= 0 && (uint64_t)n == c->len;
}

/* Returns the part of @c that has @len bytes from @from on. Its pieces are in
 * @list, which must outlive the result. */
static struct vb_copy cut(const struct vb_copy *c, uint64_t from, uint64_t len,
			  struct iovec list[VB_MAX_SGE])
{
	struct vb_copy part = *c;
	uint64_t skip = from, left = len;

	part.local = list;
	part.count = 0;
	part.remote = c->remote + from;
	part.len = len;
	for (unsigned i = 0; i < c->count && left; i++) {
		uint64_t has = c->local[i].iov_len, take;

		if (skip >= has) {
			skip -= has;
			continue;
		}
		take = VB_MIN(left, has - skip);
		list[part.count++] =
			(struct iovec){ (char *)c->local[i].iov_base + skip,
					take };
		left -= take;
		skip = 0;
	}
	return part;
}

/* Functions of the helper's thread. */

static bool move_state(struct vb_copy_helper *h, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong(&h->state, &from, to);
}

static bool is_offered(struct vb_copy_helper *h)
{
	return atomic_load_explicit(&h->state, memory_order_acquire) ==
	       HELPER_OFFERED;
}

/* Copy the offered part. False: no part was offered, or the caller has
 * withdrawn it. */
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

/* Poll for parts until none has come for a while, or until another thread wants
 * the processor. */
static void stand_by(struct vb_copy_helper *h)
{
	vb_time until = vb_clock_read() + LINGER;

	while (!atomic_load(&h->stop) && vb_clock_read() < until) {
		/* Two slow yields in a row mean that another thread runs; a
		 * single one may have been an interrupt. */
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
		/* A caller may have offered a part meanwhile: copy the part,
		 * unless the caller withdraws it. */
		while (!move_state(h, HELPER_READY, HELPER_ASLEEP))
			if (!lend(h))
				sched_yield();
		vb_bell_set(&h->bell);
		if (!atomic_load(&h->stop))
			(void)!vb_bell_wait(&h->bell);
	}
	return NULL;
}

/* Start the helper's thread. It gets default scheduling and blocks all signals,
 * because the settings of the program's own threads do not suit it. */
static int start_helper(struct vb_copy_helper *h)
{
	struct sched_param param = { 0 };
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &param);
	rc = vb_thread_start(&h->thread, &attr, helper_main, h);
	pthread_attr_destroy(&attr);
	return rc;
}

/* Functions of the thread that calls for help. */

/* Find the processors on which the caller may run, without the present one.
 * False: there are no others. */
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

/* Is the helper ready? If not, start or wake it once large copies come in quick
 * succession. */
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

/* Offer a part of @c to the helper. False: the helper has just gone to
 * sleep. */
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

/* Wait until the helper has copied its part. If the wait is long, another
 * thread may use the helper's processor, and the helper may need this thread's
 * processor, so this thread then sleeps instead of polling. */
static void near_await(struct vb_copy_helper *h)
{
	static const struct timespec moment = { .tv_nsec = 20000 };
	vb_time then = vb_clock_read();

	while (!is_done(h) && vb_clock_read() - then < IS_SLOW)
		;
	if (is_done(h))
		return;
	atomic_store(&h->away_until, vb_clock_read() + AWAY);
	/* Not sched_yield(): with this thread at a higher priority, the helper
	 * would not run. */
	while (!is_done(h))
		(void)nanosleep(&moment, NULL);
}

/* Returns whether the offered part was copied whole. If the helper has not
 * begun the part, this thread copies it. */
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
	uint64_t first = c->len / 16 * CALLERS_16THS, second = c->len - LAST - first;
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

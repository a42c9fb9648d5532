/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/clock.h"

#include <stdatomic.h>
#include <time.h>

/* The wall clock (CLOCK_REALTIME) and the monotonic clock run at the same rate.
 * So if the difference between them has changed by more than the time that
 * reading them takes, the wall clock was set. This file ignores a change
 * smaller than SLACK. */
#define SLACK (10 * VB_USEC)
/* longest time between the two readings of the monotonic clock in a good
 * sample */
#define CLOSE VB_USEC
#define TRIES 8

static vb_time read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (vb_time)t.tv_sec * VB_SEC + (vb_time)t.tv_nsec;
}

vb_time vb_clock_read(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

static struct vb_clock_sample take_sample(void)
{
	struct vb_clock_sample s;

	s.before = vb_clock_read();
	s.wall = read_clock(CLOCK_REALTIME);
	s.behind = vb_clock_read();
	return s;
}

/* Returns the best of several samples, because an interrupt between the two
 * readings makes a sample inexact. */
static struct vb_clock_sample take_good_sample(void)
{
	struct vb_clock_sample best = take_sample(), s;

	for (int i = 1; i < TRIES && best.behind - best.before > CLOSE; i++) {
		s = take_sample();
		if (s.behind - s.before < best.behind - best.before)
			best = s;
	}
	return best;
}

int64_t vb_clock_ahead(int64_t kept, const struct vb_clock_sample *s)
{
	int64_t least = (int64_t)(s->wall - s->behind);
	int64_t most = (int64_t)(s->wall - s->before);

	if (kept && kept >= least - (int64_t)SLACK &&
	    kept <= most + (int64_t)SLACK)
		return kept;
	return least + (most - least) / 2;
}

vb_time vb_clock_wall(vb_time at)
{
	/* how far the wall clock is ahead of the monotonic one; 0: not known
	 * yet */
	static _Atomic int64_t ahead;
	int64_t kept = atomic_load_explicit(&ahead, memory_order_relaxed);
	struct vb_clock_sample s = take_sample();
	int64_t now = vb_clock_ahead(kept, &s);

	if (VB_LIKELY(now == kept))
		return at + (uint64_t)kept;
	s = take_good_sample();
	now = vb_clock_ahead(kept, &s);
	/* If several threads notice a change of the wall clock, the first one's
	 * value counts for all. */
	if (atomic_compare_exchange_strong(&ahead, &kept, now))
		kept = now;
	return at + (uint64_t)kept;
}

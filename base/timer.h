/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A heap of deadlines, in a time that the caller supplies. The heap has no
 * lock: its owner's lock guards it. Each struct vb_timer is a member of the
 * object that needs the timer.
 */
#ifndef BASE_TIMER_H
#define BASE_TIMER_H

#include "base/defs.h"

struct vb_timer {
	vb_time at; /* the deadline; VB_NEVER: the timer is not queued */
	/* position in the heap, valid while the timer is queued */
	uint32_t pos;
};

struct vb_timers {
	struct vb_timer **heap;
	uint32_t used, room;
};

void vb_timers_init(struct vb_timers *ts);
void vb_timers_fini(struct vb_timers *ts);
void vb_timer_init(struct vb_timer *t);

/* Make room for @count timers in all: as long as no more are queued,
 * vb_timer_set() does not fail. 0; -ENOMEM. */
VB_MUST_CHECK int vb_timers_reserve(struct vb_timers *ts, uint32_t count);

/* Queue @t for the time @at, or change its deadline to @at. 0; -ENOMEM: @t is
 * not queued. */
VB_MUST_CHECK int vb_timer_set(struct vb_timers *ts, struct vb_timer *t,
			       vb_time at);
void vb_timer_cancel(struct vb_timers *ts, struct vb_timer *t);

/* Returns the earliest deadline; VB_NEVER: no timer is queued. */
vb_time vb_timers_next(const struct vb_timers *ts);

/* Remove and return one timer that has expired; NULL when no timer has. */
struct vb_timer *vb_timers_pop(struct vb_timers *ts, vb_time now);

#endif

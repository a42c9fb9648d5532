/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A heap of deadlines, in a time that the caller supplies. It has no lock: the
 * owner's lock guards it. Each struct vb_timer is a member of the object that
 * it is for.
 */
#ifndef BASE_TIMER_H
#define BASE_TIMER_H

#include "base/defs.h"

struct vb_timer {
	vb_time at;   /* VB_NEVER: not queued */
	uint32_t pos; /* place in the heap, when queued */
};

struct vb_timers {
	struct vb_timer **heap;
	uint32_t used, room;
};

void vb_timers_init(struct vb_timers *ts);
void vb_timers_fini(struct vb_timers *ts);
void vb_timer_init(struct vb_timer *t);

/* Make room for @count timers in all: vb_timer_set() does not fail while no
 * more are queued. 0; -ENOMEM. */
VB_MUST_CHECK int vb_timers_reserve(struct vb_timers *ts, uint32_t count);

/* Queue @t for the time @at, or move it there. 0; -ENOMEM: @t is not queued. */
VB_MUST_CHECK int vb_timer_set(struct vb_timers *ts, struct vb_timer *t,
			       vb_time at);
void vb_timer_cancel(struct vb_timers *ts, struct vb_timer *t);

/* Returns the earliest deadline; VB_NEVER: no timer is queued. */
vb_time vb_timers_next(const struct vb_timers *ts);

/* Remove and return one timer whose time has come; NULL when there is none. */
struct vb_timer *vb_timers_pop(struct vb_timers *ts, vb_time now);

#endif

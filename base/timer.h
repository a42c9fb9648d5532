/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A heap of deadlines over a time that the caller supplies. Not locked: the
 * owner's lock protects it. Nodes live in the objects they wake.
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

/* Queue @t for @at, or move it there. -ENOMEM leaves it unqueued. */
VB_MUST_CHECK int vb_timer_set(struct vb_timers *ts, struct vb_timer *t,
			       vb_time at);
void vb_timer_cancel(struct vb_timers *ts, struct vb_timer *t);

/* The earliest deadline, or VB_NEVER. */
vb_time vb_timers_next(const struct vb_timers *ts);

/* Take out one timer whose time has come; NULL when none has. */
struct vb_timer *vb_timers_pop(struct vb_timers *ts, vb_time now);

#endif

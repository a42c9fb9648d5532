/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures how long something lasts, for a thread that checks it from time to
 * time. Between two checks the whole machine or the whole process may have been
 * stopped (by a debugger, or because the machine is overloaded), so that
 * nothing could make progress. So the time between two checks counts for at
 * most VB_AGE_STEP.
 */
#ifndef BASE_AGE_H
#define BASE_AGE_H

#include "base/defs.h"

/* the time between two checks counts for at most this long */
#define VB_AGE_STEP (10 * VB_MSEC)

/* State of one measurement. All zero: vb_age_look() was not called yet. */
struct vb_age {
	vb_time seen, sum;
};

/* Check at the time @now, in nanoseconds. Returns the time that has passed
 * since the first check, counted as above; the first check returns 0. */
static inline vb_time vb_age_look(struct vb_age *a, vb_time now)
{
	if (a->seen && now > a->seen)
		a->sum += VB_MIN(now - a->seen, VB_AGE_STEP);
	a->seen = VB_MAX(a->seen, now);
	return a->sum;
}

#endif

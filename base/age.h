/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long something lasts, for a thread that looks from time to time. Between
 * two looks the thread itself may have been stopped (a debugger, a full
 * machine), and then the others had no time either. So a long time between two
 * looks counts as a short one.
 */
#ifndef BASE_AGE_H
#define BASE_AGE_H

#include "base/defs.h"

/* the most that the time between two looks counts for */
#define VB_AGE_STEP (10 * VB_MSEC)

/* All zero: nobody has looked yet. */
struct vb_age {
	vb_time seen, sum;
};

/* Look at the time @now, in nanoseconds. Returns how long it has lasted since
 * the first look, at which this function returns 0. */
static inline vb_time vb_age_look(struct vb_age *a, vb_time now)
{
	if (a->seen && now > a->seen)
		a->sum += VB_MIN(now - a->seen, VB_AGE_STEP);
	a->seen = VB_MAX(a->seen, now);
	return a->sum;
}

#endif

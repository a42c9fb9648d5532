/* SPDX-License-Identifier: BSD-2-Clause */
/* The one clock of this project: nanoseconds that never go back. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/defs.h"

vb_time vb_clock_read(void);

/* The moment @at of vb_clock_read() by the wall clock: nanoseconds since 1970.
 * What is between two moments is between these, too, unless somebody has set
 * the wall clock meanwhile. Any thread. */
vb_time vb_clock_wall(vb_time at);

/* A reading of the wall clock between two of ours. */
struct vb_clock_sample {
	vb_time before, wall, behind;
};
/* How far ahead the wall clock is: @kept (0: nothing is known yet) as long as
 * the sample allows it, and else what the sample says. */
int64_t vb_clock_ahead(int64_t kept, const struct vb_clock_sample *s);

#endif

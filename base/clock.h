/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the monotonic clock in nanoseconds, and converts its times to the wall
 * clock. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/defs.h"

vb_time vb_clock_read(void);

/* Convert @at, a time of vb_clock_read(), to the wall clock: nanoseconds since
 * 1970. Distances between two times stay the same, unless the wall clock was
 * set meanwhile. Any thread. */
vb_time vb_clock_wall(vb_time at);

/* A reading of the wall clock (@wall), between two readings of the monotonic
 * clock (@before, @behind). */
struct vb_clock_sample {
	vb_time before, wall, behind;
};
/* Returns how far the wall clock is ahead of the monotonic one: @kept (0: not
 * known yet) while the sample agrees with @kept, otherwise the difference in
 * the sample. */
int64_t vb_clock_ahead(int64_t kept, const struct vb_clock_sample *s);

#endif

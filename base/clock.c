/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/clock.h"

#include <time.h>

vb_time vb_clock_read(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (vb_time)t.tv_sec * VB_SEC + (vb_time)t.tv_nsec;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The clock that everything runs by; only the engine reads it. */
#include "engine/engine.h"

#include <time.h>

vb_time vb_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (vb_time)ts.tv_sec * VB_SEC + (vb_time)ts.tv_nsec;
}

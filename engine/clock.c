/* SPDX-License-Identifier: BSD-2-Clause */
/* The clock that everything runs by; only the engine reads it. */
#include "base/clock.h"
#include "engine/engine.h"

vb_time vb_now(void)
{
	return vb_clock_read();
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The one clock of this project: nanoseconds that never go back. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/defs.h"

vb_time vb_clock_read(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers that a peer cannot guess. Aborts the program when the kernel
 * returns none. Keeps errno; any thread may call. */
#ifndef BASE_RAND_H
#define BASE_RAND_H

#include "base/defs.h"

uint32_t vb_rand32(void);

#endif

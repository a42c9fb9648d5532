/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that a peer cannot guess (getrandom). */
#ifndef BASE_RAND_H
#define BASE_RAND_H

#include "base/defs.h"

uint32_t vb_rand32(void);

#endif

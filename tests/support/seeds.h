/* SPDX-License-Identifier: BSD-2-Clause */
/* How many of its seeds a long test plays: all, or in `make check` a part. */
#ifndef TESTS_SUPPORT_SEEDS_H
#define TESTS_SUPPORT_SEEDS_H

#include <stdlib.h>
#include <string.h>

/* Returns 1, or 4 in `make check`, which sets VERBENA_QUICK (scripts/check.sh).
 * A test divides its number of seeds by this, or multiplies the distance
 * between two steps that it plays. */
static inline unsigned seeds_divisor(void)
{
	const char *quick = getenv("VERBENA_QUICK");

	return quick && strcmp(quick, "no") != 0 ? 4 : 1;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends a test at a failed condition and prints it; otherwise the test would
 * fail far from the cause. */
#ifndef TESTS_SUPPORT_MUST_H
#define TESTS_SUPPORT_MUST_H

#include <stdio.h>
#include <stdlib.h>

#define MUST(what)                                                             \
	do {                                                                   \
		if (!(what)) {                                                 \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,     \
				#what);                                        \
			abort();                                               \
		}                                                              \
	} while (0)

#endif

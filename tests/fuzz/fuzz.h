/* SPDX-License-Identifier: BSD-2-Clause */
/* One mouth to feed: libFuzzer's entry, also called by mutate.c. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "base/defs.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* A property that must hold for every input; not removed by NDEBUG. */
static inline void must(bool held, const char *what)
{
	if (!held) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

#define MUST(property) must(property, #property)

#endif

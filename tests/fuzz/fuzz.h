/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface of a fuzz target: libFuzzer's entry, which mutate.c calls as
 * well. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "base/defs.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Aborts unless a property holds that every input must have; not removed by
 * NDEBUG. */
static inline void must(bool held, const char *what)
{
	if (!held) {
		fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}

#define MUST(property) must(property, #property)

#endif

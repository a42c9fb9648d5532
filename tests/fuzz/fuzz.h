/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface of a fuzz target: libFuzzer's entry, which mutate.c calls as
 * well. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "base/defs.h"
#include "tests/support/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#endif

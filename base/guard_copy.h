/* SPDX-License-Identifier: BSD-2-Clause */
/* The function that guard.c, which handles the signals, calls after a fault. */
#ifndef BASE_GUARD_COPY_H
#define BASE_GUARD_COPY_H

#include <stdbool.h>

/*
 * A fault came with the signal context @context. If a guarded routine raised
 * the fault, make that routine return its error, and return true (or do not
 * return at all). Async-signal-safe.
 */
bool vb_guard_resume(void *context);

#endif

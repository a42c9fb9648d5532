/* SPDX-License-Identifier: BSD-2-Clause */
/* What guard.c, which handles the signals, asks of the guarded routines. */
#ifndef BASE_GUARD_COPY_H
#define BASE_GUARD_COPY_H

#include <stdbool.h>

/*
 * A fault came with the signal context @context. If it was raised inside a
 * guarded routine, make that routine return its error, and return true (or do
 * not return at all). Async-signal-safe.
 */
bool vb_guard_resume(void *context);

#endif

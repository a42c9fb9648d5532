/* SPDX-License-Identifier: BSD-2-Clause */
/* Between guard.c, which owns the signals, and the routines they interrupt. */
#ifndef BASE_GUARD_COPY_H
#define BASE_GUARD_COPY_H

#include <stdbool.h>

/*
 * A fault came with this signal context. When it was raised inside a guarded
 * routine: make that routine return its error, and say true (or do not come
 * back at all). Async-signal-safe.
 */
bool vb_guard_resume(void *context);

#endif

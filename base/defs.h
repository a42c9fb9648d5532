/* SPDX-License-Identifier: BSD-2-Clause */
/* Macros of general use, and the type vb_time. */
#ifndef BASE_DEFS_H
#define BASE_DEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VB_LIKELY(x)	__builtin_expect(!!(x), 1)
#define VB_UNLIKELY(x)	__builtin_expect(!!(x), 0)
#define VB_MUST_CHECK	__attribute__((warn_unused_result))
#define VB_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define VB_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define VB_CONTAINER_OF(ptr, type, member)                                     \
	((type *)((char *)(ptr)-offsetof(type, member)))
#define VB_MIN(a, b) ((a) < (b) ? (a) : (b))
#define VB_MAX(a, b) ((a) > (b) ? (a) : (b))

/* A time in nanoseconds of the monotonic clock. Functions that need the present
 * time get it as an argument. */
typedef uint64_t vb_time;
#define VB_NEVER UINT64_MAX
#define VB_USEC	 ((vb_time)1000)
#define VB_MSEC	 ((vb_time)1000000)
#define VB_SEC	 ((vb_time)1000000000)

#endif

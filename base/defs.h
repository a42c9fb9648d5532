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
#define VB_JOIN(a, b)	  VB_JOIN_NOW(a, b)
#define VB_JOIN_NOW(a, b) a##b

/* The smaller and the larger of two values, in the type that "?:" gives them.
 * Each argument is evaluated once: it may be a call that changes something. */
#define VB_MIN(a, b) VB_PICK(<, a, b, __COUNTER__)
#define VB_MAX(a, b) VB_PICK(>, a, b, __COUNTER__)
#define VB_PICK(than, a, b, n)                                                 \
	VB_PICK_NAMED(than, a, b, VB_JOIN(pick_a_, n), VB_JOIN(pick_b_, n))
/* VB_PICK() passes variable names @a_ and @b_ that no other use of the macro
 * has, so that the variables of a VB_MIN() within another one do not hide those
 * of the outer one. */
#define VB_PICK_NAMED(than, a, b, a_, b_)                                      \
	__extension__({                                                        \
		__typeof__(1 ? (a) : (b)) a_ = (a), b_ = (b);                  \
		a_ than b_ ? a_ : b_;                                          \
	})
/* The larger of two constants, where C wants a constant. */
#define VB_MAX_CONST(a, b) ((a) > (b) ? (a) : (b))

/* A time in nanoseconds of the monotonic clock. Functions that need the present
 * time get it as an argument. */
typedef uint64_t vb_time;
#define VB_NEVER UINT64_MAX
#define VB_USEC	 ((vb_time)1000)
#define VB_MSEC	 ((vb_time)1000000)
#define VB_SEC	 ((vb_time)1000000000)

#endif

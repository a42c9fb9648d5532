/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells a program's MemorySanitizer, or valgrind, which memory the library or
 * another program has written, since these tools do not see it. The sanitizer's
 * function is weak: without a sanitizer in the program it is NULL.
 */
#ifndef BASE_TOOLS_H
#define BASE_TOOLS_H

#include <stddef.h>

#include "base/defs.h"

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE(at, len) ((void)0)
#define RUNNING_ON_VALGRIND				  0
#endif

/* Longer regions, of which most is not mapped, are left alone. */
#define VB_TOOLS_MOST ((size_t)1 << 40)

void __msan_unpoison(const volatile void *at, size_t len) __attribute__((weak));

/* Does valgrind run this program? It warns of each system call that it does not
 * know. */
static inline bool vb_tools_is_valgrind(void)
{
	return RUNNING_ON_VALGRIND != 0;
}

/* Tell MemorySanitizer that the library has written @len bytes at @at. */
static inline void vb_tools_wrote(const void *at, size_t len)
{
	if (VB_UNLIKELY(__msan_unpoison != NULL))
		__msan_unpoison(at, len);
}

/* Tell MemorySanitizer and valgrind that from now on other programs may write
 * the @len bytes at @at, without a call of this program: the bytes count as
 * initialized. */
static inline void vb_tools_lend(const void *at, size_t len)
{
	if (len >= VB_TOOLS_MOST)
		return;
	vb_tools_wrote(at, len);
	(void)VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE(at, len);
}

#endif

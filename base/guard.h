/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Touching memory that belongs to the program, and may not be there.
 *
 * These routines sit in a code range of their own. A SIGSEGV or SIGBUS raised
 * inside it turns into an error return; every other fault goes to the handler
 * the program had. Bytes are written in address order: a program that spins
 * on the last byte (or on an aligned word of up to 8 bytes) sees everything
 * before it, and an aligned copy of 1, 2, 4 or 8 bytes is one access.
 *
 * A thread that runs them must not block SIGSEGV or SIGBUS: the kernel ends
 * a program whose fault cannot be delivered.
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include "base/defs.h"

/* Put the handlers in place, or back in place when the program replaced
 * them. Cheap enough for each registration. Keeps errno. -errno. */
VB_MUST_CHECK int vb_guard_install(void);

/* Bytes not copied because a page was missing, or some more: 0 is success. */
VB_MUST_CHECK size_t vb_guard_copy(void *dst, const void *src, size_t len);

/* The same towards memory that nobody else looks at, in any order. */
VB_MUST_CHECK size_t vb_guard_fetch(void *dst, const void *src, size_t len);

/* 8-byte aligned; atomic towards the processors too. 0 or -EFAULT. */
VB_MUST_CHECK int vb_guard_cas64(uint64_t *at, uint64_t expect, uint64_t swap,
				 uint64_t *old);
VB_MUST_CHECK int vb_guard_add64(uint64_t *at, uint64_t add, uint64_t *old);

#endif

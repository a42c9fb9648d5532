/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies and atomic operations on the program's memory, any page of which may
 * be missing: the routines then return an error and the program is not killed.
 *
 * These routines occupy a code range of their own. A SIGSEGV or SIGBUS
 * raised inside this range becomes an error return; any other fault goes to the
 * handler that the program installed. A copy writes bytes in address order: a
 * program that spins on the last byte (or on an aligned word of up to 8 bytes)
 * sees everything before it, and an aligned copy of 1, 2, 4 or 8 bytes is one
 * access.
 *
 * A thread that calls these routines must not block SIGSEGV or SIGBUS: if the
 * thread faults while it blocks the signal, the kernel kills the program.
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include "base/defs.h"

/* Install the signal handlers, again if the program has replaced them. The call
 * costs little, so it is made at each registration of memory. Keeps errno. 0 or
 * -errno. */
VB_MUST_CHECK int vb_guard_install(void);

/* Copy @len bytes. Returns 0, or the number of bytes that were not copied
 * because a page is missing; this number may be too high. */
VB_MUST_CHECK size_t vb_guard_copy(void *dst, const void *src, size_t len);

/* Copy @len bytes into memory that no other thread reads meanwhile, since this
 * function writes them in any order. Returns what vb_guard_copy() returns. */
VB_MUST_CHECK size_t vb_guard_copy_in(void *dst, const void *src, size_t len);

/* Let the kernel supply each page of the @len bytes at @at, now and to this
 * thread: read one byte of each page, or with @write also prove that the page
 * can be written. No byte changes. False: a page is missing or protected. */
VB_MUST_CHECK bool vb_guard_touch(void *at, size_t len, bool write);

/* Compare and swap, or add, at an 8-byte aligned address. The operation is
 * atomic, also with respect to the program's own instructions. *@old is the
 * value before. 0 or -EFAULT. */
VB_MUST_CHECK int vb_guard_cas64(uint64_t *at, uint64_t expect, uint64_t swap,
				 uint64_t *old);
VB_MUST_CHECK int vb_guard_add64(uint64_t *at, uint64_t add, uint64_t *old);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes a guarded routine return its error after a fault: by the table in
 * guard_copy.S on processors that have assembly, by siglongjmp() on others.
 */
#include "base/guard_copy.h"

#include "base/guard.h"

#include <errno.h>
#include <setjmp.h>
#include <string.h>
#include <ucontext.h>

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(VB_GUARD_PORTABLE)

struct guard_range {
	uintptr_t begin, end; /* code range of a fault: begin <= pc < end */
	/* address where the thread continues after that fault */
	uintptr_t fixup;
};

extern const struct guard_range vb_guard_ranges[4]
	__attribute__((visibility("hidden")));

#ifdef __x86_64__
static uintptr_t context_pc(const ucontext_t *uc)
{
	return (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
}

static void set_context_pc(ucontext_t *uc, uintptr_t pc)
{
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
}
#else
static uintptr_t context_pc(const ucontext_t *uc)
{
	return uc->uc_mcontext.pc;
}

static void set_context_pc(ucontext_t *uc, uintptr_t pc)
{
	uc->uc_mcontext.pc = pc;
}
#endif

bool vb_guard_resume(void *context)
{
	uintptr_t pc = context_pc(context);

	for (size_t i = 0; i < VB_COUNT(vb_guard_ranges); i++) {
		const struct guard_range *r = &vb_guard_ranges[i];

		if (pc >= r->begin && pc < r->end) {
			set_context_pc(context, r->fixup);
			return true;
		}
	}
	return false;
}

#else

/* The point where this thread continues after a fault; NULL outside guarded
 * routines. The TLS model is initial-exec, because a signal handler must not
 * allocate. */
static _Thread_local sigjmp_buf *volatile way_out
	__attribute__((tls_model("initial-exec")));

bool vb_guard_resume(void *context)
{
	sigjmp_buf *to = way_out;

	if (!to)
		return false;
	way_out = NULL;
	/* The signal mask need not be restored, because guard.c has blocked
	 * nothing yet. */
	siglongjmp(*to, 1);
}

/* The fences keep the compiler from moving accesses out of the guarded code. */
static void enter(sigjmp_buf *out)
{
	way_out = out;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void leave(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	way_out = NULL;
}

/* The addresses come from a program, can be null, and can fault: keep the
 * undefined-behaviour sanitizer from complaining. */
#define ANY_ADDRESS __attribute__((no_sanitize("undefined")))

/* Store one naturally aligned piece of @bytes bytes at @dst; @src may be
 * unaligned. */
ANY_ADDRESS
static void store_piece(uint8_t *dst, const uint8_t *src, size_t bytes)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	/* Release: other threads must see the pieces in the order of their
	 * addresses. */
	switch (bytes) {
	case 8:
		memcpy(&v8, src, 8);
		__atomic_store_n((uint64_t *)dst, v8, __ATOMIC_RELEASE);
		break;
	case 4:
		memcpy(&v4, src, 4);
		__atomic_store_n((uint32_t *)dst, v4, __ATOMIC_RELEASE);
		break;
	case 2:
		memcpy(&v2, src, 2);
		__atomic_store_n((uint16_t *)dst, v2, __ATOMIC_RELEASE);
		break;
	default:
		__atomic_store_n(dst, *src, __ATOMIC_RELEASE);
	}
}

/* Returns the largest power of two that fits in @len and to which @address is
 * aligned. */
static size_t piece_bytes(uintptr_t address, size_t len)
{
	size_t bytes = 8;

	while (bytes > len || address & (bytes - 1))
		bytes /= 2;
	return bytes;
}

size_t vb_guard_copy(void *dst, const void *src, size_t len)
{
	/* Integers: a program's mistake can make an address 0, and arithmetic
	 * on a null pointer is undefined. */
	uintptr_t from = (uintptr_t)src, to = (uintptr_t)dst;
	volatile size_t left = len;
	sigjmp_buf out;

	if (sigsetjmp(out, 0))
		return left;
	enter(&out);
	while (left) {
		size_t done = len - left;
		size_t bytes = piece_bytes(to + done, left);

		store_piece((uint8_t *)(to + done),
			    (const uint8_t *)(from + done), bytes);
		left -= bytes;
	}
	leave();
	return 0;
}

size_t vb_guard_copy_in(void *dst, const void *src, size_t len)
{
	return vb_guard_copy(dst, src, len);
}

ANY_ADDRESS
int vb_guard_cas64(uint64_t *at, uint64_t expect, uint64_t swap, uint64_t *old)
{
	sigjmp_buf out;

	if (sigsetjmp(out, 0))
		return -EFAULT;
	enter(&out);
	__atomic_compare_exchange_n(at, &expect, swap, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	leave();
	*old = expect;
	return 0;
}

ANY_ADDRESS
int vb_guard_add64(uint64_t *at, uint64_t add, uint64_t *old)
{
	sigjmp_buf out;
	uint64_t was;

	if (sigsetjmp(out, 0))
		return -EFAULT;
	enter(&out);
	was = __atomic_fetch_add(at, add, __ATOMIC_SEQ_CST);
	leave();
	*old = was;
	return 0;
}

#endif

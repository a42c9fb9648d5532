/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets a thread sleep on a word, and other threads wake it, by futex(2). */
#include "base/bell.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/tools.h"

/* Linux has had this number on all architectures since 5.16; older headers do
 * not have it. */
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

#define WORD_OF_32_BITS 2 /* FUTEX_32, or FUTEX2_SIZE_U32 */

void vb_bell_set(struct vb_bell *b)
{
	atomic_store_explicit(&b->sleeps, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

void vb_bell_clear(struct vb_bell *b)
{
	atomic_store(&b->sleeps, 0);
}

/*
 * Wait for a cancellation signal that is on its way to this thread.
 * pthread_cancel() first marks the thread as cancelled, at any moment, and then
 * sends it a signal. If the signal arrives while the thread sleeps in a
 * cancellation point, glibc before 2.41 obeys the signal even if the thread has
 * disabled cancellation meanwhile; then the thread ends and never releases its
 * locks. A cancellation point waits for such a signal before it returns; poll()
 * with no descriptors is a cancellation point that does nothing else.
 */
static void await_cancellation_on_its_way(void)
{
	(void)poll(NULL, 0, 0);
}

/* The futex call has no timeout, because only a call without timeout is
 * restarted by the kernel after a signal exactly when a read(2) would be. The C
 * library does not treat the call as a cancellation point, so make the
 * cancellation type asynchronous meanwhile; this thread holds no lock. */
int vb_bell_wait(struct vb_bell *b)
{
	/* In thread-local storage and not on the stack: AddressSanitizer
	 * complains about the stack that a cancelled thread leaves behind. */
	static __thread int type;
	int rc;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	rc = syscall(SYS_futex, &b->sleeps, FUTEX_WAIT, 1, NULL, NULL, 0) < 0
		     ? -errno
		     : 0;
	pthread_setcanceltype(type, NULL);
	await_cancellation_on_its_way();
	return rc == -EINTR ? rc : 0;
}

void vb_bell_list(struct vb_bell_waiter *w, struct vb_bell *b)
{
	*w = (struct vb_bell_waiter){
		.expected = 1,
		.address = (uintptr_t)&b->sleeps,
		.flags = WORD_OF_32_BITS,
	};
}

/* As in vb_bell_wait(), the call has no timeout. */
int vb_bell_wait_any(struct vb_bell_waiter *list, unsigned count)
{
	static __thread int type;
	int rc;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	rc = syscall(SYS_futex_waitv, list, count, 0, NULL, 0) < 0 ? -errno : 0;
	pthread_setcanceltype(type, NULL);
	await_cancellation_on_its_way();
	return rc == -EINTR ? rc : 0;
}

bool vb_bell_can_wait_any(void)
{
	/* EINVAL shows that the kernel has futex_waitv(2): it refuses a call
	 * without waiters with EINVAL. An older kernel says ENOSYS. */
	return !vb_tools_is_valgrind() &&
	       syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0) < 0 &&
	       errno == EINVAL;
}

static void wake(struct vb_bell *b)
{
	(void)syscall(SYS_futex, &b->sleeps, FUTEX_WAKE, 1, NULL, NULL, 0);
}

bool vb_bell_ring(struct vb_bell *b)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&b->sleeps, memory_order_relaxed))
		return false;
	if (atomic_exchange(&b->sleeps, 0))
		wake(b);
	return true;
}

void vb_bell_wake(struct vb_bell *b)
{
	vb_bell_clear(b);
	wake(b);
}

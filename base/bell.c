/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeping on a word, and waking who sleeps. */
#include "base/bell.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

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
 * pthread_cancel() first notes that the thread is to be cancelled, as it may be
 * at any instruction, and then sends the signal for it. glibc before 2.41 heeds
 * that signal even when the thread has forbidden cancellation meanwhile, if it
 * comes while the thread sleeps in a cancellation point: with whatever lock it
 * holds there. Cancellation points themselves await such a signal before they
 * return. Here is one that does nothing else.
 */
static void await_cancellation_on_its_way(void)
{
	(void)poll(NULL, 0, 0);
}

/* No timeout: the kernel restarts it after a signal just when it would restart
 * a read(2). The C library does not know this call for a cancellation point;
 * nothing is held in it. */
int vb_bell_wait(struct vb_bell *b)
{
	/* Not on the stack, which a cancelled thread leaves without clearing
	 * up: AddressSanitizer takes that amiss. */
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

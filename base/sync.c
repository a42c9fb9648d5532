/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets a thread wait for a mutex that another thread holds, by futex(2). */
#include "base/sync.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* tries before the thread sleeps; most mutexes are held for less than a
 * microsecond */
#define TRIES	  100
#define MOMENT_NS 200000

static void base_sleep_by(struct vb_mutex *m)
{
	static const struct timespec moment = { .tv_nsec = MOMENT_NS };
	int before = errno;

	(void)syscall(SYS_futex, &m->word, FUTEX_WAIT_PRIVATE, VB_MUTEX_WANTED,
		      &moment, NULL, 0);
	errno = before;
}

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

static bool spin_for(struct vb_mutex *m)
{
	for (unsigned i = 0; i < TRIES; i++, pause_briefly())
		if (atomic_load_explicit(&m->word, memory_order_relaxed) ==
			    VB_MUTEX_FREE &&
		    vb_mutex_grab(m))
			return true;
	return false;
}

bool vb_mutex_wait_briefly(struct vb_mutex *m, unsigned naps)
{
	if (spin_for(m))
		return true;
	while (atomic_exchange_explicit(&m->word, VB_MUTEX_WANTED,
					memory_order_acquire) !=
	       VB_MUTEX_FREE) {
		if (naps-- == 0)
			return false;
		base_sleep_by(m);
	}
	return true;
}

void vb_mutex_wait(struct vb_mutex *m)
{
	if (spin_for(m))
		return;
	while (atomic_exchange_explicit(&m->word, VB_MUTEX_WANTED,
					memory_order_acquire) != VB_MUTEX_FREE)
		base_sleep_by(m);
}

void vb_mutex_wake(struct vb_mutex *m)
{
	int before = errno;

	atomic_store_explicit(&m->word, VB_MUTEX_FREE, memory_order_release);
	(void)syscall(SYS_futex, &m->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL,
		      0);
	errno = before;
}

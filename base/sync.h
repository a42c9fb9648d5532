/* SPDX-License-Identifier: BSD-2-Clause */
/* A mutex that clang's thread-safety analysis understands, and functions that
 * disable cancellation. */
#ifndef BASE_SYNC_H
#define BASE_SYNC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/defs.h"
#include "base/lock_rank.h"

/*
 * Annotations for clang's -Wthread-safety. VB_REQUIRES: the caller holds the
 * locks. VB_EXCLUDES: the function locks them, so the caller must not hold
 * them. VB_UNCHECKED: the analysis cannot follow the function; a comment says
 * why.
 */
#if defined(__clang__)
#define VB_CAPABILITY(x)    __attribute__((capability(x)))
#define VB_ACQUIRE(...)	    __attribute__((acquire_capability(__VA_ARGS__)))
#define VB_RELEASE(...)	    __attribute__((release_capability(__VA_ARGS__)))
#define VB_TRY_ACQUIRE(...) __attribute__((try_acquire_capability(__VA_ARGS__)))
#define VB_REQUIRES(...)    __attribute__((requires_capability(__VA_ARGS__)))
#define VB_EXCLUDES(...)    __attribute__((locks_excluded(__VA_ARGS__)))
#define VB_ASSERTS(x)	    __attribute__((assert_capability(x)))
#define VB_UNCHECKED	    __attribute__((no_thread_safety_analysis))
#else
#define VB_CAPABILITY(x)
#define VB_ACQUIRE(...)
#define VB_RELEASE(...)
#define VB_TRY_ACQUIRE(...)
#define VB_REQUIRES(...)
#define VB_EXCLUDES(...)
#define VB_ASSERTS(x)
#define VB_UNCHECKED
#endif

/*
 * Verbs are no cancellation points: a thread cancelled inside one would never
 * release its locks. Callers switch cancellation off around all code that holds
 * a lock and enters the kernel, and afterwards back to the value that
 * vb_cancel_off() returned.
 */
static inline int vb_cancel_off(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void vb_cancel_back(int before)
{
	pthread_setcancelstate(before, NULL);
}

/*
 * The C library's mutex uses a bus-locking instruction also to unlock, and a
 * function call for each operation: half of the time of an 8-byte message
 * between two programs. This mutex, to unlock, only checks whether a thread
 * sleeps, and then stores. A thread that goes to sleep between this check and
 * the store is not woken, and therefore sleeps for only 200 us at a time. All
 * zeros is a free mutex. Not recursive.
 */
struct VB_CAPABILITY("mutex") vb_mutex {
	_Atomic uint32_t word; /* state of the mutex, an enum vb_mutex_word */
#ifdef VB_LOCK_RANKS
	unsigned rank;
#endif
};

enum vb_mutex_word {
	VB_MUTEX_FREE,
	VB_MUTEX_HELD,
	/* the mutex is held, and a thread may be asleep waiting for it */
	VB_MUTEX_WANTED,
};

#ifdef VB_LOCK_RANKS
#define VB_MUTEX_INITIALIZER(rank)                                             \
	{                                                                      \
		VB_MUTEX_FREE, rank                                            \
	}
#define VB_MUTEX_RANK(m) ((m)->rank)
#else
#define VB_MUTEX_INITIALIZER(rank)                                             \
	{                                                                      \
		VB_MUTEX_FREE                                                  \
	}
#define VB_MUTEX_RANK(m) VB_RANK_LEAF
#endif

/* Functions of base/sync.c. */
void vb_mutex_wait(struct vb_mutex *m) VB_UNCHECKED;
bool vb_mutex_wait_briefly(struct vb_mutex *m, unsigned naps) VB_UNCHECKED;
void vb_mutex_wake(struct vb_mutex *m);

/* @rank: a value of core/lock_order.h, or VB_RANK_LEAF. */
static inline void vb_mutex_init(struct vb_mutex *m, unsigned rank)
{
	atomic_init(&m->word, VB_MUTEX_FREE);
#ifdef VB_LOCK_RANKS
	m->rank = rank;
#else
	(void)rank;
#endif
}

static inline void vb_mutex_fini(struct vb_mutex *m)
{
	(void)m;
}

/* Try once to lock @m; base/sync.c repeats this. */
static inline bool vb_mutex_grab(struct vb_mutex *m)
{
	uint32_t is_free = VB_MUTEX_FREE;

	return atomic_compare_exchange_strong_explicit(
		&m->word, &is_free, VB_MUTEX_HELD, memory_order_acquire,
		memory_order_relaxed);
}

static inline bool VB_UNCHECKED vb_mutex_trylock(struct vb_mutex *m)
	VB_TRY_ACQUIRE(true, m)
{
	if (!vb_mutex_grab(m))
		return false;
	vb_rank_take(m, VB_MUTEX_RANK(m), true);
	return true;
}

static inline void VB_UNCHECKED vb_mutex_lock(struct vb_mutex *m) VB_ACQUIRE(m)
{
	vb_rank_take(m, VB_MUTEX_RANK(m), false);
	if (VB_UNLIKELY(!vb_mutex_grab(m)))
		vb_mutex_wait(m);
}

/* Lock @m, unless another thread keeps it locked for longer than @naps times
 * 200 us, or @naps other threads lock it first. */
static inline bool VB_UNCHECKED vb_mutex_lock_briefly(struct vb_mutex *m,
						      unsigned naps)
	VB_TRY_ACQUIRE(true, m)
{
	vb_rank_take(m, VB_MUTEX_RANK(m), false);
	if (VB_LIKELY(vb_mutex_grab(m)) || vb_mutex_wait_briefly(m, naps))
		return true;
	vb_rank_give(m);
	return false;
}

/* Lock another mutex of a rank that the thread already holds. To avoid
 * deadlock, all threads lock such mutexes in the order of their addresses. */
static inline void VB_UNCHECKED vb_mutex_lock_next(struct vb_mutex *m)
	VB_ACQUIRE(m)
{
	vb_rank_take(m, VB_MUTEX_RANK(m), true);
	if (VB_UNLIKELY(!vb_mutex_grab(m)))
		vb_mutex_wait(m);
}

static inline void VB_UNCHECKED vb_mutex_unlock(struct vb_mutex *m)
	VB_RELEASE(m)
{
	vb_rank_give(m);
	if (VB_UNLIKELY(atomic_load_explicit(&m->word, memory_order_relaxed) !=
			VB_MUTEX_HELD))
		vb_mutex_wake(m);
	else
		atomic_store_explicit(&m->word, VB_MUTEX_FREE,
				      memory_order_release);
}

/*
 * The caller holds @m, but the analysis knows that mutex by another expression:
 * for example when two pointers are equal, or when the caller of a function
 * pointer has locked it. A build with lock_ranks aborts if the caller does not
 * hold @m.
 */
static inline void vb_mutex_assert_held(const struct vb_mutex *m) VB_ASSERTS(m)
{
	vb_rank_must_hold(m);
}

#endif

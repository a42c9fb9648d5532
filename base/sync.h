/* SPDX-License-Identifier: BSD-2-Clause */
/* A mutex that clang's thread-safety analysis understands. */
#ifndef BASE_SYNC_H
#define BASE_SYNC_H

#include <pthread.h>
#include <stdbool.h>

#if defined(__clang__)
#define VB_CAPABILITY(x) __attribute__((capability(x)))
#define VB_ACQUIRE(...)	 __attribute__((acquire_capability(__VA_ARGS__)))
#define VB_RELEASE(...)	 __attribute__((release_capability(__VA_ARGS__)))
#define VB_TRY_ACQUIRE(...) \
	__attribute__((try_acquire_capability(__VA_ARGS__)))
#define VB_REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define VB_UNCHECKED	 __attribute__((no_thread_safety_analysis))
#else
#define VB_CAPABILITY(x)
#define VB_ACQUIRE(...)
#define VB_RELEASE(...)
#define VB_TRY_ACQUIRE(...)
#define VB_REQUIRES(...)
#define VB_UNCHECKED
#endif

/*
 * Verbs are no cancellation points: a thread cancelled inside one would leave
 * a lock behind for ever. Round every stretch that holds a lock and enters
 * the kernel.
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

struct VB_CAPABILITY("mutex") vb_mutex {
	pthread_mutex_t os;
};

static inline void vb_mutex_init(struct vb_mutex *m)
{
	pthread_mutex_init(&m->os, NULL);
}

static inline void vb_mutex_fini(struct vb_mutex *m)
{
	pthread_mutex_destroy(&m->os);
}

static inline void VB_UNCHECKED vb_mutex_lock(struct vb_mutex *m) VB_ACQUIRE(m)
{
	pthread_mutex_lock(&m->os);
}

static inline bool VB_UNCHECKED vb_mutex_trylock(struct vb_mutex *m)
	VB_TRY_ACQUIRE(true, m)
{
	return pthread_mutex_trylock(&m->os) == 0;
}

static inline void VB_UNCHECKED vb_mutex_unlock(struct vb_mutex *m)
	VB_RELEASE(m)
{
	pthread_mutex_unlock(&m->os);
}

#endif

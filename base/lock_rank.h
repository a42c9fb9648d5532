/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of locks, checked while tests run (meson option lock_ranks). Each
 * mutex has a rank; a thread may wait only for a mutex of a higher rank than
 * all mutexes that it holds. A program that breaks this rule aborts at once,
 * with both ranks on stderr, even when no deadlock comes of it. The ranks of
 * this project are in core/lock_order.h, the reasons in docs/LOCKING.md.
 */
#ifndef BASE_LOCK_RANK_H
#define BASE_LOCK_RANK_H

#include <stdbool.h>

/* The rank of a leaf: a thread that holds a leaf may wait for no other mutex. A
 * mutex that was never initialized is a leaf, since all zeros are a free
 * leaf. */
#define VB_RANK_LEAF 0

#ifdef VB_LOCK_RANKS
/* The calling thread is about to wait for @mutex, or has locked it without
 * waiting (@tried), which no order forbids. */
void vb_rank_take(const void *mutex, unsigned rank, bool tried);
/* Call this just before the calling thread unlocks @mutex. */
void vb_rank_give(const void *mutex);
/* The calling thread is about to wait, without a time limit, for another thread
 * or process. Aborts if it holds a mutex with a rank from @first to @last. */
void vb_rank_may_wait(unsigned first, unsigned last);
/* Aborts unless the calling thread holds @mutex. */
void vb_rank_must_hold(const void *mutex);
#else
static inline void vb_rank_take(const void *mutex, unsigned rank, bool tried)
{
	(void)mutex;
	(void)rank;
	(void)tried;
}
static inline void vb_rank_give(const void *mutex)
{
	(void)mutex;
}
static inline void vb_rank_may_wait(unsigned first, unsigned last)
{
	(void)first;
	(void)last;
}
static inline void vb_rank_must_hold(const void *mutex)
{
	(void)mutex;
}
#endif

#endif

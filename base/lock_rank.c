/* SPDX-License-Identifier: BSD-2-Clause */
/* Records which ranked mutexes each thread holds: see lock_rank.h. */
#include "base/lock_rank.h"

#ifdef VB_LOCK_RANKS
#include <stdio.h>
#include <stdlib.h>

#define HELD_MOST 32

static __thread struct {
	const void *mutex;
	unsigned rank;
} held[HELD_MOST];
static __thread unsigned held_count;

static _Noreturn void refuse_rank(const char *what, unsigned wanted,
				  unsigned has)
{
	fprintf(stderr,
		"verbena: lock order: %s rank %u while rank %u is held "
		"(core/lock_order.h)\n",
		what, wanted, has);
	abort();
}

/* Returns the height of a rank in the lock order: a leaf is above all other
 * ranks. */
static unsigned height(unsigned rank)
{
	return rank - 1;
}

void vb_rank_take(const void *mutex, unsigned rank, bool tried)
{
	for (unsigned i = 0; !tried && i < held_count; i++)
		if (height(rank) <= height(held[i].rank))
			refuse_rank("wait for", rank, held[i].rank);
	if (held_count == HELD_MOST)
		refuse_rank("hold no more than 32 locks:", rank, rank);
	held[held_count].mutex = mutex;
	held[held_count++].rank = rank;
}

void vb_rank_give(const void *mutex)
{
	for (unsigned i = held_count; i-- > 0;) {
		if (held[i].mutex != mutex)
			continue;
		for (held_count--; i < held_count; i++)
			held[i] = held[i + 1];
		return;
	}
	/* The mutex is not in the list: it was locked before fork, or by a
	 * thread that passed it to this one. */
}

void vb_rank_may_wait(unsigned first, unsigned last)
{
	for (unsigned i = 0; i < held_count; i++)
		if (held[i].rank >= first && held[i].rank <= last)
			refuse_rank("wait without a bound at", last,
				    held[i].rank);
}

void vb_rank_must_hold(const void *mutex)
{
	for (unsigned i = 0; i < held_count; i++)
		if (held[i].mutex == mutex)
			return;
	fprintf(stderr, "verbena: lock order: a lock that is needed here is "
			"not held by this thread\n");
	abort();
}
#endif

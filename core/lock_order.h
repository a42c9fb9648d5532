/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order in which a thread may wait for locks, outermost first;
 * docs/LOCKING.md says what each lock protects. A lock without a name here is a
 * leaf (VB_RANK_LEAF): its holder waits for no other lock.
 */
#ifndef CORE_LOCK_ORDER_H
#define CORE_LOCK_ORDER_H

#include "base/lock_rank.h"

enum vb_lock_order {
	RANK_DEVICES = 1, /* lock of front/verbs: the list of devices */
	RANK_DOMAINS, /* lock of front/verbs: protection domains by number */
	RANK_PLACES,
	RANK_OPEN, /* lock of the engine: starting and stopping the engine */
	/* lock of front/verbs: an extended completion queue, held from
	 * ibv_start_poll to ibv_end_poll */
	RANK_POLL,
	RANK_MEMORIES,
	/* lock of the engine: adapters, and the descriptors that its thread
	 * polls */
	RANK_LIST,
	RANK_GROUPS, /* lock of the engine: joining and leaving groups */
	RANK_RX,     /* lock of the engine, held by the thread that receives */
	/* the right to process one lane of near; a thread tries to take it, and
	 * never waits for it */
	RANK_LANE,
	RANK_DRIVE, /* lock of a queue pair's protocol state */
	RANK_XRC,   /* lock of an adapter's XRC domains */
	RANK_COPY_HELPER,
	RANK_WQ,   /* lock of a send, receive or shared receive queue */
	RANK_MR,   /* lock of an adapter's memory keys */
	RANK_NEAR, /* lock of near: the list of peers */
	RANK_MODERATION,
	RANK_LEND, /* lock of the engine: which channel watches the link */
	RANK_CQ,
	RANK_CHANNEL,
};

/* Call this before any wait without a time limit for a peer, a program or
 * another thread. The caller holds no lock that other connections need: a build
 * with lock_ranks aborts if it holds a lock from RANK_RX to RANK_CHANNEL. */
static inline void vb_may_wait(void)
{
	vb_rank_may_wait(RANK_RX, RANK_CHANNEL);
}

/* Call this before a copy to or from a peer's memory, which may wait for a page
 * that comes late, perhaps for ever. A build with lock_ranks aborts in a thread
 * that drains the link (RANK_RX), for which all polls of the program wait. */
static inline void vb_may_copy(void)
{
	vb_rank_may_wait(RANK_RX, RANK_RX);
}

#endif

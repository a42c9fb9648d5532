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
	RANK_DEVICES = 1, /* front/verbs: the list of devices */
	RANK_DOMAINS,	  /* front/verbs: protection domains by number */
	RANK_PLACES,
	RANK_OPEN, /* engine: starting and stopping it */
	RANK_POLL, /* front/verbs: an extended completion queue, from
		      ibv_start_poll to ibv_end_poll */
	RANK_MEMORIES,
	RANK_LIST,    /* engine: adapters, descriptors the thread polls */
	RANK_RX,      /* engine: held by the thread that receives */
	RANK_NEAR_RX, /* near: held by the thread that serves the lanes */
	RANK_DRIVE,   /* a queue pair's protocol state */
	RANK_XRC,     /* an adapter's XRC domains */
	RANK_NEAR,    /* near: the list of peers */
	RANK_COPY_HELPER,
	RANK_WQ, /* a send, receive or shared receive queue */
	RANK_MR, /* an adapter's memory keys */
	RANK_MODERATION,
	RANK_CQ,
	RANK_CHANNEL,
};

/* Call before a wait without a bound for a peer, a program or another thread.
 * The caller holds no lock that other connections need: a build with lock_ranks
 * aborts when it holds one from RANK_RX to RANK_CHANNEL. */
static inline void vb_may_wait(void)
{
	vb_rank_may_wait(RANK_RX, RANK_CHANNEL);
}

#endif

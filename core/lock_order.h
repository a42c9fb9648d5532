/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one order in which locks are waited for, outermost first; docs/LOCKING.md
 * says what each protects. Locks that are not named here are leaves
 * (VB_RANK_LEAF).
 */
#ifndef CORE_LOCK_ORDER_H
#define CORE_LOCK_ORDER_H

#include "base/lock_rank.h"

enum vb_lock_order {
	RANK_DEVICES = 1, /* front/verbs: the list of devices */
	RANK_DOMAINS,	  /* front/verbs: domains by their numbers */
	RANK_PLACES,
	RANK_OPEN, /* engine: starts and stops it */
	RANK_POLL, /* an extended completion queue between start and end */
	RANK_MEMORIES,
	RANK_LIST,    /* engine: adapters and what the thread watches */
	RANK_RX,      /* engine: who drains the link */
	RANK_NEAR_RX, /* near: who serves the lanes */
	RANK_DRIVE,   /* a queue pair's protocol state */
	RANK_XRC,     /* an adapter's XRC domains */
	RANK_NEAR,    /* near: the peers */
	RANK_COPY_HELPER,
	RANK_WQ, /* a send queue, a receive queue, a shared one */
	RANK_MR, /* an adapter's keys */
	RANK_MODERATION,
	RANK_CQ,
	RANK_CHANNEL,
};

/* Before the calling thread waits for a peer, a program or another thread for
 * longer than a moment: the locks that other connections need are free. */
static inline void vb_may_wait(void)
{
	vb_rank_may_wait(RANK_RX, RANK_DRIVE);
}

#endif

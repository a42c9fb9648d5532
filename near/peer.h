/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another program of this host that we share a lane with, or this program
 * itself. It stays in memory while anybody refers to it, so that who found it
 * may go on using it; whether it is of use is vb_peer_is_up().
 */
#ifndef NEAR_PEER_H
#define NEAR_PEER_H

#include <sys/types.h>

#include "base/bell.h"
#include "base/sync.h"
#include "near/hazard.h"
#include "near/ring.h"
#include "near/split_copy.h"
#include "near/registry.h"

/* What both map: each end writes its own half, and in the other's only how far
 * it has read, and what became of an offer. */
struct vb_lane_half {
	struct vb_ring ring;
	struct vb_hazard hazards[VB_HAZARDS];
	struct vb_offer offer; /* to the other end, who answers in it */
	_Atomic uint32_t
		calls; /* for a thread that stands by: registry.attends */
};
struct vb_lane {
	struct vb_lane_half half[2];
};

struct vb_copy_helper;

enum vb_peer_state {
	PEER_CALLED,  /* we connected, and said who we are */
	PEER_CALLING, /* it connected, and has said nothing yet */
	PEER_MET,     /* we answered; it says whether it can reach us */
	PEER_UP,
	PEER_DENIED, /* packets, as long as it lives */
	PEER_GONE,
};

struct vb_peer {
	_Atomic uint32_t refs;
	_Atomic uint8_t state; /* enum vb_peer_state; near->lock to write */
	unsigned slot;
	_Atomic unsigned also; /* another; 0: none; near->lock to write */
	bool strayed;	       /* it called our other slot */
	pid_t pid;
	int session;	      /* hang-up: it ended, or became another program */
	int alarm;	      /* an eventfd: its engine's thread; -1: not yet */
	struct vb_bell *bell; /* a program's thread that watches its lanes */
	const struct vb_registry *registry;
	struct vb_lane *lane;
	bool is_self;
	struct vb_copy_helper *helper; /* helps with large copies */
	_Atomic bool owed;    /* there are answers that it was not rung for */
	struct vb_peer *next; /* near->callers */
	struct vb_announcer ours; /* where we announce */
	struct vb_hazard *peer_hazards;
	struct vb_mutex tx;	      /* leaf */
	struct vb_ring_writer writer; /* tx */
	struct vb_ring_reader reader; /* near->rx */
	struct vb_offer *offered;     /* to us */
	struct vb_split_copy split;   /* near->rx */
	_Atomic uint32_t *our_calls, *their_calls;
};

/* @end: which half of @lane is ours. For ourselves there is but one. */
void vb_peer_join(struct vb_peer *p, struct vb_lane *lane, unsigned end);

/* @hand outlives it. */
struct vb_peer *vb_peer_create(unsigned slot, struct vb_copy_helper *helper);
struct vb_peer *vb_peer_get(struct vb_peer *p);
void vb_peer_put(struct vb_peer *p); /* NULL: nothing */

static inline bool vb_peer_is_up(const struct vb_peer *p)
{
	/* Acquire: up after all else of it is set. */
	return atomic_load_explicit(&p->state, memory_order_acquire) ==
		       PEER_UP &&
	       vb_registry_is_alive(p->registry);
}

static inline bool vb_peer_has(const struct vb_peer *p, unsigned slot)
{
	return slot == p->slot ||
	       (slot != 0 &&
		slot == atomic_load_explicit(&p->also, memory_order_relaxed));
}

/* After something was put on the lane: wake it if it sleeps. */
void vb_peer_ring(struct vb_peer *p);
/* Ask its thread to stand by. */
void vb_peer_call(struct vb_peer *p);
/* It does. A hint. */
static inline bool vb_peer_attends(const struct vb_peer *p)
{
	return atomic_load_explicit(&p->registry->attends,
				    memory_order_relaxed);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another program of this host that shares a lane with this one, or this
 * program itself. A struct vb_peer stays allocated while a reference to it
 * exists, so that a thread may go on using a peer that it found;
 * vb_peer_is_up() says whether the peer still works.
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
#include "near/world.h"

/* The memory that both programs map. Each program writes its own half; in the
 * peer's half it writes only ring.head (how far it has read), offer.word (the
 * end of an offer) and calls (to clear it). */
struct vb_lane_half {
	struct vb_ring ring;
	struct vb_hazard hazards[VB_HAZARDS];
	/* The owner of this half offers the other program a part of a copy. */
	struct vb_offer offer;
	/* 1: the owner of this half asks that a thread of the other program
	 * stands by. vb_near_is_wanted() reads and clears it there. */
	_Atomic uint32_t calls;
};
struct vb_lane {
	struct vb_lane_half half[2];
};

struct vb_copy_helper;

enum vb_peer_state {
	PEER_CALLED,  /* we connected and sent HELLO */
	PEER_CALLING, /* the peer connected and has sent nothing yet */
	/* This program sent WELCOME; the peer's READY will say whether the peer
	 * can access this program's memory. */
	PEER_MET,
	PEER_UP,
	PEER_DENIED, /* both use packets while the session lasts */
	PEER_GONE,
};

struct vb_peer {
	_Atomic uint32_t refs;
	const struct vb_near_world *world; /* never changes */
	_Atomic uint8_t state; /* enum vb_peer_state; writers hold near->lock */
	unsigned slot;
	/* The peer's second slot; 0: none. Writers hold near->lock. */
	_Atomic unsigned also;
	bool strayed; /* the peer called this program's second slot */
	pid_t pid;
	/* A socket to the peer's program. It hangs up when that program ends or
	 * executes another one. */
	int session;
	int alarm; /* an eventfd that wakes its engine thread; -1: none yet */
	struct vb_bell *bell; /* wakes the peer's thread that serves lanes */
	const struct vb_registry *registry;
	struct vb_lane *lane;
	bool is_self;
	struct vb_copy_helper
		*helper; /* copies a part of large copies, or NULL; not owned */
	/* The peer has answers on the lane that it was not woken for. */
	_Atomic bool owed;
	struct vb_peer *next;	  /* in near->callers */
	struct vb_announcer ours; /* our hazard pointers, in our half */
	struct vb_hazard *peer_hazards;
	struct vb_mutex tx;	      /* leaf lock: nothing is taken under it */
	struct vb_ring_writer writer; /* guarded by tx */
	struct vb_ring_reader reader; /* guarded by near->rx */
	struct vb_offer *offered;     /* the peer's offers to us */
	struct vb_split_copy
		split; /* our offers to the peer; guarded by near->rx */
	_Atomic uint32_t *our_calls, *their_calls;
};

/* Use @lane, of which half @end is this program's. @p unmaps it in the end. A
 * program's peer for itself has one half for both directions. */
void vb_peer_join(struct vb_peer *p, struct vb_lane *lane, unsigned end);

/* Create a peer, to which the caller has one reference. NULL: no memory. @world
 * and @helper outlive the peer. @helper NULL: the calling thread makes large
 * copies alone. */
struct vb_peer *vb_peer_create(unsigned slot, const struct vb_near_world *world,
			       struct vb_copy_helper *helper);
/* One more reference. Returns @p. */
struct vb_peer *vb_peer_get(struct vb_peer *p);
void vb_peer_put(
	struct vb_peer *p); /* release a reference; NULL: does nothing */

/* Is the session complete, and does the peer's engine thread run? */
static inline bool vb_peer_is_up(const struct vb_peer *p)
{
	/* Acquire: all else of the peer was set before its state became
	 * PEER_UP. */
	return atomic_load_explicit(&p->state, memory_order_acquire) ==
		       PEER_UP &&
	       vb_registry_is_alive(p->registry);
}

/* Is @slot one of the peer's slots? */
static inline bool vb_peer_has(const struct vb_peer *p, unsigned slot)
{
	return slot == p->slot ||
	       (slot != 0 &&
		slot == atomic_load_explicit(&p->also, memory_order_relaxed));
}

/* The caller has put something on the lane: wake the peer's program if it
 * sleeps. */
void vb_peer_ring(struct vb_peer *p);
/* Ask the peer's program to have one of its threads stand by. */
void vb_peer_call(struct vb_peer *p);
/* Does a thread of the peer stand by? Only a hint: it may change at once. */
static inline bool vb_peer_attends(const struct vb_peer *p)
{
	return atomic_load_explicit(&p->registry->attends,
				    memory_order_relaxed);
}

#endif

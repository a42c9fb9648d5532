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

/*
 * The right to process a peer's lane. One thread has it at a time, and keeps it
 * while it waits for the peer's memory, so it is no lock: nobody waits for it.
 * near->lanes_lock guards @taken and @missed.
 */
struct VB_CAPABILITY("claim") vb_lane_claim {
	bool taken;
	/* Another thread wanted to process the lane meanwhile. That thread may
	 * sleep, so the owner of the claim looks after the lane once more. */
	bool missed;
};

/* How far a lane is processed (vb_near_is_past()). near->lanes_lock guards
 * it. */
struct vb_lane_progress {
	/* Everything is processed that the peer had put on the lane before the
	 * pass with this number began. */
	uint64_t clear;
	/* The lane is never found empty while its peer sends much. A lap is
	 * over when as many requests were processed as the ring can hold: the
	 * number of the pass at which the present lap began (0: none), and the
	 * reader's index then. */
	uint64_t lap;
	uint32_t lap_head;
	uint64_t moves; /* number of turns that have processed something */
};

/* One half of the memory that both programs map. Each program writes its own
 * half; in the peer's half it writes only ring.head (how far it has read),
 * offer.word (the end of an offer), calls (to clear it) and bell (to ring). */
struct vb_lane_half {
	struct vb_ring ring;
	struct vb_hazard hazards[VB_HAZARDS];
	/* A part of a copy that the owner of this half offers to the other
	 * program. */
	struct vb_offer offer;
	/* 1: the owner of this half asks that a thread of the other program
	 * stands by. The other program's vb_near_is_wanted() reads and clears
	 * this word. */
	_Atomic uint32_t calls;
	/* 1: the owner of this half ends the session. From then on no copy of
	 * the other program counts as done, and the other program begins none
	 * (vb_peer_expels()). */
	_Atomic uint32_t expels;
	/* A thread of the owner of this half sleeps (near/watch.c). In a line
	 * of its own, since the owner writes it at each sleep. */
	struct vb_bell bell __attribute__((aligned(VB_CACHE_LINE)));
};
struct vb_lane {
	struct vb_lane_half half[2];
};

struct vb_copy_helper;
struct vb_errand;

enum vb_peer_state {
	PEER_CALLED,  /* this program has connected and sent HELLO */
	PEER_CALLING, /* the peer has connected and sent nothing yet */
	/* This program has sent WELCOME; the peer's READY will say whether the
	 * peer can access this program's memory. */
	PEER_MET,
	PEER_UP,
	/* both programs use packets for each other while the session lasts */
	PEER_DENIED,
	PEER_GONE,
};

struct vb_peer {
	_Atomic uint32_t refs;
	/* the kernel's functions; never changes */
	const struct vb_near_world *world;
	/* an enum vb_peer_state; writers hold near->lock */
	_Atomic uint8_t state;
	unsigned slot;
	/* The second slot of the peer; 0: none. Writers hold near->lock. */
	_Atomic unsigned also;
	bool strayed; /* the peer has called this program by its second slot */
	/* The session uses packets only because an earlier one of the same slot
	 * has a copy under way. Only the engine thread uses this field. */
	bool shut_out;
	/* the second slot that a caller's HELLO names */
	uint16_t claims_also;
	/* Finds out whether the registry is that of process @pid, and whether
	 * this program can read that process's memory; NULL: nothing does. Only
	 * the engine thread uses this field. */
	struct vb_errand *proof;
	/* The proof cannot begin yet, because all threads that could make it
	 * are busy: the time until which it waits for one; 0: no proof waits.
	 * Only the engine thread uses this field. */
	vb_time proof_due;
	pid_t pid;
	uint64_t born; /* vb_birth_of(@pid) when the session began */
	/* A socket to the peer's program, which hangs up when that program ends
	 * or executes another one. */
	int session;
	/* guards reading from @session; a leaf lock, held during one call that
	 * does not block */
	struct vb_mutex ears;
	/* if @is_self: the eventfd that wakes this program's engine thread,
	 * which no other program has; otherwise -1 */
	int wake_fd;
	/* The bell that wakes the thread of the peer that serves lanes. Only
	 * the two programs of the lane can write it. */
	struct vb_bell *bell;
	/* the bell by which the peer wakes a thread of this program */
	struct vb_bell *our_bell;
	const struct vb_registry *registry;
	struct vb_lane *lane;
	bool is_self;
	struct vb_copy_helper
		/* copies a part of large copies, or NULL; the peer does not own
		 * the helper */
		*helper;
	/* The lane has answers for which the peer was not woken yet. */
	_Atomic bool owed;
	_Atomic bool expelled; /* this program has ended the session */
	/* This program waits for no access of the peer any more, because it has
	 * waited for one as long as near/grace.h says. */
	_Atomic bool given_up;
	/* when vb_grace_has_left() asked the kernel last; 0: never */
	_Atomic vb_time asked_at;
	struct vb_peer *next; /* the next one in near->callers */
	struct vb_lane_claim claim;
	struct vb_lane_progress progress;
	/* The session is over, and the lane is processed only until the peer
	 * has left the receive that @split lends to it; guarded by
	 * near->lanes_lock. */
	bool leaves;
	/* The number of the queue pair whose receive @split has lent to the
	 * peer; 0: none. Written by the owner of the claim. */
	_Atomic uint32_t lent_by;
	/* The fields below are guarded by claim. */
	/* The peer wrote what an honest one cannot write, so the rest of its
	 * lane is not processed. */
	bool lies;
	/* The lane waits for a queue pair whose lock another thread holds for
	 * long. */
	bool is_stuck;
	/* The thread that processes the lane returns to its program at once, so
	 * the peer need not be woken for answers yet. */
	bool unhurried;
	/* The most bytes that the responder may still fetch in this turn. */
	uint32_t pull_left;
	/* this program's hazard pointers, in its half of the lane */
	struct vb_announcer ours;
	struct vb_hazard *peer_hazards;
	/* guards @writer; a leaf lock: no lock is taken while it is held */
	struct vb_mutex tx;
	/* writes requests and answers to the lane; guarded by tx */
	struct vb_ring_writer writer;
	/* reads the peer's requests and answers; guarded by claim */
	struct vb_ring_reader reader;
	struct vb_offer *offered; /* offers of the peer to this program */
	struct vb_split_copy
		/* this program's offers to the peer; guarded by claim */
		split;
	_Atomic uint32_t *our_calls, *their_calls;
	_Atomic uint32_t *our_expels, *their_expels;
};

/* Use @lane, of which half @end belongs to this program. The end of @p unmaps
 * the lane. A program's peer for itself has one half for both directions. */
void vb_peer_join(struct vb_peer *p, struct vb_lane *lane, unsigned end);

/* Create a peer, to which the caller has one reference. NULL: no memory. @world
 * and @helper outlive the peer. @helper NULL: the calling thread makes large
 * copies without help. */
struct vb_peer *vb_peer_create(unsigned slot, const struct vb_near_world *world,
			       struct vb_copy_helper *helper);
/* Take one more reference to @p. Returns @p. */
struct vb_peer *vb_peer_get(struct vb_peer *p);
void vb_peer_put(
	/* release a reference; with NULL the call does nothing */
	struct vb_peer *p);

/* Tell clang's analysis of locks that the caller has claimed the lane of @p,
 * where the claim was made by another expression, which the analysis does not
 * know to be @p. */
static inline void vb_peer_assert_claimed(const struct vb_peer *p)
	VB_ASSERTS(p->claim)
{
	vb_rank_must_hold(&p->claim);
}

/* Is the session complete, and does the peer's engine thread run? */
static inline bool vb_peer_is_up(const struct vb_peer *p)
{
	/* Acquire: the other fields of the peer were written before its state
	 * became PEER_UP. */
	return atomic_load_explicit(&p->state, memory_order_acquire) ==
		       PEER_UP &&
	       vb_registry_is_alive(p->registry);
}

/* Has the peer ended the session? The caller asks after each copy: if so, the
 * peer may have used its memory anew before the copy ended, so the copy does
 * not count. */
static inline bool vb_peer_expels(const struct vb_peer *p)
{
	return VB_UNLIKELY(atomic_load(p->their_expels));
}

/* May this program begin a copy? The caller has announced the key before. A
 * peer ends the session first and looks at the hazards afterwards. So either
 * this function returns false, or the peer finds the hazard and waits. */
static inline bool vb_peer_may_copy(const struct vb_peer *p)
{
	return vb_peer_is_up(p) && !vb_peer_expels(p);
}

/* Is @slot the first or second slot of the peer? */
static inline bool vb_peer_has(const struct vb_peer *p, unsigned slot)
{
	return slot == p->slot ||
	       (slot != 0 &&
		slot == atomic_load_explicit(&p->also, memory_order_relaxed));
}

/* The caller has put a request or an answer on the lane: wake the peer's
 * program if it sleeps. */
void vb_peer_ring(struct vb_peer *p);
/* From now on the peer begins no copy, and none of its copies counts as done.
 * The next call is one that ends the session. */
void vb_peer_disown(struct vb_peer *p);
/* End the session with the peer, and log why: @cause continues "process PID
 * ...". Queue pairs that are connected to the peer find the peer gone. Never
 * blocks. The second call and later ones do nothing. */
void vb_peer_expel(struct vb_peer *p, const char *cause);
/* Has the peer left the requests of this program on the lane as they were
 * written, and is the number of those that it has read possible? If not, this
 * call expels the peer. Takes peer->tx. */
bool vb_peer_is_honest(struct vb_peer *p) VB_EXCLUDES(p->tx);
/* Ask the peer's program to let one of its threads stand by. */
void vb_peer_call(struct vb_peer *p);
/* Does a thread of the peer stand by? The answer is only a hint, because it may
 * change at once. */
static inline bool vb_peer_attends(const struct vb_peer *p)
{
	return atomic_load_explicit(&p->registry->attends,
				    memory_order_relaxed);
}

#endif

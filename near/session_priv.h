/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that introductions (near/session.c) use. Only the engine thread
 * calls them. Those that change the table of sessions take and release
 * near->lock.
 */
#ifndef NEAR_SESSION_PRIV_H
#define NEAR_SESSION_PRIV_H

#include "near/near_priv.h"

/* Functions of near/callers.c. */
/* Connect to the program that has @slot, without waiting. 0: the caller owns
 * *@fd; or -errno. */
VB_MUST_CHECK int vb_session_connect(unsigned slot, int *fd);
/* The session of @p has begun: which process is the peer? -EPERM: one of
 * another user, or of another PID namespace; -EACCES: an outlaw. */
VB_MUST_CHECK int vb_session_identify(const struct vb_near *n,
				      struct vb_peer *p);
/* Does the process of @p listen on the name of @slot, below VB_SLOTS? */
bool vb_session_has_slot(const struct vb_peer *p, unsigned slot);
/* From now on this program refuses the process of @p. */
void vb_session_outlaw(struct vb_near *n, const struct vb_peer *p);
/* Does this program refuse the process of @p? Then this call logs it. */
bool vb_session_is_outlaw(const struct vb_near *n, const struct vb_peer *p);
/* vb_near_meet() processes the messages of @p from now on. 0 or -errno. */
VB_MUST_CHECK int vb_session_watch(struct vb_near *n, struct vb_peer *p);
/* Let other programs call, if there is room for another session. */
void vb_callers_listen(struct vb_near *n);
/* Was there a want of descriptors or threads, so that no program can call until
 * vb_callers_listen() has found some again? */
bool vb_callers_are_unheard(const struct vb_near *n);
/* A program calls @name: begin to accept it. */
void vb_callers_accept(struct vb_near *n, struct vb_near_name *name);
/* An errand has ended: take the callers that were accepted. */
void vb_callers_hear(struct vb_near *n);
/* Remove @p from the list of callers, if it is there. */
void vb_callers_forget(struct vb_near *n, struct vb_peer *p);
void vb_callers_fini(struct vb_near *n);

/* Functions of near/proof.c. vb_near_meet() looks at proofs when an errand has
 * ended. */
/* Begin to find out whether the registry of @p is that of its process, and
 * whether this program can read that process's memory. 0: it has begun, or
 * waits for a thread; -EBUSY: two proofs of that process have not ended. */
VB_MUST_CHECK int vb_proof_begin(struct vb_near *n, struct vb_peer *p,
				 vb_time now);
/* If a proof of @p waits and a thread is free, begin it. 0; -EAGAIN: it has
 * waited for so long that the session must end. */
VB_MUST_CHECK int vb_proof_begin_waiting(struct vb_near *n, struct vb_peer *p,
					 vb_time now);
/* Is a proof of @p under way, or does it wait? */
static inline bool vb_proof_is_open(const struct vb_peer *p)
{
	return p->proof || p->proof_due;
}
/* Has the proof of @p ended, if it has one? Then *@open is the result. */
VB_MUST_CHECK bool vb_proof_end(struct vb_peer *p, bool *open);
/* The session of @p ends. */
void vb_proof_leave(struct vb_near *n, struct vb_peer *p);
/* Forget the proofs of ended sessions that have ended since. */
void vb_proof_see_off(struct vb_near *n);
void vb_proof_fini(struct vb_near *n);

/* Functions of near/session_table.c. */
void vb_session_set_state(struct vb_near *n, struct vb_peer *p,
			  enum vb_peer_state state) VB_EXCLUDES(n->lock);

/* Put @p into the table by p->slot. The table takes over the caller's
 * reference. */
void vb_session_enter(struct vb_near *n, struct vb_peer *p)
	VB_EXCLUDES(n->lock);

/* The session with @p is over: remove @p from the table, for both of its slots,
 * if it is there. This call still processes the requests and answers that the
 * peer put on the lane before. The caller gets the table's reference. A peer
 * that lives and has a copy under way stays in near->leaving. */
void vb_session_end(struct vb_near *n, struct vb_peer *p, vb_time now);
/* Release the peers of near->leaving that copy no more; @all: every one. */
void vb_session_see_off(struct vb_near *n, bool all) VB_EXCLUDES(n->lock);

/* The program of @p, which is in the table, has @also as its second slot. The
 * call does nothing if @also is 0, no slot number, one of this program's slots,
 * in use by another peer, or if another process has that slot. */
void vb_session_note_also(struct vb_near *n, struct vb_peer *p, unsigned also)
	VB_EXCLUDES(n->lock);

/* The introduction to @slot, below VB_SLOTS, has failed: vb_session_find()
 * returns SESSION_NO to all that asked for a session before. If the owner of
 * another slot directed the call to @slot (calls[].sent_from), this holds for
 * the other slot as well. */
void vb_session_note_refusal(struct vb_near *n, unsigned slot)
	VB_EXCLUDES(n->lock);

/* Remove the next slot that vb_session_want() asked for and that has no session
 * yet from the list, and store it in *@slot. False: the list is empty. */
bool vb_session_next_wanted(struct vb_near *n, unsigned *slot)
	VB_EXCLUDES(n->lock);

#endif

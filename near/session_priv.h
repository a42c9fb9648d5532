/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions by which introductions (near/session.c) change the table of
 * sessions (near/session_table.c). Only the engine thread calls these
 * functions; each takes and releases near->lock.
 */
#ifndef NEAR_SESSION_PRIV_H
#define NEAR_SESSION_PRIV_H

#include "near/near_priv.h"

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
 * or in use by another peer. */
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

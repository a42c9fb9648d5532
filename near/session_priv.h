/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of sessions (near/session_table.c), as the introductions
 * (near/session.c) write it. The engine thread alone calls these functions;
 * each takes and releases near->lock.
 */
#ifndef NEAR_SESSION_PRIV_H
#define NEAR_SESSION_PRIV_H

#include "near/near_priv.h"

void vb_session_set_state(struct vb_near *n, struct vb_peer *p,
			  enum vb_peer_state state) VB_EXCLUDES(n->lock);

/* @p stands in the table by p->slot from now on. The table takes over the
 * caller's reference. */
void vb_session_enter(struct vb_near *n, struct vb_peer *p)
	VB_EXCLUDES(n->lock);
/* @p stands in the table no longer, by neither of its slots; it need not have
 * stood there. The caller has the table's reference back. */
void vb_session_leave(struct vb_near *n, struct vb_peer *p)
	VB_EXCLUDES(n->lock);

/* The session with @p is over. This call still processes what the peer has put
 * on the lane before. The caller has the table's reference back. */
void vb_session_end(struct vb_near *n, struct vb_peer *p, vb_time now);

/* The program of @p, which is in the table, has the slot @also, too. Ignored
 * when @also is 0, no slot number, one of this program's, or taken by another
 * peer. */
void vb_session_note_also(struct vb_near *n, struct vb_peer *p, unsigned also)
	VB_EXCLUDES(n->lock);

/* The introduction to @slot, below VB_SLOTS, has failed: vb_session_find() says
 * SESSION_NO to all that asked for it before. If another slot's owner sent the
 * call to @slot (calls[].sent_from), the same holds for that slot. */
void vb_session_note_refusal(struct vb_near *n, unsigned slot)
	VB_EXCLUDES(n->lock);

/* Takes the next slot that vb_session_want() asked for and that has no session
 * yet off the list into *@slot. False: there is none. */
bool vb_session_next_wanted(struct vb_near *n, unsigned *slot)
	VB_EXCLUDES(n->lock);

#endif

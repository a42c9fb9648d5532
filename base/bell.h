/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A word that one thread sleeps on, and that others, of this process or of
 * another that maps it, wake it by. Who has something for the sleeper puts it
 * where that will look and then rings; the sleeper says that it will sleep,
 * looks, and then sleeps. Both sides are sequentially consistent: of two that
 * meet, one at least sees the other. One ring wakes; the next ones cost a look
 * at the word.
 */
#ifndef BASE_BELL_H
#define BASE_BELL_H

#include <stdatomic.h>

#include "base/defs.h"

struct vb_bell {
	_Atomic uint32_t sleeps; /* anybody may write anything here */
};

/* By who is about to sleep. */
void vb_bell_set(struct vb_bell *b);
void vb_bell_clear(struct vb_bell *b);
/* Sleep until rung, or not at all when that has happened since it was set.
 * -EINTR, as read(2) says it. A cancellation point. */
VB_MUST_CHECK int vb_bell_wait(struct vb_bell *b);

/* After something was put there. True: somebody sleeps by it, or did. */
bool vb_bell_ring(struct vb_bell *b);
/* Whoever sleeps there looks up, whatever the word says. */
void vb_bell_wake(struct vb_bell *b);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A word on which one thread sleeps until another rings. The ringing thread
 * belongs to this process or to another that maps the word. It stores what it
 * has for the sleeper where the sleeper will look, and then rings. The sleeper
 * sets the bell, looks, and then sleeps. Both sides are sequentially
 * consistent, so that of a ring and a sleep at the same time at least one sees
 * the other. The first ring wakes the sleeper; further rings only read the
 * word.
 */
#ifndef BASE_BELL_H
#define BASE_BELL_H

#include <stdatomic.h>

#include "base/defs.h"

struct vb_bell {
	/* Do not trust it: another process can write anything here. */
	_Atomic uint32_t sleeps;
};

/* The sleeper sets the bell before it looks and sleeps, and clears it when it
 * does not sleep any more. */
void vb_bell_set(struct vb_bell *b);
void vb_bell_clear(struct vb_bell *b);
/* Sleep until the bell rings; return at once if it has rung since it was set.
 * 0; -EINTR after a signal, as read(2). A cancellation point. */
VB_MUST_CHECK int vb_bell_wait(struct vb_bell *b);

/* Ring; the caller has stored something for the sleeper before. True: a thread
 * sleeps by the bell, or has set it to sleep. */
bool vb_bell_ring(struct vb_bell *b);
/* Wake the sleeper, whatever the word says. */
void vb_bell_wake(struct vb_bell *b);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A word on which one thread sleeps until another thread rings it. The ringing
 * thread belongs to this process or to another process that maps the word. It
 * stores its message where the sleeper will look, and then rings. The sleeper
 * sets the bell, looks, and then sleeps. The accesses of both threads are
 * sequentially consistent, so that of a ring and a sleep at the same time at
 * least one thread sees the other. The first ring wakes the sleeper; further
 * rings only read the word.
 */
#ifndef BASE_BELL_H
#define BASE_BELL_H

#include <stdatomic.h>

#include "base/defs.h"

/* The most bells on which one thread sleeps at once, a limit of the kernel. */
#define VB_BELLS_MOST 128
/* One of the bells on which a thread sleeps at once: struct futex_waitv of
 * linux/futex.h, which headers before Linux 5.16 do not have. */
struct vb_bell_waiter {
	uint64_t expected, address;
	uint32_t flags, zero;
};

struct vb_bell {
	/* Never trust this value: another process can write anything here. */
	_Atomic uint32_t sleeps;
};

/* vb_bell_set(): the sleeper sets the bell before it looks and sleeps.
 * vb_bell_clear(): the sleeper clears the bell when it no longer sleeps. */
void vb_bell_set(struct vb_bell *b);
void vb_bell_clear(struct vb_bell *b);
/* Sleep until the bell rings; return at once if it has rung since it was set.
 * 0; -EINTR after a signal, as read(2). A cancellation point. */
VB_MUST_CHECK int vb_bell_wait(struct vb_bell *b);
/* Fills in @w, which stands for @b in a list. */
void vb_bell_list(struct vb_bell_waiter *w, struct vb_bell *b);
/* Like vb_bell_wait(), on a list of @count bells, 1 to VB_BELLS_MOST, which the
 * sleeper has set: the first bell that rings wakes it. A process that maps one
 * of the bells cannot keep the other bells from waking it. Only where
 * vb_bell_can_wait_any(). */
VB_MUST_CHECK int vb_bell_wait_any(struct vb_bell_waiter *list, unsigned count);
/* Has the kernel futex_waitv(2) (Linux 5.16), and may this process call it? */
bool vb_bell_can_wait_any(void);

/* Ring the bell; before, the caller has stored something for the sleeper. True:
 * a thread sleeps on the bell, or has set the bell and is about to sleep. */
bool vb_bell_ring(struct vb_bell *b);
/* Wake the thread that sleeps on the bell, whatever value the word has. */
void vb_bell_wake(struct vb_bell *b);

#endif

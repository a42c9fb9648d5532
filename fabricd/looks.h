/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the fabric's process looks at the rings of programs without being rung,
 * if a program shares its processor: a state machine without a clock.
 *
 * A program that has just sent a message waits for an answer, and on two
 * processors it waits on that of this process. If this process sleeps after
 * each frame, the program that answers wakes it by a system call, and the
 * kernel switches twice. So this process awaits the answer, but only if the
 * answering program is awake and ran last on another processor: otherwise the
 * wait would keep that program from answering.
 */
#ifndef FABRICD_LOOKS_H
#define FABRICD_LOOKS_H

#include "base/defs.h"

/* How long an answer is awaited. ib_send_lat -s 8 between programs on different
 * processors took 4.2 us with this rule, and 13.2 without. */
#define VB_LOOKS_ANSWER (10 * VB_USEC)
/* After a wait in vain no answer is awaited for LEAST, and twice as long after
 * each further one, up to MOST: not measured, it bounds what a program loses
 * whose peer never answers. */
#define VB_LOOKS_LEAST (100 * VB_USEC)
#define VB_LOOKS_MOST  (10 * VB_MSEC)

struct vb_looks {
	bool waits;
	vb_time until; /* if @waits: the time at which the wait ends */
	/* no wait begins before @paused_until; @pause is the length of the last
	 * pause, 0 after an answer */
	vb_time pause, paused_until;
};

/* A program that is awake has got a frame. */
void vb_looks_gave(struct vb_looks *l, vb_time now);
/* That program has sent a frame. */
void vb_looks_answered(struct vb_looks *l);
/* This process has nothing to do. Does it await an answer, instead of sleeping?
 * @apart: the program that shall answer ran last on another processor. */
bool vb_looks_on(struct vb_looks *l, bool apart, vb_time now);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network's time in the process of a fabric. It follows the clock. While
 * this process does not run, because a program has its processor, frames come,
 * and on real wires they would travel meanwhile. So the network's time is late
 * then, and catches up in steps between which frames enter the network: else
 * each wire would have stood still.
 */
#ifndef FABRICD_LAG_H
#define FABRICD_LAG_H

#include "base/defs.h"

/* How far the network's time goes in a step. A lane holds 128 KiB, which a wire
 * of 4 GB/s carries in 33 us; with longer steps the wire would stand still at
 * the end of a step. */
#define VB_LAG_STEP (30 * VB_USEC)
/* The network's time is at most this much late: not measured, it bounds how
 * long the process only catches up. */
#define VB_LAG_MOST VB_MSEC

/* Returns the network's time of the turn that begins at @now. @last: that of
 * the turn before; frames that are found in this turn have come since then. */
static inline vb_time vb_lag_follow(vb_time last, vb_time now)
{
	vb_time late = now > VB_LAG_MOST ? now - VB_LAG_MOST : 0;

	return VB_MIN(now, VB_MAX(last + VB_LAG_STEP, late));
}

#endif

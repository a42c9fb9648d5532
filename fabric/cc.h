/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control at a source (IBA annex A10.4): a notification (BECN) makes
 * a flow's index into the congestion control table grow, time makes it shrink,
 * and the table says how long the flow waits after each frame. What a flow is,
 * a queue pair or all of an SL, is the caller's choice; each has a struct
 * vb_cc.
 */
#ifndef FABRIC_CC_H
#define FABRIC_CC_H

#include "fabric/node.h"

struct vb_cc {
	uint16_t index; /* CCTI */
	vb_time timer;	/* the index shrinks then; counts if it may */
};

/* A BECN arrived for a flow of service level @sl. */
void vb_cc_notify(struct vb_cc *c, const struct vb_fab_cc *set, unsigned sl,
		  vb_time now);

/* How many nanoseconds a flow waits after a frame that takes @frame_ns on the
 * wire, from its end to the next one's start. 0: it is not throttled. */
vb_time vb_cc_gap(struct vb_cc *c, const struct vb_fab_cc *set, unsigned sl,
		  vb_time frame_ns, vb_time now);

#endif

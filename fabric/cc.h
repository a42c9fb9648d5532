/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control at a source (IBA annex A10.4). A flow is a queue pair, or
 * all queue pairs of an SL, as the caller chooses; each flow has a struct
 * vb_cc. A notification (BECN) raises the flow's index into the congestion
 * control table, passing time lowers it, and the table says how long the flow
 * waits after each frame.
 */
#ifndef FABRIC_CC_H
#define FABRIC_CC_H

#include "fabric/node.h"

struct vb_cc {
	uint16_t index; /* the index into the congestion control table (CCTI) */
	/* the time at which the timer lowers the index, while the index is
	 * above its lowest value */
	vb_time timer;
};

/* Slows a flow of service level @sl down, because a BECN has come for it. */
void vb_cc_notify(struct vb_cc *c, const struct vb_fab_cc *set, unsigned sl,
		  vb_time now);

/* True if the flow's index is as low as that of a flow that was never notified:
 * nothing need be remembered of the flow. */
bool vb_cc_is_calm(struct vb_cc *c, const struct vb_fab_cc *set, unsigned sl,
		   vb_time now);

/* Returns how many nanoseconds a flow waits between the end of a frame, which
 * takes @frame_ns on the wire, and the start of the next one. 0: it does not
 * wait. */
vb_time vb_cc_gap(struct vb_cc *c, const struct vb_fab_cc *set, unsigned sl,
		  vb_time frame_ns, vb_time now);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The next hops of a router: the path to each destination in the subnet where
 * frames to it leave. The router asks its owner (FAB_EV_PATH), who asks that
 * subnet's administrator. Frames wait for the answer, in memory that belongs to
 * no port, so that a destination that nobody knows takes no credits from
 * others.
 */
#ifndef FABRIC_HOPS_H
#define FABRIC_HOPS_H

#include "fabric/net_priv.h"

/* A frame has come to a router at @e. True: the router has forwarded or dropped
 * it, and the item is gone. False: the frame is for the router itself. */
VB_MUST_CHECK bool fab_router_take(struct vb_fab_end *e, struct item *it,
				   vb_time now);

/* Free the next hops of the router of which @e is an end, and the frames that
 * wait for them. */
void fab_hops_free(struct vb_fab_end *e);

#endif

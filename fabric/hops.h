/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The next hops of a router: for each destination, the path in the subnet into
 * which the router sends frames to it. The router asks the program that runs
 * the fabric for a path (FAB_EV_PATH), and that program asks the administrator
 * of that subnet. Frames wait for the answer in memory that belongs to no port,
 * so that frames to an unknown destination take no credits from others.
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

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control of an adapter's port (IBA annex A10): the port answers a
 * frame that has FECN with a notification (CN packet), and after a frame that
 * has BECN it sends the frames of that flow at longer intervals. A flow is all
 * that the port sends on one service level to one LID; or, if Port_Control says
 * so, all that it sends on that service level. The switch's half is in
 * fabric/xmit.c.
 */
#ifndef FABRIC_CONGEST_H
#define FABRIC_CONGEST_H

#include "fabric/net_priv.h"

/* Take in what a frame that has arrived at the adapter's end @e says of
 * congestion. True: the frame is a CN packet, whose way ends here. */
bool fab_congest_hear(struct vb_fab_end *e, const struct item *it, vb_time now);

/* Does the flow of a frame with the header @h accept no more frames for now?
 * Then FAB_EV_ROOM comes when half of the waiting frames have left. */
bool fab_congest_full(struct vb_fab_end *e, const struct vb_lrh *h);

/* An adapter sends @it. True: the frame's flow has to wait, so this function
 * keeps @it and puts it into its lane when its time has come. */
bool fab_congest_hold(struct vb_fab_end *e, struct item *it, vb_time now);

/* The alarm of the waiting flows has expired: sends the frames that are due. */
void fab_congest_fire(struct vb_fab_end *e, vb_time now);

/* Discard what waits in the flows. @by_link: because the link is down; the
 * frames are counted, and FAB_EV_ROOM is raised. */
void fab_congest_flush(struct vb_fab_end *e, bool by_link);

/* Discard what waits in the flows, and forget them: the network is freed. */
void fab_congest_fini(struct vb_fab_end *e);

/* Add @event to the log, in place of the oldest if the log is full. */
void fab_congest_log(struct vb_fab_cc_log *log,
		     const struct vb_fab_cc_event *event);

#endif

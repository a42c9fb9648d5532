/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adaptive routing of a switch: a flow that begins takes, of all ports from
 * which a shortest path leads to its destination, the one with the shortest
 * queue. A flow is what one port sends on one service level to one queue pair.
 * Its frames all take that port until the switch has seen none for so long that
 * the last one must have arrived or been discarded, so that no switch reorders
 * them (IBA 9.7.2 wants the order of a connection, and nothing in a frame says
 * that its program can do without).
 */
#ifndef FABRIC_ADAPTIVE_H
#define FABRIC_ADAPTIVE_H

#include "fabric/net_priv.h"

/* Returns the port by which the unicast frame @v, which came in at @in, leaves
 * the switch. @port: the port that the linear table names. Call it only for a
 * switch whose adaptive routing is on. */
uint8_t fab_adaptive_port(struct vb_fab_end *in, const struct vb_fab_view *v,
			  uint8_t port, vb_time now);

/* Free what the switch keeps for adaptive routing, which is off from then. */
void fab_adaptive_free(struct vb_fab_node *node);

#endif

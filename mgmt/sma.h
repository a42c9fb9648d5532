/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet management agent of a node (IBA 14.2.5, 14.3): it answers Get and
 * Set of the attributes by which a subnet manager explores and configures a
 * fabric. It does no I/O: it asks its owner to change the state of a link.
 */
#ifndef MGMT_SMA_H
#define MGMT_SMA_H

#include "fabric/node.h"
#include "wire/smp.h"

struct vb_sma_ops {
	/* Change the state of a port, like vb_fab_set_state() and
	 * vb_fab_set_phys() (fabric/net.h). */
	int (*set_state)(void *arg, struct vb_fab_node *node, uint8_t port,
			 enum vb_fab_state state, vb_time now);
	int (*set_phys)(void *arg, struct vb_fab_node *node, uint8_t port,
			enum vb_fab_phys phys, vb_time now);
	/* Called after a subnet manager has set PortInfo or a P_Key table of a
	 * port that has a LID. May be NULL. */
	void (*configured)(void *arg, struct vb_fab_node *node, uint8_t port);
	void *arg;
};

enum vb_sma_verdict {
	SMA_ANSWERED, /* @mad now holds the answer */
	/* the SMP is for a program: SMInfo, a trap or a response */
	SMA_NOT_MINE,
	/* the M_Key is wrong: the SMP is dropped and counted; the caller sends
	 * trap 256 */
	SMA_BAD_MKEY,
};

/*
 * The SMP @mad has arrived at @node by port @in (0: at a switch's own LID, or
 * from a program of this node); @in is 1..ports at adapters. If the agent
 * refuses the request, the status of its answer says why.
 */
VB_MUST_CHECK enum vb_sma_verdict
vb_sma_hear(const struct vb_sma_ops *ops, struct vb_fab_node *node, uint8_t in,
	    uint8_t mad[VB_MAD_BYTES], vb_time now);

/* Returns the port whose LID, M_Key and P_Keys count for a MAD that came in at
 * @in: of a switch always port 0. */
static inline uint8_t vb_sma_own_port(const struct vb_fab_node *node,
				      uint8_t in)
{
	return node->kind == FAB_SWITCH ? 0 : in;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The management of a fabric: its nodes, and the MADs and frames that wait. */
#ifndef MGMT_NODES_PRIV_H
#define MGMT_NODES_PRIV_H

#include "mgmt/cca.h"
#include "mgmt/iou.h"
#include "mgmt/nodes.h"
#include "mgmt/pma.h"
#include "mgmt/sma.h"
#include "wire/mad_frame.h"

/* A MAD that a node has sent to itself. */
struct looped {
	struct looped *next;
	struct mgmt_node *node;
	uint8_t port;
	bool arrived; /* this node is the end of the MAD's directed route */
	struct vb_mad_frame frame;
	uint8_t mad[VB_MAD_BYTES];
};

/* A frame that waits until its port has room. */
struct waiting {
	struct waiting *next;
	size_t len;
	uint8_t bytes[VB_MAD_FRAME_MAX];
};

struct mgmt_port {
	struct mgmt_node *owner;
	uint8_t port;
	struct vb_agents *agents;
	struct waiting *first, **last;
	unsigned backlog;
	/* The logical and the physical state that a Set of PortInfo asks for;
	 * 0: no change. */
	uint8_t move_state, move_phys;
	/* The timer @move expires when the answer to the Set has left. */
	bool answer_leaves;
	struct vb_timer move;
	/* of a router: the agent that asks for paths has this number; -1: it
	 * has not been registered yet */
	int path_agent;
};

struct mgmt_node {
	struct vb_mgmt *m;
	struct vb_fab_node *node;
	struct vb_pma *pma;
	struct vb_cca *cca;
	/* the agent for device management; NULL: the node was never a
	 * target */
	struct vb_iou *iou;
	struct vb_traps traps;
	struct mgmt_port *port; /* the node's ports, 0..ports */
	struct mgmt_node *next;
};

struct vb_mgmt {
	struct vb_mgmt_ops ops;
	struct vb_sma_ops sma;
	struct vb_timers exchanges, traps, moves, samples;
	struct mgmt_node *nodes;
	struct looped *first, **last;
};

/* vb_agents_ops.transmit for the agents of a port; @arg is its mgmt_port. */
void vb_mgmt_transmit(void *arg, unsigned qpn, const struct vb_mad_addr *to,
		      const uint8_t mad[VB_MAD_BYTES], vb_time now);

/* vb_agents_ops.deliver for the agents of a port; @arg is its mgmt_port. Takes
 * the answers to a router's questions, and gives all else to the owner. */
void vb_mgmt_deliver(void *arg, void *client, const struct vb_mad_delivery *d);

#endif

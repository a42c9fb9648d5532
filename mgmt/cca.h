/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent of a node for congestion control (IBA annex A10.4): it answers Get
 * and Set of the attributes by which a manager tells switches when to mark
 * frames (fabric/node.h, struct vb_fab_marking) and adapters how to slow down
 * (struct vb_fab_cc). It does no I/O.
 */
#ifndef MGMT_CCA_H
#define MGMT_CCA_H

#include "fabric/node.h"
#include "mgmt/agents.h"
#include "wire/mad_frame.h"

struct vb_cca;

/* Make the agent of @node, which outlives it. NULL: no memory. */
struct vb_cca *vb_cca_create(struct vb_fab_node *node);
void vb_cca_destroy(struct vb_cca *a);

enum vb_cca_verdict {
	CCA_ANSWERED, /* The agent has written the answer to @mad. */
	/* The MAD is a trap or a response, which is for a program. */
	CCA_NOT_MINE,
	/* The MAD's CC_Key is wrong: dropped and counted; vb_cca_trap() reports
	 * it. */
	CCA_BAD_KEY,
};

/* A MAD of the class has come to the port @own: of a switch 0. If the agent
 * refuses the request, the status of its answer says why. */
VB_MUST_CHECK enum vb_cca_verdict vb_cca_hear(struct vb_cca *a, uint8_t own,
					      uint8_t mad[VB_MAD_BYTES],
					      vb_time now);

/*
 * Write the trap that reports the CC_Key of @mad, which came in @frame, to
 * @trap, and to *@to where it goes. False: nobody asked for traps
 * (ClassPortInfo has no TrapLID), or the port has sent one less than its
 * SubnetTimeout ago.
 */
VB_MUST_CHECK bool vb_cca_trap(struct vb_cca *a, uint8_t own,
			       const struct vb_mad_frame *frame,
			       const uint8_t mad[VB_MAD_BYTES],
			       uint8_t trap[VB_MAD_BYTES],
			       struct vb_mad_addr *to, vb_time now);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What a node does with a directed-route SMP: the subnet management interface
 * that every node has (IBA 14.2.2). Pure. */
#ifndef MGMT_SMI_H
#define MGMT_SMI_H

#include "fabric/node.h"
#include "wire/smp.h"

enum vb_smi_way {
	SMI_DROP,  /* it breaks a rule */
	SMI_HERE,  /* it has arrived: for the node's own agent, or a program */
	SMI_OUT,   /* send it from @port, both LIDs permissive */
	SMI_ROUTE, /* its directed part ends here: send it to the LID @dlid */
};

struct vb_smi_verdict {
	enum vb_smi_way way;
	uint8_t port;
	uint16_t dlid;
};

/*
 * The SMP @mad has come in at port @in of @node, or is @node's own (@in 0: a
 * program sends it, or it is the answer to one that arrived). Moves the hop
 * pointer and writes the return path.
 */
VB_MUST_CHECK struct vb_smi_verdict vb_smi_step(const struct vb_fab_node *node,
						uint8_t in,
						uint8_t mad[VB_MAD_BYTES]);

#endif

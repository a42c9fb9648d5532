/* SPDX-License-Identifier: BSD-2-Clause */
/* What a node does with a directed-route SMP: the subnet management interface
 * that every node has (IBA 14.2.2). It does no I/O. */
#ifndef MGMT_SMI_H
#define MGMT_SMI_H

#include "fabric/node.h"
#include "wire/smp.h"

enum vb_smi_action {
	SMI_DROP, /* drop the SMP, which breaks a rule */
	SMI_HERE, /* the SMP is for an agent of this node */
	SMI_OUT,  /* send the SMP from @port, with permissive LIDs */
	/* the directed part ends here: send the SMP to the LID @dlid */
	SMI_ROUTE,
};

struct vb_smi_verdict {
	enum vb_smi_action action;
	uint8_t port;
	uint16_t dlid;
};

/*
 * Decide where the SMP @mad goes that came in at port @in of @node. @in 0: a
 * program of @node sends @mad, or @mad is the answer to an SMP that arrived
 * here. This function moves the hop pointer and writes the return path in @mad.
 */
VB_MUST_CHECK struct vb_smi_verdict vb_smi_step(const struct vb_fab_node *node,
						uint8_t in,
						uint8_t mad[VB_MAD_BYTES]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What a node does with a directed-route SMP: the subnet management interface
 * that every node has (IBA 14.2.2). It does no I/O. */
#ifndef MGMT_SMI_H
#define MGMT_SMI_H

#include "fabric/node.h"
#include "wire/smp.h"

enum vb_smi_way {
	SMI_DROP,  /* it breaks a rule */
	SMI_HERE,  /* it is for an agent of this node */
	SMI_OUT,   /* send it from @port, both LIDs permissive */
	SMI_ROUTE, /* its directed part ends here: send it to the LID @dlid */
};

struct vb_smi_verdict {
	enum vb_smi_way way;
	uint8_t port;
	uint16_t dlid;
};

/*
 * Where does the SMP @mad go, which has come in at port @in of @node? @in 0: a
 * program of @node sends it, or it is the answer to one that arrived. Moves the
 * hop pointer and writes the return path in @mad.
 */
VB_MUST_CHECK struct vb_smi_verdict vb_smi_step(const struct vb_fab_node *node,
						uint8_t in,
						uint8_t mad[VB_MAD_BYTES]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The performance management agent of a node (IBA 16.1): what the data plane
 * has counted since a manager reset the counters. It does no I/O. */
#ifndef MGMT_PMA_H
#define MGMT_PMA_H

#include "fabric/node.h"
#include "wire/mad.h"

/* The value that each counter of each port had when a manager last reset it,
 * for each attribute that shows it. */
struct vb_pma;

/* Make the performance agent of @node, which must outlive the agent. NULL: no
 * memory. */
struct vb_pma *vb_pma_create(const struct vb_fab_node *node);
void vb_pma_destroy(struct vb_pma *pma);

/* Answer a MAD of the performance class: the answer replaces the bytes of @mad.
 * False: @mad is no request, so no answer is due. */
VB_MUST_CHECK bool vb_pma_hear(struct vb_pma *pma,
			       const struct vb_fab_node *node,
			       uint8_t mad[VB_MAD_BYTES]);

#endif

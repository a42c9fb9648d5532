/* SPDX-License-Identifier: BSD-2-Clause */
/* The performance management agent of a node (IBA 16.1): what the data plane
 * counts, since somebody reset it. Pure. */
#ifndef MGMT_PMA_H
#define MGMT_PMA_H

#include "fabric/node.h"
#include "wire/mad.h"

/* What each counter of each port was when it was reset, for each attribute
 * that shows it. */
struct vb_pma;

/* For @node, which outlives it. NULL: no memory. */
struct vb_pma *vb_pma_create(const struct vb_fab_node *node);
void vb_pma_destroy(struct vb_pma *pma);

/* The MAD @mad of the performance class has come in; it becomes the answer.
 * False: it is no request, and there is no answer. */
VB_MUST_CHECK bool vb_pma_hear(struct vb_pma *pma,
			       const struct vb_fab_node *node,
			       uint8_t mad[VB_MAD_BYTES]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The performance management agent of a node (IBA 16.1): what the data plane
 * has counted since a manager reset the counters. It does no I/O. */
#ifndef MGMT_PMA_H
#define MGMT_PMA_H

#include "base/timer.h"
#include "fabric/node.h"
#include "wire/mad.h"

/* The values that counters had when a manager last reset them, for each
 * attribute that shows them; and a sample. */
struct vb_pma;

/* Make the performance agent of @node, which must outlive the agent. @timers:
 * the owner's heap, in which the agent has one timer. NULL: no memory. */
struct vb_pma *vb_pma_create(struct vb_fab_node *node,
			     struct vb_timers *timers);
void vb_pma_destroy(struct vb_pma *pma);

/* Answer a MAD of the performance class: the answer replaces the bytes of @mad.
 * False: @mad is no request, so no answer is due. */
VB_MUST_CHECK bool vb_pma_hear(struct vb_pma *pma, uint8_t mad[VB_MAD_BYTES],
			       vb_time now);

/* Returns the agent whose timer has expired. Its owner brings the counters of
 * the sampled port up to date, and then calls vb_pma_expire(). */
struct vb_pma *vb_pma_of(struct vb_timer *timer);
struct vb_fab_node *vb_pma_node(const struct vb_pma *pma);
uint8_t vb_pma_sampled_port(const struct vb_pma *pma);
void vb_pma_expire(struct vb_pma *pma, vb_time now);

#endif

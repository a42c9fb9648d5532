/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent of an adapter for device management (IBA 16.3). An adapter that is
 * a target is an I/O unit with controllers, each of which offers services; the
 * agent tells initiators which. It does no I/O.
 */
#ifndef MGMT_IOU_H
#define MGMT_IOU_H

#include "fabric/node.h"
#include "wire/iou.h"

#define VB_IOU_SLOTS	16 /* slots of a unit */
#define VB_IOU_SERVICES 64 /* service entries of all controllers of a unit */

/*
 * What a unit consists of. Slots 1 to @controllers have a
 * controller, the others are empty. A controller that has no row in @entry is a
 * target of the SCSI RDMA Protocol (SRP): its one service has the controller's
 * GUID for its ID and in its name.
 */
struct vb_iou_unit {
	uint8_t controllers; /* 0: the adapter is no target */
	uint8_t entries;     /* rows of @entry in use */
	struct {
		uint8_t slot;
		struct vb_iou_service service;
	} entry[VB_IOU_SERVICES];
};

struct vb_iou;

/* Make the agent of @node, which outlives it; the unit has no controller. NULL:
 * no memory. */
struct vb_iou *vb_iou_create(const struct vb_fab_node *node);
void vb_iou_destroy(struct vb_iou *a);

/* Change what the unit consists of. If it differs from before, ChangeID counts
 * up. */
void vb_iou_set(struct vb_iou *a, const struct vb_iou_unit *unit);

/* A MAD of the class has come to the port @own. True: the agent has written the
 * answer to @mad; if it refuses the request, the answer's status says why.
 * False: the adapter is no target, or the MAD is a trap or a response. */
VB_MUST_CHECK bool vb_iou_hear(struct vb_iou *a, uint8_t own,
			       uint8_t mad[VB_MAD_BYTES]);

/* Returns the GUID of the controller in the slot @slot (1..VB_IOU_SLOTS) of
 * @node. */
uint64_t vb_iou_guid(const struct vb_fab_node *node, unsigned slot);

#endif

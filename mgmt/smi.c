/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Directed routes (IBA 14.2.2). The clauses in the comments are those of the
 * specification's list for the hop pointer: on the way out C14-9, on the way
 * back C14-13.
 */
#include "mgmt/smi.h"

#define HOP_POINTER_AT 6

static const struct vb_smi_verdict dropped = { .action = SMI_DROP };
static const struct vb_smi_verdict arrived = { .action = SMI_HERE };

static struct vb_smi_verdict leave_by(const struct vb_fab_node *node,
				      uint8_t port)
{
	if (port == 0 || port > node->ports)
		return dropped;
	return (struct vb_smi_verdict){ .action = SMI_OUT, .port = port };
}

/* The directed part of the route ends here: the SMP is for this node, or goes
 * on by LID. */
static struct vb_smi_verdict end_directed(uint16_t lid)
{
	if (lid == VB_LID_PERMISSIVE)
		return arrived;
	return (struct vb_smi_verdict){ .action = SMI_ROUTE, .dlid = lid };
}

static struct vb_smi_verdict go_out(const struct vb_fab_node *node, uint8_t in,
				    uint8_t *mad, const struct vb_smp_hdr *h)
{
	const uint8_t *path = mad + VB_SMP_INITIAL_PATH_AT;
	uint8_t *back = mad + VB_SMP_RETURN_PATH_AT;
	unsigned at = h->hop_pointer, count = h->hop_count;

	/* The directed route begins at this node. */
	if (at == 0 && count > 0) {
		mad[HOP_POINTER_AT] = 1;
		return leave_by(node, path[1]);
	}
	if (at > 0 && at < count) { /* The directed route passes this node. */
		if (node->kind != FAB_SWITCH || in == 0)
			return dropped;
		back[at] = in;
		mad[HOP_POINTER_AT] = (uint8_t)(at + 1);
		return leave_by(node, path[at + 1]);
	}
	/* The directed part of the route ends at this node. */
	if (at == count) {
		if (count > 0)
			back[at] = in;
		mad[HOP_POINTER_AT] = (uint8_t)(at + 1);
		return end_directed(h->dr_dlid);
	}
	/* The SMP has passed the directed part of its route, and came by
	 * LID. */
	return at == count + 1 ? arrived : dropped;
}

static struct vb_smi_verdict come_back(const struct vb_fab_node *node,
				       uint8_t in, uint8_t *mad,
				       const struct vb_smp_hdr *h)
{
	const uint8_t *back = mad + VB_SMP_RETURN_PATH_AT;
	unsigned at = h->hop_pointer, count = h->hop_count;

	if (at == 0)
		return arrived;
	if (at > count + 1)
		return dropped;
	mad[HOP_POINTER_AT] = (uint8_t)(at - 1);
	if (at == 1)
		return end_directed(h->dr_slid);
	/* The way back may begin at any node; only a switch lets SMPs pass. */
	if (at <= count && (node->kind != FAB_SWITCH || in == 0))
		return dropped;
	return leave_by(node, back[at - 1]);
}

struct vb_smi_verdict vb_smi_step(const struct vb_fab_node *node, uint8_t in,
				  uint8_t mad[VB_MAD_BYTES])
{
	struct vb_smp_hdr h;

	vb_smp_hdr_get(mad, &h);
	if (h.hop_count >= VB_SMP_HOPS)
		return dropped;
	return h.status & VB_SMP_DIRECTION ? come_back(node, in, mad, &h)
					   : go_out(node, in, mad, &h);
}

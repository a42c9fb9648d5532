/* SPDX-License-Identifier: BSD-2-Clause */
/* What NETLINK_RDMA tells of: this user's devices, their counters, and the
 * objects on them. */
#ifndef FRONT_NETLINK_FACTS_H
#define FRONT_NETLINK_FACTS_H

#include "engine/census.h"
#include "engine/counters.h"

/* A character device. */
struct vb_nl_node {
	char name[32]; /* empty: there is none */
	uint64_t number;
};

struct vb_nl_device {
	char name[64], netdev[16], firmware[32];
	uint32_t index, ifindex;
	uint64_t guid, image_guid; /* host order */
	uint8_t node_type;	   /* enum ibv_node_type */
	uint8_t state, phys_state; /* as in sysfs */
	struct vb_nl_node verbs, mad;
};

struct vb_nl_facts {
	struct vb_nl_device *devices;
	unsigned count;
	struct vb_census census;
	struct vb_counter_file *files;
	unsigned counter_of;
};

/* What a question needs: gathering it costs something. */
enum vb_nl_need {
	NEED_DEVICES = 1 << 0,
	NEED_SUMS = 1 << 1,
	NEED_ROWS = 1 << 2,
	NEED_COUNTERS = 1 << 3,
};

/* To vb_nl_forget(), also when it fails. @tree: its root
 * (engine/sysfs_tree.h). -errno. */
VB_MUST_CHECK int vb_nl_gather(const char *tree, unsigned need,
			       struct vb_nl_facts *facts);
void vb_nl_forget(struct vb_nl_facts *facts);

/* Devices from the text that lies in the tree (engine/sysfs_text.c), whatever
 * it says. -ENOMEM. */
VB_MUST_CHECK int vb_nl_read(const char *text, struct vb_nl_facts *facts);

#endif

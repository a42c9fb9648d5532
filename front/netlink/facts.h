/* SPDX-License-Identifier: BSD-2-Clause */
/* The facts that NETLINK_RDMA reports: the user's devices, their counters, and
 * the objects on them. */
#ifndef FRONT_NETLINK_FACTS_H
#define FRONT_NETLINK_FACTS_H

#include "engine/census.h"
#include "engine/counters.h"

/* A character device: its name and number. */
struct vb_nl_node {
	char name[32]; /* name of the device; empty: there is none */
	uint64_t number;
};

/* the most ports of a device that are reported; further ones are not */
#define VB_NL_PORTS 16

struct vb_nl_port {
	char netdev[16]; /* the port's interface; empty: none */
	uint32_t ifindex;
	uint8_t state, phys_state; /* as numbers in sysfs; 0: no such port */
	bool infiniband;	   /* the link layer is InfiniBand */
	uint32_t caps, lid, lmc, sm_lid;
	uint64_t prefix; /* subnet prefix, the upper half of GID 0 */
	struct vb_nl_node mad;
};

struct vb_nl_device {
	char name[64], firmware[32];
	uint32_t index;
	uint64_t guid, image_guid; /* GUIDs in host byte order */
	uint8_t node_type;	   /* type of the node, an enum ibv_node_type */
	struct vb_nl_node verbs;
	/* the interface that was read last */
	char netdev[16];
	uint32_t ifindex;
	unsigned mad_port; /* the port of the MAD device that was read last */
	unsigned ports; /* the highest number of a port, at most VB_NL_PORTS */
	/* indexed by the number of the port, minus 1 */
	struct vb_nl_port port[VB_NL_PORTS];
};

struct vb_nl_facts {
	struct vb_nl_device *devices;
	unsigned count;
	struct vb_census census;
	struct vb_counter_file *files;
	unsigned counter_of;
};

/* The facts that a request needs. vb_nl_gather() reads only these, since each
 * of them costs system calls. */
enum vb_nl_need {
	NEED_DEVICES = 1 << 0,
	/* the number of objects of each kind on each device */
	NEED_SUMS = 1 << 1,
	NEED_ROWS = 1 << 2, /* the objects themselves */
	NEED_COUNTERS = 1 << 3,
};

/* Gather facts, which the caller frees by vb_nl_forget(), even after a failure.
 * @tree: the root of the tree (engine/sysfs_tree.h). Returns 0 or -errno. */
VB_MUST_CHECK int vb_nl_gather(const char *tree, unsigned need,
			       struct vb_nl_facts *facts);
void vb_nl_forget(struct vb_nl_facts *facts);

/* Read the devices from the text of the tree (engine/sysfs_text.c). The text
 * may be anything: lines of another form are skipped. Returns 0 or -ENOMEM. */
VB_MUST_CHECK int vb_nl_read(const char *text, struct vb_nl_facts *facts);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The topology of a fabric: its nodes and links, as a file describes them. The
 * file has the format that ibnetdiscover prints and that ibsim reads, and in
 * addition lines "#! link" and "#! node" with the parameters of emulated links
 * and nodes (docs/FABRIC.md has the grammar).
 */
#ifndef FABRICD_TOPOLOGY_H
#define FABRICD_TOPOLOGY_H

#include <stdio.h>

#include "fabric/router.h"
#include "mgmt/iou.h"

/* most bytes of a node's id, with the NUL at its end */
#define VB_TOPO_ID    65
#define VB_TOPO_ERROR 1024
#define VB_TOPO_NODES 65536

/* most bytes of a host's name or address, with the NUL at its end */
#define VB_TOPO_HOST 128

enum vb_topo_via { VIA_NONE, VIA_UDP, VIA_TCP };

/* For a link to another process: the process's address, and the port at the
 * other end of the link. */
struct vb_topo_far {
	enum vb_topo_via via;
	/* the other process's host, a name or an address */
	char host[VB_TOPO_HOST];
	/* UDP or TCP ports: @port of the other process, @local of this one */
	uint16_t port, local;
	/* GUID of the node at the other end; 0: that node is in this topology,
	 * too */
	uint64_t guid;
	uint8_t kind, peer_port;
	char desc[VB_TOPO_ID];
};

struct vb_topo_port {
	bool linked;
	uint32_t peer; /* index of the node at the other end of the link */
	uint8_t peer_port;
	/* the line of the file that describes the link; 0: only the peer's line
	 * does */
	unsigned line;
	uint64_t guid; /* the port's GUID; 0: the file gives none */
	/* The widths and speeds that the port supports; 0: the defaults of a
	 * node's ports. */
	uint8_t width, speed, speed_ext;
	/* the parameters of the link, equal at both of its ends */
	struct vb_fab_link_spec spec;
	/* For a link to another process: where the other end is. NULL: the file
	 * gives no address. Not used if @linked, that is, if both ends are in
	 * this process. */
	struct vb_topo_far *far;
};

/* The routes of a router to subnets that it is not linked to. */
struct vb_topo_routes {
	unsigned count;
	struct vb_fab_prefix route[VB_FAB_PREFIXES];
};

/* Parameters of a node. 0 in a field stands for the default of
 * vb_fab_node_create(). */
struct vb_topo_spec {
	uint8_t mtu_cap, vl_cap; /* codes of PortInfo's MTUCap and VLCap */
	uint16_t pkeys, linear_cap, random_cap, mcast_cap;
	uint32_t latency_ns;
	bool store_and_forward;
	uint8_t ethernet; /* number of a switch's Ethernet ports */
	bool adaptive; /* a switch spreads flows over all shortest paths */
	/* the controllers of an adapter that is a target; NULL: the node is no
	 * target */
	struct vb_iou_unit *unit;
	/* a router's routes; NULL: it has none but those to its own subnets */
	struct vb_topo_routes *routes;
};

struct vb_topo_node {
	/* @kind: an enum vb_fab_kind; @ports: the number of ports */
	uint8_t kind, ports;
	/* the node's id: the name that the file uses for it */
	char id[VB_TOPO_ID];
	char desc[VB_TOPO_ID]; /* the node's NodeDescription */
	uint64_t guid, sys_guid;
	uint32_t vendor_id, device_id;
	struct vb_topo_spec spec;
	unsigned line;
	const char *file;
	/* the node's ports, from [1] to [@ports]; [0] is unused */
	struct vb_topo_port *port;
};

struct vb_topo {
	struct vb_topo_node *nodes;
	uint32_t count, room;
	/* hash table that finds a node's index by its id; its size, @hash_room,
	 * is a power of two */
	uint32_t *by_id;
	uint32_t hash_room;
	/* names of the files that were read, which @file of nodes points to */
	char **files;
	unsigned file_count;
};

/* Read the file @path and the files that it includes into @topo, which the
 * caller has set to zero. Returns 0; -EINVAL: a file breaks a rule of the
 * format; -ENOMEM; or -errno of reading. If it fails, @error says FILE:LINE:
 * cause. The caller frees @topo in any case. */
VB_MUST_CHECK int vb_topo_read(struct vb_topo *topo, const char *path,
			       char error[VB_TOPO_ERROR]);

/* Make the topology that @spec describes: "fat-tree:2:18x36", "torus:4x4",
 * "dragonfly:4:2:2", "switch:2". Returns 0; -EINVAL, and @error has the cause;
 * -ENOMEM. */
VB_MUST_CHECK int vb_topo_make(struct vb_topo *topo, const char *spec,
			       char error[VB_TOPO_ERROR]);
/* A help text for users: one line for each kind of topology. */
extern const char vb_topo_kinds[];

/*
 * Remove all nodes from @topo but those that one process is to run: the nodes
 * that @names lists (NULL ends the list), and the adapters all of whose links
 * go to listed switches. A link that this cuts must have an address of the
 * other process (@far of its port). Returns 0; -EINVAL and @error; -ENOMEM.
 */
VB_MUST_CHECK int vb_topo_part(struct vb_topo *topo, const char *const *names,
			       char error[VB_TOPO_ERROR]);

void vb_topo_free(struct vb_topo *topo);

/* Find a node by its id, or else by its description. NULL: no node has the name
 * @name, or several nodes have it as their description. */
struct vb_topo_node *vb_topo_find(const struct vb_topo *topo, const char *name);

/* Write @topo in the format of ibnetdiscover. vb_topo_read() gets equal nodes,
 * links and parameters from it; only the ids differ, which are made from the
 * GUIDs. False: writing failed. */
VB_MUST_CHECK bool vb_topo_write(const struct vb_topo *topo, FILE *to);

/* Add a node without links, and set *@index to its index. Returns 0; -EINVAL
 * and @error: the id is taken, @ports is impossible, or there are too many
 * nodes; -ENOMEM. */
VB_MUST_CHECK int vb_topo_add(struct vb_topo *topo, uint8_t kind,
			      unsigned ports, const char *id, uint32_t *index,
			      char error[VB_TOPO_ERROR]);
/* Remove the node that was added last. It has no links. */
void vb_topo_drop(struct vb_topo *topo);
/* Link two ports that have no link. */
void vb_topo_link(struct vb_topo *topo, uint32_t a, unsigned a_port, uint32_t b,
		  unsigned b_port);
/* Give a GUID to each node that has none, and check that there is a node and
 * that all GUIDs differ. The caller calls it again after it has added nodes.
 * Returns 0; -EINVAL and @error; -ENOMEM. */
VB_MUST_CHECK int vb_topo_finish(struct vb_topo *topo,
				 char error[VB_TOPO_ERROR]);

/* Read the parameters of a link, such as "delay=50us rate=8G", into @spec; a
 * parameter that @text does not name keeps its value. Returns 0; -EINVAL: @text
 * is wrong, and @error says how. */
VB_MUST_CHECK int vb_topo_link_spec(const char *text,
				    struct vb_fab_link_spec *spec,
				    char error[VB_TOPO_ERROR]);

/* Read the parameters of a node of kind @kind, such as "mtu=2048 vls=4", into
 * @spec; a parameter that @text does not name keeps its value. @running: the
 * fabric runs, so parameters that are fixed at its start are refused. Returns
 * 0; -EINVAL and @error; -ENOMEM. If it fails, @spec has some of the changes;
 * in any case the caller ends with vb_topo_spec_free(). */
VB_MUST_CHECK int vb_topo_node_spec(const char *text, uint8_t kind,
				    bool running, struct vb_topo_spec *spec,
				    char error[VB_TOPO_ERROR]);

/* Check that the routes of @spec lead to ports of a router that has @ports.
 * Returns 0; -EINVAL and @error. */
VB_MUST_CHECK int vb_topo_check_routes(const struct vb_topo_spec *spec,
				       unsigned ports,
				       char error[VB_TOPO_ERROR]);

/* Copy @from to @to, which the caller ends with vb_topo_spec_free(). Returns 0
 * or -ENOMEM. */
VB_MUST_CHECK int vb_topo_spec_copy(const struct vb_topo_spec *from,
				    struct vb_topo_spec *to);
/* Free what @spec points to. */
void vb_topo_spec_free(struct vb_topo_spec *spec);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The topology of a fabric, described by a file in the format that
 * ibnetdiscover prints and that ibsim reads, with comment lines "#! link" for
 * the properties that only an emulated link has (docs/FABRIC.md has the
 * grammar).
 */
#ifndef FABRICD_TOPOLOGY_H
#define FABRICD_TOPOLOGY_H

#include <stdio.h>

#include "fabric/net.h"

#define VB_TOPO_ID    65 /* bytes of an id, with the NUL at its end */
#define VB_TOPO_ERROR 1024
#define VB_TOPO_NODES 65536

struct vb_topo_port {
	bool linked;
	uint32_t peer; /* index of the peer's node */
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
};

struct vb_topo_node {
	uint8_t kind, ports; /* @kind: an enum vb_fab_kind */
	/* the node's id, the name that the file gives it */
	char id[VB_TOPO_ID];
	char desc[VB_TOPO_ID]; /* the node's NodeDescription */
	uint64_t guid, sys_guid;
	uint32_t vendor_id, device_id;
	unsigned line;
	const char *file;
	/* the ports, @ports of them; [0] is unused */
	struct vb_topo_port *port;
};

struct vb_topo {
	struct vb_topo_node *nodes;
	uint32_t count, room;
	/* hash table: index of a node by its id; its size is a power of two */
	uint32_t *by_id;
	uint32_t hash_room;
	char **files; /* names of the files that were read */
	unsigned file_count;
};

/* Read the file @path and the files that it includes into @topo, which is all
 * zero before. 0; -EINVAL: a file breaks a rule; -ENOMEM; or another -errno of
 * reading. @error says FILE:LINE: cause. The caller frees @topo in any case. */
VB_MUST_CHECK int vb_topo_read(struct vb_topo *topo, const char *path,
			       char error[VB_TOPO_ERROR]);

/* Make the topology that @spec describes: "fat-tree:2:18x36", "torus:4x4",
 * "dragonfly:4:2:2", "switch:2". Errors as of vb_topo_read(). */
VB_MUST_CHECK int vb_topo_make(struct vb_topo *topo, const char *spec,
			       char error[VB_TOPO_ERROR]);
/* A help text for users: one line for each kind of topology. */
extern const char vb_topo_kinds[];

void vb_topo_free(struct vb_topo *topo);

/* Find a node by its id, or else by its description. NULL: no node has the
 * name, or several nodes have the description. */
struct vb_topo_node *vb_topo_find(const struct vb_topo *topo, const char *name);

/* Write @topo in the format of ibnetdiscover. A program that reads the file
 * gets equal nodes, links and parameters, but ids that are made of GUIDs.
 * False: writing failed. */
VB_MUST_CHECK bool vb_topo_write(const struct vb_topo *topo, FILE *to);

/* Add a node; it has no links. -EINVAL and @error: the id is taken, @ports is
 * impossible, or there are too many nodes; -ENOMEM. *@index: the node's
 * index. */
VB_MUST_CHECK int vb_topo_add(struct vb_topo *topo, uint8_t kind,
			      unsigned ports, const char *id, uint32_t *index,
			      char error[VB_TOPO_ERROR]);
/* Link two ports, neither of which has a link. */
void vb_topo_link(struct vb_topo *topo, uint32_t a, unsigned a_port, uint32_t b,
		  unsigned b_port);
/* Give a GUID to each node that has none. Check that the topology has a node,
 * and that all GUIDs differ. 0; -EINVAL; -ENOMEM. */
VB_MUST_CHECK int vb_topo_finish(struct vb_topo *topo,
				 char error[VB_TOPO_ERROR]);

/* Read the parameters of a link, such as "delay=50us rate=8G", into @spec; a
 * parameter that the text does not name keeps its value. -EINVAL: the text is
 * wrong, and @error says how. */
VB_MUST_CHECK int vb_topo_link_spec(const char *text,
				    struct vb_fab_link_spec *spec,
				    char error[VB_TOPO_ERROR]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a fabric consists of, as a file says it: the format that ibnetdiscover
 * prints and that ibsim reads, with comment lines "#! link" and "#! node" for
 * what emulated links and nodes need beside (docs/FABRIC.md has the grammar).
 */
#ifndef FABRICD_TOPOLOGY_H
#define FABRICD_TOPOLOGY_H

#include <stdio.h>

#include "fabric/net.h"

#define VB_TOPO_ID    65 /* bytes of an id, with the NUL at its end */
#define VB_TOPO_ERROR 1024
#define VB_TOPO_NODES 65536

#define VB_TOPO_HOST 128 /* with its NUL */

enum vb_topo_via { VIA_NONE, VIA_UDP, VIA_TCP };

/* The other process of a link, and the end that it has. */
struct vb_topo_far {
	enum vb_topo_via via;
	char host[VB_TOPO_HOST]; /* a name or an address */
	uint16_t port, local;	 /* there, and here */
	uint64_t guid;		 /* of the node there; 0: it is in this file */
	uint8_t kind, peer_port;
	char desc[VB_TOPO_ID];
};

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
	/* Where the other end is when it is in another process. If @linked, it
	 * is in this one, and this is not used. NULL: not given. */
	struct vb_topo_far *far;
};

/* What a node has, if not the defaults of vb_fab_node_create(), for which 0
 * stands. */
struct vb_topo_spec {
	uint8_t mtu_cap, vl_cap; /* codes of PortInfo */
	uint16_t pkeys, linear_cap, random_cap, mcast_cap;
	uint32_t latency_ns;
	bool store_and_forward;
};

struct vb_topo_node {
	uint8_t kind, ports; /* @kind: an enum vb_fab_kind */
	/* the node's id, the name that the file gives it */
	char id[VB_TOPO_ID];
	char desc[VB_TOPO_ID]; /* the node's NodeDescription */
	uint64_t guid, sys_guid;
	uint32_t vendor_id, device_id;
	struct vb_topo_spec spec;
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

/*
 * Keep only the nodes that @names (NULL ends it) has, and the adapters all of
 * whose links go to switches among them. A link that is cut needs @far. 0;
 * -EINVAL and @error; -ENOMEM.
 */
VB_MUST_CHECK int vb_topo_part(struct vb_topo *topo, const char *const *names,
			       char error[VB_TOPO_ERROR]);

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
/* Remove the node that was added last, which has no links. */
void vb_topo_drop(struct vb_topo *topo);
/* Link two ports that have no link. */
void vb_topo_link(struct vb_topo *topo, uint32_t a, unsigned a_port, uint32_t b,
		  unsigned b_port);
/* Give a GUID to each node that has none, and check that there is a node and
 * that all GUIDs differ. Call it again for nodes that are added later. 0;
 * -EINVAL; -ENOMEM. */
VB_MUST_CHECK int vb_topo_finish(struct vb_topo *topo,
				 char error[VB_TOPO_ERROR]);

/* Read the parameters of a link, such as "delay=50us rate=8G", into @spec; a
 * parameter that the text does not name keeps its value. -EINVAL: the text is
 * wrong, and @error says how. */
VB_MUST_CHECK int vb_topo_link_spec(const char *text,
				    struct vb_fab_link_spec *spec,
				    char error[VB_TOPO_ERROR]);

/* The same for the parameters of a node of kind @kind, "mtu=2048 vls=4".
 * @running: of a fabric that runs, in which only some may change. */
VB_MUST_CHECK int vb_topo_node_spec(const char *text, uint8_t kind,
				    bool running, struct vb_topo_spec *spec,
				    char error[VB_TOPO_ERROR]);

#endif

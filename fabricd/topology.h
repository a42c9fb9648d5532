/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a fabric consists of, as a file says it: the format that ibnetdiscover
 * prints and that ibsim reads, with comment lines "#! link" for what an
 * emulated link needs beside (docs/FABRIC.md has the grammar).
 */
#ifndef FABRICD_TOPOLOGY_H
#define FABRICD_TOPOLOGY_H

#include <stdio.h>

#include "fabric/net.h"

#define VB_TOPO_ID    65 /* with its NUL */
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
	uint32_t peer; /* index of a node */
	uint8_t peer_port;
	unsigned line; /* the line that says so; 0: the peer's line does */
	uint64_t guid; /* 0: not given */
	/* What the port supports; 0: what a node's ports have by default. */
	uint8_t width, speed, speed_ext;
	struct vb_fab_link_spec spec; /* the same at both ends */
	/* Where the other end is when it is in another process. If @linked, it
	 * is in this one, and this is not used. NULL: not given. */
	struct vb_topo_far *far;
};

struct vb_topo_node {
	uint8_t kind, ports;   /* enum vb_fab_kind */
	char id[VB_TOPO_ID];   /* as the file calls it */
	char desc[VB_TOPO_ID]; /* NodeDescription */
	uint64_t guid, sys_guid;
	uint32_t vendor_id, device_id;
	unsigned line;
	const char *file;
	struct vb_topo_port *port; /* [1..ports] */
};

struct vb_topo {
	struct vb_topo_node *nodes;
	uint32_t count, room;
	uint32_t *by_id; /* hash table of indices, 2^n in size */
	uint32_t hash_room;
	char **files; /* names of the files that were read */
	unsigned file_count;
};

/* Read the file @path and those that it includes into @topo, which is all zero
 * before. 0; -EINVAL: a file breaks a rule; -ENOMEM; or another -errno of
 * reading. @error says FILE:LINE: cause. The caller frees @topo in any case. */
VB_MUST_CHECK int vb_topo_read(struct vb_topo *topo, const char *path,
			       char error[VB_TOPO_ERROR]);

/* Make what @spec describes: "fat-tree:2:18x36", "torus:4x4",
 * "dragonfly:4:2:2", "switch:2". As vb_topo_read(). */
VB_MUST_CHECK int vb_topo_make(struct vb_topo *topo, const char *spec,
			       char error[VB_TOPO_ERROR]);
/* One line for each kind, for people. */
extern const char vb_topo_kinds[];

/*
 * Keep only the nodes that @names (NULL ends it) has, and the adapters all of
 * whose links go to switches among them. A link that is cut needs @far. 0;
 * -EINVAL and @error; -ENOMEM.
 */
VB_MUST_CHECK int vb_topo_part(struct vb_topo *topo, const char *const *names,
			       char error[VB_TOPO_ERROR]);

void vb_topo_free(struct vb_topo *topo);

/* The node that is called @name: by its id, or else its description. NULL:
 * none, or several have the description. */
struct vb_topo_node *vb_topo_find(const struct vb_topo *topo, const char *name);

/* Write @topo in the format of ibnetdiscover. Who reads it gets the same nodes,
 * links and parameters, but ids made of GUIDs. False: writing failed. */
VB_MUST_CHECK bool vb_topo_write(const struct vb_topo *topo, FILE *to);

/* Add a node; it has no links. -EINVAL and @error: the id is taken, @ports is
 * impossible, or there are too many nodes; -ENOMEM. *@index: the node's
 * index. */
VB_MUST_CHECK int vb_topo_add(struct vb_topo *topo, uint8_t kind,
			      unsigned ports, const char *id, uint32_t *index,
			      char error[VB_TOPO_ERROR]);
/* Link two ports that have no link. */
void vb_topo_link(struct vb_topo *topo, uint32_t a, unsigned a_port, uint32_t b,
		  unsigned b_port);
/* Give a GUID to each node that has none, and check that there is a node and
 * that all GUIDs differ. 0; -EINVAL; -ENOMEM. */
VB_MUST_CHECK int vb_topo_finish(struct vb_topo *topo,
				 char error[VB_TOPO_ERROR]);

/* Read the parameters of a link, "delay=50us rate=8G", into @spec; what they do
 * not name stays. -EINVAL and @error: what is wrong. */
VB_MUST_CHECK int vb_topo_link_spec(const char *text,
				    struct vb_fab_link_spec *spec,
				    char error[VB_TOPO_ERROR]);

#endif

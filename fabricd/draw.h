/* SPDX-License-Identifier: BSD-2-Clause */
/* Pictures of a fabric, and the paths of frames through it. */
#ifndef FABRICD_DRAW_H
#define FABRICD_DRAW_H

#include "fabricd/fabricd_priv.h"

/* --- fabricd/path.c --- */

#define VB_HOPS_MOST 64

/* A node that a frame passes. @in, @out: the ports by which the frame enters
 * and leaves the node; 0: the path begins or ends at this node. */
struct hop {
	struct vb_fab_node *node;
	uint8_t in, out;
};

struct fd_path {
	uint16_t from, to; /* the LIDs of the path's first and last port */
	unsigned count;
	struct hop hop[VB_HOPS_MOST];
};

/* Follow the switches' forwarding tables from one LID to another; @text is
 * "FROM:TO", such as "5:6"; FROM may be a node, for LIDs are not the same in
 * each subnet. Sets *@w to the nodes that a frame passes. Returns
 * 0; -EINVAL: no port has the LID, or the tables do not lead to it, and @error
 * says where they end. */
int vb_fabricd_path(const struct vb_fabricd *f, const char *text,
		    struct fd_path *w, char error[VB_TOPO_ERROR]);
void vb_fabricd_path_print(const struct vb_fabricd *f, const struct fd_path *w,
			   FILE *to);

/* --- fabricd/layout.c --- */

struct spot {
	float x, y;
};

struct layout {
	struct spot *spot; /* by index of the node: where it is drawn */
	float width, height;
};

/* Choose where each node is drawn. The switches are drawn in tiers if all links
 * between switches join neighbouring tiers, else in a circle or a grid. Returns
 * 0 or -ENOMEM. The caller frees l->spot. */
int vb_fabricd_layout(const struct vb_fabricd *f, struct layout *l);

/* --- fabricd/draw.c --- */

/* Remember how much each port has sent until now, so that a later picture shows
 * how much of its rate each port has used since this call. Returns 0 or
 * -ENOMEM. */
int vb_fabricd_mark(struct vb_fabricd *f, vb_time now);
/* Write a picture of the fabric to @to, as SVG, or (@page) as a page of XHTML
 * that contains the SVG. @w: a path to mark in the picture; NULL:
 * none. Returns 0 or -ENOMEM. */
int vb_fabricd_draw(const struct vb_fabricd *f, bool page,
		    const struct fd_path *w, FILE *to, vb_time now);

#endif

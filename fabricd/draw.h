/* SPDX-License-Identifier: BSD-2-Clause */
/* Pictures of a fabric, and ways through it. */
#ifndef FABRICD_DRAW_H
#define FABRICD_DRAW_H

#include "fabricd/fabricd_priv.h"

/* --- fabricd/path.c --- */

#define VB_HOPS_MOST 64

/* A node on a path. @in, @out: its ports; 0: the path begins or ends there. */
struct hop {
	struct vb_fab_node *node;
	uint8_t in, out;
};

struct fd_path {
	uint16_t from, to; /* LIDs */
	unsigned count;
	struct hop hop[VB_HOPS_MOST];
};

/* The path that the forwarding tables give a frame, for "5:6". 0; -EINVAL and
 * @error: no such LID, or where the path ends. */
int vb_fabricd_path(const struct vb_fabricd *f, const char *text,
		    struct fd_path *w, char error[VB_TOPO_ERROR]);
void vb_fabricd_path_print(const struct vb_fabricd *f, const struct fd_path *w,
			   FILE *to);

/* --- fabricd/layout.c --- */

struct spot {
	float x, y;
};

struct layout {
	struct spot *spot; /* of each node, by index */
	float width, height;
};

/* Tiers, where links between switches join neighbouring ones; else a circle or
 * a grid of the switches. 0 or -ENOMEM. The caller frees l->spot. */
int vb_fabricd_layout(const struct vb_fabricd *f, struct layout *l);

/* --- fabricd/draw.c --- */

/* Note what ports have sent until now: a later picture shows their use since.
 */
int vb_fabricd_mark(struct vb_fabricd *f, vb_time now);
/* Draw, as SVG, or as a page of XHTML around it. @w: a path to show; NULL:
 * none. 0 or -ENOMEM. */
int vb_fabricd_draw(const struct vb_fabricd *f, bool page,
		    const struct fd_path *w, FILE *to, vb_time now);

#endif

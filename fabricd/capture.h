/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures of what passes ports, for programs that ask. */
#ifndef FABRICD_CAPTURE_H
#define FABRICD_CAPTURE_H

#include "fabricd/fabricd_priv.h"

struct capture;

/* The program that asked. */
struct capture_outlet {
	/* Take these bytes. False: it has no room, and nothing was taken. */
	bool (*put)(void *arg, const uint8_t *bytes, size_t len);
	/* The capture has ended and is freed now: VB_UMAD_DONE and a summary,
	 * or -errno and the cause. */
	void (*end)(void *arg, int result, const char *said);
	void *arg;
};

/* Begin what the command @text asks for: "capture", NODE, PORT or "all", and
 * then "flow" or a number of bytes at the most, a word a line. 0 and *@made;
 * -EINVAL and @error. */
int vb_fabricd_capture_begin(struct vb_fabricd *f, const char *text,
			     const struct capture_outlet *to,
			     struct capture **made, char error[VB_TOPO_ERROR],
			     vb_time now);
/* The program wants no more: give it the rest, and call end(). */
void vb_fabricd_capture_end(struct capture *c, vb_time now);
/* The program is gone. */
void vb_fabricd_capture_free(struct capture *c);
/* Pass on what was gathered. Returns when to come back. */
vb_time vb_fabricd_captures_run(struct vb_fabricd *f, vb_time now);
/* For struct vb_fab_ops. */
void vb_fabricd_see_wire(void *arg, struct vb_fab_node *node, uint8_t port,
			 enum vb_fab_direction direction, const uint8_t *bytes,
			 size_t len, vb_time now);

#endif

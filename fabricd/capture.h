/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures of the frames and link packets that pass ports (fabricd/capture.c).
 * A program asks for a capture and gets it as messages. */
#ifndef FABRICD_CAPTURE_H
#define FABRICD_CAPTURE_H

#include "fabricd/fabricd_priv.h"

struct capture;

/* How the capture's bytes and its end get to the program that asked for the
 * capture. */
struct capture_outlet {
	/* Send @len bytes to the program. False: the program's socket has no
	 * room, and nothing was sent. */
	bool (*put)(void *arg, const uint8_t *bytes, size_t len);
	/* Tell the program that the capture has ended: @result is VB_UMAD_DONE
	 * and @said a summary, or -errno and the cause. The capture is freed
	 * after this call. */
	void (*end)(void *arg, int result, const char *said);
	void *arg;
};

/* Begin the capture that the command @text asks for. Each line of @text is a
 * word: "capture", NODE, PORT or "all", and then "flow", for link packets too,
 * or the most bytes that the capture may have, or both. 0, and *@made is the
 * capture; -EINVAL and @error. */
int vb_fabricd_capture_begin(struct vb_fabricd *f, const char *text,
			     const struct capture_outlet *to,
			     struct capture **made, char error[VB_TOPO_ERROR],
			     vb_time now);
/* End the capture because the program asks for it: send the program what was
 * captured, call end(), and free @c. */
void vb_fabricd_capture_end(struct capture *c, vb_time now);
/* Free the capture of a program that has ended, without another message. */
void vb_fabricd_capture_free(struct capture *c);
/* Send the programs what was captured for them, and end captures that are
 * complete or that nobody reads. Returns the time by which to call this again;
 * VB_NEVER: nothing waits. */
vb_time vb_fabricd_captures_run(struct vb_fabricd *f, vb_time now);
/* The function on_wire() of struct vb_fab_ops: add a frame or link packet that
 * passes @port of @node to all captures of that port. */
void vb_fabricd_see_wire(void *arg, struct vb_fab_node *node, uint8_t port,
			 enum vb_fab_direction direction, const uint8_t *bytes,
			 size_t len, vb_time now);

#endif

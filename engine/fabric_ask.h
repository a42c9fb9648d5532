/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions to the process of a fabric about a node, and connections that are a
 * port of that node (wire/umad_ipc.h). */
#ifndef ENGINE_FABRIC_ASK_H
#define ENGINE_FABRIC_ASK_H

#include "engine/fabric_place.h"

/* Ask the fabric about the node at @place and its port @port. 0; -ECONNREFUSED:
 * no such fabric runs; -ENODEV: it has no such node; -ETIMEDOUT; or another
 * -errno. */
VB_MUST_CHECK int vb_fabric_ask(const struct vb_fabric_place *place,
				unsigned port, struct vb_umad_info *info);
/* Connect, and take port @port of the node at @place. Returns a descriptor that
 * the caller closes, or -errno. */
VB_MUST_CHECK int vb_fabric_attach(const struct vb_fabric_place *place,
				   unsigned port);
/* When a fabric has not answered, or read, for too long: 10 s from now. */
vb_time vb_fabric_due(void);
/* Wait until poll() reports @events at @fd. 0, or -ETIMEDOUT at @due, or
 * -errno. Signals do not end it. */
VB_MUST_CHECK int vb_fabric_wait(int fd, short events, vb_time due);
/* Send @bytes over @fd with a socket for the answer. The answer's result, or
 * -errno; -ETIMEDOUT: none came. */
VB_MUST_CHECK int vb_fabric_call(int fd, const void *bytes, size_t len);

#endif

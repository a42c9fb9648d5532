/* SPDX-License-Identifier: BSD-2-Clause */
/* Plugs something that carries Ethernet frames into an Ethernet port of a
 * fabric's switch. */
#ifndef IPOIB_CABLE_H
#define IPOIB_CABLE_H

#include "engine/fabric_path.h"

#define CABLE_TEXT 400

/* Attach @fd, which stays the caller's: a TAP interface, or a SOCK_SEQPACKET
 * socket whose other end gets the frames and which users see as @name. @port:
 * "E2", or "" for the first free one. 0, and @said is the port's name; or
 * -errno, and @said says why in a sentence. */
int cable_plug(const struct vb_fabric_place *place, const char *port, int fd,
	       const char *name, char said[CABLE_TEXT]);

#endif

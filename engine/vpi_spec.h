/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a user writes a VPI adapter, which has two ports of either kind:
 *
 *	vpi:PORT,PORT	for example vpi:ib,eth=eth0
 *
 * A PORT is "ib" (an adapter of the user's own fabric), "ib:NODE" or
 * "ib:FABRIC/NODE" (the first port of a node), "ib:FABRIC/NODE/NUMBER", or
 * "eth=INTERFACE" or "rocev1=INTERFACE" (RoCE of both versions). In lists,
 * where commas separate devices, "+" between the ports is clearer than a comma.
 * This file only reads text, and asks no fabric.
 */
#ifndef ENGINE_VPI_SPEC_H
#define ENGINE_VPI_SPEC_H

#include "engine/fabric_path.h"

#define VB_VPI_PREFIX "vpi:"
#define VB_VPI_PORTS  2
/* bytes of the longest sentence that says why a spec is wrong */
#define VB_VPI_WHY 200

enum vb_vpi_kind { VPI_ETHERNET, VPI_ROCEV1, VPI_IB };

struct vb_vpi_port {
	enum vb_vpi_kind kind;
	char netdev[16]; /* the interface; of an InfiniBand port: empty */
	/* Of an InfiniBand port: its place, with the number of the node's port.
	 * No node: the place is an adapter of the user's own fabric, which
	 * `verbena run` finds. */
	struct vb_fabric_place place;
};

struct vb_vpi {
	struct vb_vpi_port port[VB_VPI_PORTS];
};

/* Returns the length of the first device in the list @specs, which ends at a
 * comma or at the end. A VPI adapter that has no "+" goes on behind its first
 * comma, and behind others as long as ports follow, which are too many. */
size_t vb_spec_length(const char *specs);

/* Is the device @spec, @len characters, a VPI adapter, if perhaps a wrong
 * one? */
bool vb_vpi_is(const char *spec, size_t len);

/* Read the VPI adapter @spec, @len characters. False: it is wrong, and @why is
 * the end of a sentence that begins with the spec. */
VB_MUST_CHECK bool vb_vpi_get(const char *spec, size_t len, struct vb_vpi *vpi,
			      char why[VB_VPI_WHY]);

/* Write the adapter as a device of a list, with "+", to @spec of @room bytes.
 * False: it is too long. */
VB_MUST_CHECK bool vb_vpi_put(const struct vb_vpi *vpi, char *spec,
			      size_t room);

#endif

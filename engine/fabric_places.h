/* SPDX-License-Identifier: BSD-2-Clause */
/* Which fabrics run, and which adapters of fabrics a list of devices names. */
#ifndef ENGINE_FABRIC_PLACES_H
#define ENGINE_FABRIC_PLACES_H

#include "engine/vpi_spec.h"

/* Write the names of this user's fabrics that run to @names, of at most @most
 * of them, in alphabetical order. Returns how many there are. */
unsigned vb_fabric_list(char names[][VB_FABRIC_NAME + 1], unsigned most);

/* An adapter with ports in a fabric: ib@number is a node with all its ports;
 * vpi@number has two ports, of which one or both are in a fabric. */
struct vb_fabric_adapter {
	char name[16];	 /* ib0 or vpi0 */
	unsigned number; /* the number in the name */
	/* the number of ports; 0: as many as the node @place[0] has */
	unsigned ports;
	/* by the number of the port, less 1: its place and its number there; no
	 * node: it is an Ethernet port */
	struct vb_fabric_place place[VB_VPI_PORTS];
};

/* Find adapter @index (0: the first) of @specs, the value of VERBENA_DEVICES or
 * NULL. False: *@count is how many such adapters there are. */
VB_MUST_CHECK bool vb_fabric_adapter_nth(const char *specs, unsigned index,
					 struct vb_fabric_adapter *a,
					 unsigned *count);
/* Find the adapter called @name. False: there is none. */
VB_MUST_CHECK bool vb_fabric_adapter_find(const char *specs, const char *name,
					  struct vb_fabric_adapter *a);
/* Write the place of the adapter's port @port to *@place, with the port's
 * number there. False: the port is an Ethernet port, or does not exist. Whether
 * a node has the port, only the fabric knows. */
VB_MUST_CHECK bool vb_fabric_adapter_port(const struct vb_fabric_adapter *a,
					  unsigned port,
					  struct vb_fabric_place *place);

#endif

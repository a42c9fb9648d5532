/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program's places in fabrics: the nodes that it takes by VERBENA_DEVICES
 * (ib:NODE or ib:FABRIC/NODE). Its adapters there are called ib0, ib1 and so
 * on, in that order.
 */
#ifndef ENGINE_FABRIC_PLACE_H
#define ENGINE_FABRIC_PLACE_H

#include "engine/fabric_path.h"
#include "wire/umad_ipc.h"

#define VB_FABRIC_PLACES 32 /* as libibumad's UMAD_MAX_DEVICES */

struct vb_fabric_place {
	char fabric[VB_FABRIC_NAME + 1];
	char node[VB_UMAD_NAME];
};

/* Parse @spec, @len characters: FABRIC/NODE or NODE, without "ib:". False: it
 * is neither. */
VB_MUST_CHECK bool vb_fabric_place_parse(const char *spec, size_t len,
					 struct vb_fabric_place *place);
/* How many places VERBENA_DEVICES names; at most VB_FABRIC_PLACES. */
unsigned vb_fabric_places(void);
/* Write the place of adapter @index to @place. False: there is none. */
VB_MUST_CHECK bool vb_fabric_place(unsigned index,
				   struct vb_fabric_place *place);
/* The index of the adapter that is called @name ("ib0"); NULL: the first. -1:
 * none. */
int vb_fabric_place_index(const char *name);

#endif

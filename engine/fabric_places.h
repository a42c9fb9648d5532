/* SPDX-License-Identifier: BSD-2-Clause */
/* Which fabrics run, and which places in fabrics a list of devices names. */
#ifndef ENGINE_FABRIC_PLACES_H
#define ENGINE_FABRIC_PLACES_H

#include "engine/fabric_path.h"

/* Write the names of this user's fabrics that run to @names, of at most @most
 * of them, in alphabetical order. Returns how many there are. */
unsigned vb_fabric_list(char names[][VB_FABRIC_NAME + 1], unsigned most);

/* Find place @index (0: the first) of @specs, the value of VERBENA_DEVICES or
 * NULL; the adapter there is called ib@index. False: *@count is how many places
 * there are. */
VB_MUST_CHECK bool vb_fabric_place_nth(const char *specs, unsigned index,
				       struct vb_fabric_place *place,
				       unsigned *count);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the adapters that VERBENA_DEVICES names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/fabric_places.h"
#include "front/umad/umad.h"

#define DEVICES "VERBENA_DEVICES"

static bool walk_places(unsigned index, struct vb_fabric_place *place,
			unsigned *count)
{
	return vb_fabric_place_nth(getenv(DEVICES), index, place, count);
}

unsigned umad_places(void)
{
	struct vb_fabric_place ignored;
	unsigned count;

	(void)walk_places(UINT_MAX, &ignored, &count);
	return VB_MIN(count, (unsigned)UMAD_MAX_DEVICES);
}

bool umad_place(unsigned index, struct vb_fabric_place *place)
{
	unsigned count;

	return walk_places(index, place, &count);
}

int umad_place_index(const char *name)
{
	unsigned long index;
	char *end;

	if (!name)
		return umad_places() ? 0 : -1;
	if (strncmp(name, "ib", 2) != 0 || name[2] < '0' || name[2] > '9')
		return -1;
	index = strtoul(name + 2, &end, 10);
	return *end || index >= umad_places() ? -1 : (int)index;
}

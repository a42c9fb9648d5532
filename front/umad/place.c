/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the adapters that VERBENA_DEVICES names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/fabric_places.h"
#include "front/umad/umad.h"

#define DEVICES "VERBENA_DEVICES"

bool umad_adapter(unsigned index, struct vb_fabric_adapter *a)
{
	unsigned count;

	return vb_fabric_adapter_nth(getenv(DEVICES), index, a, &count);
}

unsigned umad_places(void)
{
	struct vb_fabric_adapter ignored;
	unsigned count;

	if (vb_fabric_adapter_nth(getenv(DEVICES), UMAD_MAX_DEVICES, &ignored,
				  &count))
		return UMAD_MAX_DEVICES;
	return VB_MIN(count, (unsigned)UMAD_MAX_DEVICES);
}

bool umad_adapter_find(const char *name, struct vb_fabric_adapter *a)
{
	for (unsigned i = 0; i < UMAD_MAX_DEVICES && umad_adapter(i, a); i++)
		if (!name || strcmp(a->name, name) == 0)
			return true;
	return false;
}

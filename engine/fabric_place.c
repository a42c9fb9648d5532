/* SPDX-License-Identifier: BSD-2-Clause */
/* Which places in fabrics VERBENA_DEVICES names. */
#include "engine/fabric_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES "VERBENA_DEVICES"
#define PREFIX	"ib:"

bool vb_fabric_place_parse(const char *spec, size_t len,
			   struct vb_fabric_place *place)
{
	const char *slash = memchr(spec, '/', len);
	size_t fabric = slash ? (size_t)(slash - spec) : 0;
	const char *node = slash ? slash + 1 : spec;
	size_t rest = len - (size_t)(node - spec);

	if (rest == 0 || rest >= sizeof(place->node) ||
	    fabric >= sizeof(place->fabric) || (slash && fabric == 0))
		return false;
	snprintf(place->fabric, sizeof(place->fabric), "%.*s",
		 slash ? (int)fabric : (int)strlen(VB_FABRIC_DEFAULT),
		 slash ? spec : VB_FABRIC_DEFAULT);
	snprintf(place->node, sizeof(place->node), "%.*s", (int)rest, node);
	return true;
}

/* Find place @index of the list. False: *@count is how many there are. */
static bool walk(unsigned index, struct vb_fabric_place *place, unsigned *count)
{
	const char *s = getenv(DEVICES);
	struct vb_fabric_place ignored;

	*count = 0;
	while (s && *s) {
		size_t len = strcspn(s, ",");

		if (strncmp(s, PREFIX, strlen(PREFIX)) == 0 &&
		    vb_fabric_place_parse(s + strlen(PREFIX), len - strlen(PREFIX),
				*count == index ? place : &ignored) &&
		    (*count)++ == index)
			return true;
		s += len + (s[len] == ',');
	}
	return false;
}

unsigned vb_fabric_places(void)
{
	struct vb_fabric_place ignored;
	unsigned count;

	(void)walk(UINT_MAX, &ignored, &count);
	return VB_MIN(count, (unsigned)VB_FABRIC_PLACES);
}

bool vb_fabric_place(unsigned index, struct vb_fabric_place *place)
{
	unsigned count;

	return walk(index, place, &count);
}

int vb_fabric_place_index(const char *name)
{
	unsigned long index;
	char *end;

	if (!name)
		return vb_fabric_places() ? 0 : -1;
	if (strncmp(name, "ib", 2) != 0 || name[2] < '0' || name[2] > '9')
		return -1;
	index = strtoul(name + 2, &end, 10);
	return *end || index >= vb_fabric_places() ? -1 : (int)index;
}

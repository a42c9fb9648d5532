/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/fabric_places.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/runtime_dir.h"

/* beginning of the names of fabrics' directories, as in engine/fabric_path.c */
#define DIRECTORY "fabric-"

/* True if the fabric @name runs. A directory that a killed fabric has left does
 * not count. */
static bool runs(const char *name)
{
	int fd = vb_fabric_connect(name);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

unsigned vb_fabric_list(char names[][VB_FABRIC_NAME + 1], unsigned most)
{
	char base[PATH_MAX];
	int at = vb_runtime_dir_open(base);
	DIR *d = at < 0 ? NULL : vb_runtime_dir_list(at, ".");
	unsigned count = 0;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		const char *name = e->d_name + strlen(DIRECTORY);

		if (strncmp(e->d_name, DIRECTORY, strlen(DIRECTORY)) != 0 ||
		    !vb_fabric_name_good(name) || !runs(name))
			continue;
		if (count < most)
			snprintf(names[count], sizeof(*names), "%s", name);
		count++;
	}
	if (d)
		closedir(d);
	if (at >= 0)
		close(at);
	qsort(names, VB_MIN(count, most), sizeof(*names), compare_names);
	return count;
}

/* How many adapters of each kind the list had so far. */
struct tally {
	unsigned nodes, vpis;
};

static void take_vpi(const char *spec, size_t len, unsigned number,
		     struct vb_fabric_adapter *a)
{
	char why[VB_VPI_WHY];
	struct vb_vpi vpi;

	if (!vb_vpi_get(spec, len, &vpi, why))
		return;
	snprintf(a->name, sizeof(a->name), "vpi%u", number);
	a->number = number;
	a->ports = VB_VPI_PORTS;
	for (unsigned i = 0; i < VB_VPI_PORTS; i++)
		a->place[i] = vpi.port[i].place;
}

static void take_node(unsigned number, struct vb_fabric_adapter *a)
{
	snprintf(a->name, sizeof(a->name), "ib%u", number);
	a->number = number;
}

/* Read the device @spec. False: it is no adapter with a port in a fabric. */
static bool take_adapter(const char *spec, size_t len, struct tally *t,
			 struct vb_fabric_adapter *a)
{
	memset(a, 0, sizeof(*a));
	if (vb_vpi_is(spec, len))
		take_vpi(spec, len, t->vpis++, a);
	else if (vb_fabric_place_get(spec, len, &a->place[0]))
		take_node(t->nodes++, a);
	return a->place[0].node[0] || a->place[1].node[0];
}

bool vb_fabric_adapter_nth(const char *specs, unsigned index,
			   struct vb_fabric_adapter *a, unsigned *count)
{
	struct tally t = { 0 };

	*count = 0;
	while (specs && *specs) {
		size_t len = vb_spec_length(specs);

		if (take_adapter(specs, len, &t, a) && (*count)++ == index)
			return true;
		specs += len + (specs[len] == ',');
	}
	return false;
}

bool vb_fabric_adapter_find(const char *specs, const char *name,
			    struct vb_fabric_adapter *a)
{
	unsigned count;

	for (unsigned i = 0; vb_fabric_adapter_nth(specs, i, a, &count); i++)
		if (strcmp(a->name, name) == 0)
			return true;
	return false;
}

bool vb_fabric_adapter_port(const struct vb_fabric_adapter *a, unsigned port,
			    struct vb_fabric_place *place)
{
	if (a->ports && (port < 1 || port > a->ports))
		return false;
	*place = a->place[a->ports ? port - 1 : 0];
	if (!a->ports)
		place->port = (uint8_t)port;
	return place->node[0] && port <= UINT8_MAX;
}

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

bool vb_fabric_place_nth(const char *specs, unsigned index,
			 struct vb_fabric_place *place, unsigned *count)
{
	struct vb_fabric_place ignored;

	*count = 0;
	while (specs && *specs) {
		size_t len = strcspn(specs, ",");

		if (vb_fabric_place_get(specs, len,
					*count == index ? place : &ignored) &&
		    (*count)++ == index)
			return true;
		specs += len + (specs[len] == ',');
	}
	return false;
}

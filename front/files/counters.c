/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of hw_counters are empty in the tree, since a number written there
 * would be outdated. A program that opens one by its full path gets a memory
 * file with the counter's value at that moment. */
#include "front/files/files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "engine/counters.h"

/* Parse a path relative to the tree's /sys. Returns the counter (enum
 * vb_counter) and its device, or -1. A device appears as a link in its class
 * and as a directory of its parent. */
static int counter_of(const char *path, char device[64])
{
	static const char *const forms[] = {
		"class/infiniband/%63[^/]/ports/1/hw_counters/%63[^/]%n",
		"devices/virtual/verbena/%*[^/]/infiniband/%63[^/]"
		"/ports/1/hw_counters/%63[^/]%n",
	};
	char name[64];

	for (unsigned f = 0; f < 2; f++) {
		int end = 0;

		if (sscanf(path, forms[f], device, name, &end) != 2 ||
		    path[end])
			continue;
		for (int i = 0; i < CNT_COUNT; i++)
			if (strcmp(vb_counter_name((enum vb_counter)i), name) ==
			    0)
				return i;
	}
	return -1;
}

static uint64_t read_counter(int counter, const char *device)
{
	struct vb_counter_file *rows = NULL;
	unsigned count = 0;
	uint64_t value = 0;

	if (vb_counter_file_read(&rows, &count))
		return 0;
	for (unsigned i = 0; i < count; i++)
		if (strcmp(rows[i].device, device) == 0)
			value = rows[i].counts[counter];
	free(rows);
	return value;
}

int vb_files_open_counter(const char *path, int flags)
{
	char device[64], text[32];
	const char *inside;
	int counter, n, fd;

	if (!path || !strstr(path, "/hw_counters/"))
		/* the path is most often no counter's: do not search the
		 * environment */
		return -1;
	inside = vb_files_inside(path, "/sys/");
	if (!inside || (flags & O_ACCMODE) != O_RDONLY || flags & O_DIRECTORY)
		return -1;
	counter = counter_of(inside, device);
	if (counter < 0)
		return -1;
	n = snprintf(text, sizeof(text), "%" PRIu64 "\n",
		     read_counter(counter, device));
	fd = memfd_create("hw_counters", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
	if (fd >= 0 && vb_file_write(fd, text, (size_t)n, 0) == n)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

FILE *vb_files_fopen_counter(const char *path, const char *mode)
{
	int fd = mode && mode[0] == 'r' && !strchr(mode, '+')
			 ? vb_files_open_counter(
				   path, strchr(mode, 'e') ? O_CLOEXEC : 0)
			 : -1;
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

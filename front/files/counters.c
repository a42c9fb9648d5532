/* SPDX-License-Identifier: BSD-2-Clause */
/* Files whose contents change: in the tree the files of hw_counters are empty,
 * and those of a port in a fabric keep the values from when the tree was
 * written. When a program opens such a file by its full path, this code gives
 * it a memory file with the present value instead. It does the same for a file
 * that Verbena's IPoIB interface lacks (ipoib.c). */
#include "front/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "engine/counters.h"
#include "engine/fabric_places.h"
#include "engine/sysfs_fabric.h"

/* Parse a path relative to the tree's /sys. Returns the counter (enum
 * vb_counter) and its device, or -1. A device appears as a link in its class
 * and as a directory of its parent. */
static int counter_of(const char *path, char device[64])
{
	static const char *const forms[] = {
		"class/infiniband/%63[^/]/ports/1/hw_counters/%63[^/]%n",
		"devices/virtual/verbena/%*[^/]/infiniband/%63[^/]"
		"/ports/1/hw_counters/%63[^/]%n",
		/* paths of an adapter with two ports */
		"class/infiniband/%63[^/]/hw_counters/%63[^/]%n",
		"devices/virtual/verbena/%*[^/]/infiniband/%63[^/]"
		"/hw_counters/%63[^/]%n",
	};
	char name[64];

	for (unsigned f = 0; f < VB_COUNT(forms); f++) {
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

/* Write the contents of the counter file @inside to @text. Returns their length
 * in bytes; 0: @inside is no counter file. */
static size_t say_counter(const char *inside, char *text, size_t room)
{
	char device[64];
	int counter = counter_of(inside, device);

	if (counter < 0)
		return 0;
	return (size_t)snprintf(text, room, "%" PRIu64 "\n",
				read_counter(counter, device));
}

/* Parse a path relative to the tree's /sys: an adapter's name, its port, and a
 * file of the port's directory. */
static bool parse_port(const char *path, char name[64], unsigned *port,
		       const char **file)
{
	static const char *const forms[] = {
		"class/infiniband/%63[^/]/ports/%3u/%n",
		"devices/virtual/verbena/%*[^/]/infiniband/%63[^/]"
		"/ports/%3u/%n",
	};

	for (unsigned f = 0; f < 2; f++) {
		int end = 0;

		if (sscanf(path, forms[f], name, port, &end) != 2 || !end)
			continue;
		*file = path + end;
		return true;
	}
	return false;
}

/* Writes the value of the port attribute file @inside of a device in a fabric
 * to @text, after a query to the fabric's process. Returns its length; 0:
 * @inside is no such file. */
static size_t say_port(const char *inside, char *text, size_t room)
{
	struct vb_fabric_adapter adapter;
	struct vb_fabric_place place;
	struct vb_umad_info info;
	const char *file;
	char name[64];
	unsigned port;

	if (!parse_port(inside, name, &port, &file) ||
	    !vb_fabric_adapter_find(getenv("VERBENA_DEVICES"), name,
				    &adapter) ||
	    !vb_fabric_adapter_port(&adapter, port, &place) ||
	    vb_fabric_query(&place, place.port, &info) || !info.has_port)
		return 0;
	return vb_sysfs_fabric_value(&info, file, text, room);
}

/* Returns a descriptor of a new memory file that contains @text; -1 on
 * failure. */
static int open_text(const char *text, size_t len, int flags)
{
	int fd = memfd_create("sysfs", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);

	if (fd >= 0 && vb_file_write(fd, text, len, 0) == (ssize_t)len)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Write the present contents of the file @path to @text, if it is one whose
 * contents change. Returns their length; 0: it is no such file. */
static size_t say_now(const char *path, char *text, size_t room)
{
	const char *inside;
	size_t len;

	/* Most paths are not those of counters, so return before the
	 * environment is searched. */
	if (!strstr(path, "/ports/") && !strstr(path, "/hw_counters/"))
		return vb_files_say_ipoib(path, text, room);
	inside = vb_files_inside(path, "/sys/");
	if (!inside)
		return 0;
	len = say_counter(inside, text, room);
	return len ? len : say_port(inside, text, room);
}

int vb_files_open_counter(const char *path, int flags)
{
	int error = errno, fd;
	char text[128];
	size_t len;

	if (!path || (flags & O_ACCMODE) != O_RDONLY || flags & O_DIRECTORY)
		return -1;
	len = say_now(path, text, sizeof(text));
	fd = len ? open_text(text, len, flags) : -1;
	errno = error;
	return fd;
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* Another user may have made what has our name: then it is not ours, and what
 * we do not own we do not enter. */
#include "engine/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int vb_place_enter(int at, const char *name)
{
	int fd = openat(at, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static bool is_private(int fd)
{
	struct stat s;

	return fstat(fd, &s) == 0 && s.st_uid == geteuid() &&
	       !(s.st_mode & 077);
}

/* @path made if need be, and opened, if only we may enter it. */
static int open_private(const char *path)
{
	int fd;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = vb_place_enter(AT_FDCWD, path);
	if (fd >= 0 && !is_private(fd)) {
		close(fd);
		fd = -EPERM;
	}
	return fd;
}

int vb_place_open(char path[PATH_MAX])
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	int fd = -ENOENT;

	if (run && run[0] == '/' && strlen(run) < 128) {
		fd = open_private(run); /* it should be there, and ours */
		if (fd >= 0)
			close(fd);
		snprintf(path, PATH_MAX, "%s/verbena", run);
		if (fd >= 0)
			fd = open_private(path);
	}
	if (fd >= 0)
		return fd;
	snprintf(path, PATH_MAX, "/tmp/verbena-%u", geteuid());
	return open_private(path);
}

/* The number in "net:[4026531840]". */
uint64_t vb_place_namespace(int proc, const char *pid)
{
	char path[NAME_MAX + 16], link[64];
	unsigned long long number;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/ns/net", pid);
	n = readlinkat(proc, path, link, sizeof(link) - 1);
	if (n <= 0)
		return 0;
	link[n] = '\0';
	return sscanf(link, "net:[%llu]", &number) == 1 ? number : 0;
}

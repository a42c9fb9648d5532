/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories and locks for a user's files. Another user may have created a
 * directory of the same name: these functions refuse a directory that the user
 * does not own. */
#include "engine/runtime_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

#define LOCK_PATIENCE (2 * VB_SEC)
#define LOCK_NAP      VB_MSEC
#define BOOT_ID	      "/proc/sys/kernel/random/boot_id"

int vb_runtime_dir_enter(int at, const char *name)
{
	int fd = openat(at, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

DIR *vb_runtime_dir_list(int at, const char *name)
{
	int fd = vb_runtime_dir_enter(at, name);
	DIR *d;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	d = fdopendir(fd);
	if (!d)
		close(fd);
	return d;
}

static bool eng_is_ours(int fd, mode_t others)
{
	struct stat s;

	return fstat(fd, &s) == 0 && s.st_uid == geteuid() &&
	       !(s.st_mode & others);
}

/* Open a directory of this user in which other users have none of the
 * permission bits @others. Returns a descriptor, or -errno. */
static int open_ours(const char *path, mode_t others)
{
	int fd = vb_runtime_dir_enter(AT_FDCWD, path);

	if (fd >= 0 && !eng_is_ours(fd, others)) {
		close(fd);
		fd = -EPERM;
	}
	return fd;
}

/* Open a directory of this user, and create it if necessary. Other users may
 * pass through it, whatever the umask is, but not list it. -EROFS if it is on a
 * file system that cannot be written, as a host's in a container. */
static int make_ours(const char *path)
{
	int fd;

	if (mkdir(path, 0711) < 0 && errno != EEXIST)
		return -errno;
	fd = open_ours(path, 022);
	if (fd < 0)
		return fd;
	if (faccessat(fd, ".", W_OK, AT_EACCESS) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	(void)fchmod(fd, 0711);
	return fd;
}

/* Open the directory of root's files. It is not in $XDG_RUNTIME_DIR, where no
 * other user may pass: a program that root starts and that then becomes another
 * user continues to read the files. */
static int open_system(char path[PATH_MAX])
{
	if (geteuid() != 0)
		return -EPERM;
	snprintf(path, PATH_MAX, "/run/verbena");
	return make_ours(path);
}

static int open_runtime(char path[PATH_MAX])
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	int fd;

	if (!run || run[0] != '/' || strlen(run) >= 128)
		return -ENOENT;
	fd = open_ours(run, 077);
	if (fd < 0)
		return fd;
	close(fd);
	snprintf(path, PATH_MAX, "%s/verbena", run);
	return make_ours(path);
}

int vb_runtime_dir_open(char path[PATH_MAX])
{
	int fd = open_system(path);

	if (fd < 0)
		fd = open_runtime(path);
	if (fd >= 0)
		return fd;
	snprintf(path, PATH_MAX, "/tmp/verbena-%u", geteuid());
	return make_ours(path);
}

uint64_t vb_runtime_dir_namespace(int proc, const char *pid)
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

static uint64_t cookie(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t value = 0;
	socklen_t len = sizeof(value);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &value, &len))
		value = 0;
	if (fd >= 0)
		close(fd);
	return value;
}

/* Returns a number that is unique for ever: a namespace's cookie, which is
 * unique until the host restarts, mixed with the boot id. */
uint64_t vb_runtime_dir_space(void)
{
	uint64_t space = cookie();
	int fd = space ? open(BOOT_ID, O_RDONLY | O_CLOEXEC) : -1;
	char id[64];
	ssize_t n;

	if (fd < 0)
		return space;
	n = read(fd, id, sizeof(id));
	for (ssize_t i = 0; i < n; i++)
		/* the hash function FNV-1a */
		space = (space ^ (uint8_t)id[i]) * 0x100000001b3;
	close(fd);
	return space;
}

uint64_t vb_runtime_dir_host(void)
{
	uint64_t space = vb_runtime_dir_space();
	int proc;

	if (space)
		return space;
	proc = vb_runtime_dir_enter(AT_FDCWD, "/proc");
	if (proc < 0)
		return 0;
	space = vb_runtime_dir_namespace(proc, "self");
	close(proc);
	return space;
}

int vb_runtime_dir_lock(int fd)
{
	static const struct timespec nap = { .tv_nsec = LOCK_NAP };
	vb_time until = vb_clock_read() + LOCK_PATIENCE;

	vb_fork_closes(fd);
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (vb_clock_read() >= until)
			return -ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
	return 0;
}

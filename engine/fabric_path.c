/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of fabrics. A fabric NAME has the directory fabric-NAME with its socket
 * and its other files. A process that listens at the socket shows that the
 * fabric runs; the existence of the file shows nothing. A lock on the
 * directory, which the kernel releases when the process ends, keeps two
 * processes from using one name.
 */
#include "engine/fabric_path.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdmail.h"
#include "engine/runtime_dir.h"

#define SOCKET		"socket"
#define GROUPS		"groups"
#define BACKLOG		128
#define CONNECT_SECONDS 10

bool vb_fabric_name_good(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("-_.", name[i]))
			return false;
	return len > 0 && len <= VB_FABRIC_NAME && name[0] != '.';
}

/* Make the socket's address. The directory's path may be longer than a socket's
 * name, so the address names the socket by a descriptor of the directory. */
static socklen_t address_in(int dir, struct sockaddr_un *a)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/" SOCKET,
		 dir);
	return sizeof(*a);
}

/* Open the directory of fabric @name, and create it if @make. Returns a
 * descriptor or -errno. */
static int open_directory(const char *name, bool make, char path[PATH_MAX])
{
	char base[PATH_MAX], leaf[NAME_MAX];
	int at, fd;

	if (!vb_fabric_name_good(name))
		return -EINVAL;
	at = vb_runtime_dir_open(base);
	if (at < 0)
		return at;
	snprintf(leaf, sizeof(leaf), "fabric-%s", name);
	if (make && mkdirat(at, leaf, 0700) < 0 && errno != EEXIST) {
		fd = -errno;
	} else {
		fd = vb_runtime_dir_enter(at, leaf);
		if (snprintf(path, PATH_MAX, "%s/%s", base, leaf) >= PATH_MAX &&
		    fd >= 0) {
			close(fd);
			fd = -ENAMETOOLONG;
		}
	}
	close(at);
	return fd;
}

/* Bind the socket, after removing a socket file that a killed fabric may have
 * left. */
static int bind_in(int dir)
{
	struct sockaddr_un a;
	socklen_t len = address_in(dir, &a);
	int fd;

	(void)unlinkat(dir, SOCKET, 0);
	fd = vb_fdmail_bind(&a, len);
	if (fd >= 0 && listen(fd, BACKLOG) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

/* Make the file of vb_fabric_groups_open(). Without it ports still have
 * groups. */
static void make_groups(int dir)
{
	int fd = openat(dir, GROUPS, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
}

int vb_fabric_groups_open(const char *name)
{
	char path[PATH_MAX];
	int dir = open_directory(name, false, path), fd;

	if (dir < 0)
		return dir;
	fd = openat(dir, GROUPS, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	fd = fd < 0 ? -errno : fd;
	close(dir);
	return fd;
}

int vb_fabric_listen(const char *name, char path[PATH_MAX])
{
	int dir = open_directory(name, true, path), fd;

	if (dir < 0)
		return dir;
	if (flock(dir, LOCK_EX | LOCK_NB) < 0) {
		fd = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
		close(dir);
		return fd;
	}
	make_groups(dir);
	fd = bind_in(dir);
	if (fd < 0)
		close(dir);
	/* After success @dir stays open, and so locked, as long as this process
	 * lives. */
	return fd;
}

void vb_fabric_remove(const char *dir)
{
	static const char *const files[] = { SOCKET, GROUPS };
	char path[PATH_MAX];

	for (unsigned i = 0; i < VB_COUNT(files); i++)
		if (snprintf(path, sizeof(path), "%s/%s", dir, files[i]) <
		    PATH_MAX)
			(void)unlink(path);
	(void)rmdir(dir);
}

/* Connect to a fabric. If the fabric accepts no connections, connect() waits
 * while the backlog is full. connect() obeys SO_SNDTIMEO, but a signal ends the
 * wait; the next call then has the full time again. 0 or -errno. */
static int connect_in_time(int fd, const struct sockaddr_un *a, socklen_t len)
{
	const struct timeval patience = { .tv_sec = CONNECT_SECONDS };
	vb_time due = vb_clock_read() + CONNECT_SECONDS * VB_SEC;
	int rc;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience,
		       sizeof(patience)) < 0)
		return -errno;
	do {
		rc = connect(fd, (const struct sockaddr *)a, len) ? errno : 0;
	} while (rc == EINTR && vb_clock_read() < due);
	if (rc == EAGAIN || rc == EINTR)
		return -ETIMEDOUT;
	return rc == ENOENT ? -ECONNREFUSED : -rc;
}

int vb_fabric_connect(const char *name)
{
	char path[PATH_MAX];
	struct sockaddr_un a;
	int dir = open_directory(name, false, path), fd, rc = 0;

	if (dir < 0)
		return dir == -ENOENT ? -ECONNREFUSED : dir;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		rc = -errno;
	else
		rc = connect_in_time(fd, &a, address_in(dir, &a));
	close(dir);
	if (!rc)
		return fd;
	if (fd >= 0)
		close(fd);
	return rc;
}

bool vb_fabric_place_get(const char *spec, size_t len,
			 struct vb_fabric_place *place)
{
	const size_t prefix = strlen(VB_FABRIC_PREFIX);
	const char *slash, *node;
	size_t fabric, rest;

	if (len < prefix || strncmp(spec, VB_FABRIC_PREFIX, prefix) != 0)
		return false;
	spec += prefix;
	len -= prefix;
	slash = memchr(spec, '/', len);
	fabric = slash ? (size_t)(slash - spec) : 0;
	node = slash ? slash + 1 : spec;
	rest = len - (size_t)(node - spec);
	if (rest == 0 || rest >= sizeof(place->node) ||
	    fabric >= sizeof(place->fabric) || (slash && fabric == 0))
		return false;
	snprintf(place->fabric, sizeof(place->fabric), "%.*s",
		 slash ? (int)fabric : (int)strlen(VB_FABRIC_DEFAULT),
		 slash ? spec : VB_FABRIC_DEFAULT);
	memset(place->node, 0, sizeof(place->node));
	memcpy(place->node, node, rest);
	place->port = 0;
	return true;
}

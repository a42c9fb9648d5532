/* SPDX-License-Identifier: BSD-2-Clause */
/* Binds and finds the sockets of IPoIB interfaces. */
#include "engine/ipoib_path.h"

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "engine/runtime_dir.h"

#define FILE_BYTES (IFNAMSIZ + 32)

/* Opens the directory, and makes the name of the file in it and the address.
 * The directory's path may be longer than a socket's name, so the address names
 * the socket by a descriptor of the directory. Returns that, or -errno. */
static int find_socket(const char *name, char file[FILE_BYTES],
		       struct sockaddr_un *a)
{
	const uint64_t host = vb_runtime_dir_host();
	char path[PATH_MAX];
	int dir;

	if (!name[0] || strlen(name) >= IFNAMSIZ || strchr(name, '/'))
		return -EINVAL;
	if (!host)
		return -EOPNOTSUPP;
	dir = vb_runtime_dir_open(path);
	if (dir < 0)
		return dir;
	snprintf(file, FILE_BYTES, "ipoib-%llx-%s", (unsigned long long)host,
		 name);
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/%s", dir,
		 file);
	return dir;
}

/* A file of the name is one that a killed process has left, since an interface
 * has one process. */
int vb_ipoib_listen(const char *name, int backlog)
{
	char file[FILE_BYTES];
	struct sockaddr_un a;
	int dir = find_socket(name, file, &a), fd;

	if (dir < 0)
		return dir;
	(void)unlinkat(dir, file, 0);
	fd = vb_fdmail_bind(&a, sizeof(a));
	close(dir);
	if (fd >= 0 && listen(fd, backlog) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

void vb_ipoib_remove(const char *name)
{
	char file[FILE_BYTES];
	struct sockaddr_un a;
	int dir = find_socket(name, file, &a);

	if (dir < 0)
		return;
	(void)unlinkat(dir, file, 0);
	close(dir);
}

int vb_ipoib_connect(const char *name)
{
	char file[FILE_BYTES];
	struct sockaddr_un a;
	int dir = find_socket(name, file, &a), fd, rc = 0;

	if (dir < 0)
		return dir;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		rc = errno == ENOENT ? -ECONNREFUSED : -errno;
	close(dir);
	if (rc == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return rc;
}

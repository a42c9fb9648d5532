/* SPDX-License-Identifier: BSD-2-Clause */
/* The name at which programs find the broker. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/broker.h"
#include "wire/ipc.h"

#define BACKLOG 1024

static bool listens_at_name(int fd)
{
	struct sockaddr_un want, got = { 0 };
	socklen_t want_len = vb_ipc_address(&want, VB_IPC_BROKER);
	socklen_t len = sizeof(got), int_len = sizeof(int);
	int listens = 0, type = 0;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &int_len) == 0 &&
	       type == SOCK_SEQPACKET &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_len) ==
		       0 &&
	       listens &&
	       getsockname(fd, (struct sockaddr *)&got, &len) == 0 &&
	       len == want_len && memcmp(&got, &want, len) == 0;
}

int vb_broker_inherit(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	bool given = pid && count && atoll(pid) == getpid();

	if (!given)
		return -ENOENT;
	if (strcmp(count, "1") != 0 || !listens_at_name(VB_INHERITED_FD))
		return -EINVAL;
	if (fcntl(VB_INHERITED_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(VB_INHERITED_FD, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return VB_INHERITED_FD;
}

int vb_broker_listen(void)
{
	struct sockaddr_un a;
	socklen_t len = vb_ipc_address(&a, VB_IPC_BROKER);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&a, len) < 0 ||
	    listen(fd, BACKLOG) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

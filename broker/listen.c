/* SPDX-License-Identifier: BSD-2-Clause */
/* The name at which programs find the broker. */
#include <errno.h>
#include <unistd.h>

#include "broker/broker.h"
#include "wire/ipc.h"

#define BACKLOG 1024

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

/* SPDX-License-Identifier: BSD-2-Clause */
/* The abstract names at which processes with a slot take the XRC requests of
 * others (engine/xrc_forward.c). */
#include "engine/engine_priv.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fork.h"

#define BACKLOG 64

socklen_t vb_forward_name(uint32_t slot, struct sockaddr_un *a)
{
	int n;

	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "verbena-xrc-%u",
		     slot);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)n);
}

int vb_forward_listen(uint32_t slot)
{
	struct sockaddr_un a;
	socklen_t len = vb_forward_name(slot, &a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);

	if (fd < 0)
		return -errno;
	vb_fork_closes(fd);
	if (bind(fd, (struct sockaddr *)&a, len) || listen(fd, BACKLOG)) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/group.h"

#include <errno.h>
#include <unistd.h>

#include "base/fork.h"

int vb_group_join(int fd, int level, int name, const void *value, socklen_t len)
{
	int rc;

	if (fd < 0)
		return fd;
	if (setsockopt(fd, level, name, value, len) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	vb_fork_closes(fd);
	return fd;
}

void vb_group_leave(struct vb_link *l, int member)
{
	close(member);
}

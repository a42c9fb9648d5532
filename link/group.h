/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Membership in a multicast group of an Ethernet. A socket made for this
 * purpose joins the group and receives nothing itself. So the kernel leaves the
 * group when the process ends, even by kill -9, although other processes may
 * hold the link's own socket. A child of fork closes its copy of the socket, so
 * that the group is left when the parent leaves it.
 */
#ifndef LINK_GROUP_H
#define LINK_GROUP_H

#include <sys/socket.h>

#include "link/link.h"

/*
 * Join a group with the socket @fd by the socket option @name of @level, whose
 * value is @value. Returns @fd, which is the number of the membership
 * (vb_link_ops.join); or -errno, and closes @fd. @fd below 0: -errno of the
 * call that should have made the socket, which is returned.
 */
VB_MUST_CHECK int vb_group_join(int fd, int level, int name, const void *value,
				socklen_t len);
/* The function leave() of vb_link_ops. */
void vb_group_leave(struct vb_link *l, int member);

#endif

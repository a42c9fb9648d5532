/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mark of the netlink sockets of Verbena's libraries: they are told what the
 * kernel says, without what the preload of `verbena run` adds for programs
 * (front/netlink/links.h). It would ask the process of an IPoIB interface,
 * which may be this one. The mark is a socket option that does nothing for
 * netlink.
 */
#ifndef BASE_NETLINK_MARK_H
#define BASE_NETLINK_MARK_H

#include <stdbool.h>
#include <sys/socket.h>

#define VB_NETLINK_MARK SO_BROADCAST

static inline void vb_netlink_mark(int fd)
{
	const int on = 1;

	(void)setsockopt(fd, SOL_SOCKET, VB_NETLINK_MARK, &on, sizeof(on));
}

#endif

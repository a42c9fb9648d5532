/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Marks the netlink sockets of Verbena's own libraries, so that the preload of
 * `verbena run` leaves the kernel's messages to them unchanged. For other
 * sockets the preload adds the addresses of IPoIB interfaces
 * (front/netlink/links.h), for which it asks the interface's process, and that
 * process may itself be the reader. The mark is a socket option that does
 * nothing for netlink.
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

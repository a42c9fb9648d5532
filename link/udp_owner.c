/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits what a user can do with a socket of port 4791 that the broker gives
 * away, and takes such a socket out of the SO_REUSEPORT group.
 *
 * The limit is a filter that the kernel never lets anybody remove or replace
 * (SO_LOCK_FILTER): the socket receives packets of its own slot and multicast
 * packets only, however its holder changes the steering. The lock also keeps
 * the holder from attaching a steering program or a filter. The first
 * instructions load constants that no later instruction uses: they say whose
 * socket it is, so that the kernel remembers the owner as long as the socket
 * exists.
 */
#include "link/udp.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fdmail.h"
#include "wire/ipc.h"

#ifndef SO_DETACH_REUSEPORT_BPF /* Linux headers before 5.3 lack it */
#define SO_DETACH_REUSEPORT_BPF 68
#endif

/* Where the destination QPN's word is: the filter of a UDP socket sees the UDP
 * header, and the BTH after it. */
#define QPN_WORD 12
/* The destination QPN of multicast packets. */
#define QPN_MULTICAST 0xffffff
#define WHOLE_PACKET  0xffffffff
#define DISCARD_PORT  9 /* discard service (RFC 863) */

enum { AT_UID, AT_KEPT, LIMIT_CODE = 9 };

static void write_limit(struct sock_filter code[LIMIT_CODE], unsigned slot,
			const struct vb_udp_owner *o)
{
	const struct sock_filter limit[LIMIT_CODE] = {
		[AT_UID] = BPF_STMT(BPF_LD | BPF_IMM, o->uid),
		[AT_KEPT] = BPF_STMT(BPF_LD | BPF_IMM, o->kept),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, QPN_WORD),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, QPN_MULTICAST, 2, 0),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, VB_QPN_BITS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, slot, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, WHOLE_PACKET),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};

	memcpy(code, limit, sizeof(limit));
}

int vb_udp_limit(int fd, unsigned slot, const struct vb_udp_owner *owner)
{
	static const int on = 1;
	struct sock_filter code[LIMIT_CODE];
	struct sock_fprog program = { LIMIT_CODE, code };

	write_limit(code, slot, owner);
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
		       sizeof(program)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)) < 0)
		return -errno;
	return 0;
}

int vb_udp_owner_of(int fd, unsigned slot, struct vb_udp_owner *owner)
{
	struct sock_filter code[BPF_MAXINSNS], limit[LIMIT_CODE];
	/* the option takes a number of instructions, not of bytes */
	socklen_t count = VB_COUNT(code);

	if (getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, code, &count) < 0)
		return -EINVAL; /* for example: the filter is not classic BPF */
	if (count == 0)
		return -ENOENT;
	if (count != LIMIT_CODE)
		return -EINVAL;
	owner->uid = code[AT_UID].k;
	owner->kept = code[AT_KEPT].k;
	write_limit(limit, slot, owner);
	return memcmp(code, limit, sizeof(limit)) ? -EINVAL : 0;
}

int vb_udp_unsteer(int fd)
{
	static const int unused;

	if (setsockopt(fd, SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &unused,
		       sizeof(unused)) < 0)
		return -errno;
	return 0;
}

/*
 * The kernel moves a socket that connects and has no address of its own yet to
 * another place of its hash table, and out of the group. IPv6's loopback
 * address comes first: after a connect to a mapped IPv4 address the kernel
 * looks through all sockets of the group for each packet.
 */
int vb_udp_retire(int fd)
{
	const struct sockaddr_in6 one = { .sin6_family = AF_INET6,
					  .sin6_port = htons(DISCARD_PORT),
					  .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const struct sockaddr_in6 mapped = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(DISCARD_PORT),
		.sin6_addr.s6_addr = { [10] = 0xff, 0xff, 127, 0, 0, 1 }
	};
	const struct sockaddr_in two = {
		.sin_family = AF_INET,
		.sin_port = htons(DISCARD_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	if (vb_fdmail_has_option(fd, SO_DOMAIN, AF_INET))
		return connect(fd, (const struct sockaddr *)&two, sizeof(two)) <
				       0
			       ? -errno
			       : 0;
	if (connect(fd, (const struct sockaddr *)&one, sizeof(one)) == 0 ||
	    connect(fd, (const struct sockaddr *)&mapped, sizeof(mapped)) == 0)
		return 0;
	return -errno;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IP addresses on InfiniBand. An IPoIB interface is a network interface whose
 * process (`verbena ipoib`) knows the adapter and the GIDs of neighbours
 * (wire/ipoib.h). This file asks it, so that rdma_cm resolves IP addresses to
 * GIDs of the fabric.
 */
#include "front/rdmacm/rdmacm.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "engine/fabric_path.h"
#include "wire/ipoib.h"

/* How long to wait for the answer about a neighbour, which the process finds
 * within 3 s, or not at all. */
#define ANSWER_WAIT (5 * VB_SEC)

/* Connects to the process of the interface @name. Returns a descriptor that the
 * caller closes, or -errno; -ECONNREFUSED: the interface is no IPoIB interface;
 * -EPERM: its process is another user's. */
static int ipoib_connect(const char *name)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un a;
	socklen_t len = vb_ipoib_address(&a, name);
	int rc = 0;
	uid_t uid;

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&a, len) < 0)
		rc = -errno;
	else if (!vb_fdmail_trusts_peer(fd, &uid))
		rc = -EPERM;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* Asks the process of the interface @name the question *@m, and reads the
 * answer into it. 0 or -errno, of asking or in the answer. */
static int ipoib_ask(const char *name, struct vb_ipoib *m)
{
	const vb_time due = vb_clock_read() + ANSWER_WAIT;
	uint8_t bytes[VB_IPOIB_BYTES];
	const uint8_t op = m->op;
	unsigned none = 0;
	int fd = ipoib_connect(name), rc;
	ssize_t n;

	if (fd < 0)
		return fd;
	m->version = VB_IPOIB_VERSION;
	rc = vb_fabric_post(fd, bytes, vb_ipoib_put(bytes, m), NULL, due);
	n = rc ? rc
	       : vb_fabric_receive(fd, bytes, sizeof(bytes), NULL, &none, due);
	close(fd);
	if (n < 0)
		return (int)n;
	if (!vb_ipoib_get(bytes, (size_t)n, m) || m->op != op)
		return -EPROTO;
	return m->error;
}

static bool ipoib_is_at(const struct ifaddrs *i, const struct vb_gid *ip)
{
	struct vb_gid gid;

	if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET &&
			     i->ifa_addr->sa_family != AF_INET6))
		return false;
	gid = rcm_gid_of(i->ifa_addr);
	return vb_gid_equal(&gid, ip);
}

/* Finds the name of the interface that has the address @ip. */
static bool ipoib_interface(const struct vb_gid *ip, char name[IF_NAMESIZE])
{
	struct ifaddrs *list, *i;

	if (getifaddrs(&list))
		return false;
	for (i = list; i; i = i->ifa_next)
		if (ipoib_is_at(i, ip))
			break;
	if (i)
		snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
	freeifaddrs(list);
	return i;
}

int rcm_ipoib_choose(struct rcm_id *id, const struct vb_gid *ip)
{
	struct vb_ipoib own = { .op = IPOIB_OWN };
	char name[IF_NAMESIZE];
	int rc;

	if (!rcm.has_ib || !ipoib_interface(ip, name) || ipoib_ask(name, &own))
		return -ENODEV;
	rc = rcm_device_choose(id, &own.gid, RCM_IB);
	if (rc)
		return rc;
	id->path.pkey = own.pkey;
	id->path.ifindex = if_nametoindex(name);
	return 0;
}

int rcm_ipoib_neighbour(const struct vb_gid *from, const struct vb_gid *ip,
			struct vb_gid *gid)
{
	struct vb_ipoib m = { .op = IPOIB_ASK, .ip = *ip };
	struct vb_ipoib own = { .op = IPOIB_OWN };
	char name[IF_NAMESIZE], other[IF_NAMESIZE];
	int rc;

	if (!ipoib_interface(from, name))
		return -ENODEV;
	/* Nobody answers for an address of this host on the network. */
	if (ipoib_interface(ip, other)) {
		rc = ipoib_ask(other, &own);
		*gid = own.gid;
		return rc;
	}
	rc = ipoib_ask(name, &m);
	*gid = m.gid;
	return rc;
}

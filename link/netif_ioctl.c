/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists interfaces and addresses without netlink. It is slower, and finds only
 * interfaces that have an address. */
#include "link/netif_priv.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define IF_INET6 "/proc/net/if_inet6"

struct table {
	struct vb_netif *list;
	unsigned count;
	int fd; /* the socket on which ioctl() is called */
};

uint32_t vb_netif_mbits(const char *name)
{
	struct ethtool_cmd cmd = { .cmd = ETHTOOL_GSET };
	struct ifreq request = { .ifr_data = (void *)&cmd };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;
	uint32_t mbits;

	if (fd < 0)
		return 0;
	memcpy(request.ifr_name, name, sizeof(request.ifr_name));
	rc = ioctl(fd, SIOCETHTOOL, &request);
	close(fd);
	mbits = (uint32_t)cmd.speed_hi << 16 | cmd.speed;
	return rc < 0 || mbits == (uint32_t)SPEED_UNKNOWN ? 0 : mbits;
}

static bool ask_kernel(const struct table *t, const char *name,
		       unsigned long what, struct ifreq *answer)
{
	memset(answer, 0, sizeof(*answer));
	memcpy(answer->ifr_name, name, sizeof(answer->ifr_name));
	return ioctl(t->fd, what, answer) == 0;
}

static void read_interface(const struct table *t, struct vb_netif *n)
{
	struct ifreq r;

	if (ask_kernel(t, n->name, SIOCGIFINDEX, &r))
		n->ifindex = (uint32_t)r.ifr_ifindex;
	if (ask_kernel(t, n->name, SIOCGIFMTU, &r))
		n->mtu = (uint32_t)r.ifr_mtu;
	if (ask_kernel(t, n->name, SIOCGIFHWADDR, &r)) {
		n->infiniband = r.ifr_hwaddr.sa_family == ARPHRD_INFINIBAND;
		if (r.ifr_hwaddr.sa_family == ARPHRD_ETHER)
			memcpy(n->mac, r.ifr_hwaddr.sa_data, sizeof(n->mac));
	}
	if (ask_kernel(t, n->name, SIOCGIFFLAGS, &r)) {
		n->loopback = r.ifr_flags & IFF_LOOPBACK;
		n->up = r.ifr_flags & IFF_UP &&
			(n->loopback || r.ifr_flags & IFF_RUNNING);
	}
	n->mbits = vb_netif_mbits(n->name);
}

/* Returns the row of the interface @name, and adds one for a new name. NULL: no
 * memory. */
static struct vb_netif *interface_row(struct table *t, const char *name)
{
	struct vb_netif *more, *n;

	for (unsigned i = 0; i < t->count; i++)
		if (strncmp(t->list[i].name, name, IFNAMSIZ - 1) == 0)
			return &t->list[i];
	more = realloc(t->list, (t->count + 1) * sizeof(*more));
	if (!more)
		return NULL;
	t->list = more;
	n = &more[t->count++];
	memset(n, 0, sizeof(*n));
	memcpy(n->name, name, strnlen(name, IFNAMSIZ - 1));
	read_interface(t, n);
	return n;
}

static int add_address(struct table *t, const char *name,
		       const struct vb_gid *gid)
{
	struct vb_netif *n = interface_row(t, name);

	return n ? vb_netif_add_address(n, gid) : -ENOMEM;
}

static int add_ipv4(struct table *t, const struct ifconf *all)
{
	char label[IFNAMSIZ];
	int rc = 0;

	for (size_t i = 0;
	     i < (size_t)all->ifc_len / sizeof(struct ifreq) && rc == 0; i++) {
		const struct ifreq *r = &all->ifc_req[i];
		struct sockaddr_in a;
		struct vb_gid gid;

		memcpy(&a, &r->ifr_addr, sizeof(a));
		gid = vb_gid_from_ipv4((const uint8_t *)&a.sin_addr);
		memcpy(label, r->ifr_name, sizeof(label));
		/* an alias "eth0:1" counts as eth0 */
		label[strcspn(label, ":")] = '\0';
		rc = add_address(t, label, &gid);
	}
	return rc;
}

static int read_ipv4(struct table *t)
{
	struct ifconf all = { 0 };
	int rc;

	if (ioctl(t->fd, SIOCGIFCONF, &all) < 0)
		return -errno;
	all.ifc_buf = malloc((size_t)all.ifc_len + 1);
	if (!all.ifc_buf)
		return -ENOMEM;
	rc = ioctl(t->fd, SIOCGIFCONF, &all) < 0 ? -errno : add_ipv4(t, &all);
	free(all.ifc_buf);
	return rc;
}

/* "fe80...01 02 40 20 80 eth0": address, index, prefix, scope, flags, name. */
static int read_ipv6_line(struct table *t, const char *line)
{
	char hex[33], name[IFNAMSIZ];
	struct vb_gid gid;
	unsigned flags;

	if (sscanf(line, "%32s %*x %*x %*x %x %15s", hex, &flags, name) != 3 ||
	    strlen(hex) != 32)
		return 0;
	if (flags & IFA_F_DADFAILED ||
	    (flags & IFA_F_TENTATIVE && !(flags & IFA_F_OPTIMISTIC)))
		return 0;
	for (int i = 0; i < 16; i++)
		if (sscanf(hex + 2 * i, "%2hhx", &gid.raw[i]) != 1)
			return 0;
	return add_address(t, name, &gid);
}

static int read_ipv6(struct table *t)
{
	FILE *f = fopen(IF_INET6, "re");
	char line[128];
	int rc = 0;

	if (!f)
		/* The host has no IPv6, so there are no addresses to add. */
		return 0;
	while (rc == 0 && fgets(line, sizeof(line), f))
		rc = read_ipv6_line(t, line);
	fclose(f);
	return rc;
}

static int loopback_last(const void *a, const void *b)
{
	const struct vb_netif *x = a, *y = b;

	if (x->loopback != y->loopback)
		return x->loopback - y->loopback;
	return x->ifindex < y->ifindex ? -1 : 1;
}

int vb_netif_list_by_ioctl(struct vb_netif **list, unsigned *count)
{
	struct table t = { .fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC,
					0) };
	int rc;

	if (t.fd < 0)
		return -errno;
	rc = read_ipv4(&t);
	if (rc == 0)
		rc = read_ipv6(&t);
	close(t.fd);
	if (rc) {
		vb_netif_free(t.list, t.count);
		return rc;
	}
	if (t.count)
		qsort(t.list, t.count, sizeof(*t.list), loopback_last);
	*list = t.list;
	*count = t.count;
	return 0;
}

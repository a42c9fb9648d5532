/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and configures the TUN interface. */
#include "ipoib/tun.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEVICE	    "/dev/net/tun"
#define IPV4_PREFIX 96 /* bits before an IPv4 address that is mapped */
#define QUEUE	    1000

bool tun_address_parse(const char *text, struct tun_address *a)
{
	const char *slash = strchr(text, '/');
	char ip[INET6_ADDRSTRLEN], *end;
	uint8_t v4[4];
	unsigned long bits;

	if (!slash || (size_t)(slash - text) >= sizeof(ip) || slash[1] < '0' ||
	    slash[1] > '9')
		return false;
	memcpy(ip, text, (size_t)(slash - text));
	ip[slash - text] = '\0';
	bits = strtoul(slash + 1, &end, 10);
	if (*end || bits > 128)
		return false;
	if (inet_pton(AF_INET, ip, v4) == 1) {
		a->ip = vb_gid_from_ipv4(v4);
		a->prefix = IPV4_PREFIX + (unsigned)bits;
		return bits <= 32;
	}
	a->prefix = (unsigned)bits;
	return inet_pton(AF_INET6, ip, a->ip.raw) == 1 &&
	       !vb_gid_is_multicast(&a->ip) && !vb_gid_is_ipv4(&a->ip);
}

/* --- the interface --- */

static int open_watch(void)
{
	struct sockaddr_nl own = { .nl_family = AF_NETLINK,
				   .nl_groups = RTMGRP_IPV4_IFADDR |
						RTMGRP_IPV6_IFADDR |
						RTMGRP_IPV4_ROUTE |
						RTMGRP_IPV6_ROUTE };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0) {
		close(fd);
		fd = -1;
	}
	return fd < 0 ? -errno : fd;
}

/* The type can change only while the interface is down, which it is after
 * TUNSETIFF. */
static int make_interface(struct tun *t)
{
	struct ifreq r = { .ifr_flags = IFF_TUN | IFF_NO_PI };

	memcpy(r.ifr_name, t->name, sizeof(r.ifr_name));
	if (ioctl(t->fd, TUNSETIFF, &r) < 0 ||
	    ioctl(t->fd, TUNSETLINK, ARPHRD_INFINIBAND) < 0)
		return -errno;
	memcpy(t->name, r.ifr_name, sizeof(t->name));
	tun_carrier(t, false);
	return 0;
}

int tun_open(struct tun *t, const char *name)
{
	int rc;

	*t = (struct tun){ .fd = -1, .netlink = -1 };
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->fd = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (t->fd < 0)
		return -errno;
	rc = make_interface(t);
	if (rc == 0) {
		t->netlink = open_watch();
		rc = t->netlink < 0 ? t->netlink : 0;
	}
	if (rc)
		tun_close(t);
	return rc;
}

void tun_close(struct tun *t)
{
	if (t->fd >= 0)
		close(t->fd);
	if (t->netlink >= 0)
		close(t->netlink);
	t->fd = t->netlink = -1;
}

/* Linux before 5.0 has no such request; there the carrier is always on. */
void tun_carrier(struct tun *t, bool on)
{
	int value = on;

	(void)ioctl(t->fd, TUNSETCARRIER, &value);
}

static int set_up(int fd, struct ifreq *r, unsigned mtu)
{
	r->ifr_mtu = (int)mtu;
	if (ioctl(fd, SIOCSIFMTU, r) < 0)
		return -errno;
	r->ifr_qlen = QUEUE;
	(void)ioctl(fd, SIOCSIFTXQLEN, r);
	if (ioctl(fd, SIOCGIFFLAGS, r) < 0)
		return -errno;
	r->ifr_flags |= IFF_UP;
	return ioctl(fd, SIOCSIFFLAGS, r) < 0 ? -errno : 0;
}

int tun_up(struct tun *t, unsigned mtu)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;
	struct ifreq r = { .ifr_flags = 0 };

	if (fd < 0)
		return -errno;
	memcpy(r.ifr_name, t->name, sizeof(r.ifr_name));
	rc = set_up(fd, &r, mtu);
	close(fd);
	return rc;
}

/* --- addresses --- */

static int put_address(struct nl_msg *m, const struct tun *t,
		       const struct tun_address *a)
{
	bool v4 = vb_gid_is_ipv4(&a->ip);
	size_t at = v4 ? 12 : 0, bytes = v4 ? 4 : 16;
	struct ifaddrmsg head = {
		.ifa_family = v4 ? AF_INET : AF_INET6,
		.ifa_prefixlen =
			(uint8_t)(v4 ? a->prefix - IPV4_PREFIX : a->prefix),
		.ifa_flags = IFA_F_PERMANENT,
		.ifa_scope = vb_gid_is_link_local(&a->ip) ? RT_SCOPE_LINK
							  : RT_SCOPE_UNIVERSE,
		.ifa_index = if_nametoindex(t->name),
	};

	if (nlmsg_append(m, &head, sizeof(head), NLMSG_ALIGNTO) < 0 ||
	    nla_put(m, IFA_LOCAL, (int)bytes, a->ip.raw + at) < 0 ||
	    nla_put(m, IFA_ADDRESS, (int)bytes, a->ip.raw + at) < 0)
		return -ENOMEM;
	return 0;
}

static int send_address(struct nl_sock *nl, const struct tun *t,
			const struct tun_address *a)
{
	struct nl_msg *m =
		nlmsg_alloc_simple(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
	int rc;

	if (!m || put_address(m, t, a)) {
		nlmsg_free(m);
		return -ENOMEM;
	}
	rc = nl_send_sync(nl, m); /* frees the message */
	if (rc >= 0)
		return 0;
	return rc == -NLE_EXIST ? -EEXIST : -EIO;
}

int tun_add_address(struct tun *t, const struct tun_address *a)
{
	struct nl_sock *nl = nl_socket_alloc();
	int rc = nl ? 0 : -ENOMEM;

	if (rc == 0 && nl_connect(nl, NETLINK_ROUTE) < 0)
		rc = -EIO;
	if (rc == 0)
		rc = send_address(nl, t, a);
	if (nl)
		nl_socket_free(nl);
	return rc;
}

static unsigned bits_of(const uint8_t *mask, size_t bytes)
{
	unsigned bits = 0;

	for (size_t i = 0; i < bytes; i++)
		bits += (unsigned)__builtin_popcount(mask[i]);
	return bits;
}

static bool read_address(const struct ifaddrs *i, struct tun_address *a)
{
	struct sockaddr_in6 v6, mask6;
	struct sockaddr_in v4, mask4;

	if (!i->ifa_addr || !i->ifa_netmask)
		return false;
	if (i->ifa_addr->sa_family == AF_INET) {
		memcpy(&v4, i->ifa_addr, sizeof(v4));
		memcpy(&mask4, i->ifa_netmask, sizeof(mask4));
		a->ip = vb_gid_from_ipv4((const uint8_t *)&v4.sin_addr);
		a->prefix = IPV4_PREFIX +
			    bits_of((const uint8_t *)&mask4.sin_addr, 4);
		return true;
	}
	if (i->ifa_addr->sa_family != AF_INET6)
		return false;
	memcpy(&v6, i->ifa_addr, sizeof(v6));
	memcpy(&mask6, i->ifa_netmask, sizeof(mask6));
	memcpy(a->ip.raw, &v6.sin6_addr, 16);
	a->prefix = bits_of((const uint8_t *)&mask6.sin6_addr, 16);
	return true;
}

bool tun_refresh(struct tun *t)
{
	struct tun_address now[TUN_ADDRESSES];
	struct ifaddrs *all;
	unsigned count = 0;
	bool same;

	memset(now, 0, sizeof(now));
	if (getifaddrs(&all) < 0)
		return false;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (strcmp(i->ifa_name, t->name) == 0 &&
		    count < TUN_ADDRESSES && read_address(i, &now[count]))
			count++;
	freeifaddrs(all);
	same = memcmp(now, t->addresses, sizeof(now)) == 0;
	memcpy(t->addresses, now, sizeof(now));
	t->count = count;
	return !same;
}

void tun_drain(struct tun *t)
{
	uint8_t bytes[4096];

	while (recv(t->netlink, bytes, sizeof(bytes), MSG_TRUNC) >= 0 ||
	       errno == ENOBUFS || errno == EINTR)
		;
}

bool tun_has_address(const struct tun *t, const struct vb_gid *ip)
{
	for (unsigned i = 0; i < t->count; i++)
		if (vb_gid_equal(&t->addresses[i].ip, ip))
			return true;
	return false;
}

/* Are @a and @b equal in their first @bits bits? */
static bool same_network(const struct vb_gid *a, const struct vb_gid *b,
			 unsigned bits)
{
	if (memcmp(a->raw, b->raw, bits / 8) != 0)
		return false;
	return bits % 8 == 0 ||
	       (a->raw[bits / 8] ^ b->raw[bits / 8]) >> (8 - bits % 8) == 0;
}

static bool host_bits_set(const struct vb_gid *ip, unsigned prefix)
{
	for (unsigned bit = prefix; bit < 128; bit++)
		if (!(ip->raw[bit / 8] & 0x80 >> bit % 8))
			return false;
	return true;
}

bool tun_is_broadcast(const struct tun *t, const struct vb_gid *ip)
{
	if (!vb_gid_is_ipv4(ip))
		return false;
	/* a network of two hosts or one has no broadcast address (RFC 3021) */
	for (unsigned i = 0; i < t->count; i++)
		if (t->addresses[i].prefix < 127 &&
		    same_network(ip, &t->addresses[i].ip,
				 t->addresses[i].prefix) &&
		    host_bits_set(ip, t->addresses[i].prefix))
			return true;
	return host_bits_set(ip, IPV4_PREFIX);
}

const struct vb_gid *tun_source(const struct tun *t, const struct vb_gid *ip)
{
	const struct vb_gid *any = NULL;

	for (unsigned i = 0; i < t->count; i++) {
		const struct tun_address *a = &t->addresses[i];

		if (vb_gid_is_ipv4(&a->ip) != vb_gid_is_ipv4(ip))
			continue;
		if (same_network(ip, &a->ip, a->prefix))
			return &a->ip;
		any = &a->ip;
	}
	return any;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and configures the TUN interface. */
#include "ipoib/tun.h"

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

#define DEVICE "/dev/net/tun"
#define QUEUE  1000

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

/* TUNSETLINK makes the interface one of InfiniBand. The kernel permits that
 * only while the interface is down, as it is after TUNSETIFF. */
static int make_interface(struct tun *t, bool ethernet)
{
	struct ifreq r = { .ifr_flags = ethernet ? IFF_TAP : IFF_TUN };

	r.ifr_flags |= IFF_NO_PI;
	memcpy(r.ifr_name, t->name, sizeof(r.ifr_name));
	if (ioctl(t->fd, TUNSETIFF, &r) < 0 ||
	    (!ethernet && ioctl(t->fd, TUNSETLINK, ARPHRD_INFINIBAND) < 0))
		return -errno;
	memcpy(t->name, r.ifr_name, sizeof(t->name));
	tun_carrier(t, false);
	return 0;
}

int tun_open(struct tun *t, const char *name, bool ethernet)
{
	int rc;

	*t = (struct tun){ .fd = -1, .netlink = -1 };
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->fd = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (t->fd < 0)
		return -errno;
	rc = make_interface(t, ethernet);
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

/* A kernel that does not know TUNSETCARRIER leaves the carrier on at all
 * times. */
void tun_carrier(struct tun *t, bool on)
{
	int value = on;

	(void)ioctl(t->fd, TUNSETCARRIER, &value);
}

static int set_mac(int fd, struct ifreq *r, const uint8_t *mac)
{
	r->ifr_hwaddr.sa_family = ARPHRD_ETHER;
	memcpy(r->ifr_hwaddr.sa_data, mac, 6);
	return ioctl(fd, SIOCSIFHWADDR, r) < 0 ? -errno : 0;
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

int tun_up(struct tun *t, unsigned mtu, const uint8_t *mac)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;
	struct ifreq r = { .ifr_flags = 0 };

	if (fd < 0)
		return -errno;
	memcpy(r.ifr_name, t->name, sizeof(r.ifr_name));
	if (mac)
		rc = set_mac(fd, &r, mac);
	if (rc == 0)
		rc = set_up(fd, &r, mtu);
	close(fd);
	return rc;
}

/* --- addresses --- */

static int put_address(struct nl_msg *m, const struct tun *t,
		       const struct vb_ip_net *a)
{
	bool v4 = vb_gid_is_ipv4(&a->ip);
	size_t at = v4 ? 12 : 0, bytes = v4 ? 4 : 16;
	struct ifaddrmsg head = {
		.ifa_family = v4 ? AF_INET : AF_INET6,
		.ifa_prefixlen =
			(uint8_t)(v4 ? a->prefix - VB_IPV4_PREFIX : a->prefix),
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
			const struct vb_ip_net *a)
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

int tun_add_address(struct tun *t, const struct vb_ip_net *a)
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

static bool read_address(const struct ifaddrs *i, struct vb_ip_net *a)
{
	struct sockaddr_in6 v6, mask6;
	struct sockaddr_in v4, mask4;

	if (!i->ifa_addr || !i->ifa_netmask)
		return false;
	if (i->ifa_addr->sa_family == AF_INET) {
		memcpy(&v4, i->ifa_addr, sizeof(v4));
		memcpy(&mask4, i->ifa_netmask, sizeof(mask4));
		a->ip = vb_gid_from_ipv4((const uint8_t *)&v4.sin_addr);
		a->prefix = VB_IPV4_PREFIX +
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
	struct vb_ip_net now[VB_IP_NETS];
	struct ifaddrs *all;
	unsigned count = 0;
	bool same;

	memset(now, 0, sizeof(now));
	if (getifaddrs(&all) < 0)
		return false;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (strcmp(i->ifa_name, t->name) == 0 && count < VB_IP_NETS &&
		    read_address(i, &now[count]))
			count++;
	freeifaddrs(all);
	same = memcmp(now, t->nets.list, sizeof(now)) == 0;
	memcpy(t->nets.list, now, sizeof(now));
	t->nets.count = count;
	return !same;
}

void tun_drain(struct tun *t)
{
	uint8_t bytes[4096];

	while (recv(t->netlink, bytes, sizeof(bytes), MSG_TRUNC) >= 0 ||
	       errno == ENOBUFS || errno == EINTR)
		;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The UDP link: the shared port 4791, multicast groups, and the link's table of
 * functions. */
#include "link/udp_priv.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "base/log.h"
#include "link/group.h"

#define RX_QUEUE_FORCED (8 << 20)
#define RX_QUEUE_ASKED	(4 << 20)

/* Open a UDP socket, dual-stack if the host has IPv6. Returns a descriptor or
 * -errno. */
static int link_udp_open_socket(int *family)
{
	static const int off;
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*family = AF_INET6;
	if (fd >= 0 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	else if (errno != EAFNOSUPPORT)
		return -errno;
	*family = AF_INET;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

static int bind_roce_port(int fd, int family)
{
	union vb_udp_addr a = { .any.sa_family = (sa_family_t)family };
	socklen_t len = family == AF_INET6 ? sizeof(a.v6) : sizeof(a.v4);

	/* The port is at the same offset in IPv4 and IPv6 addresses. */
	a.v4.sin_port = htons(VB_ROCE_PORT);
	return bind(fd, &a.any, len) < 0 ? -errno : 0;
}

/*
 * Ask for the header fields that recv() needs. A dual-stack socket reports the
 * destination of IPv4 datagrams as a mapped IPV6_PKTINFO, but their TOS and TTL
 * as IP_TOS and IP_TTL (seen on Linux 6.18), so ask for both sets. Without
 * UDP_GRO frames come one at a time. Peers are allowed to send IPv6 without UDP
 * checksums (Annex A17).
 */
static void ask_for_details(int fd, int family)
{
	// clang-format off
	static const struct { int family, level, name; } wanted[] = {
		{ AF_INET,  IPPROTO_IP,   IP_PKTINFO },
		{ AF_UNSPEC, IPPROTO_IP,   IP_RECVTOS },
		{ AF_UNSPEC, IPPROTO_IP,   IP_RECVTTL },
		{ AF_INET6, IPPROTO_IPV6, IPV6_RECVPKTINFO },
		{ AF_INET6, IPPROTO_IPV6, IPV6_RECVTCLASS },
		{ AF_INET6, IPPROTO_IPV6, IPV6_RECVHOPLIMIT },
		{ AF_INET6, IPPROTO_UDP,  UDP_NO_CHECK6_RX },
		{ AF_UNSPEC, IPPROTO_UDP,  UDP_GRO },
	};
	// clang-format on
	static const int on = 1;

	for (unsigned i = 0; i < VB_COUNT(wanted); i++) {
		if (wanted[i].family != AF_UNSPEC && wanted[i].family != family)
			continue;
		if (setsockopt(fd, wanted[i].level, wanted[i].name, &on,
			       sizeof(on)) < 0)
			vb_log(LOG_DEBUG,
			       "udp: cannot set socket option %d.%d: %s",
			       wanted[i].level, wanted[i].name,
			       strerror(errno));
	}
}

/* Choose whether @fd gets packets of all multicast groups that some socket of
 * the host has joined. This is off at first, because the kernel copies each
 * packet for every such socket. */
static void take_groups(int fd, int family, int yes)
{
	if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &yes, sizeof(yes)) < 0)
		vb_log(LOG_DEBUG, "udp: cannot set IP_MULTICAST_ALL: %s",
		       strerror(errno));
	if (family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &yes,
		       sizeof(yes)) < 0)
		vb_log(LOG_DEBUG, "udp: cannot set IPV6_MULTICAST_ALL: %s",
		       strerror(errno));
}

static void deepen_queue(int fd)
{
	static const int forced = RX_QUEUE_FORCED, asked = RX_QUEUE_ASKED;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &forced,
		       sizeof(forced)) < 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &asked, sizeof(asked)) < 0)
		vb_log(LOG_DEBUG, "udp: cannot enlarge the receive queue: %s",
		       strerror(errno));
}

static int share_roce_port(int fd, int family)
{
	static const int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0)
		return -errno;
	ask_for_details(fd, family);
	take_groups(fd, family, 0);
	return bind_roce_port(fd, family);
}

int vb_udp_socket(int *fd)
{
	int family, s = link_udp_open_socket(&family), rc;

	if (s < 0)
		return s;
	rc = share_roce_port(s, family);
	if (rc) {
		close(s);
		return rc;
	}
	*fd = s;
	return 0;
}

bool vb_udp_port_taken(void)
{
	int family, fd = link_udp_open_socket(&family), rc;

	if (fd < 0)
		return false;
	rc = bind_roce_port(fd, family);
	close(fd);
	return rc == -EADDRINUSE;
}

/*
 * The kernel runs this filter with the UDP payload at offset 0. When a datagram
 * is too short for the load, the filter returns 0, which is slot 0.
 */
int vb_udp_steer(int fd, unsigned slots)
{
	struct sock_filter code[] = {
		/* load the word with 8 reserved bits and the destination QPN */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, VB_QPN_BITS),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, slots, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog program = { VB_COUNT(code), code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
			  sizeof(program)) < 0
		       ? -errno
		       : 0;
}

/* Returns AF_INET or AF_INET6; -1: @fd is no UDP socket. */
static int udp_family(int fd)
{
	if (!vb_fdmail_has_option(fd, SO_TYPE, SOCK_DGRAM) ||
	    !vb_fdmail_has_option(fd, SO_PROTOCOL, IPPROTO_UDP))
		return -1;
	if (vb_fdmail_has_option(fd, SO_DOMAIN, AF_INET6))
		return AF_INET6;
	return vb_fdmail_has_option(fd, SO_DOMAIN, AF_INET) ? AF_INET : -1;
}

bool vb_udp_is_roce(int fd)
{
	union vb_udp_addr a;
	socklen_t len = sizeof(a);

	if (udp_family(fd) < 0 || getsockname(fd, &a.any, &len) < 0)
		return false;
	return a.v4.sin_port == htons(VB_ROCE_PORT);
}

/* Returns a socket that receives nothing, or -errno. */
static int open_member(int family)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

static int join_on(const struct vb_gid *group, uint32_t ifindex)
{
	struct ip_mreqn v4 = { .imr_ifindex = (int)ifindex };
	struct ipv6_mreq v6 = { .ipv6mr_interface = ifindex };

	if (vb_gid_is_ipv4(group)) {
		memcpy(&v4.imr_multiaddr, group->raw + 12, 4);
		return vb_group_join(open_member(AF_INET), IPPROTO_IP,
				     IP_ADD_MEMBERSHIP, &v4, sizeof(v4));
	}
	memcpy(&v6.ipv6mr_multiaddr, group->raw, 16);
	return vb_group_join(open_member(AF_INET6), IPPROTO_IPV6,
			     IPV6_ADD_MEMBERSHIP, &v6, sizeof(v6));
}

/* The shared socket lives on in the vault, so another one joins the group.
 * After take_groups() the shared socket receives the group's packets. */
static int udp_join(struct vb_link *l, const struct vb_link_group *group)
{
	struct vb_udp *u = vb_udp_of(l);
	int member = join_on(&group->gid, group->ifindex);

	if (member >= 0)
		take_groups(u->rx.fd, u->family, 1);
	return member;
}

static int udp_fd(const struct vb_link *l)
{
	return vb_udp_of(l)->rx.fd;
}

static void udp_stats(const struct vb_link *l, struct vb_link_stats *out)
{
	const struct vb_udp_stats *s = &vb_udp_of(l)->stats;

#define READ(field)                                                            \
	out->field = atomic_load_explicit(&s->field, memory_order_relaxed)
	READ(tx_frames);
	READ(tx_calls);
	READ(tx_bytes);
	READ(tx_lost);
	READ(rx_frames);
	READ(rx_calls);
	READ(rx_bytes);
	READ(rx_icrc_errors);
	READ(rx_malformed);
#undef READ
}

static void log_stats(const struct vb_link *l)
{
	struct vb_link_stats s;

	udp_stats(l, &s);
	vb_log(LOG_INFO,
	       "udp: %llu packets sent in %llu calls, %llu received in %llu",
	       (unsigned long long)s.tx_frames, (unsigned long long)s.tx_calls,
	       (unsigned long long)s.rx_frames, (unsigned long long)s.rx_calls);
}

static void udp_close(struct vb_link *l)
{
	struct vb_udp *u = vb_udp_of(l);

	log_stats(l);
	vb_udp_tx_fini(u);
	vb_udp_rx_fini(u);
	vb_mutex_fini(&u->open_lock);
	free(u);
}

static const struct vb_link_ops udp_ops = {
	.name = "udp",
	.route = vb_udp_route,
	.aim = vb_udp_aim,
	.join = udp_join,
	.leave = vb_group_leave,
	.send = vb_udp_send,
	.drop = vb_udp_drop,
	.recv = vb_udp_recv,
	.fd = udp_fd,
	.stats = udp_stats,
	.close = udp_close,
};

static int init_parts(struct vb_udp *u, int rx_fd)
{
	int rc;

	u->family = udp_family(rx_fd);
	if (u->family < 0)
		return -ENOTSOCK;
	ask_for_details(rx_fd, u->family);
	take_groups(rx_fd, u->family, 0);
	deepen_queue(rx_fd);
	rc = vb_udp_tx_init(u);
	if (rc)
		return rc;
	rc = vb_udp_rx_init(u, rx_fd);
	if (rc)
		vb_udp_tx_fini(u);
	return rc;
}

int vb_udp_open(int rx_fd, struct vb_link **link)
{
	struct vb_udp *u = calloc(1, sizeof(*u));
	int rc;

	if (!u)
		return -ENOMEM;
	u->link.ops = &udp_ops;
	vb_mutex_init(&u->open_lock, VB_RANK_LEAF);
	rc = init_parts(u, rx_fd);
	if (rc) {
		vb_mutex_fini(&u->open_lock);
		free(u);
		return rc;
	}
	*link = &u->link;
	return 0;
}

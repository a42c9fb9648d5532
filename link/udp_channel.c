/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UDP link's sending sockets: one for each destination slot, which the
 * first route to that slot opens; and how a route chooses among them.
 */
#include "link/udp_priv.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rand.h"

#define PORT_FIRST 0xc000 /* the lowest source port that RoCEv2 peers use */
#define PORT_TRIES 64
#define TX_QUEUE   (1 << 20)

/* Set a filter that drops all packets that arrive at a sending socket, because
 * packets of strangers would take memory there. */
static void drop_arrivals(int fd)
{
	struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { 1, &code };

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
		       sizeof(program)) < 0)
		vb_log(LOG_DEBUG,
		       "udp: cannot filter arrivals at a sending socket: %s",
		       strerror(errno));
}

static int bind_random_port(int fd, int family, uint16_t *port)
{
	union vb_udp_addr a = { .any.sa_family = (sa_family_t)family };
	socklen_t len = family == AF_INET6 ? sizeof(a.v6) : sizeof(a.v4);

	for (int i = 0; i < PORT_TRIES; i++) {
		*port = (uint16_t)(PORT_FIRST | vb_rand32());
		a.v4.sin_port = htons(*port);
		if (bind(fd, &a.any, len) == 0)
			return 0;
		if (errno != EADDRINUSE)
			break;
	}
	return -errno;
}

static int set_tx_options(int fd, int family, bool in_pieces)
{
	static const int off, queue = TX_QUEUE;
	int mode = in_pieces ? IP_PMTUDISC_DONT : IP_PMTUDISC_PROBE;
	int mode6 = in_pieces ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_PROBE;

	if (setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &mode, sizeof(mode)) <
		    0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &queue, sizeof(queue)) < 0)
		return -errno;
	if (family != AF_INET6)
		return 0;
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &mode6,
		       sizeof(mode6)) < 0 ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
		return -errno;
	return 0;
}

/* Open a sending socket. @in_pieces: the kernel may cut its packets into IP
 * fragments. Returns a descriptor, or -errno. */
static int open_tx_socket(int family, bool in_pieces, uint16_t *port)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	drop_arrivals(fd);
	rc = set_tx_options(fd, family, in_pieces);
	if (rc == 0)
		rc = bind_random_port(fd, family, port);
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

int vb_udp_out_open(struct vb_udp *u, struct vb_udp_out *o, bool in_pieces)
{
	/* Acquire: a thread that sees the descriptor also sees the port. */
	int fd = atomic_load_explicit(&o->fd, memory_order_acquire);

	if (fd >= 0)
		return fd;
	vb_mutex_lock(&u->open_lock);
	fd = atomic_load_explicit(&o->fd, memory_order_relaxed);
	if (fd < 0) {
		fd = open_tx_socket(u->family, in_pieces, &o->port);
		if (fd >= 0)
			atomic_store_explicit(&o->fd, fd, memory_order_release);
	}
	vb_mutex_unlock(&u->open_lock);
	return fd;
}

static bool can_go(const struct vb_udp *u, const struct vb_route *r)
{
	bool v4 = vb_gid_is_ipv4(&r->dgid);

	return v4 == vb_gid_is_ipv4(&r->sgid) && (v4 || u->family == AF_INET6);
}

static int no_channel(int rc)
{
	vb_log(LOG_WARN, "udp: no socket to send with: %s%s", strerror(-rc),
	       rc == -EMFILE ? "; raise RLIMIT_NOFILE" : "");
	return rc;
}

static socklen_t put_address(union vb_udp_addr *a, const struct vb_gid *gid,
			     uint32_t ifindex)
{
	*a = (union vb_udp_addr){ 0 };
	if (vb_gid_is_ipv4(gid)) {
		a->v4.sin_family = AF_INET;
		memcpy(&a->v4.sin_addr, gid->raw + 12, 4);
		return sizeof(a->v4);
	}
	a->v6.sin6_family = AF_INET6;
	memcpy(&a->v6.sin6_addr, gid->raw, 16);
	if (vb_gid_is_link_local(gid))
		a->v6.sin6_scope_id = ifindex;
	return sizeof(a->v6);
}

static int link_udp_bind_source(int fd, const struct vb_gid *gid,
				uint32_t ifindex)
{
	union vb_udp_addr a;
	socklen_t len = put_address(&a, gid, ifindex);

	return bind(fd, &a.any, len) < 0 ? -errno : 0;
}

static int open_for(const struct vb_gid *gid)
{
	return socket(vb_gid_is_ipv4(gid) ? AF_INET : AF_INET6,
		      SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* Do packets to this address leave with this very address as their source? If
 * so, this host owns the address, except for 127.0.0.0/8. */
static bool is_its_own_source(int fd, const struct vb_gid *gid,
			      const union vb_udp_addr *a)
{
	union vb_udp_addr own;
	socklen_t len = sizeof(own);

	if (getsockname(fd, &own.any, &len))
		return false;
	if (!vb_gid_is_ipv4(gid))
		return memcmp(&own.v6.sin6_addr, &a->v6.sin6_addr, 16) == 0;
	return own.v4.sin_addr.s_addr == a->v4.sin_addr.s_addr ||
	       gid->raw[12] == IN_LOOPBACKNET;
}

/*
 * Ask the routing table. bind() would not do, because it accepts every address
 * where net.ipv4.ip_nonlocal_bind is set. Multicast groups and the unspecified
 * address also have routes, but belong to no host.
 */
bool vb_udp_owns(const struct vb_gid *gid, uint32_t ifindex)
{
	static const struct vb_gid any = { { [10] = 0xff, 0xff } };
	union vb_udp_addr a;
	socklen_t len = put_address(&a, gid, ifindex);
	int fd = open_for(gid);
	bool owns;

	if (fd < 0)
		return false;
	/* sin6_port is at the same offset */
	a.v4.sin_port = htons(VB_ROCE_PORT);
	owns = connect(fd, &a.any, len) == 0 && is_its_own_source(fd, gid, &a);
	close(fd);
	return owns && !vb_gid_is_zero(gid) && !vb_gid_equal(gid, &any) &&
	       !vb_gid_is_multicast(gid);
}

/*
 * Refuse a source address that the host does not have: the kernel would refuse
 * each packet. GID 0 is made from the MAC, and often no interface has that
 * address: on loopback, where IPv6 is off, or where link-local addresses are
 * random (RFC 7217).
 */
static int check_source(const struct vb_route *r)
{
	int fd = open_for(&r->sgid), rc;

	if (fd < 0)
		return no_channel(-errno);
	rc = link_udp_bind_source(fd, &r->sgid, r->ifindex);
	close(fd);
	/* Check the routing table as well, because bind() accepts every address
	 * where ip_nonlocal_bind is set. */
	if (rc == 0 && !vb_udp_owns(&r->sgid, r->ifindex))
		rc = -EADDRNOTAVAIL;
	return rc == -EADDRNOTAVAIL ? rc : 0;
}

int vb_udp_aim(struct vb_link *l, struct vb_route *r)
{
	struct vb_udp *u = vb_udp_of(l);
	uint32_t slot = (r->dqpn & VB_QPN_MULTICAST) >> VB_QPN_BITS;
	struct vb_udp_channel *c = &u->channels[slot];
	/* Each slot needs its own channel (socket): otherwise GRO at a
	 * receiving host could join packets for two of the host's processes. */
	int fd = vb_udp_out_open(u, &c->whole, false);

	if (fd < 0)
		return no_channel(fd);
	r->channel = (uint16_t)(c - u->channels);
	r->src_port = c->whole.port;
	return 0;
}

int vb_udp_route(struct vb_link *l, struct vb_route *r)
{
	int rc;

	if (!can_go(vb_udp_of(l), r))
		return -EAFNOSUPPORT;
	rc = check_source(r);
	return rc ? rc : vb_udp_aim(l, r);
}

static bool can_cut(int fd)
{
	int off = 0;

	return setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &off, sizeof(off)) == 0;
}

int vb_udp_tx_init(struct vb_udp *u)
{
	int fd;

	for (unsigned i = 0; i < VB_SLOTS; i++) {
		atomic_init(&u->channels[i].whole.fd, -1);
		atomic_init(&u->channels[i].pieces.fd, -1);
	}
	fd = vb_udp_out_open(u, &u->channels[0].whole, false);
	if (fd < 0)
		return fd;
	atomic_init(&u->gso, can_cut(fd));
	return 0;
}

static void close_out(const struct vb_udp_out *o)
{
	if (o->fd >= 0)
		close(o->fd);
}

void vb_udp_tx_fini(struct vb_udp *u)
{
	for (unsigned i = 0; i < VB_SLOTS; i++) {
		close_out(&u->channels[i].whole);
		close_out(&u->channels[i].pieces);
	}
}

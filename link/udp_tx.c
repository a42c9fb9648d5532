/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending: one socket for each destination slot, packets of one kind joined
 * into messages that the kernel cuts (UDP_SEGMENT).
 *
 * The ICRC covers the IPv4 Identification. An unconnected socket that forbids
 * fragments sends 0, and i in segment i of a joined message (WIRE 1.5).
 */
#include "link/udp_priv.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rand.h"

#define PORT_FIRST  0xc000 /* WIRE 1.2 */
#define PORT_TRIES  64
#define TX_QUEUE    (1 << 20)
#define APART_FIRST (100 * VB_MSEC)
#define APART_MOST  (10 * VB_SEC)
#define TX_MSGS	    16
#define MOST_TOLD   16

_Static_assert(VB_TRAIN_FRAMES <= 64,
	       "UDP_MAX_SEGMENTS; prefixes know as many");

struct tx_batch {
	struct vb_udp_channel *channel;
	const struct vb_udp_out *out; /* of the channel's */
	int fd;			      /* its */
	unsigned count;
	unsigned first[TX_MSGS], frames[TX_MSGS];
	struct mmsghdr headers[TX_MSGS];
	struct iovec vectors[TX_MSGS];
	union vb_udp_addr to[TX_MSGS];
	_Alignas(struct cmsghdr) uint8_t control[TX_MSGS][128];
};

/* Nothing is to arrive here; what strangers send must not take memory. */
static void drop_arrivals(int fd)
{
	struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { 1, &code };

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
		       sizeof(program)) < 0)
		vb_log(LOG_DEBUG, "udp: filter: %s", strerror(errno));
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

/* A file descriptor, or -errno. */
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

/* The descriptor, opened at need, or -errno. */
static int open_out(struct vb_udp *u, struct vb_udp_out *o, bool in_pieces)
{
	/* acquire, release: the port is behind the descriptor */
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

static int link_udp_tx_bind_to(int fd, const struct vb_gid *gid,
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

/* What goes there leaves with that very address: it does so from its owner
 * only, but for 127.0.0.0/8. */
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
 * The routes are asked: where net.ipv4.ip_nonlocal_bind is set, every address
 * can be bound to. Groups, and what stands for any address, lead somewhere.
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
	a.v4.sin_port = htons(VB_ROCE_PORT); /* same place in IPv6 */
	owns = connect(fd, &a.any, len) == 0 && is_its_own_source(fd, gid, &a);
	close(fd);
	return owns && !vb_gid_is_zero(gid) && !vb_gid_equal(gid, &any) &&
	       !vb_gid_is_multicast(gid);
}

/*
 * GID 0 is made from the MAC, and on many hosts no interface has it: that of
 * loopback, where IPv6 is off, where link-local addresses are stable-privacy.
 * The kernel would refuse each packet; better refuse the queue pair.
 */
static int check_source(const struct vb_route *r)
{
	int fd = open_for(&r->sgid), rc;

	if (fd < 0)
		return no_channel(-errno);
	rc = link_udp_tx_bind_to(fd, &r->sgid, r->ifindex);
	close(fd);
	/* Where any address can be bound to (ip_nonlocal_bind). */
	if (rc == 0 && !vb_udp_owns(&r->sgid, r->ifindex))
		rc = -EADDRNOTAVAIL;
	return rc == -EADDRNOTAVAIL ? rc : 0;
}

int vb_udp_aim(struct vb_link *l, struct vb_route *r)
{
	struct vb_udp *u = vb_udp_of(l);
	uint32_t slot = (r->dqpn & VB_QPN_MULTICAST) >> VB_QPN_BITS;
	struct vb_udp_channel *c = &u->channels[slot];
	/* A channel that serves two slots would let a receiver's GRO join
	 * packets for two of its processes. */
	int fd = open_out(u, &c->whole, false);

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

/* Do packets of both routes fit in one message? */
static bool is_same_way(const struct vb_route *a, const struct vb_route *b)
{
	if (a == b)
		return true;
	return a->channel == b->channel && a->ifindex == b->ifindex &&
	       a->tclass == b->tclass && a->hop_limit == b->hop_limit &&
	       vb_gid_equal(&a->dgid, &b->dgid) &&
	       vb_gid_equal(&a->sgid, &b->sgid);
}

/* How many frames from @first on make one message: of equal length, only the
 * last may be shorter. */
static unsigned count_joinable(const struct vb_txq *q, unsigned first)
{
	const struct vb_tx_frame *head = &q->frames[first], *f = head;
	uint32_t bytes = head->len + VB_ICRC_BYTES;
	unsigned n = 1;

	while (first + n < q->count && n < VB_TRAIN_FRAMES &&
	       f->len == head->len) {
		f++;
		bytes += f->len + VB_ICRC_BYTES;
		if (f->len > head->len || bytes > VB_TRAIN_BYTES ||
		    !is_same_way(head->route, f->route))
			break;
		n++;
	}
	return n;
}

static void seal_message(struct vb_txq *q, unsigned first, unsigned count,
			 uint16_t port)
{
	const struct vb_route *r = q->frames[first].route;
	const struct vb_icrc_path path = { r->sgid, r->dgid, port,
					   VB_ROCE_PORT };
	struct vb_icrc_prefix prefix = { 0 };

	for (unsigned i = 0; i < count; i++) {
		const struct vb_tx_frame *f = &q->frames[first + i];
		uint8_t *bytes = q->bytes + f->at;

		if (f->len != prefix.len)
			vb_icrc_prefix_init(&prefix, &path, f->len);
		vb_store_le32(bytes + f->len, vb_icrc(&prefix, bytes, i));
	}
}

static void add_control(struct msghdr *h, int level, int type, const void *data,
			size_t len)
{
	uint8_t *at = (uint8_t *)h->msg_control + h->msg_controllen;
	struct cmsghdr c = { CMSG_LEN(len), level, type };

	memcpy(at, &c, sizeof(c));
	memcpy(at + CMSG_LEN(0), data, len);
	h->msg_controllen += CMSG_SPACE(len);
}

/* Other addresses are routed by the host, whatever interface they are on. */
static uint32_t bound_ifindex(const struct vb_route *r)
{
	if (vb_gid_is_link_local(&r->dgid) || vb_gid_is_link_local(&r->sgid) ||
	    vb_gid_is_multicast(&r->dgid))
		return r->ifindex;
	return 0;
}

static void address4(struct msghdr *h, const struct vb_route *r)
{
	struct in_pktinfo info = { .ipi_ifindex = (int)bound_ifindex(r) };
	struct sockaddr_in *to = h->msg_name;

	*to = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_port = htons(VB_ROCE_PORT) };
	memcpy(&to->sin_addr, r->dgid.raw + 12, 4);
	memcpy(&info.ipi_spec_dst, r->sgid.raw + 12, 4);
	h->msg_namelen = sizeof(*to);
	add_control(h, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
}

/* IPv4 too, by mapped addresses: a GID is one already. */
static void address6(struct msghdr *h, const struct vb_route *r)
{
	struct in6_pktinfo info = { .ipi6_ifindex = bound_ifindex(r) };
	struct sockaddr_in6 *to = h->msg_name;

	*to = (struct sockaddr_in6){ .sin6_family = AF_INET6,
				     .sin6_port = htons(VB_ROCE_PORT),
				     .sin6_scope_id = info.ipi6_ifindex };
	memcpy(&to->sin6_addr, r->dgid.raw, 16);
	memcpy(&info.ipi6_addr, r->sgid.raw, 16);
	h->msg_namelen = sizeof(*to);
	add_control(h, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
}

/* What the route wants other than the system's default. */
static void add_ip_fields(struct msghdr *h, const struct vb_route *r)
{
	bool v4 = vb_gid_is_ipv4(&r->dgid);
	int tclass = r->tclass, hops = r->hop_limit;

	if (tclass)
		add_control(h, v4 ? IPPROTO_IP : IPPROTO_IPV6,
			    v4 ? IP_TOS : IPV6_TCLASS, &tclass, sizeof(tclass));
	if (hops)
		add_control(h, v4 ? IPPROTO_IP : IPPROTO_IPV6,
			    v4 ? IP_TTL : IPV6_HOPLIMIT, &hops, sizeof(hops));
}

/* Seal @count frames and make them the batch's next message. */
static void add_message(const struct vb_udp *u, struct tx_batch *b,
			struct vb_txq *q, unsigned first, unsigned count)
{
	const struct vb_tx_frame *head = &q->frames[first];
	const struct vb_tx_frame *last = head + count - 1;
	unsigned i = b->count++;
	struct msghdr *h = &b->headers[i].msg_hdr;
	uint16_t segment = (uint16_t)(head->len + VB_ICRC_BYTES);

	seal_message(q, first, count, b->out->port);
	b->first[i] = first;
	b->frames[i] = count;
	b->vectors[i].iov_base = q->bytes + head->at;
	b->vectors[i].iov_len = last->at + last->len + VB_ICRC_BYTES - head->at;
	*h = (struct msghdr){
		.msg_name = &b->to[i],
		.msg_iov = &b->vectors[i],
		.msg_iovlen = 1,
		.msg_control = b->control[i],
	};
	if (u->family == AF_INET6)
		address6(h, head->route);
	else
		address4(h, head->route);
	add_ip_fields(h, head->route);
	if (count > 1)
		add_control(h, IPPROTO_UDP, UDP_SEGMENT, &segment,
			    sizeof(segment));
}

/* Will the next packet fare alike? */
static bool link_udp_tx_is_lasting(int error)
{
	return error == EINVAL || error == EADDRNOTAVAIL ||
	       error == ENETUNREACH || error == EPERM;
}

/* One sentence for each kind of refusal. */
static void complain(struct vb_udp *u, const struct vb_tx_frame *f, int error)
{
	char from[VB_GID_TEXT], to[VB_GID_TEXT];
	unsigned bit = (unsigned)error % 192;
	uint64_t mask = 1ull << bit % 64;

	if (atomic_fetch_or_explicit(&u->complained[bit / 64], mask,
				     memory_order_relaxed) &
	    mask)
		return;
	vb_gid_text(&f->route->sgid, from);
	vb_gid_text(&f->route->dgid, to);
	if (error == EMSGSIZE)
		vb_log(LOG_WARN,
		       "udp: the interface's MTU is too small for packets of "
		       "%u bytes from %s to %s: they go in fragments, which "
		       "is slower, and a peer that is not Verbena takes none "
		       "over IPv4",
		       f->len + VB_ICRC_BYTES, from, to);
	else
		vb_log(link_udp_tx_is_lasting(error) ? LOG_WARN : LOG_INFO,
		       "udp: packets from %s to %s are lost: %s", from, to,
		       strerror(error));
}

static void lose(struct vb_udp *u, const struct vb_txq *q, unsigned first,
		 unsigned count, int error)
{
	vb_udp_count(&u->stats.tx_lost, count);
	complain(u, &q->frames[first], error);
}

static void link_udp_tx_tally(struct vb_udp *u, const struct tx_batch *b,
			      unsigned from, unsigned to)
{
	uint64_t frames = 0, bytes = 0;

	for (unsigned i = from; i < to; i++) {
		frames += b->frames[i];
		bytes += b->vectors[i].iov_len;
	}
	vb_udp_count(&u->stats.tx_frames, frames);
	vb_udp_count(&u->stats.tx_bytes, bytes);
}

static bool is_full(int error)
{
	return error == EAGAIN || error == ENOBUFS || error == ENOMEM;
}

/* What a queue drops only such a socket is told of. A wire says nothing, and
 * who is flooded must not try again. */
static bool is_left(const struct vb_udp *u, int error)
{
	return is_full(error) && !(error == ENOBUFS && u->wants_returns);
}

/* What came back the socket tells its next sender, whatever that one sends,
 * and anybody can make something come back. What is wrong with the packet
 * itself is so again. */
static bool may_be_of_another(const struct vb_udp *u, unsigned told)
{
	return u->wants_returns && told < MOST_TOLD;
}

/* Messages sent from @from on (at least 1), or -errno of the first. */
static int push(struct vb_udp *u, struct tx_batch *b, unsigned from)
{
	unsigned told = 0;

	for (;;) {
		int n = sendmmsg(b->fd, b->headers + from, b->count - from,
				 MSG_DONTWAIT);
		int error;

		vb_udp_count(&u->stats.tx_calls, 1);
		if (n > 0) {
			link_udp_tx_tally(u, b, from, from + (unsigned)n);
			return n;
		}
		if (errno == EINTR)
			continue;
		error = errno;
		if (is_full(error) || !may_be_of_another(u, told++))
			return -error;
	}
}

/* Does @error say that this message must not be joined? EINVAL also has
 * other causes; sending the packets one by one tells. */
static bool may_refuse_joined(int error)
{
	return error == EIO || error == EINVAL || error == EOPNOTSUPP ||
	       error == ENOPROTOOPT;
}

/*
 * It may be for good, or for a moment only, as an interface or a route changes:
 * try again in a while, and each time that is in vain wait for twice as long.
 */
static void stay_apart(struct vb_udp *u, struct vb_udp_channel *c, int error)
{
	vb_time pause = atomic_load(&c->apart_for);

	pause = VB_MIN(VB_MAX(2 * pause, APART_FIRST), APART_MOST);
	atomic_store(&c->apart_for, pause);
	atomic_store(&c->apart_until, vb_clock_read() + pause);
	if (!atomic_exchange(&u->told_apart, true))
		vb_log(LOG_INFO,
		       "udp: the kernel does not cut packets here (%s): "
		       "one packet a call for a while, which is slower",
		       strerror(error));
}

static bool joins(struct vb_udp *u, struct vb_udp_channel *c)
{
	vb_time until =
		atomic_load_explicit(&c->apart_until, memory_order_relaxed);

	if (!atomic_load_explicit(&u->gso, memory_order_relaxed))
		return false;
	return VB_LIKELY(until == 0) || vb_clock_read() >= until;
}

/* The kernel has cut a message. */
static void note_joined(struct vb_udp_channel *c)
{
	if (VB_LIKELY(atomic_load_explicit(&c->apart_until,
					   memory_order_relaxed) == 0))
		return;
	atomic_store(&c->apart_until, 0);
	atomic_store(&c->apart_for, 0);
}

/*
 * One whose interface has become too small for it goes as IP fragments. Their
 * Identification is not 0, but the kernel's choice: a receiver behind a socket
 * does not see it, others find the ICRC wrong. As push().
 */
static int push_pieces(struct vb_udp *u, struct vb_udp_channel *c,
		       struct vb_txq *q)
{
	struct tx_batch b = { .channel = c,
			      .out = &c->pieces,
			      .fd = open_out(u, &c->pieces, true) };

	if (b.fd < 0)
		return b.fd;
	complain(u, &q->frames[q->first], EMSGSIZE);
	add_message(u, &b, q, q->first, 1);
	return push(u, &b, 0);
}

/* The kernel would not take a message as a whole: send its frames one by one.
 * Where it would not cut it, and that works, leave it at that for a while.
 * False: no room, as below. */
static bool send_apart(struct vb_udp *u, struct tx_batch *joined,
		       struct vb_txq *q, unsigned count, int error)
{
	bool sent = false, too_long = false;

	for (; count-- > 0; q->first++) {
		struct tx_batch b = { .channel = joined->channel,
				      .out = joined->out,
				      .fd = joined->fd };
		int rc;

		add_message(u, &b, q, q->first, 1);
		rc = push(u, &b, 0);
		if (rc == -EMSGSIZE) {
			too_long = true;
			rc = push_pieces(u, joined->channel, q);
		}
		if (rc < 0 && is_left(u, -rc))
			return false;
		if (rc < 0)
			lose(u, q, q->first, 1, -rc);
		else
			sent = true;
	}
	if (sent && !too_long)
		stay_apart(u, joined->channel, error);
	return true;
}

/* @q->first goes as far as its frames have gone. False: there is no room. */
static bool transmit(struct vb_udp *u, struct tx_batch *b, struct vb_txq *q)
{
	for (unsigned done = 0; done < b->count;) {
		int n = push(u, b, done);
		unsigned frames = b->frames[done];

		for (; n > 0; n--, done++) {
			if (b->frames[done] > 1)
				note_joined(b->channel);
			q->first = b->first[done] + b->frames[done];
		}
		if (n == 0)
			continue;
		if (is_left(u, -n))
			return false;
		if (n != -EMSGSIZE && (frames == 1 || !may_refuse_joined(-n))) {
			lose(u, q, b->first[done], frames, -n);
			q->first = b->first[done] + frames;
		} else if (!send_apart(u, b, q, frames, -n)) {
			return false;
		}
		done++;
	}
	return true;
}

/* Frames of one channel, as many as a batch holds, from @q->first on. */
static void link_fill(struct vb_udp *u, struct tx_batch *b, struct vb_txq *q)
{
	unsigned next = q->first, channel = q->frames[next].route->channel;
	bool joined;

	b->count = 0;
	b->channel = &u->channels[channel];
	b->out = &b->channel->whole;
	b->fd = atomic_load_explicit(&b->out->fd, memory_order_acquire);
	joined = joins(u, b->channel);
	while (next < q->count && b->count < TX_MSGS &&
	       q->frames[next].route->channel == channel) {
		unsigned n = joined ? count_joinable(q, next) : 1;

		add_message(u, b, q, next, n);
		next += n;
	}
}

bool vb_udp_send(struct vb_link *l, struct vb_txq *q)
{
	struct vb_udp *u = vb_udp_of(l);
	struct tx_batch b;

	while (q->first < q->count) {
		link_fill(u, &b, q);
		if (!transmit(u, &b, q))
			return false;
	}
	vb_txq_reset(q);
	return true;
}

void vb_udp_drop(struct vb_link *l, struct vb_txq *q)
{
	if (q->first < q->count)
		lose(vb_udp_of(l), q, q->first, q->count - q->first, EAGAIN);
	vb_txq_reset(q);
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
	fd = open_out(u, &u->channels[0].whole, false);
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

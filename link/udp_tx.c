/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends packets, and joins those of one kind into messages that the kernel cuts
 * again (UDP_SEGMENT).
 *
 * The ICRC covers the IPv4 Identification (IBA Annex A17). An unconnected
 * socket that forbids fragments sends 0 there, and i in segment i of a joined
 * message, so the ICRC can be computed before the call.
 */
#include "link/udp_priv.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "base/log.h"

#define APART_FIRST (100 * VB_MSEC)
#define APART_MOST  (10 * VB_SEC)
#define TX_MSGS	    16
#define MOST_TOLD   16

_Static_assert(VB_TRAIN_FRAMES <= 64,
	       "UDP_MAX_SEGMENTS; prefixes know as many");

struct tx_batch {
	struct vb_udp_channel *channel;
	/* one of the two sending sockets of @channel */
	const struct vb_udp_out *out;
	int fd; /* the descriptor of the socket @out */
	unsigned count;
	unsigned first[TX_MSGS], frames[TX_MSGS];
	struct mmsghdr headers[TX_MSGS];
	struct iovec vectors[TX_MSGS];
	union vb_udp_addr to[TX_MSGS];
	_Alignas(struct cmsghdr) uint8_t control[TX_MSGS][128];
};
_Static_assert(sizeof(struct tx_batch) <= VB_TXQ_ROOM, "in each batch");

/* May packets of the routes @a and @b be joined into one message? */
static bool is_same_way(const struct vb_route *a, const struct vb_route *b)
{
	if (a == b)
		return true;
	return a->channel == b->channel && a->ifindex == b->ifindex &&
	       a->tclass == b->tclass && a->hop_limit == b->hop_limit &&
	       vb_gid_equal(&a->dgid, &b->dgid) &&
	       vb_gid_equal(&a->sgid, &b->sgid);
}

/* Returns how many frames from number @first on can be joined into one message:
 * all have equal length, only the last one may be shorter. */
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

/* Returns the index of the interface to send by; 0: the host's routing table
 * decides, as it does for all addresses except link-local and multicast
 * ones. */
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

/* Set the destination to an IPv6 address. An IPv4 destination needs no
 * conversion, because an IPv4 GID is an IPv4-mapped address. */
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

/* Add the fields of the IP header in which the route differs from the system's
 * default. */
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

/* Compute the ICRC of @count frames and make them the batch's next message. */
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

/* Will the next packet fail with this error as well? */
static bool link_udp_tx_is_lasting(int error)
{
	return error == EINVAL || error == EADDRNOTAVAIL ||
	       error == ENETUNREACH || error == EPERM;
}

/* Log the error @error, unless it was logged before. */
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

static void link_udp_tx_count(struct vb_udp *u, const struct tx_batch *b,
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

/* Does the link keep the frames for another try after @error? A socket with
 * IP_RECVERR gets ENOBUFS when a queue of the host dropped the packet: then the
 * packet is lost as on a wire, because another try would flood the host
 * further. */
static bool is_left(const struct vb_udp *u, int error)
{
	return is_full(error) && !(error == ENOBUFS && u->wants_returns);
}

/* Can this error belong to an earlier packet? A socket that wants returns
 * reports an ICMP error at its next send, whatever the packet, and any host can
 * provoke one. If the error belongs to the packet itself, it comes again. */
static bool may_be_of_another(const struct vb_udp *u, unsigned told)
{
	return u->wants_returns && told < MOST_TOLD;
}

/* Send messages, beginning with number @from. Returns how many were sent, at
 * least 1, or -errno of the first one. */
static int push(struct vb_udp *u, struct tx_batch *b, unsigned from)
{
	unsigned told = 0;

	for (;;) {
		int n = sendmmsg(b->fd, b->headers + from, b->count - from,
				 MSG_DONTWAIT);
		int error;

		vb_udp_count(&u->stats.tx_calls, 1);
		if (n > 0) {
			link_udp_tx_count(u, b, from, from + (unsigned)n);
			return n;
		}
		if (errno == EINTR)
			continue;
		error = errno;
		if (is_full(error) || !may_be_of_another(u, told++))
			return -error;
	}
}

/* Can @error mean that the kernel refuses joined messages? EINVAL also has
 * other causes; send_apart() finds out by sending the packets one by one. */
static bool may_refuse_joined(int error)
{
	return error == EIO || error == EINVAL || error == EOPNOTSUPP ||
	       error == ENOPROTOOPT;
}

/*
 * Stop joining messages for a while: the kernel refuses them for ever, or only
 * while an interface or a route changes. Each further refusal doubles the
 * pause.
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

/* The kernel has accepted a message of several packets (UDP_SEGMENT) on this
 * channel: end the time in which packets are sent one by one. */
static void note_joined(struct vb_udp_channel *c)
{
	if (VB_LIKELY(atomic_load_explicit(&c->apart_until,
					   memory_order_relaxed) == 0))
		return;
	atomic_store(&c->apart_until, 0);
	atomic_store(&c->apart_for, 0);
}

/*
 * Send a packet that has become too long for its interface as IP fragments. The
 * kernel chooses their Identification, so a receiver that sees this field finds
 * the ICRC wrong; a receiver that reads by a socket does not see the field.
 * Returns what push() returns.
 */
static int push_pieces(struct vb_udp *u, struct vb_udp_channel *c,
		       struct vb_txq *q)
{
	struct tx_batch b = { .channel = c,
			      .out = &c->pieces,
			      .fd = vb_udp_out_open(u, &c->pieces, true) };

	if (b.fd < 0)
		return b.fd;
	complain(u, &q->frames[q->first], EMSGSIZE);
	add_message(u, &b, q, q->first, 1);
	return push(u, &b, 0);
}

/* The kernel refused a joined message: send its frames one by one. If that
 * works, stop joining messages for a while. False: the kernel has no room; the
 * frames from @q->first on stay in @q. */
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

/* Send the batch, and advance @q->first past each frame that was sent. False:
 * the kernel has no room. */
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

/* Fill the batch with frames of one channel, beginning with number @q->first,
 * as many as the batch holds. */
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
	struct tx_batch *b = (void *)q->room;

	while (q->first < q->count) {
		link_fill(u, b, q);
		if (!transmit(u, b, q))
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

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives datagrams, cuts those that the kernel has joined (UDP_GRO) into
 * frames again, and checks each frame's ICRC.
 */
#include "link/udp_priv.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How often one call of recv() reads the socket again after finding only
 * malformed frames. */
#define ROUNDS 4

/* The results of recvmmsg() besides the bytes; on the stack during a call. */
struct rx_batch {
	struct mmsghdr headers[VB_UDP_RX_MSGS];
	struct iovec vectors[VB_UDP_RX_MSGS];
	union vb_udp_addr from[VB_UDP_RX_MSGS];
	_Alignas(struct cmsghdr) uint8_t control[VB_UDP_RX_MSGS][192];
};

static void lay_out(struct vb_udp_rx *rx, struct rx_batch *b)
{
	for (unsigned i = 0; i < VB_UDP_RX_MSGS; i++) {
		b->vectors[i].iov_base = rx->buffers + i * VB_UDP_RX_BYTES;
		b->vectors[i].iov_len = VB_UDP_RX_BYTES;
		b->headers[i].msg_hdr = (struct msghdr){
			.msg_name = &b->from[i],
			.msg_namelen = sizeof(b->from[i]),
			.msg_iov = &b->vectors[i],
			.msg_iovlen = 1,
			.msg_control = b->control[i],
			.msg_controllen = sizeof(b->control[i]),
		};
	}
}

static int int_of(const struct cmsghdr *c)
{
	int v = 0;
	size_t len = c->cmsg_len - CMSG_LEN(0);

	/* The kernel reports IP_TOS as one byte, and the other fields as an
	 * int. */
	if (len == 1)
		return *CMSG_DATA(c);
	if (len == 2) {
		uint16_t half;

		memcpy(&half, CMSG_DATA(c), sizeof(half));
		return half;
	}
	memcpy(&v, CMSG_DATA(c), VB_MIN(len, sizeof(v)));
	return v;
}

static void note_pktinfo4(struct vb_udp_origin *o, const struct cmsghdr *c)
{
	struct in_pktinfo info;

	memcpy(&info, CMSG_DATA(c), sizeof(info));
	o->path.dst = vb_gid_from_ipv4((const uint8_t *)&info.ipi_addr);
	o->ifindex = (uint32_t)info.ipi_ifindex;
}

static void note_pktinfo6(struct vb_udp_origin *o, const struct cmsghdr *c)
{
	struct in6_pktinfo info;

	memcpy(&info, CMSG_DATA(c), sizeof(info));
	memcpy(o->path.dst.raw, &info.ipi6_addr, sizeof(o->path.dst.raw));
	o->ifindex = info.ipi6_ifindex;
}

static void note_ip(struct vb_udp_origin *o, const struct cmsghdr *c)
{
	if (c->cmsg_type == IP_PKTINFO)
		note_pktinfo4(o, c);
	else if (c->cmsg_type == IP_TOS)
		o->tclass = (uint8_t)int_of(c);
	else if (c->cmsg_type == IP_TTL)
		o->ttl = (uint8_t)int_of(c);
}

static void note_ipv6(struct vb_udp_origin *o, const struct cmsghdr *c)
{
	if (c->cmsg_type == IPV6_PKTINFO)
		note_pktinfo6(o, c);
	else if (c->cmsg_type == IPV6_TCLASS)
		o->tclass = (uint8_t)int_of(c);
	else if (c->cmsg_type == IPV6_HOPLIMIT)
		o->ttl = (uint8_t)int_of(c);
}

static void note_source(struct vb_udp_origin *o, const union vb_udp_addr *from)
{
	o->path.src_port = ntohs(from->v4.sin_port);
	o->path.dst_port = VB_ROCE_PORT;
	if (from->any.sa_family == AF_INET6)
		memcpy(o->path.src.raw, &from->v6.sin6_addr,
		       sizeof(o->path.src.raw));
	else
		o->path.src =
			vb_gid_from_ipv4((const uint8_t *)&from->v4.sin_addr);
}

static void read_origin(struct vb_udp_origin *o, struct mmsghdr *m)
{
	struct msghdr *h = &m->msg_hdr;

	memset(o, 0, sizeof(*o));
	note_source(o, h->msg_name);
	o->bytes = m->msg_len;
	o->segment = m->msg_len;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level == IPPROTO_IP)
			note_ip(o, c);
		else if (c->cmsg_level == IPPROTO_IPV6)
			note_ipv6(o, c);
		else if (c->cmsg_level == IPPROTO_UDP &&
			 c->cmsg_type == UDP_GRO && int_of(c) > 0)
			o->segment = (uint32_t)int_of(c);
	}
	vb_icrc_prefix_init(&o->prefix, &o->path,
			    VB_MAX(o->segment, VB_ICRC_BYTES) - VB_ICRC_BYTES);
}

/* Is this an error of the socket, and not of one datagram? */
static bool link_udp_rx_is_lasting(int error)
{
	return error == EBADF || error == ENOTSOCK || error == EFAULT ||
	       error == EINVAL;
}

/* Read datagrams from the socket. Returns their number, 0 when there are none,
 * or -errno. */
static int take_datagrams(struct vb_udp *u)
{
	struct vb_udp_rx *rx = &u->rx;
	struct rx_batch b;
	int n;

	lay_out(rx, &b);
	n = recvmmsg(rx->fd, b.headers, VB_UDP_RX_MSGS, MSG_DONTWAIT, NULL);
	if (n < 0)
		return link_udp_rx_is_lasting(errno) ? -errno : 0;
	for (int i = 0; i < n; i++)
		read_origin(&rx->origins[i], &b.headers[i]);
	rx->count = (unsigned)n;
	rx->next = 0;
	rx->offset = rx->index = 0;
	vb_udp_count(&u->stats.rx_calls, 1);
	return n;
}

/* Check one frame, whose length @len includes the ICRC. True: the frame is
 * good, and @f is filled in. */
static bool admit_frame(struct vb_udp *u, const struct vb_udp_origin *o,
			const uint8_t *bytes, uint32_t len, struct vb_frame *f)
{
	struct vb_icrc_prefix prefix = o->prefix;
	enum vb_icrc_verdict verdict;
	uint16_t ip_id = 0;

	if (len < VB_BTH_BYTES + VB_ICRC_BYTES || len % 4 != 0) {
		u->rx.seen.malformed++;
		return false;
	}
	len -= VB_ICRC_BYTES;
	/* Try the frame's index as its IPv4 Identification: UDP_SEGMENT numbers
	 * the packets of a batch from 0, and packets that arrive joined were
	 * most often sent joined. */
	if (len != prefix.len)
		vb_icrc_prefix_init(&prefix, &o->path, len);
	verdict = vb_icrc_check(&prefix, bytes, u->rx.index & 63, &ip_id);
	if (verdict == ICRC_BAD) {
		u->rx.seen.icrc_errors++;
		return false;
	}
	*f = (struct vb_frame){
		.bytes = bytes,
		.len = len,
		.src = &o->path.src,
		.dst = &o->path.dst,
		.src_port = o->path.src_port,
		.tclass = o->tclass,
		.ttl = o->ttl,
		.if_ip_id = verdict == ICRC_GOOD ? -1 : ip_id,
		.ifindex = o->ifindex,
	};
	return true;
}

static void cut_frame(struct vb_udp *u, struct vb_rxq *q)
{
	struct vb_udp_rx *rx = &u->rx;
	const struct vb_udp_origin *o = &rx->origins[rx->next];
	const uint8_t *datagram = rx->buffers + rx->next * VB_UDP_RX_BYTES;
	uint32_t len = VB_MIN(o->segment, o->bytes - rx->offset);

	if (admit_frame(u, o, datagram + rx->offset, len,
			&q->frames[q->count])) {
		rx->seen.bytes += len;
		q->count++;
	}
	rx->offset += len;
	rx->index++;
	if (rx->offset < o->bytes)
		return;
	rx->next++;
	rx->offset = rx->index = 0;
}

/* Update the shared counters once for each call and not for each frame, because
 * other threads read them. */
static void link_udp_rx_count(struct vb_udp *u, const struct vb_rxq *q)
{
	struct vb_udp_rx *rx = &u->rx;

	vb_udp_count(&u->stats.rx_frames, q->count);
	vb_udp_count(&u->stats.rx_bytes, rx->seen.bytes);
	if (rx->seen.icrc_errors)
		vb_udp_count(&u->stats.rx_icrc_errors, rx->seen.icrc_errors);
	if (rx->seen.malformed)
		vb_udp_count(&u->stats.rx_malformed, rx->seen.malformed);
	memset(&rx->seen, 0, sizeof(rx->seen));
}

int vb_udp_recv(struct vb_link *l, struct vb_rxq *q)
{
	struct vb_udp *u = vb_udp_of(l);
	struct vb_udp_rx *rx = &u->rx;
	int n = 0;

	q->count = 0;
	for (int round = 0; round < ROUNDS && q->count == 0; round++) {
		/* If @q got full in the last call, some frames of the last
		 * datagrams are not cut out yet: do that first. */
		n = rx->next < rx->count ? 1 : take_datagrams(u);
		if (n <= 0)
			break;
		while (rx->next < rx->count && q->count < VB_RXQ_FRAMES)
			cut_frame(u, q);
	}
	if (n > 0 || rx->seen.malformed || rx->seen.icrc_errors)
		link_udp_rx_count(u, q);
	return VB_MIN(n, 0);
}

int vb_udp_rx_init(struct vb_udp *u, int fd)
{
	u->rx.buffers = malloc((size_t)VB_UDP_RX_MSGS * VB_UDP_RX_BYTES);
	if (!u->rx.buffers)
		return -ENOMEM;
	u->rx.fd = fd;
	return 0;
}

void vb_udp_rx_fini(struct vb_udp *u)
{
	free(u->rx.buffers);
	close(u->rx.fd);
}

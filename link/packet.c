/* SPDX-License-Identifier: BSD-2-Clause */
/* The packet socket: a filter that the kernel runs, receiving frames, and
 * sending frames. */
#include "link/packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"

#define RX_MSGS 32
/* The largest frame, which GRO may have joined from many. */
#define RX_FRAME_BYTES (64 * 1024 + 64)
#define VLAN_BYTES     4
#define MACS_BYTES     12

#define RX_QUEUE_BYTES (4 << 20)

#define FILTER_HEAD  9
#define FILTER_WANT  13
#define FILTER_INSNS (FILTER_HEAD + VB_PACKET_WANTS * FILTER_WANT + 1)

struct packet {
	struct vb_link link;
	int fd;
	uint32_t ifindex;
	uint8_t mac[6];
	/* The interface is loopback: each frame that is sent also arrives. */
	bool loops;
	bool listening;
	/* RX_MSGS buffers of VLAN_BYTES + RX_FRAME_BYTES each */
	uint8_t *buffers;
	struct {
		_Atomic uint64_t tx_frames, tx_calls, tx_bytes, tx_lost;
		_Atomic uint64_t rx_frames, rx_calls, rx_bytes;
	} stats;
};

static struct packet *packet_of(const struct vb_link *l)
{
	return VB_CONTAINER_OF(l, struct packet, link);
}

static void link_count(_Atomic uint64_t *c, uint64_t n)
{
	atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

/*
 * The filter is a program of classic BPF. The kernel does not copy frames that
 * the filter refuses.
 */

struct filter {
	struct sock_filter insns[FILTER_INSNS];
	unsigned count;
};

static void link_add(struct filter *f, uint16_t code, uint32_t k, uint8_t yes,
		     uint8_t no)
{
	f->insns[f->count++] = (struct sock_filter){ code, yes, no, k };
}

static void add_return(struct filter *f, bool take)
{
	link_add(f, BPF_RET | BPF_K, take ? UINT32_MAX : 0, 0, 0);
}

/* Add instructions that accept an outgoing frame only if a hardware adapter
 * would loop it back: a frame to a group or to the interface's own address. */
static void add_head(struct filter *f, const struct packet *p)
{
	link_add(f, BPF_LD | BPF_B | BPF_ABS, SKF_AD_OFF + SKF_AD_PKTTYPE, 0,
		 0);
	link_add(f, BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 7);
	if (!p->loops) {
		link_add(f, BPF_LD | BPF_B | BPF_ABS, 0, 0, 0);
		link_add(f, BPF_JMP | BPF_JSET | BPF_K, 1, 5, 0);
		link_add(f, BPF_LD | BPF_W | BPF_ABS, 0, 0, 0);
		link_add(f, BPF_JMP | BPF_JEQ | BPF_K,
			 (uint32_t)vb_load_be(p->mac, 4), 0, 2);
		link_add(f, BPF_LD | BPF_H | BPF_ABS, 4, 0, 0);
		link_add(f, BPF_JMP | BPF_JEQ | BPF_K,
			 (uint32_t)vb_load_be(p->mac + 4, 2), 1, 0);
		add_return(f, false);
		return;
	}
	f->insns[f->count - 1].jf = 1;
	add_return(f, false);
}

/* Add a comparison of one word or half word of a frame's addresses with the
 * want @w. If they differ, the filter jumps to instruction @end, which follows
 * the instructions of @w. */
static void add_compare(struct filter *f, const struct vb_packet_want *w,
			unsigned at, unsigned bytes, unsigned end)
{
	const uint8_t *value = (const uint8_t *)&w->value + at;
	const uint8_t *mask = (const uint8_t *)&w->mask + at;
	uint32_t m = (uint32_t)vb_load_be(mask, bytes);

	if (m == 0)
		return;
	link_add(f, BPF_LD | BPF_ABS | (bytes == 4 ? BPF_W : BPF_H), at, 0, 0);
	link_add(f, BPF_ALU | BPF_AND | BPF_K, m, 0, 0);
	link_add(f, BPF_JMP | BPF_JEQ | BPF_K,
		 (uint32_t)vb_load_be(value, bytes) & m, 0,
		 (uint8_t)(end - f->count - 1));
}

static unsigned want_insns(const struct vb_packet_want *w)
{
	const uint8_t *mask = (const uint8_t *)&w->mask;
	unsigned words = 0;

	for (unsigned at = 0; at < MACS_BYTES; at += 4)
		words += vb_load_be(mask + at, 4) != 0;
	return 3 * words + 1;
}

static void add_want(struct filter *f, const struct vb_packet_want *w)
{
	unsigned end = f->count + want_insns(w);

	for (unsigned at = 0; at < MACS_BYTES; at += 4)
		add_compare(f, w, at, 4, end);
	add_return(f, true);
}

static int link_attach(int fd, struct filter *f)
{
	const struct sock_fprog prog = { (uint16_t)f->count, f->insns };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
			  sizeof(prog)) < 0
		       ? -errno
		       : 0;
}

static int set_filter(const struct packet *p,
		      const struct vb_packet_want *wants, unsigned n,
		      bool both_ways)
{
	struct filter f = { .count = 0 };

	if (!both_ways && n)
		add_head(&f, p);
	for (unsigned i = 0; n <= VB_PACKET_WANTS && i < n; i++)
		add_want(&f, &wants[i]);
	add_return(&f, both_ways || n > VB_PACKET_WANTS);
	return link_attach(p->fd, &f);
}

static int link_packet_bind_to(const struct packet *p, uint16_t protocol)
{
	const struct sockaddr_ll a = {
		.sll_family = AF_PACKET,
		.sll_ifindex = (int)p->ifindex,
		.sll_protocol = htons(protocol),
	};

	return bind(p->fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ? -errno
								       : 0;
}

/* Start to receive. A packet socket that receives all frames costs the host
 * time for every frame, so the link starts only when a rule wants frames. */
static int start_listening(struct packet *p)
{
	static const int on = 1, bytes = RX_QUEUE_BYTES;

	p->buffers = malloc((size_t)RX_MSGS * (VLAN_BYTES + RX_FRAME_BYTES));
	if (!p->buffers)
		return -ENOMEM;
	/* Ask the kernel to report VLAN tags that the interface removes from
	 * frames. */
	if (setsockopt(p->fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) < 0)
		return -errno;
	if (setsockopt(p->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes,
		       sizeof(bytes)) < 0 &&
	    setsockopt(p->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) < 0)
		vb_log(LOG_DEBUG,
		       "packet: cannot enlarge the receive queue: %s",
		       strerror(errno));
	return link_packet_bind_to(p, ETH_P_ALL);
}

int vb_packet_listen(struct vb_link *l, const struct vb_packet_want *wants,
		     unsigned n, bool both_ways)
{
	struct packet *p = packet_of(l);
	int rc = set_filter(p, wants, n, both_ways);

	if (rc || p->listening || (n == 0 && !both_ways))
		return rc;
	rc = start_listening(p);
	p->listening = rc == 0;
	if (rc) {
		free(p->buffers);
		p->buffers = NULL;
	}
	return rc;
}

static int set_member(const struct packet *p, int option,
		      enum vb_packet_member m, const uint8_t mac[6])
{
	static const uint16_t types[] = {
		[MEMBER_UNICAST] = PACKET_MR_UNICAST,
		[MEMBER_MULTICAST] = PACKET_MR_MULTICAST,
		[MEMBER_ALL_MULTICAST] = PACKET_MR_ALLMULTI,
		[MEMBER_ALL] = PACKET_MR_PROMISC,
	};
	struct packet_mreq r = { .mr_ifindex = (int)p->ifindex };

	if (m == MEMBER_NONE)
		return 0;
	r.mr_type = types[m];
	r.mr_alen = 6;
	memcpy(r.mr_address, mac, 6);
	return setsockopt(p->fd, SOL_PACKET, option, &r, sizeof(r)) < 0 ? -errno
									: 0;
}

int vb_packet_join(struct vb_link *l, enum vb_packet_member m,
		   const uint8_t mac[6])
{
	return set_member(packet_of(l), PACKET_ADD_MEMBERSHIP, m, mac);
}

void vb_packet_leave(struct vb_link *l, enum vb_packet_member m,
		     const uint8_t mac[6])
{
	if (set_member(packet_of(l), PACKET_DROP_MEMBERSHIP, m, mac))
		vb_log(LOG_DEBUG, "packet: cannot leave: it was not joined");
}

/* Send up to @n messages. Returns how many are done; a frame that the kernel
 * refuses is lost and counts as done. 0: the kernel has no room. */
static unsigned send_some(struct packet *p, struct mmsghdr *m, unsigned n)
{
	int sent = sendmmsg(p->fd, m, n, MSG_DONTWAIT);

	link_count(&p->stats.tx_calls, 1);
	if (sent > 0)
		return (unsigned)sent;
	if (errno == EAGAIN || errno == ENOBUFS)
		return 0;
	link_count(&p->stats.tx_lost, 1);
	return 1;
}

static void link_drop_frames(struct vb_link *l, struct vb_txq *q)
{
	link_count(&packet_of(l)->stats.tx_lost, q->count - q->first);
	vb_txq_reset(q);
}

/* Messages for sendmmsg(): each message is one frame. */
struct packet_out {
	struct mmsghdr msgs[VB_TXQ_FRAMES];
	struct iovec iov[VB_TXQ_FRAMES];
};
_Static_assert(sizeof(struct packet_out) <= VB_TXQ_ROOM, "in each batch");

static bool send_frames(struct vb_link *l, struct vb_txq *q)
{
	struct packet *p = packet_of(l);
	struct packet_out *out = (void *)q->room;
	struct mmsghdr *msgs = out->msgs;
	struct iovec *iov = out->iov;
	uint64_t bytes = 0;
	unsigned sent, i;

	for (i = q->first; i < q->count; i++) {
		iov[i] = (struct iovec){ q->bytes + q->frames[i].at,
					 q->frames[i].len };
		msgs[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &iov[i],
							 .msg_iovlen = 1 } };
	}
	for (i = q->first; i < q->count; i += sent) {
		sent = send_some(p, msgs + i, q->count - i);
		if (!sent)
			break;
	}
	link_count(&p->stats.tx_frames, i - q->first);
	for (; q->first < i; q->first++)
		bytes += q->frames[q->first].len;
	link_count(&p->stats.tx_bytes, bytes);
	if (i < q->count)
		return false;
	vb_txq_reset(q);
	return true;
}

struct rx_control {
	_Alignas(struct cmsghdr) char bytes[CMSG_SPACE(
		sizeof(struct tpacket_auxdata))];
};

static uint8_t *buffer_at(const struct packet *p, unsigned i)
{
	return p->buffers + (size_t)i * (VLAN_BYTES + RX_FRAME_BYTES);
}

static const struct tpacket_auxdata *find_auxdata(struct msghdr *h)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(h);

	for (; c; c = CMSG_NXTHDR(h, c))
		if (c->cmsg_level == SOL_PACKET &&
		    c->cmsg_type == PACKET_AUXDATA)
			return (const void *)CMSG_DATA(c);
	return NULL;
}

/* Put the VLAN tag, which the interface has removed, back into the frame; the
 * buffer has room for it before the frame. */
static void restore_tag(struct vb_frame *f, uint8_t *start, struct msghdr *h)
{
	const struct tpacket_auxdata *aux = find_auxdata(h);
	uint16_t tpid = ETH_P_8021Q;

	if (!aux || !(aux->tp_status & TP_STATUS_VLAN_VALID) ||
	    f->len < MACS_BYTES)
		return;
	if (aux->tp_status & TP_STATUS_VLAN_TPID_VALID)
		tpid = aux->tp_vlan_tpid;
	memmove(start, start + VLAN_BYTES, MACS_BYTES);
	vb_store_be(start + MACS_BYTES, tpid, 2);
	vb_store_be(start + MACS_BYTES + 2, aux->tp_vlan_tci, 2);
	f->bytes = start;
	f->len += VLAN_BYTES;
}

static void link_take_frame(struct packet *p, struct mmsghdr *m, uint8_t *start,
			    struct vb_rxq *q)
{
	struct vb_frame *f = &q->frames[q->count];

	if (m->msg_hdr.msg_flags & MSG_TRUNC)
		return;
	*f = (struct vb_frame){ .bytes = start + VLAN_BYTES,
				.len = m->msg_len,
				.ifindex = p->ifindex };
	restore_tag(f, start, &m->msg_hdr);
	link_count(&p->stats.rx_bytes, f->len);
	q->count++;
}

static int recv_frames(struct vb_link *l, struct vb_rxq *q)
{
	struct packet *p = packet_of(l);
	struct rx_control control[RX_MSGS];
	struct mmsghdr msgs[RX_MSGS];
	struct iovec iov[RX_MSGS];
	int n;

	q->count = 0;
	if (!p->listening)
		return 0;
	for (unsigned i = 0; i < RX_MSGS; i++) {
		iov[i] = (struct iovec){ buffer_at(p, i) + VLAN_BYTES,
					 RX_FRAME_BYTES };
		msgs[i] = (struct mmsghdr){
			.msg_hdr = { .msg_iov = &iov[i],
				     .msg_iovlen = 1,
				     .msg_control = &control[i],
				     .msg_controllen = sizeof(control[i]) }
		};
	}
	n = recvmmsg(p->fd, msgs, RX_MSGS, MSG_DONTWAIT, NULL);
	link_count(&p->stats.rx_calls, 1);
	for (int i = 0; i < n; i++)
		link_take_frame(p, &msgs[i], buffer_at(p, (unsigned)i), q);
	link_count(&p->stats.rx_frames, q->count);
	return n < 0 && errno != EAGAIN ? -errno : 0;
}

static int packet_fd(const struct vb_link *l)
{
	return packet_of(l)->fd;
}

static void packet_stats(const struct vb_link *l, struct vb_link_stats *out)
{
	struct packet *p = packet_of(l);

	*out = (struct vb_link_stats){
		.tx_frames = atomic_load(&p->stats.tx_frames),
		.tx_calls = atomic_load(&p->stats.tx_calls),
		.tx_bytes = atomic_load(&p->stats.tx_bytes),
		.tx_lost = atomic_load(&p->stats.tx_lost),
		.rx_frames = atomic_load(&p->stats.rx_frames),
		.rx_calls = atomic_load(&p->stats.rx_calls),
		.rx_bytes = atomic_load(&p->stats.rx_bytes),
	};
}

static void packet_close(struct vb_link *l)
{
	struct packet *p = packet_of(l);

	close(p->fd);
	free(p->buffers);
	free(p);
}

/* Raw frames have no routes, and multicast groups are joined by
 * vb_packet_join(), so these functions are missing. */
static const struct vb_link_ops packet_ops = {
	.name = "packet",
	.send = send_frames,
	.drop = link_drop_frames,
	.recv = recv_frames,
	.fd = packet_fd,
	.stats = packet_stats,
	.close = packet_close,
};

static int link_packet_open_socket(struct packet *p)
{
	int rc;

	/* Protocol 0: the socket receives no frame before start_listening(). */
	p->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0)
		return -errno;
	rc = link_packet_bind_to(p, 0);
	if (rc)
		close(p->fd);
	return rc;
}

int vb_packet_open(uint32_t ifindex, const uint8_t mac[6],
		   struct vb_link **link)
{
	static const uint8_t none[6];
	struct packet *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return -ENOMEM;
	p->link.ops = &packet_ops;
	p->ifindex = ifindex;
	memcpy(p->mac, mac, sizeof(p->mac));
	p->loops = memcmp(mac, none, sizeof(none)) == 0;
	rc = link_packet_open_socket(p);
	if (rc) {
		free(p);
		return rc;
	}
	*link = &p->link;
	return 0;
}

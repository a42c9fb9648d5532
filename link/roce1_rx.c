/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives RoCEv1 frames and checks them. */
#include "link/roce1_priv.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "wire/icrc.h"

/* Room for a whole frame, and for some padding behind it. */
#define RX_BYTES  ((VB_ROCE1_HEAD + VB_FRAME_MAX + 128) & ~63u)
#define LEAST	  (VB_BTH_BYTES + VB_ICRC_BYTES)
#define AT_SOURCE 6  /* offset of the source address in a frame */
#define AT_TYPE	  12 /* offset of the EtherType */
#define AT_GRH	  14
#define AT_SGID	  (AT_GRH + 8)
#define AT_DGID	  (AT_GRH + 24)

int vb_roce1_rx_init(struct vb_roce1 *r1)
{
	r1->buffers = malloc((size_t)VB_ROCE1_RX_MSGS * RX_BYTES);
	return r1->buffers ? 0 : -ENOMEM;
}

/* Set the interface, and the address of the sender. False: a frame on the
 * loopback interface that no RoCEv1 link has sent. */
static bool note_origin(const uint8_t *bytes, uint32_t ifindex,
			struct vb_frame *f)
{
	f->ifindex = ifindex;
	f->mac = bytes + AT_SOURCE;
	if (ifindex != VB_ROCE1_LOOPBACK)
		return true;
	f->ifindex = (uint32_t)vb_load_be(f->mac + 2, 4);
	f->mac = NULL;
	return vb_load_be(bytes + AT_SOURCE, 2) == VB_ROCE1_LOCAL;
}

/* Read the headers before the BTH, and the length, which must be that of a
 * packet. The frame may be longer. */
static bool read_roce1_head(const uint8_t *bytes, uint32_t len,
			    struct vb_frame *f)
{
	struct vb_grh g;

	if (len < VB_ROCE1_HEAD + LEAST ||
	    vb_load_be(bytes + AT_TYPE, 2) != VB_ROCE1_TYPE ||
	    !vb_grh_get_iba(bytes + AT_GRH, &g) || g.udp_bytes < LEAST ||
	    g.udp_bytes % 4 != 0 || g.udp_bytes > VB_FRAME_MAX ||
	    g.udp_bytes > len - VB_ROCE1_HEAD)
		return false;
	*f = (struct vb_frame){
		.bytes = bytes + VB_ROCE1_HEAD,
		.len = g.udp_bytes - VB_ICRC_BYTES,
		.src = (const void *)(bytes + AT_SGID),
		.dst = (const void *)(bytes + AT_DGID),
		.v1 = true,
		.tclass = g.tclass,
		.ttl = g.hop_limit,
		.flow_label = g.flow_label,
		.if_ip_id = -1,
	};
	return true;
}

enum vb_roce1_verdict vb_roce1_read(const uint8_t *bytes, uint32_t len,
				    uint32_t ifindex, struct vb_frame *f)
{
	struct vb_icrc_prefix prefix;
	uint16_t unused;

	if (!read_roce1_head(bytes, len, f) || !note_origin(bytes, ifindex, f))
		return ROCE1_MALFORMED;
	/* A frame to a group has a group's address in both headers. */
	if (vb_gid_is_multicast(f->src) ||
	    vb_gid_is_multicast(f->dst) != (bytes[0] & 1))
		return ROCE1_MALFORMED;
	vb_icrc_prefix_grh(&prefix, f->src, f->dst, f->len);
	return vb_icrc_check(&prefix, f->bytes, 0, &unused) == ICRC_GOOD
		       ? ROCE1_GOOD
		       : ROCE1_ICRC;
}

/* What recvmmsg() returns besides the bytes; on the stack during a call. */
struct roce1_batch {
	struct mmsghdr headers[VB_ROCE1_RX_MSGS];
	struct iovec vectors[VB_ROCE1_RX_MSGS];
	struct sockaddr_ll from[VB_ROCE1_RX_MSGS];
};

static int read_batch(struct vb_roce1 *r1, struct roce1_batch *b)
{
	for (unsigned i = 0; i < VB_ROCE1_RX_MSGS; i++) {
		b->vectors[i] =
			(struct iovec){ r1->buffers + (size_t)i * RX_BYTES,
					RX_BYTES };
		b->headers[i].msg_hdr = (struct msghdr){
			.msg_name = &b->from[i],
			.msg_namelen = sizeof(b->from[i]),
			.msg_iov = &b->vectors[i],
			.msg_iovlen = 1,
		};
	}
	return recvmmsg(r1->fd, b->headers, VB_ROCE1_RX_MSGS, MSG_DONTWAIT,
			NULL);
}

static enum vb_roce1_verdict judge_frame(const struct roce1_batch *b,
					 unsigned i, struct vb_frame *f)
{
	if (b->headers[i].msg_hdr.msg_flags & MSG_TRUNC)
		return ROCE1_MALFORMED;
	return vb_roce1_read(b->vectors[i].iov_base, b->headers[i].msg_len,
			     (uint32_t)b->from[i].sll_ifindex, f);
}

static void take_batch(struct vb_roce1 *r1, const struct roce1_batch *b,
		       unsigned n, struct vb_rxq *q)
{
	uint64_t seen[3] = { 0 }, bytes = 0;

	for (unsigned i = 0; i < n; i++) {
		enum vb_roce1_verdict v =
			judge_frame(b, i, &q->frames[q->count]);

		seen[v]++;
		if (v != ROCE1_GOOD)
			continue;
		bytes += b->headers[i].msg_len;
		q->count++;
	}
	vb_roce1_count(&r1->stats.rx_frames, q->count);
	vb_roce1_count(&r1->stats.rx_bytes, bytes);
	vb_roce1_count(&r1->stats.rx_malformed, seen[ROCE1_MALFORMED]);
	vb_roce1_count(&r1->stats.rx_icrc_errors, seen[ROCE1_ICRC]);
}

/* An interface that goes down leaves ENETDOWN, which is no fault of the
 * socket. */
int vb_roce1_recv(struct vb_link *l, struct vb_rxq *q)
{
	struct vb_roce1 *r1 = vb_roce1_of(l);
	struct roce1_batch b;
	int n = read_batch(r1, &b);

	q->count = 0;
	if (n < 0)
		return errno == EBADF || errno == ENOTSOCK ? -errno : 0;
	vb_roce1_count(&r1->stats.rx_calls, 1);
	take_batch(r1, &b, (unsigned)n, q);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends and receives MADs. A MAD is a UD SEND ONLY from queue pair 1 to queue
 * pair 1 with a well-known Q_Key (IBA 13.5.1). MADs are rare, so this file
 * routes and sends each separately.
 *
 * The ICRC covers the IPv4 Identification, which a socket does not report. The
 * engine checks that the Identification with which a packet's ICRC would be
 * right fits those of earlier packets (engine/dispatch.c); this file does not.
 * So one damaged MAD in 2^15 passes, and the connection manager then checks its
 * numbers and addresses.
 */
#include "broker/gsi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rand.h"
#include "broker/echo.h"
#include "link/roce1.h"
#include "link/udp.h"

#define UD_SEND_ONLY 0x64
#define DEFAULT_PKEY 0xffff
/* The most returned MADs that one call handles. */
#define MOST_RETURNS 64
/* The number of attempts to send while the socket has no room. */
#define SEND_TRIES 20
#define SEND_NAP   1000000 /* pause between tries, in nanoseconds */

struct vb_gsi {
	struct vb_link *link; /* RoCEv2 */
	/* NULL: this process may not open packet sockets */
	struct vb_link *v1;
	int fd; /* epoll descriptor of the two links */
	uint32_t psn;
	struct vb_echo_limit echoes;
	struct vb_txq txq;
	struct vb_rxq rxq;
};

static int watch_link(const struct vb_gsi *g, const struct vb_link *l)
{
	struct epoll_event readable = { .events = EPOLLIN };

	return epoll_ctl(g->fd, EPOLL_CTL_ADD, l->ops->fd(l), &readable) < 0
		       ? -errno
		       : 0;
}

/* Open the link of RoCEv1. It needs CAP_NET_RAW; without that capability the
 * broker uses only RoCEv2. */
static void open_v1(struct vb_gsi *g)
{
	int rc = vb_roce1_open(0, false, &g->v1);

	if (rc == 0) {
		rc = watch_link(g, g->v1);
		if (rc) {
			g->v1->ops->close(g->v1);
			g->v1 = NULL;
		}
	}
	if (rc)
		vb_log(LOG_INFO, "cm: no connections by RoCEv1: %s",
		       rc == -EPERM ? "this broker lacks CAP_NET_RAW"
				    : strerror(-rc));
}

/* Open the link of RoCEv2, which then owns @rx_fd, and watch it. On an error
 * @rx_fd is closed. */
static int open_v2(struct vb_gsi *g, int rx_fd)
{
	int rc = vb_udp_open(rx_fd, &g->link);

	if (rc) {
		close(rx_fd);
		return rc;
	}
	rc = watch_link(g, g->link);
	if (rc)
		g->link->ops->close(g->link);
	return rc;
}

static int gsi_open_links(struct vb_gsi *g, int rx_fd)
{
	int rc;

	g->fd = epoll_create1(EPOLL_CLOEXEC);
	if (g->fd < 0) {
		rc = -errno;
		close(rx_fd);
		return rc;
	}
	rc = open_v2(g, rx_fd);
	if (rc)
		close(g->fd);
	return rc;
}

int vb_gsi_open(int rx_fd, struct vb_gsi **gsi)
{
	struct vb_gsi *g = calloc(1, sizeof(*g));
	int rc;

	if (!g) {
		close(rx_fd);
		return -ENOMEM;
	}
	rc = gsi_open_links(g, rx_fd);
	if (rc) {
		free(g);
		return rc;
	}
	g->echoes.seed = (uint64_t)vb_rand32() << 32 | vb_rand32();
	vb_udp_want_returns(g->link);
	open_v1(g);
	*gsi = g;
	return 0;
}

void vb_gsi_close(struct vb_gsi *g)
{
	close(g->fd);
	if (g->v1)
		g->v1->ops->close(g->v1);
	g->link->ops->close(g->link);
	free(g);
}

bool vb_gsi_has_v1(const struct vb_gsi *g)
{
	return g->v1;
}

int vb_gsi_fd(const struct vb_gsi *g)
{
	return g->fd;
}

/* Begins a frame to @dqpn in the batch. Returns where its payload begins; the
 * caller writes @len bytes there. */
static uint8_t *gsi_put_frame(struct vb_gsi *g, const struct vb_route *route,
			      uint32_t dqpn, uint32_t len)
{
	const struct vb_ib_pkt pkt = {
		.bth = { .opcode = UD_SEND_ONLY,
			 .migrated = true,
			 .pkey = DEFAULT_PKEY,
			 .dqpn = dqpn,
			 .psn = g->psn++ & VB_PSN_MASK },
		.deth = { VB_GSI_QKEY, VB_GSI_QPN },
	};
	uint8_t *at = vb_txq_begin(&g->txq);
	size_t head = vb_ib_put_headers(at, &pkt);

	vb_txq_commit(&g->txq, (uint32_t)head + len, route);
	return at + head;
}

/* Send the batch, which has one MAD. Without room for it the MAD is lost; the
 * connection manager repeats it. */
static void gsi_send_one(struct vb_gsi *g, struct vb_link *l)
{
	for (int i = 0; i < SEND_TRIES; i++) {
		if (l->ops->send(l, &g->txq))
			return;
		nanosleep(&(struct timespec){ .tv_nsec = SEND_NAP }, NULL);
	}
	l->ops->drop(l, &g->txq);
}

void vb_gsi_send(struct vb_gsi *g, const struct vb_mad_path *path,
		 const uint8_t mad[VB_MAD_BYTES])
{
	struct vb_link *l = path->v1 ? g->v1 : g->link;
	struct vb_route route = {
		.sgid = path->sgid,
		.dgid = path->dgid,
		.ifindex = path->ifindex,
		.tclass = path->tclass,
		.v1 = path->v1,
		.priority = path->tclass >> 5,
		.dqpn = VB_GSI_QPN,
		.sqpn = VB_GSI_QPN,
	};

	if (!l || l->ops->route(l, &route))
		return;
	memcpy(gsi_put_frame(g, &route, VB_GSI_QPN, VB_MAD_BYTES), mad,
	       VB_MAD_BYTES);
	gsi_send_one(g, l);
}

/* Answers an echo. Without room for the answer it is lost, as on a wire. */
static void gsi_answer_echo(struct vb_gsi *g, struct vb_link *l,
			    const struct vb_frame *f, struct vb_echo *answer,
			    uint32_t len, uint32_t qpn)
{
	struct vb_route route = { .sgid = *f->dst,
				  .dgid = *f->src,
				  .ifindex = f->ifindex,
				  .v1 = f->v1,
				  .dqpn = qpn,
				  .sqpn = VB_GSI_QPN };

	len &= ~3u; /* no pad bytes */
	if (!vb_echo_may(&g->echoes, f->src, vb_clock_read()) ||
	    l->ops->route(l, &route))
		return;
	answer->mtu = vb_echo_mtu(f->ifindex);
	vb_echo_put(gsi_put_frame(g, &route, qpn, len), len, answer);
	if (!l->ops->send(l, &g->txq))
		l->ops->drop(l, &g->txq);
}

static bool is_mad(const uint8_t *bytes, uint32_t len, struct vb_ib_pkt *pkt)
{
	return vb_ib_parse(bytes, len, pkt) == PARSE_OK &&
	       pkt->bth.opcode == UD_SEND_ONLY && pkt->bth.dqpn == VB_GSI_QPN &&
	       (pkt->bth.pkey & 0x7fff) == (DEFAULT_PKEY & 0x7fff) &&
	       pkt->deth.sqpn == VB_GSI_QPN && pkt->deth.qkey == VB_GSI_QKEY &&
	       pkt->payload_bytes == VB_MAD_BYTES;
}

static void gsi_recv_from(struct vb_gsi *g, struct vb_link *l,
			  void (*take)(void *arg,
				       const struct vb_mad_path *back,
				       const uint8_t *bytes, size_t len),
			  void *arg)
{
	struct vb_echo answer;
	struct vb_ib_pkt pkt;
	uint32_t len, qpn;

	if (l->ops->recv(l, &g->rxq) < 0)
		return;
	for (unsigned i = 0; i < g->rxq.count; i++) {
		const struct vb_frame *f = &g->rxq.frames[i];
		const struct vb_mad_path back = { .sgid = *f->dst,
						  .dgid = *f->src,
						  .ifindex = f->ifindex,
						  .v1 = f->v1 };

		if (vb_gid_is_multicast(f->dst))
			continue;
		if (is_mad(f->bytes, f->len, &pkt))
			take(arg, &back, pkt.payload, pkt.payload_bytes);
		else if (vb_ib_parse(f->bytes, f->len, &pkt) == PARSE_OK &&
			 vb_echo_is_asked(f, &pkt, &answer, &len, &qpn))
			gsi_answer_echo(g, l, f, &answer, len, qpn);
	}
}

void vb_gsi_recv(struct vb_gsi *g,
		 void (*take)(void *arg, const struct vb_mad_path *back,
			      const uint8_t *bytes, size_t len),
		 void *arg)
{
	gsi_recv_from(g, g->link, take, arg);
	if (g->v1)
		gsi_recv_from(g, g->v1, take, arg);
}

/* Reads returned MADs. ICMP quotes at least 8 bytes of a packet (RFC 792), but
 * today as many as fit into 576 bytes (RFC 1812 4.3.2.3), or into 1280 bytes
 * with ICMPv6 (RFC 4443): a whole MAD. */
void vb_gsi_returns(struct vb_gsi *g,
		    void (*take)(void *arg, const struct vb_gid *to,
				 const uint8_t *bytes, size_t len, int error),
		    void *arg)
{
	uint8_t bytes[VB_IB_MAX_HDR_BYTES + VB_MAD_BYTES + VB_ICRC_BYTES];
	struct vb_ib_pkt pkt;
	struct vb_udp_return r;

	for (unsigned i = 0;
	     i < MOST_RETURNS &&
	     vb_udp_next_return(g->link, bytes, sizeof(bytes), &r);
	     i++)
		if (r.len > VB_ICRC_BYTES &&
		    is_mad(bytes, (uint32_t)r.len - VB_ICRC_BYTES, &pkt))
			take(arg, &r.to, pkt.payload, pkt.payload_bytes,
			     r.error);
}

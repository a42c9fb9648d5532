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
#include <time.h>

#include "link/link.h"
#include "link/udp.h"

#define UD_SEND_ONLY 0x64
#define DEFAULT_PKEY 0xffff
/* The most returned MADs that one call handles. */
#define MOST_RETURNS 64
/* Tries to send while the socket has no room. */
#define SEND_TRIES 20
#define SEND_NAP   1000000 /* pause between tries, in nanoseconds */

struct vb_gsi {
	struct vb_link *link;
	uint32_t psn;
	struct vb_txq txq;
	struct vb_rxq rxq;
};

int vb_gsi_open(int rx_fd, struct vb_gsi **gsi)
{
	struct vb_gsi *g = calloc(1, sizeof(*g));
	int rc;

	if (!g)
		return -ENOMEM;
	rc = vb_udp_open(rx_fd, &g->link);
	if (rc) {
		free(g);
		return rc;
	}
	vb_udp_want_returns(g->link);
	*gsi = g;
	return 0;
}

void vb_gsi_close(struct vb_gsi *g)
{
	g->link->ops->close(g->link);
	free(g);
}

int vb_gsi_fd(const struct vb_gsi *g)
{
	return g->link->ops->fd(g->link);
}

static void gsi_put_frame(struct vb_gsi *g, const struct vb_route *route,
			  const uint8_t mad[VB_MAD_BYTES])
{
	const struct vb_ib_pkt pkt = {
		.bth = { .opcode = UD_SEND_ONLY,
			 .migrated = true,
			 .pkey = DEFAULT_PKEY,
			 .dqpn = VB_GSI_QPN,
			 .psn = g->psn++ & VB_PSN_MASK },
		.deth = { VB_GSI_QKEY, VB_GSI_QPN },
	};
	uint8_t *at = vb_txq_begin(&g->txq);
	size_t head = vb_ib_put_headers(at, &pkt);

	memcpy(at + head, mad, VB_MAD_BYTES);
	vb_txq_commit(&g->txq, (uint32_t)head + VB_MAD_BYTES, route);
}

void vb_gsi_send(struct vb_gsi *g, const struct vb_mad_path *path,
		 const uint8_t mad[VB_MAD_BYTES])
{
	struct vb_route route = {
		.sgid = path->sgid,
		.dgid = path->dgid,
		.ifindex = path->ifindex,
		.tclass = path->tclass,
		.dqpn = VB_GSI_QPN,
		.sqpn = VB_GSI_QPN,
	};

	if (g->link->ops->route(g->link, &route))
		return;
	gsi_put_frame(g, &route, mad);
	for (int i = 0; i < SEND_TRIES; i++) {
		if (g->link->ops->send(g->link, &g->txq))
			return;
		nanosleep(&(struct timespec){ .tv_nsec = SEND_NAP }, NULL);
	}
	g->link->ops->drop(g->link,
			   /* the MAD is lost; the connection manager repeats
			    * it */
			   &g->txq);
}

static bool is_mad(const uint8_t *bytes, uint32_t len, struct vb_ib_pkt *pkt)
{
	return vb_ib_parse(bytes, len, pkt) == PARSE_OK &&
	       pkt->bth.opcode == UD_SEND_ONLY && pkt->bth.dqpn == VB_GSI_QPN &&
	       (pkt->bth.pkey & 0x7fff) == (DEFAULT_PKEY & 0x7fff) &&
	       pkt->deth.sqpn == VB_GSI_QPN && pkt->deth.qkey == VB_GSI_QKEY &&
	       pkt->payload_bytes == VB_MAD_BYTES;
}

void vb_gsi_recv(struct vb_gsi *g,
		 void (*take)(void *arg, const struct vb_mad_path *back,
			      const uint8_t *bytes, size_t len),
		 void *arg)
{
	struct vb_ib_pkt pkt;

	if (g->link->ops->recv(g->link, &g->rxq) < 0)
		return;
	for (unsigned i = 0; i < g->rxq.count; i++) {
		const struct vb_frame *f = &g->rxq.frames[i];
		const struct vb_mad_path back = { .sgid = *f->dst,
						  .dgid = *f->src,
						  .ifindex = f->ifindex };

		if (!vb_gid_is_multicast(f->dst) &&
		    is_mad(f->bytes, f->len, &pkt))
			take(arg, &back, pkt.payload, pkt.payload_bytes);
	}
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

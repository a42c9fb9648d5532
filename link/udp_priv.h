/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the UDP link. */
#ifndef LINK_UDP_PRIV_H
#define LINK_UDP_PRIV_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/sync.h"
#include "link/udp.h"
#include "wire/icrc.h"
#include "wire/ipc.h"

union vb_udp_addr {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct vb_udp_stats {
	_Atomic uint64_t tx_frames, tx_calls, tx_bytes, tx_lost;
	_Atomic uint64_t rx_frames, rx_calls, rx_bytes, rx_icrc_errors,
		rx_malformed;
};

/* One sending socket. @fd is -1 until the socket is first needed; a thread that
 * sees the descriptor also sees @port. */
struct vb_udp_out {
	_Atomic int fd;
	uint16_t port;
};

/* The sockets that send to one destination slot, on any host. */
struct vb_udp_channel {
	struct vb_udp_out whole;
	/* A socket whose packets the kernel may cut into IP fragments, for
	 * packets that have become too long for their interface. */
	struct vb_udp_out pieces;
	/* The kernel refused joined messages (UDP_SEGMENT): packets are sent
	 * one by one until @apart_until, a time @apart_for after the refusal.
	 * 0: join messages. */
	_Atomic vb_time apart_until, apart_for;
};

/* The headers of one received datagram, which hold for every frame cut from
 * it. */
struct vb_udp_origin {
	struct vb_icrc_path path;
	uint32_t ifindex;
	uint32_t bytes;
	/* Bytes of each frame with its ICRC; the last frame may be shorter. */
	uint32_t segment;
	/* the ICRC prefix of a frame of @segment bytes */
	struct vb_icrc_prefix prefix;
	uint8_t tclass, ttl;
};

#define VB_UDP_RX_MSGS	8
#define VB_UDP_RX_BYTES (64 * 1024)

struct vb_udp_rx {
	int fd;
	uint8_t *buffers; /* VB_UDP_RX_MSGS buffers of VB_UDP_RX_BYTES each */

	/* datagrams that were read and are not yet wholly cut into frames;
	 * protected by the caller's receive lock */
	struct vb_udp_origin origins[VB_UDP_RX_MSGS];
	unsigned count, next;
	/* position of the next frame within datagram @next */
	uint32_t offset, index;
	struct {
		uint64_t bytes, icrc_errors, malformed;
	} seen; /* frames and bytes counted in this call, for the statistics */
};

struct vb_udp {
	struct vb_link link;

	/* The fields below do not change after vb_udp_open(). */

	/* family of all sockets of this link, AF_INET6 or AF_INET */
	int family;
	bool wants_returns; /* the owner has called vb_udp_want_returns() */

	struct vb_mutex open_lock; /* held while a sending socket is opened */
	struct vb_udp_channel channels[VB_SLOTS];

	/* Atomic fields, which all threads write. */
	atomic_bool gso; /* the kernel supports UDP_SEGMENT */
	/* The link has logged that the kernel refused joined messages. */
	atomic_bool told_apart;
	/* Bit number errno is set when the link has logged this error once. */
	_Atomic uint64_t complained[3];
	struct vb_udp_stats stats;

	struct vb_udp_rx rx;
};

static inline struct vb_udp *vb_udp_of(const struct vb_link *l)
{
	return VB_CONTAINER_OF(l, struct vb_udp, link);
}

static inline void vb_udp_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* Functions of link/udp_channel.c. */
/* Opens channel 0; every other channel is opened by its first route. 0 or
 * -errno. */
VB_MUST_CHECK int vb_udp_tx_init(struct vb_udp *u);
void vb_udp_tx_fini(struct vb_udp *u);
/* Returns the descriptor of @o, which the first call opens; or -errno. */
VB_MUST_CHECK int vb_udp_out_open(struct vb_udp *u, struct vb_udp_out *o,
				  bool in_pieces) VB_EXCLUDES(u->open_lock);
int vb_udp_route(struct vb_link *l, struct vb_route *r);
int vb_udp_aim(struct vb_link *l, struct vb_route *r);

/* Functions of link/udp_tx.c. */
bool vb_udp_send(struct vb_link *l, struct vb_txq *q);
void vb_udp_drop(struct vb_link *l, struct vb_txq *q);

/* Functions of link/udp_rx.c. */
VB_MUST_CHECK int vb_udp_rx_init(struct vb_udp *u, int fd);
void vb_udp_rx_fini(struct vb_udp *u);
int vb_udp_recv(struct vb_link *l, struct vb_rxq *q);

#endif

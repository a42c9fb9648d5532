/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the RoCEv1 link. */
#ifndef LINK_ROCE1_PRIV_H
#define LINK_ROCE1_PRIV_H

#include <stdatomic.h>

#include "base/sync.h"
#include "link/neigh.h"
#include "link/roce1.h"

#define VB_ROCE1_PORTS	 64
#define VB_ROCE1_RX_MSGS 64

/* What the kernel said of an interface when a route first used it, or since. */
struct vb_roce1_port {
	uint32_t ifindex; /* 0: the entry is unused */
	struct vb_neigh_port is;
};

struct vb_roce1 {
	struct vb_link link;
	int fd;
	unsigned slot;
	bool waits;	  /* route() may wait for a neighbour's answer */
	uint8_t *buffers; /* VB_ROCE1_RX_MSGS buffers, one behind the other */

	struct vb_mutex lock;
	/* The fields below are protected by lock. */
	struct vb_roce1_port ports[VB_ROCE1_PORTS];
	unsigned next;	 /* the entry of @ports that is overwritten next */
	bool has_groups; /* the filter lets in frames to groups */

	struct {
		_Atomic uint64_t tx_frames, tx_calls, tx_bytes, tx_lost;
		_Atomic uint64_t rx_frames, rx_calls, rx_bytes, rx_icrc_errors,
			rx_malformed;
	} stats;
};

static inline struct vb_roce1 *vb_roce1_of(const struct vb_link *l)
{
	return VB_CONTAINER_OF(l, struct vb_roce1, link);
}

static inline void vb_roce1_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* Functions of link/roce1_tx.c. */
int vb_roce1_route(struct vb_link *l, struct vb_route *r);
int vb_roce1_aim(struct vb_link *l, struct vb_route *r);
bool vb_roce1_send(struct vb_link *l, struct vb_txq *q);
void vb_roce1_drop(struct vb_link *l, struct vb_txq *q);

/* A function of link/roce1_rx.c. */
int vb_roce1_recv(struct vb_link *l, struct vb_rxq *q);
VB_MUST_CHECK int vb_roce1_rx_init(struct vb_roce1 *r1);

#endif

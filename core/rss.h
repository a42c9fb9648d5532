/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive-side scaling: which of several work queues receives a frame. A work
 * queue is the receiving half of a queue pair (QPT_WQ); its states are RESET,
 * RTR and ERR, it has neither INIT nor RTS. */
#ifndef CORE_RSS_H
#define CORE_RSS_H

#include "core/qp.h"
#include "wire/eth.h"
#include "wire/toeplitz.h"

/* The header fields of a frame that can enter the hash: the bits of enum
 * ibv_rx_hash_fields, with the ABI's values. */
enum vb_rss_field {
	RSS_SRC_IPV4 = 1 << 0,
	RSS_DST_IPV4 = 1 << 1,
	RSS_SRC_IPV6 = 1 << 2,
	RSS_DST_IPV6 = 1 << 3,
	RSS_SRC_PORT_TCP = 1 << 4,
	RSS_DST_PORT_TCP = 1 << 5,
	RSS_SRC_PORT_UDP = 1 << 6,
	RSS_DST_PORT_UDP = 1 << 7,
};
#define VB_RSS_FIELDS	 0xffu
#define VB_RSS_MAX_TABLE 512

struct vb_rss {
	uint8_t key[VB_TOEPLITZ_KEY_BYTES];
	uint32_t fields; /* the fields that enter the hash, enum vb_rss_field */
	uint32_t count;	 /* number of queues, a power of two */
	struct vb_qp *queues[];
};

/* May the hash use @fields? -EINVAL: IPv4 together with IPv6, or TCP with UDP;
 * -EOPNOTSUPP: unknown fields. */
VB_MUST_CHECK int vb_rss_check(uint64_t fields);

/* Returns the Toeplitz hash of a frame, over those fields of @rss that the
 * frame has. */
uint32_t vb_rss_hash(const struct vb_rss *rss, const struct vb_eth_key *key);

static inline struct vb_qp *vb_rss_pick(const struct vb_rss *rss,
					const struct vb_eth_key *key)
{
	return rss->queues[vb_rss_hash(rss, key) & (rss->count - 1)];
}

#endif
